"""8-bit matrix products: the public names of ``flax.linen.fp8_ops``.

Also those that flax's module imports itself, since code is found that takes them from there.
"""

import dataclasses
import itertools
import warnings
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import custom_jvp, custom_vjp, lax, random
from jax._src import core, dtypes
from jax.typing import DTypeLike

from nnx_migrate.linen import initializers, module
from nnx_migrate.linen.layers.fp8.meta_dtype import (
    CAN_USE_EARRAY,
    Fp8MetaTyRules,
    float32_of,
    fm32,
    fp8_meta_dtype,
    fp8_meta_dtype_wrapper,
    fp32_max_grad,
)
from nnx_migrate.linen.layers.fp8.modules import (
    OVERWRITE_WITH_GRADIENT,
    DType,
    Fp8DirectDotGeneralOp,
    Fp8DotGeneral,
    Fp8DotGeneralBase,
    Fp8DotGeneralOp,
    Fp8Einsum,
    NANOOFp8DotGeneralOp,
    parsed_dot_inputs,
)
from nnx_migrate.linen.layers.fp8.products import (
    dot_general_transpose_lhs,
    dot_general_transpose_rhs,
    dot_general_with_precision,
    dot_general_with_precision_jvp,
    fp8_scaled_dot_general,
    quantized_dot,
    quantized_dot_bwd,
    quantized_dot_fwd,
)
from nnx_migrate.linen.layers.fp8.quantization import (
    compute_amax_history,
    compute_scale,
    dequantize,
    get_fp8_max,
    in_q,
    in_q_bwd,
    in_q_fwd,
    in_qdq,
    in_qdq_bwd,
    in_qdq_fwd,
    out_dq,
    out_dq_bwd,
    out_dq_fwd,
    out_qdq,
    out_qdq_bwd,
    out_qdq_fwd,
    qdq,
    quantize,
    quantize_dequantize_update,
    update_fp8_meta,
)

__all__ = [
    "CAN_USE_EARRAY",
    "OVERWRITE_WITH_GRADIENT",
    "Any",
    "DType",
    "DTypeLike",
    "Fp8DirectDotGeneralOp",
    "Fp8DotGeneral",
    "Fp8DotGeneralBase",
    "Fp8DotGeneralOp",
    "Fp8Einsum",
    "Fp8MetaTyRules",
    "NANOOFp8DotGeneralOp",
    "compute_amax_history",
    "compute_scale",
    "core",
    "custom_jvp",
    "custom_vjp",
    "dataclasses",
    "dequantize",
    "dot_general_transpose_lhs",
    "dot_general_transpose_rhs",
    "dot_general_with_precision",
    "dot_general_with_precision_jvp",
    "dtypes",
    "fm32",
    "fp8_meta_dtype",
    "fp8_meta_dtype_wrapper",
    "fp8_scaled_dot_general",
    "fp32_max_grad",
    "get_fp8_max",
    "in_q",
    "in_q_bwd",
    "in_q_fwd",
    "in_qdq",
    "in_qdq_bwd",
    "in_qdq_fwd",
    "initializers",
    "itertools",
    "jax",
    "jnp",
    "lax",
    "module",
    "np",
    "out_dq",
    "out_dq_bwd",
    "out_dq_fwd",
    "out_qdq",
    "out_qdq_bwd",
    "out_qdq_fwd",
    "partial",
    "qdq",
    "quantize",
    "quantize_dequantize_update",
    "quantized_dot",
    "quantized_dot_bwd",
    "quantized_dot_fwd",
    "random",
    "update_fp8_meta",
    "warnings",
]

if CAN_USE_EARRAY:
    from jax._src import earray
    from jax._src.interpreters import pxla

    __all__ += ["earray", "pxla"]

_fm32_to_float32 = float32_of
_parse_dot_inputs = parsed_dot_inputs
