"""Helpers for what Linen does at run time: lists of submodules, variables made by the first call."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from flax.core import FrozenDict

from nnx_migrate.nn.variables.state import has_variable
from nnx_migrate.nn.variables.variables import variable

T = TypeVar("T")


def freeze(value: Any) -> Any:
    """What Linen makes of a field or attribute: lists become tuples, dicts FrozenDicts, deeply."""
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return tuple(freeze(one) for one in value)
    if isinstance(value, dict | FrozenDict):
        return _frozen({key: freeze(one) for key, one in value.items()})
    return value


class _OrderedItems(FrozenDict[Any, Any]):
    """``{"a": 1, 2: 3}``: no pytree, since jax sorts the keys of those; NNX looks into attributes that are."""


def _frozen(value: dict[Any, Any]) -> Any:
    kind: Any = FrozenDict
    try:
        sorted(value)
    except TypeError:
        kind = _OrderedItems
    return kind(value)


def constant(value: Any) -> Any:
    """A plain attribute of Linen's ``setup``; arrays in it become data, also while tracing."""
    arrays = (jax.Array, np.ndarray)  # nnx.is_data knows no tracers
    holds_one = any(isinstance(one, arrays) for one in jax.tree.leaves(value))
    return nnx.data(value) if holds_one else value


def as_field(value: Any) -> Any:
    """What a field of a Linen module holds that ``__post_init__`` sets: frozen, arrays as data."""
    return constant(freeze(value))


@dataclass(frozen=True)
class _Child:
    """Stands for the submodule held by the attribute ``name``."""

    name: str


@dataclass(frozen=True)
class _Named:
    module: Any
    name: str


def named(name: str, module: Any) -> Any:
    """An element for :func:`set_submodules` whose attribute is ``name``, as Linen's ``name=``."""
    return _Named(module, name)


def set_submodules(owner: nnx.Module, attribute: str, value: Any) -> None:
    """``self.<attribute> = value`` of Linen's ``setup`` for a value that holds submodules.

    Every submodule becomes an attribute of its own, named as Linen names it: ``layers_0`` in a
    list, ``layers_key`` in a dict, ``layers_0_1`` nested. One that ``owner`` holds already keeps its
    attribute; one that stands in several places gets the first name, in Linen's order (sorted as
    text: flax 0.12.8, linen/module.py, ``_map_over_modules_in_tree``). Read the value back with
    :func:`get_submodules`.
    """
    names_by_id = {id(one): key for key, one in vars(owner).items() if isinstance(one, nnx.Module)}
    for path, one in sorted(_submodules(value, (attribute,)), key=lambda entry: entry[0]):
        name, module = (one.name, one.module) if isinstance(one, _Named) else ("_".join(path), one)
        if id(module) not in names_by_id:
            if isinstance(module, nnx.Variable) and hasattr(owner, name):
                raise ValueError(
                    f"expected {name!r} to be free in {type(owner).__name__}: it is the name of a "
                    f"parameter in {attribute!r}, and an NNX module has one attribute of a name"
                )
            setattr(owner, name, module)
            names_by_id[id(module)] = name
    setattr(owner, f"_{attribute}_structure", _with_placeholders(value, names_by_id))


def _submodules(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The submodules in a structure of lists, tuples and dicts, with their places."""
    if isinstance(value, nnx.Module | nnx.Variable | _Named):
        yield path, value
    elif isinstance(value, list | tuple):
        for index, one in enumerate(value):
            yield from _submodules(one, (*path, str(index)))
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield from _submodules(one, (*path, str(key)))


def _with_placeholders(value: Any, names_by_id: Mapping[int, str]) -> Any:
    """A structure with the names of its submodules in their places."""
    if isinstance(value, _Named):
        value = value.module
    if isinstance(value, nnx.Module | nnx.Variable):
        return _Child(names_by_id[id(value)])
    if isinstance(value, list | tuple):
        return tuple(_with_placeholders(one, names_by_id) for one in value)
    if isinstance(value, Mapping):
        return _frozen({key: _with_placeholders(one, names_by_id) for key, one in value.items()})
    return value


def get_submodules(owner: nnx.Module, attribute: str) -> Any:
    """What :func:`set_submodules` stored: lists come back as tuples, dicts as FrozenDicts.

    Parameters come back as their arrays, as from Linen's ``self.param``.
    """
    return _load(owner, getattr(owner, f"_{attribute}_structure"))


def _load(owner: nnx.Module, value: Any) -> Any:
    if isinstance(value, _Child):
        found = getattr(owner, value.name)
        return found[...] if isinstance(found, nnx.Variable) else found
    if isinstance(value, tuple):
        return tuple(_load(owner, one) for one in value)
    if isinstance(value, Mapping):
        return _frozen({key: _load(owner, one) for key, one in value.items()})
    return value


def read(value: nnx.Variable[Any] | None) -> Any:
    """The array of a parameter that a module may do without; None when it does."""
    return None if value is None else value[...]


def abstract_array(shape: Any) -> Any:
    """A float array of which only the shape is known: an input of Linen's initial call.

    None where the initial call has none; of an input that is several arrays, those, where ``shape`` is
    the same structure of shapes: ``[(2, 3), (2, 5)]``, ``Observation(image=(2, 8, 8, 3), state=(2, 4))``.
    """
    if isinstance(shape, list) and shape and all(isinstance(one, int) for one in shape):
        shape = tuple(shape)
    return jax.tree.map(
        lambda one: jax.ShapeDtypeStruct(one, jnp.float32), shape, is_leaf=_is_shape
    )


def _is_shape(value: Any) -> bool:
    return type(value) is tuple and jax.tree_util.all_leaves(value)


class _Either:
    """Stands for True and for False."""

    def __repr__(self) -> str:
        return "nnm.EITHER"


EITHER = _Either()  # a flag that only the call knows


def abstractly(function: Callable[..., Any], *arrays: Any) -> Any:
    """``function(*arrays)`` without values: what a shape in ``__init__`` is the shape of.

    Arrays are floats until the function refuses them: an input may be of integers (``Embed``) or a key.

    Raises:
      ValueError: an argument is ``EITHER``, and True gives other shapes than False.
    """
    flags = [index for index, one in enumerate(arrays) if one is EITHER]
    found = []
    for values in itertools.product((False, True), repeat=len(flags)):
        flag_values = dict(zip(flags, values, strict=True))
        found.append(_abstract_result(function, arrays, flag_values))
    if any(one != found[0] for one in found):
        raise ValueError(
            f"expected one shape whatever the flags of the call are, found {found}: "
            "make the flag a constructor argument"
        )
    return found[0]


_MOST_TRIALS = 64  # of other dtypes than floats


def _abstract_result(
    function: Callable[..., Any], arrays: Sequence[Any], flag_values: dict[int, bool]
) -> Any:
    rest = [one for index, one in enumerate(arrays) if index not in flag_values]

    def call(*shapes: Any) -> Any:
        left = iter(shapes)
        return function(
            *(flag_values[i] if i in flag_values else next(left) for i in range(len(arrays)))
        )

    try:
        return jax.eval_shape(call, *rest)
    except (TypeError, ValueError):
        for other in itertools.islice(_of_other_dtypes(rest), _MOST_TRIALS):
            with contextlib.suppress(TypeError, ValueError):
                return jax.eval_shape(call, *other)
        raise


def _of_other_dtypes(arrays: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """The arrays, some of the floats as integers or keys: first one of them, then more."""
    leaves, tree = jax.tree.flatten(arrays)
    key = jax.eval_shape(jax.random.key, 0)
    choices = []
    for one in leaves:
        is_float = isinstance(one, jax.ShapeDtypeStruct) and one.dtype == jnp.float32
        whole = jax.ShapeDtypeStruct(one.shape, jnp.uint32) if is_float else None
        choices.append([one, whole, *([key] if one.shape == () else [])] if is_float else [one])
    sizes = [len(one) for one in choices]
    for count in range(1, len(choices) + 1):  # one by one: of many arrays there are too many ways
        for numbers in _number_tuples(sizes, count):
            choice = [one[number] for one, number in zip(choices, numbers, strict=True)]
            yield jax.tree.unflatten(tree, choice)


def _number_tuples(sizes: Sequence[int], count: int) -> Iterator[tuple[int, ...]]:
    """Numbers below the sizes of which ``count`` are not 0, in order."""
    if count > sum(size > 1 for size in sizes):
        return
    if not sizes:
        yield ()
        return
    for number in range(sizes[0] if count else 1):
        yield from ((number, *rest) for rest in _number_tuples(sizes[1:], count - bool(number)))


_LIBRARIES = ("flax", "nnx_migrate")


def copied(function: Callable[..., Any]) -> Callable[..., Any]:
    """A copy of a submodule that :func:`abstractly` may run: the submodule's own state stays.

    Linen modules behind bridges get the variables that they make in their first call. Layers that wait
    for a call to say whether it is training run as in evaluation, which has the same shapes. What is
    no module is returned as it is.
    """
    if not isinstance(function, nnx.Module):
        return function
    copy = nnx.clone(function)
    for _, one in nnx.iter_graph(copy):
        is_layer = type(one).__module__.partition(".")[0] in _LIBRARIES
        for mode in ("deterministic", "use_running_average") if is_layer else ():
            if getattr(one, mode, False) is None:
                setattr(one, mode, True)
    if not any(isinstance(one, nnx.bridge.ToNNX) for _, one in nnx.iter_graph(copy)):
        return copy

    def call(*args: Any, **kwargs: Any) -> Any:
        nnx.bridge.lazy_init(copy, *args, **kwargs)
        return copy(*args, **kwargs)

    return call


def lazy_variable(
    module: nnx.Module, collection: str, name: str, init: Callable[..., Any] | None, *args: Any
) -> nnx.Variable[Any]:
    """``self.variable(collection, name, init, *args)`` whose value only a call can give.

    The first call creates it. Under ``jax.jit`` the caller must return the new state, and inside
    ``nnx`` transforms it must exist already: call the module once before.

    Raises:
      ValueError: the attribute is taken, or the variable is missing and there is no ``init``.
    """
    if has_variable(module, collection, name):
        found = getattr(module, name)
        assert isinstance(found, nnx.Variable)
        return found
    if hasattr(module, name):
        raise ValueError(
            f"expected {type(module).__name__}.{name} to be a variable of '{collection}', "
            f"found {type(getattr(module, name)).__name__}"
        )
    if init is None:
        raise ValueError(
            f"{type(module).__name__} has no variable '{name}' in collection '{collection}'"
        )
    made = variable(collection, init(*args))
    setattr(module, name, made)
    return made
