"""Dropout and PReLU.

``nn.Dropout`` becomes ``nnm.Dropout``: Linen's call signature (``deterministic`` by position,
``rng=``) and errors, and no ``dropout`` stream needed while nothing is dropped. The native
``nnx.Dropout`` defaults to dropping where Linen raises, and takes ``deterministic`` by keyword only.

``nn.PReLU`` becomes ``nnx.PReLU``, which takes its slope first and no ``rngs``.

flax 0.12.8 and 0.12.12: linen/stochastic.py, linen/activation.py, nnx/nn/stochastic.py.
"""

from __future__ import annotations

from nnx_migrate.constructs.layers import Layer, native_rule, own_rule

DROPOUT = Layer(
    name="Dropout",
    target="nnm.Dropout",
    fields=("rate", "broadcast_dims", "deterministic", "rng_collection"),
    required=("rate",),
    sizes=(),
)

PRELU = Layer(
    name="PReLU",
    target="nnx.PReLU",
    fields=("param_dtype", "negative_slope_init"),
    sizes=(),
    takes_rngs=False,
)

RULES = (
    own_rule(
        DROPOUT,
        "nn.Dropout(0.1, deterministic=not train)",
        "nnm.Dropout(0.1, deterministic=not train, rngs=rngs)",
    ),
    native_rule(PRELU, "nn.PReLU(negative_slope_init=0.2)", "nnx.PReLU(negative_slope_init=0.2)"),
)
