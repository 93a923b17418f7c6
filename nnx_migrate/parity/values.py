"""Arrays as plain data: what they are, deterministic values for them, and bit-exact comparison.

Everything here is numpy on the host, so that two processes which never meet agree on the values
of a parameter by its path, shape and dtype alone.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils

Array: TypeAlias = np.ndarray[Any, Any]
Arrays: TypeAlias = dict[str, Array]


NOTHING, ALL_NAN, ALL_ZERO = "nothing was compared", "every number is NaN", "every number is zero"
EMPTY = (NOTHING, ALL_NAN, ALL_ZERO)  # what a set of arrays may be that proves nothing
_MEANS = ("mean", "running_mean", "moving_mean")


@dataclass(frozen=True)
class ShapeDtype:
    """Shape and dtype of one array; a typed PRNG key has the dtype ``key<impl>``."""

    shape: tuple[int, ...]
    dtype: str

    def __str__(self) -> str:
        """Return for example ``float32[2,3]``."""
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


def shape_dtype(value: Any) -> ShapeDtype:
    """Return the shape and dtype of an array, abstract or not."""
    return ShapeDtype(tuple(value.shape), str(value.dtype))


def is_array(value: Any) -> bool:
    """Whether a leaf is traced and compared as numbers: an array, not a scalar of Python or numpy."""
    return isinstance(value, np.ndarray | jax.Array | jax.ShapeDtypeStruct)


def is_key(value: Any) -> bool:
    """Whether an array holds typed PRNG keys."""
    return bool(jnp.issubdtype(value.dtype, jax.dtypes.prng_key))


def to_host(value: Any) -> Array:
    """Fetch one array, whole, whichever processes hold its parts; of PRNG keys their raw data."""
    if isinstance(value, jax.Array) and is_key(value):
        value = jax.random.key_data(value)
    if isinstance(value, jax.Array) and not value.is_fully_addressable:
        value = multihost_utils.process_allgather(value, tiled=True)
    return np.asarray(value)


def is_inexact(dtype: Any) -> bool:
    """Whether a dtype (name) is floating point or complex; bfloat16 and float8 included."""
    try:
        return bool(jnp.issubdtype(jnp.dtype(dtype), jnp.inexact))
    except TypeError:
        return False  # key<fry>


def random_value(path: str, spec: ShapeDtype, initial: Any, seed: int) -> Any:
    """Return the value that a variable has in every check but ``init_values``.

    ``path`` starts with the collection. Floating-point parameters are normal with the scale of a
    usual initialiser, so that nothing saturates: ``fan_in ** -0.5`` for kernels, about 1 for
    scales, 0.3 for other vectors, never all zero. Floating-point variables of other collections
    are positive (a variance must be), running means of both signs: positive ones alone leave nothing
    behind a few layers of normalisation and ReLU. Integers beside the parameters that all start at zero
    (counters) are one, so that a counter shows; everything else (keys) keeps ``initial``.
    """
    if not is_inexact(spec.dtype):
        return _positive_count(path, spec, initial)
    normal = _normal(path, spec, seed)
    name = path.rsplit("/", 1)[-1]
    if not path.startswith("params/"):
        value = 0.3 * normal if name in _MEANS else np.abs(normal) + 0.5
    elif name in ("scale", "gamma"):
        value = 1 + 0.1 * normal
    elif len(spec.shape) < 2:
        value = 0.3 * normal
    else:
        value = normal * math.prod(spec.shape[:-1]) ** -0.5
    return value.astype(jnp.dtype(spec.dtype))


def _positive_count(path: str, spec: ShapeDtype, initial: Any) -> Any:
    if path.startswith("params/") or not spec.dtype.startswith(("int", "uint")):
        return initial
    return jnp.where(jnp.any(initial != 0), initial, jnp.ones_like(initial))


def _normal(path: str, spec: ShapeDtype, seed: int) -> Array:
    digest = hashlib.sha256(f"{seed} {path} {spec}".encode()).digest()
    generator = np.random.Generator(np.random.Philox(key=int.from_bytes(digest[:16], "little")))
    # An empty product would make fan_in 0: such arrays have no elements to scale anyway.
    real = generator.standard_normal(spec.shape, dtype=np.float32)
    if jnp.issubdtype(jnp.dtype(spec.dtype), jnp.complexfloating):
        return np.asarray(real + 1j * generator.standard_normal(spec.shape, dtype=np.float32))
    return np.asarray(real)


def same_bits(left: Array, right: Array) -> bool:
    """Whether two arrays agree in shape, dtype and every bit (so NaN equals the same NaN)."""
    if left.shape != right.shape or left.dtype != right.dtype:
        return False
    return left.tobytes() == right.tobytes()


def same_finite(left: Array, right: Array) -> bool:
    """Whether two arrays agree in every bit of what is finite on one side at least."""
    if same_bits(left, right):
        return True
    if left.shape != right.shape or left.dtype != right.dtype or not is_inexact(left.dtype):
        return False
    wide: Any = np.complex128 if np.iscomplexobj(left) else np.float64
    is_finite = np.isfinite(left.astype(wide)) | np.isfinite(right.astype(wide))
    return same_bits(left[is_finite], right[is_finite])


def within(left: Array, right: Array, tolerance: float) -> bool:
    """Whether no element is further off than ``tolerance`` times the largest absolute value."""
    if left.shape != right.shape or left.dtype != right.dtype:
        return False
    if not is_inexact(left.dtype):
        return False
    worst, largest = _distance(left, right)
    return bool(worst <= tolerance * largest)  # False when either side has a NaN


def relative_difference(left: Array, right: Array) -> float:
    """Return the largest difference as a part of the largest absolute value.

    Infinite where no number tells it: other shapes or dtypes, NaN, infinities, nothing but zeros.
    """
    if left.shape != right.shape or left.dtype != right.dtype:
        return math.inf
    worst, largest = _distance(left, right)
    if worst == 0:
        return 0.0  # only the signs of zeros differ
    part = worst / largest if largest else math.inf
    return part if math.isfinite(part) else math.inf


def describe_difference(left: Array, right: Array) -> str:
    """Say in a few words how two arrays differ."""
    if left.shape != right.shape or left.dtype != right.dtype:
        return f"Linen {_spec(left)}, NNX {_spec(right)}"
    if not is_inexact(left.dtype):
        return f"{int(np.sum(left != right))} of {left.size} elements differ"
    worst, largest = _distance(left, right)
    bits = _bits(left) != _bits(right)
    return (
        f"{int(np.sum(bits.any(-1)))} of {left.size} elements differ, "
        f"largest difference {worst:.3g} where the largest value is {largest:.3g}"
    )


def _spec(value: Array) -> str:
    return str(ShapeDtype(value.shape, str(value.dtype)))


def _bits(value: Array) -> Array:
    flat = np.ascontiguousarray(value).reshape(-1, 1)
    return flat.view(np.uint8).reshape(flat.shape[0], value.dtype.itemsize)


def _distance(left: Array, right: Array) -> tuple[float, float]:
    if not left.size:
        return 0.0, 0.0
    wide: Any = np.complex128 if np.iscomplexobj(left) else np.float64
    one, other = left.astype(wide), right.astype(wide)
    with np.errstate(invalid="ignore"):
        return float(np.max(np.abs(one - other))), float(np.max(np.abs(one)))


def emptiness(arrays: Iterable[Array]) -> str | None:
    """Say why a set of arrays cannot prove anything: nothing there, all zeros, only NaN."""
    present = [value for value in arrays if value.size]
    if not present:
        return NOTHING
    if all(is_inexact(value.dtype) and _all_nan(value) for value in present):
        return ALL_NAN
    if not any(np.any(_nonzero(value)) for value in present):
        return ALL_ZERO
    return None


def _all_nan(value: Array) -> bool:
    return bool(np.all(np.isnan(value.astype(np.complex128))))


def _nonzero(value: Array) -> Array:
    return np.asarray(value != np.zeros((), value.dtype))


def key_name(entry: Any) -> str:
    """Return the name of one step of a JAX key path."""
    for attribute in ("key", "name", "idx"):
        if hasattr(entry, attribute):
            return str(getattr(entry, attribute))
    return str(entry)


def path_of(entries: Iterable[Any]) -> str:
    """Join a JAX key path with slashes."""
    return "/".join(key_name(entry) for entry in entries)


def named_leaves(tree: Any) -> tuple[dict[str, Any], Any]:
    """Return the leaves of a pytree by slash path, in flattening order, and its treedef."""
    entries, treedef = jax.tree_util.tree_flatten_with_path(tree)
    return {path_of(path): leaf for path, leaf in entries}, treedef


def fetch(tree: Mapping[str, Any]) -> Arrays:
    """Fetch a dict of arrays."""
    return {name: to_host(value) for name, value in tree.items()}
