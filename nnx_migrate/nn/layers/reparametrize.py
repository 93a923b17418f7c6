"""SpectralNorm and WeightNorm: call a layer with normalised parameters, leaving them as they are.

The native layers overwrite the parameters and name their variables otherwise. Here the variables
are Linen's: attributes such as ``Dense_1/kernel/u`` (one name, with slashes) on the wrapper.

A layer built inside a compact method belongs to the *enclosing* module in Linen. For that case give
``layer_name``::

    self.Dense_1 = nnx.Linear(3, 4, rngs=rngs)
    self.SpectralNorm_0 = SpectralNorm(self.Dense_1, layer_name="Dense_1", rngs=rngs)

The wrapper holds the layer as ``layer_instance`` either way. NNX names a shared module by the first
attribute, in alphabetical order, that leads to it: ``Dense_1`` comes before ``SpectralNorm_0``. The name
of the layer must come before that of the wrapper, or its parameters are found below the wrapper.

As Linen's ``init`` does, the constructor replaces the layer's initial parameters by the normalised
ones, once; later calls leave them alone.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from nnx_migrate.nn.layers.dtypes import canonicalize_dtype
from nnx_migrate.nn.variables.state import is_initializing
from nnx_migrate.nn.variables.variables import param_key, variable
from nnx_migrate.numerics.norms import l2_normalize, largest_singular_value, positive_axes

Paths = list[tuple[tuple[Any, ...], Any]]


class Reparametrized(nnx.Module):
    """Calls a layer with each of its ``nnx.Param`` replaced by a function of it."""

    def _attach(self, layer: nnx.Module, layer_name: str | None) -> Paths:
        """Hold ``layer``; its parameters by path, in Linen's order."""
        self.layer_name = "layer_instance" if layer_name is None else layer_name
        self.layer_instance = layer
        return list(nnx.to_flat_state(nnx.state(layer, nnx.Param)))

    def _normalize_initial(
        self, layer: nnx.Module, transform: Callable[[Sequence[Any], jax.Array], jax.Array]
    ) -> None:
        nnx.update(layer, _mapped(nnx.state(layer, nnx.Param), transform))

    def _variable_name(self, path: Sequence[Any]) -> str:
        return "/".join([self.layer_name, *map(str, path)])

    def _call(
        self,
        transform: Callable[[Sequence[Any], jax.Array], jax.Array],
        args: Sequence[Any],
        kwargs: dict[str, Any],
    ) -> Any:
        layer = self.layer_instance
        graphdef, params, rest = nnx.split(layer, nnx.Param, ...)  # type: ignore[misc]
        normalized = nnx.merge(graphdef, _mapped(params, transform), rest, copy=True)
        outputs = normalized(*args, **kwargs)
        nnx.update(layer, nnx.state(normalized, nnx.Not(nnx.Param)))
        return outputs


def _mapped(
    params: Any, transform: Callable[[Sequence[Any], jax.Array], jax.Array]
) -> nnx.State[Any, Any]:
    return nnx.from_flat_state(
        [
            (path, leaf.replace(transform(path, leaf.get_value())))
            for path, leaf in nnx.to_flat_state(params)
        ]
    )


class SpectralNorm(Reparametrized):
    """``linen.SpectralNorm``: divide each matrix of a layer by its estimated largest singular value.

    ``u`` (1, columns) and ``sigma`` () of each matrix are variables of ``collection_name``. They
    start as after Linen's ``init(..., update_stats=False)``, with ``init_update_stats`` as after one with
    True.

    Raises:
      ValueError: ``error_on_non_matrix`` and a parameter of more than two axes; or a call that stands
        for the one of ``init`` (``nnm.variables_of``, ``nnm.lazy_init``) updates the statistics, and
        they do not start so.
    """

    def __init__(
        self,
        layer_instance: nnx.Module,
        n_steps: int = 1,
        epsilon: float = 1e-12,
        dtype: Any = None,
        param_dtype: Any = jnp.float32,
        error_on_non_matrix: bool = False,
        collection_name: str = "batch_stats",
        *,
        init_update_stats: bool = False,
        layer_name: str | None = None,
        rngs: nnx.Rngs,
    ) -> None:
        """Take Linen's fields in Linen's order, then the sizes; see the class."""
        self.n_steps = n_steps
        self.epsilon = epsilon
        self.dtype = dtype
        self.error_on_non_matrix = error_on_non_matrix
        self.init_update_stats = init_update_stats
        for path, leaf in self._attach(layer_instance, layer_name):
            value = leaf.get_value()
            if not self._applies(value):
                continue
            name = self._variable_name(path)
            u = jax.random.normal(param_key(rngs), (1, value.shape[-1]), param_dtype)
            setattr(self, name + "/u", variable(collection_name, u, moved_by_init=False))
            setattr(
                self,
                name + "/sigma",
                variable(collection_name, jnp.ones((), param_dtype), moved_by_init=False),
            )
        normalize = functools.partial(self._normalize, init_update_stats)
        self._normalize_initial(layer_instance, normalize)

    def _applies(self, value: Any) -> bool:
        if value.ndim <= 1 or self.n_steps < 1:
            return False
        if value.ndim > 2 and self.error_on_non_matrix:
            raise ValueError(f"expected a matrix (error_on_non_matrix), found {value.ndim} axes")
        return True

    def __call__(
        self,
        *args: Any,
        update_stats: bool,
        **kwargs: Any,
    ) -> Any:
        """Call the layer; ``update_stats`` keeps the new ``u`` and ``sigma``."""
        if update_stats and is_initializing():
            if not self.init_update_stats:
                raise ValueError(
                    "Linen's init updates the statistics of SpectralNorm here: expected "
                    "init_update_stats=True in its constructor, found False"
                )
            update_stats = False  # the constructor did, from the parameters as they were drawn
        normalize = functools.partial(self._normalize, update_stats)
        return self._call(normalize, args, kwargs)

    def _normalize(self, update_stats: bool, path: Sequence[Any], value: jax.Array) -> jax.Array:
        if not self._applies(value):
            return value
        matrix = jnp.reshape(value, (-1, value.shape[-1])) if value.ndim > 2 else value
        name = self._variable_name(path)
        u_variable, sigma_variable = getattr(self, name + "/u"), getattr(self, name + "/sigma")
        u, v, sigma = largest_singular_value(matrix, u_variable[...], self.n_steps, self.epsilon)
        matrix /= jnp.where(sigma != 0, sigma, 1)
        if update_stats:
            u_variable.set_value(u)
            sigma_variable.set_value(sigma)
        dtype = canonicalize_dtype(value, u, v, sigma, dtype=self.dtype)
        return jnp.asarray(matrix.reshape(value.shape), dtype)


class WeightNorm(Reparametrized):
    """``linen.WeightNorm``: scale parameters to unit L2 norm, times a learned ``scale``.

    Args:
      feature_axes: axes with a norm and a scale of their own; None normalises the whole array.
      variable_filter: only parameters whose path (``Dense_1/kernel``) contains one of these
        strings; None or empty: all.
    """

    def __init__(
        self,
        layer_instance: nnx.Module,
        epsilon: float = 1e-12,
        dtype: Any = None,
        param_dtype: Any = jnp.float32,
        use_scale: bool = True,
        scale_init: Any = nnx.initializers.ones,
        feature_axes: int | Sequence[int] | None = -1,
        variable_filter: Iterable[str] | None = ("kernel",),
        *,
        layer_name: str | None = None,
        rngs: nnx.Rngs,
    ) -> None:
        """Take Linen's fields in Linen's order, then the sizes; see the class."""
        self.epsilon = epsilon
        self.dtype = dtype
        self.use_scale = use_scale
        self.feature_axes = feature_axes
        self.variable_filter = tuple(variable_filter or ())
        for path, leaf in self._attach(layer_instance, layer_name):
            name = self._variable_name(path)
            if use_scale and self._applies(name):
                value = leaf.get_value()
                shape = [value.shape[axis] for axis in self._features(value.ndim)]
                scale = nnx.Param(scale_init(param_key(rngs), shape, param_dtype))
                setattr(self, name + "/scale", scale)
        self._normalize_initial(layer_instance, self._normalize)

    def _applies(self, name: str) -> bool:
        return not self.variable_filter or any(part in name for part in self.variable_filter)

    def _features(self, rank: int) -> tuple[int, ...]:
        return () if self.feature_axes is None else positive_axes(rank, self.feature_axes)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the layer with normalised parameters."""
        return self._call(self._normalize, args, kwargs)

    def _normalize(self, path: Sequence[Any], value: jax.Array) -> jax.Array:
        name = self._variable_name(path)
        if not self._applies(name):
            return value
        features = self._features(value.ndim)
        reduced = tuple(axis for axis in range(value.ndim) if axis not in features)
        normalized = l2_normalize(value, axis=reduced, eps=self.epsilon)
        operands = [value]
        if self.use_scale:
            shape = [1] * value.ndim
            for axis in features:
                shape[axis] = value.shape[axis]
            scale = getattr(self, name + "/scale")[...].reshape(shape)
            normalized *= scale
            operands.append(scale)
        return jnp.asarray(normalized, canonicalize_dtype(*operands, dtype=self.dtype))
