"""Layers called with normalised parameters (flax 0.12.8, linen/normalization.py)."""

import dataclasses
import functools
from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
from flax.typing import Axes, Dtype, Initializer
from jax.nn import initializers

from nnx_migrate.linen.module import Module, compact, nowrap
from nnx_migrate.linen.transforms import map_variables
from nnx_migrate.numerics.dtypes import canonicalize_dtype
from nnx_migrate.numerics.norms import (
    feature_shapes,
    l2_normalize,
    largest_singular_value,
    positive_axes,
)


def _call_with(layer: Module, normalize: Any, args: Any, kwargs: Any, **options: Any) -> Any:
    """``layer(*args, **kwargs)`` with ``normalize(path, value)`` in place of each parameter."""
    call = map_variables(
        lambda instance: instance(*args, **kwargs),
        trans_in_fn=functools.partial(jax.tree_util.tree_map_with_path, normalize),
        **options,
    )
    return call(layer)


class SpectralNorm(Module):
    """Call a layer with each matrix divided by its estimated largest singular value.

    Variables, of ``collection_name``: ``<layer>/<path>/u`` (1, columns) and ``<layer>/<path>/sigma`` () for each
    matrix. An array of more axes is taken as a matrix of its last one; scalars and vectors stay as they are.

    Raises:
      ValueError: ``error_on_non_matrix`` and a parameter of more than two axes.
    """

    layer_instance: Module
    n_steps: int = 1
    epsilon: float = 1e-12
    dtype: Dtype | None = None
    param_dtype: Dtype = jnp.float32
    error_on_non_matrix: bool = False
    collection_name: str = "batch_stats"

    @compact
    def __call__(self, *args: Any, update_stats: bool, **kwargs: Any) -> Any:
        """Call the layer; ``update_stats`` keeps the new ``u`` and ``sigma``."""
        normalize = functools.partial(self._spectral_normalize, update_stats=update_stats)
        return _call_with(
            self.layer_instance,
            normalize,
            args,
            kwargs,
            init=self.is_initializing(),
            mutable=True,
        )

    def _spectral_normalize(self, path: Any, vs: Any, update_stats: bool) -> Any:
        """A parameter of the layer, normalised; ``path`` starts with its collection."""
        value = jnp.asarray(vs)
        if value.ndim <= 1 or self.n_steps < 1:
            return value
        shape = value.shape
        if value.ndim > 2:
            if self.error_on_non_matrix:
                raise ValueError(f"Input is {value.ndim}D but error_on_non_matrix is True")
            value = jnp.reshape(value, (-1, value.shape[-1]))
        u, sigma = self._estimates("/".join(key.key for key in path[1:]), value.shape[-1])
        new_u, v, new_sigma = largest_singular_value(value, u.value, self.n_steps, self.epsilon)
        value /= jnp.where(new_sigma != 0, new_sigma, 1)
        normalized = value.reshape(shape)
        if update_stats:
            u.value = new_u
            sigma.value = new_sigma
        dtype = canonicalize_dtype(vs, new_u, v, new_sigma, dtype=self.dtype)
        return jnp.asarray(normalized, dtype)

    @nowrap
    def _estimates(self, path: str, columns: int) -> tuple[Any, Any]:
        """The variables ``u`` and ``sigma`` of a parameter."""
        name = f"{self.layer_instance.name}/{path}"
        is_there = self.has_variable(self.collection_name, f"{name}/u")
        u = self.variable(
            self.collection_name,
            f"{name}/u",
            jax.random.normal,
            None if is_there else self.make_rng("params"),
            (1, columns),
            self.param_dtype,
        )
        sigma = self.variable(self.collection_name, f"{name}/sigma", jnp.ones, (), self.param_dtype)
        return u, sigma


class WeightNorm(Module):
    """Call a layer with parameters of unit L2 norm, times a learned scale (arXiv:1602.07868).

    Variables: a parameter ``<layer>/<path>/scale`` with the axes ``feature_axes`` for each normalised one,
    unless ``use_scale`` is False. ``feature_axes`` have norms of their own; None normalises the whole array.
    Only parameters whose ``<layer>/<path>`` contains a string of ``variable_filter`` are normalised; None
    or empty: all.
    """

    layer_instance: Module
    epsilon: float = 1e-12
    dtype: Dtype | None = None
    param_dtype: Dtype = jnp.float32
    use_scale: bool = True
    scale_init: Initializer = initializers.ones
    feature_axes: Axes | None = -1
    variable_filter: Iterable[Any] | None = dataclasses.field(default_factory=lambda: {"kernel"})

    @compact
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the layer with normalised parameters."""
        return _call_with(
            self.layer_instance, self._l2_normalize, args, kwargs, init=self.is_initializing()
        )

    def _l2_normalize(self, path: Any, vs: Any) -> Any:
        """A parameter of the layer, normalised; ``path`` starts with its collection."""
        value = jnp.asarray(vs)
        below = jax.tree_util.keystr(path[1:], simple=True, separator="/")
        name = f"{self.layer_instance.name}/{below}"
        if self.variable_filter and not any(part in name for part in self.variable_filter):
            return value
        features = () if self.feature_axes is None else positive_axes(value.ndim, self.feature_axes)
        axes_to_reduce = tuple(axis for axis in range(value.ndim) if axis not in features)
        shape, broadcast_shape = feature_shapes(value.shape, features)
        normalized = l2_normalize(value, axis=axes_to_reduce, eps=self.epsilon)
        operands = [vs]
        if self.use_scale:
            scale = self.param(f"{name}/scale", self.scale_init, shape, self.param_dtype)
            scale = scale.reshape(broadcast_shape)
            normalized *= scale
            operands.append(scale)
        return jnp.asarray(normalized, canonicalize_dtype(*operands, dtype=self.dtype))
