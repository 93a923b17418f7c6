"""Builders with Linen's constructor signatures, for fields and arguments that hold layer classes.

Every factory takes Linen's fields in Linen's order and, keyword-only, ``in_features`` (size of the
input's last axis) and ``rngs``; both are accepted even by layers that need neither, so that
built-in and migrated classes are called alike. ``functools.partial`` works as it does on Linen
classes. ``factory.linen_name`` is the Linen class name.

Raises (all factories):
  TypeError: a field that Linen does not have, a missing size, or a field with no NNX counterpart.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Generic, ParamSpec, TypeVar

import jax.numpy as jnp
from flax import nnx
from flax.nnx.nn.linear import default_embed_init, default_kernel_init

from nnx_migrate.nn.layers import (
    attention,
    cells,
    linear,
    normalization,
    recurrent,
    stochastic,
)
from nnx_migrate.nn.layers.dtypes import linen_dot_general, linen_promote_dtype

P = ParamSpec("P")
M = TypeVar("M")

_zeros = nnx.initializers.zeros_init()


class Factory(Generic[P, M]):
    """A callable that builds one kind of layer and knows Linen's name for it."""

    def __init__(self, linen_name: str, build: Callable[P, M]) -> None:
        """Name ``build``, a callable with Linen's signature plus ``in_features`` and ``rngs``."""
        self.linen_name = linen_name
        self._build = build
        self.__name__ = linen_name
        self.__doc__ = build.__doc__
        self.__signature__ = inspect.signature(build)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> M:
        """Build the layer."""
        return self._build(*args, **kwargs)

    def __repr__(self) -> str:
        """Read as the name to write."""
        return f"factory.{self.linen_name}"


def _named(linen_name: str) -> Callable[[Callable[P, M]], Factory[P, M]]:
    return lambda build: Factory(linen_name, build)


def _size(name: str, value: Any, layer: str) -> Any:
    if value is None:
        raise TypeError(f"{layer} needs {name}=: NNX creates parameters in the constructor")
    return value


def _streams(rngs: Any, layer: str) -> Any:
    if rngs is None:
        raise TypeError(f"{layer} needs rngs=nnx.Rngs(...): NNX creates parameters at once")
    return rngs


def _refuse(layer: str, **fields: Any) -> None:
    names = [name for name, value in fields.items() if value is not None]
    if names:
        raise TypeError(f"{layer}: {', '.join(names)} has no NNX counterpart")


def _options(**fields: Any) -> dict[str, Any]:
    """Fields that hold functions, adapted to NNX's protocol and left out when not given."""
    adapters: dict[str, Any] = {"promote_dtype": linen_promote_dtype}
    return {
        name: adapters.get(name, linen_dot_general)(value)
        for name, value in fields.items()
        if value is not None
    }


@_named("Dense")
def Dense(
    features: int,
    use_bias: bool = True,
    dtype: Any = None,
    param_dtype: Any = jnp.float32,
    precision: Any = None,
    kernel_init: Any = default_kernel_init,
    bias_init: Any = _zeros,
    promote_dtype: Any = None,
    dot_general: Any = None,
    dot_general_cls: Any = None,
    *,
    in_features: int | None = None,
    rngs: nnx.Rngs | None = None,
) -> nnx.Linear:
    """``nnx.Linear`` from the fields of ``linen.Dense``."""
    _refuse("Dense", dot_general_cls=dot_general_cls)
    return nnx.Linear(
        _size("in_features", in_features, "Dense"),
        features,
        use_bias=use_bias,
        dtype=dtype,
        param_dtype=param_dtype,
        precision=precision,
        kernel_init=kernel_init,
        bias_init=bias_init,
        rngs=_streams(rngs, "Dense"),
        **_options(promote_dtype=promote_dtype, dot_general=dot_general),
    )


@_named("DenseGeneral")
def DenseGeneral(
    features: int | Sequence[int],
    axis: int | Sequence[int] = -1,
    batch_dims: Sequence[int] = (),
    use_bias: bool = True,
    dtype: Any = None,
    param_dtype: Any = jnp.float32,
    kernel_init: Any = default_kernel_init,
    bias_init: Any = _zeros,
    precision: Any = None,
    promote_dtype: Any = None,
    dot_general: Any = None,
    dot_general_cls: Any = None,
    *,
    in_features: int | Sequence[int] | None = None,
    batch_sizes: Sequence[int] = (),
    rngs: nnx.Rngs | None = None,
) -> nnx.LinearGeneral:
    """``nnx.LinearGeneral`` from the fields of ``linen.DenseGeneral``.

    ``in_features`` has one size per axis of ``axis``, in ascending axis position; ``batch_sizes``
    one per axis of ``batch_dims``.
    """
    _refuse("DenseGeneral", dot_general_cls=dot_general_cls)
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    batch = (batch_dims,) if isinstance(batch_dims, int) else tuple(batch_dims)
    if len(batch) != len(batch_sizes):
        raise TypeError(
            f"DenseGeneral needs one batch_sizes entry per axis of batch_dims={batch}, "
            f"found {tuple(batch_sizes)}"
        )
    return nnx.LinearGeneral(
        _size("in_features", in_features, "DenseGeneral"),
        features,
        axis=axes,
        batch_axis=dict(zip(batch, batch_sizes, strict=True)),
        use_bias=use_bias,
        dtype=dtype,
        param_dtype=param_dtype,
        kernel_init=kernel_init,
        bias_init=bias_init,
        precision=precision,
        rngs=_streams(rngs, "DenseGeneral"),
        **_options(promote_dtype=promote_dtype, dot_general=dot_general),
    )


@_named("Conv")
def Conv(
    features: int,
    kernel_size: int | Sequence[int],
    strides: int | Sequence[int] | None = 1,
    padding: Any = "SAME",
    input_dilation: int | Sequence[int] | None = 1,
    kernel_dilation: int | Sequence[int] | None = 1,
    feature_group_count: int = 1,
    use_bias: bool = True,
    mask: Any = None,
    dtype: Any = None,
    param_dtype: Any = jnp.float32,
    precision: Any = None,
    kernel_init: Any = default_kernel_init,
    bias_init: Any = _zeros,
    promote_dtype: Any = None,
    conv_general_dilated: Any = None,
    conv_general_dilated_cls: Any = None,
    *,
    in_features: int | None = None,
    rngs: nnx.Rngs | None = None,
) -> nnx.Conv:
    """``nnx.Conv`` from the fields of ``linen.Conv``."""
    _refuse("Conv", conv_general_dilated_cls=conv_general_dilated_cls)
    return nnx.Conv(
        _size("in_features", in_features, "Conv"),
        features,
        kernel_size,
        strides,
        padding=padding,
        input_dilation=input_dilation,
        kernel_dilation=kernel_dilation,
        feature_group_count=feature_group_count,
        use_bias=use_bias,
        mask=mask,
        dtype=dtype,
        param_dtype=param_dtype,
        precision=precision,
        kernel_init=kernel_init,
        bias_init=bias_init,
        rngs=_streams(rngs, "Conv"),
        **_options(promote_dtype=promote_dtype, conv_general_dilated=conv_general_dilated),
    )


@_named("ConvTranspose")
def ConvTranspose(
    features: int,
    kernel_size: int | Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "SAME",
    kernel_dilation: Sequence[int] | None = None,
    use_bias: bool = True,
    mask: Any = None,
    dtype: Any = None,
    param_dtype: Any = jnp.float32,
    precision: Any = None,
    kernel_init: Any = default_kernel_init,
    bias_init: Any = _zeros,
    transpose_kernel: bool = False,
    promote_dtype: Any = None,
    preferred_element_type: Any = None,
    *,
    in_features: int | None = None,
    rngs: nnx.Rngs | None = None,
) -> nnx.ConvTranspose:
    """``nnx.ConvTranspose`` from the fields of ``linen.ConvTranspose``."""
    return nnx.ConvTranspose(
        _size("in_features", in_features, "ConvTranspose"),
        features,
        kernel_size,
        strides,
        padding=padding,
        kernel_dilation=kernel_dilation,
        use_bias=use_bias,
        mask=mask,
        dtype=dtype,
        param_dtype=param_dtype,
        precision=precision,
        kernel_init=kernel_init,
        bias_init=bias_init,
        transpose_kernel=transpose_kernel,
        preferred_element_type=preferred_element_type,
        rngs=_streams(rngs, "ConvTranspose"),
        **_options(promote_dtype=promote_dtype),
    )


@_named("Embed")
def Embed(
    num_embeddings: int,
    features: int,
    dtype: Any = None,
    param_dtype: Any = jnp.float32,
    embedding_init: Any = default_embed_init,
    promote_dtype: Any = None,
    *,
    in_features: int | None = None,
    rngs: nnx.Rngs | None = None,
) -> linear.Embed:
    """:class:`nnx_migrate.nn.Embed` from the fields of ``linen.Embed``."""
    return linear.Embed(
        num_embeddings,
        features,
        dtype=dtype,
        param_dtype=param_dtype,
        embedding_init=embedding_init,
        rngs=_streams(rngs, "Embed"),
        **_options(promote_dtype=promote_dtype),
    )


def of(layer: type[M], *fields: str) -> Factory[..., M]:
    """A layer of ``flax.nnx`` whose arguments have Linen's names, in Linen's order ``fields``.

    ``in_features`` and ``rngs`` are passed on to a layer that takes them.
    """
    name, takes = layer.__name__, inspect.signature(layer.__init__).parameters

    def build(*args: Any, in_features: Any = None, rngs: Any = None, **options: Any) -> M:
        if len(args) > len(fields):
            raise TypeError(f"{name} has {len(fields)} fields, found {len(args)} arguments")
        options |= dict(zip(fields, args, strict=False))
        if "in_features" in takes:
            options["in_features"] = _size("in_features", in_features, name)
        if "rngs" in takes:
            options["rngs"] = _streams(rngs, name)
        return layer(**options)

    return Factory(name, build)


def _with_in_features(layer: type[M]) -> Factory[..., M]:
    """A layer class that already has Linen's signature and needs ``in_features``."""
    name = layer.__name__

    def build(*args: Any, in_features: Any = None, rngs: Any = None, **fields: Any) -> M:
        size = _size("in_features", in_features, name)
        fields |= {"in_features": size, "rngs": _streams(rngs, name)}
        return layer(*args, **fields)

    return _with_signature(layer, build)


def _without_in_features(layer: type[M], *, needs_rngs: bool) -> Factory[..., M]:
    """A layer class with Linen's signature whose variables do not depend on ``in_features``."""
    name = layer.__name__

    def build(*args: Any, in_features: Any = None, rngs: Any = None, **fields: Any) -> M:
        if needs_rngs:
            fields["rngs"] = _streams(rngs, name)
        return layer(*args, **fields)

    return _with_signature(layer, build)


def _with_signature(layer: type[M], build: Callable[..., M]) -> Factory[..., M]:
    build.__doc__ = f":class:`nnx_migrate.nn.{layer.__name__}` from the fields of Linen's class."
    factory = Factory(layer.__name__, build)
    fields = dict(inspect.signature(layer.__init__).parameters)
    del fields["self"]
    for name in ("in_features", "rngs"):
        fields[name] = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None)
    factory.__signature__ = inspect.Signature(list(fields.values()))
    return factory


@_named("Dropout")
def Dropout(
    rate: float,
    broadcast_dims: Sequence[int] = (),
    deterministic: bool | None = None,
    rng_collection: str = "dropout",
    *,
    in_features: int | None = None,
    rngs: nnx.Rngs | None = None,
) -> stochastic.Dropout:
    """:class:`nnx_migrate.nn.Dropout` from the fields of ``linen.Dropout``."""
    return stochastic.Dropout(rate, broadcast_dims, deterministic, rng_collection, rngs=rngs)


Einsum = _without_in_features(linear.Einsum, needs_rngs=True)
# Its size: input_shape=, or the first call.
ConvLocal = _without_in_features(linear.ConvLocal, needs_rngs=True)
LayerNorm = _with_in_features(normalization.LayerNorm)
RMSNorm = _with_in_features(normalization.RMSNorm)
InstanceNorm = _with_in_features(normalization.InstanceNorm)
GroupNorm = _with_in_features(normalization.GroupNorm)
BatchNorm = _with_in_features(normalization.BatchNorm)
LSTMCell = _with_in_features(cells.LSTMCell)
OptimizedLSTMCell = _with_in_features(cells.OptimizedLSTMCell)
SimpleCell = _with_in_features(cells.SimpleCell)
GRUCell = _with_in_features(cells.GRUCell)
MGUCell = _with_in_features(cells.MGUCell)
ConvLSTMCell = _with_in_features(cells.ConvLSTMCell)
RNN = _without_in_features(recurrent.RNN, needs_rngs=False)
Bidirectional = _without_in_features(recurrent.Bidirectional, needs_rngs=False)
Sequential = _without_in_features(recurrent.Sequential, needs_rngs=False)
MultiHeadDotProductAttention = _with_in_features(attention.MultiHeadDotProductAttention)
MultiHeadAttention = _with_in_features(attention.MultiHeadAttention)
SelfAttention = _with_in_features(attention.SelfAttention)
