"""A dtype for scales and histories whose gradients add up by their maximum (flax 0.12.8, linen/fp8_ops.py).

Its name and members are what jax asks of an extended dtype; they come from ``jax._src``, as in flax,
since jax offers no public way.
"""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax._src import core, dtypes

try:
    from jax._src import earray
    from jax._src.interpreters import pxla
except ImportError:
    CAN_USE_EARRAY = False
else:
    CAN_USE_EARRAY = True

_convert: Any = lax.convert_element_type
_dtypes: Any = dtypes
_core: Any = core


class Fp8MetaTyRules:
    """How jax computes with the dtype: in its float type, but for sums of cotangents."""

    @staticmethod
    def physical_element_aval(dtype: Any) -> Any:
        """One element as the compiler sees it."""
        return _core.ShapedArray((), dtype.float_dtype)

    @staticmethod
    def convert_from(fp8_meta_dtype: Any, other_dtype: Any) -> bool:
        """Whether it converts to ``other_dtype``."""
        return bool(fp8_meta_dtype.float_dtype == other_dtype)

    @staticmethod
    def convert_to(other_dtype: Any, fp8_meta_dtype: Any) -> bool:
        """Whether ``other_dtype`` converts to it."""
        return bool(fp8_meta_dtype.float_dtype == other_dtype)

    @staticmethod
    def add(dt: Any, x: Any, y: Any) -> Any:
        """The sum of two cotangents: the larger one."""
        larger = lax.max(_convert(x, dt.float_dtype), _convert(y, dt.float_dtype))
        return _convert(larger, dt)

    @staticmethod
    def zero(dt: Any) -> Any:
        """The cotangent that :meth:`add` ignores."""
        has_inf = _dtypes.supports_inf(dt.float_dtype)
        least = -np.inf if has_inf else _dtypes.finfo(dt.float_dtype).min
        return _convert(np.array(least, dt.float_dtype), dt)

    @staticmethod
    def tangent_dtype(dtype: Any) -> Any:
        """Cotangents have the dtype itself."""
        return dtype

    @staticmethod
    def full(shape: Any, fill_value: Any, dtype: Any) -> Any:
        """An array of one value."""
        value = _convert(fill_value, dtype.float_dtype)
        return _convert(lax.full(shape, value, dtype.float_dtype), dtype)

    @staticmethod
    def global_sharded_result_handler(aval: Any, out_sharding: Any, committed: Any) -> Any:
        """What makes an array of the dtype from the buffers that a program returns."""
        if not CAN_USE_EARRAY:
            raise NotImplementedError("convert back to a float dtype under the jit")
        physical = _core.physical_aval(aval)
        handlers: Any = pxla.global_result_handlers
        handler = handlers[core.ShapedArray](physical, out_sharding, committed)
        make: Any = earray.EArray
        return lambda buffers: make(aval, handler(buffers))


class fp8_meta_dtype(_dtypes.extended):  # type: ignore[misc]
    """The kind of dtype, for ``jax.dtypes.issubdtype``."""


@dataclasses.dataclass(frozen=True)
class fp8_meta_dtype_wrapper(_dtypes.ExtendedDType):  # type: ignore[misc]
    """The dtype over ``float_dtype``."""

    float_dtype: Any
    _rules: type = Fp8MetaTyRules
    type: Any = fp8_meta_dtype

    def __repr__(self) -> str:
        """``fp8_meta32`` for float32."""
        return f"fp8_meta{_dtypes.finfo(self.float_dtype).bits}"

    name = property(__repr__)


fm32 = fp8_meta_dtype_wrapper(jnp.dtype(jnp.float32))
fp32_max_grad = fp8_meta_dtype_wrapper(jnp.dtype(jnp.float32))


def float32_of(value: Any) -> Any:
    """``value`` in float32 if it has the dtype, else as it is."""
    return _convert(value, jnp.float32) if value.dtype == fm32 else value
