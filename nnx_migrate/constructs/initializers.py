"""Initialisers: ``nn.initializers.x`` and the four that ``flax.linen`` exports itself.

``flax.linen.initializers``, ``flax.nnx.initializers`` and ``jax.nn.initializers`` hold the same
functions, so values from the same key are the same bits. ``zeros_init`` and ``ones_init`` are
different functions in Linen and NNX that return the same ``jax.nn.initializers`` object. The default
initialisers of Linen's layers (``nn.linear.default_kernel_init``) are spelled out.

flax 0.12.8 and 0.12.12: linen/initializers.py, nnx/nn/initializers.py.
"""

from __future__ import annotations

from nnx_migrate.constructs.common.base import Code, Context, last, linen
from nnx_migrate.constructs.common.rules import Construct, Example, NameRule
from nnx_migrate.edit.expressions import dotted_node, expression

# Same object in flax.linen.initializers and flax.nnx.initializers (a test compares them).
SAME = (
    *("Initializer", "constant", "delta_orthogonal", "glorot_normal", "glorot_uniform"),
    *("he_normal", "he_uniform", "kaiming_normal", "kaiming_uniform", "lecun_normal"),
    *("lecun_uniform", "normal", "ones", "orthogonal", "truncated_normal", "uniform"),
    *("variance_scaling", "xavier_normal", "xavier_uniform", "zeros"),
)
# Functions without arguments that return the same object.
SAME_RESULT = ("ones_init", "zeros_init")

# Linen's layer defaults, which are values and not functions of flax.linen.initializers.
DEFAULTS = {
    "default_kernel_init": "nnx.initializers.lecun_normal()",
    "default_embed_init": (
        'nnx.initializers.variance_scaling(1.0, "fan_in", "normal", out_axis=0)'
    ),
}


def reference(symbol: str, context: Context) -> Code:
    """``nnx.initializers`` or a name in it."""
    name = last(symbol)
    if name in DEFAULTS:
        return Code(expression(DEFAULTS[name]), frozenset({"nnx"}))
    found = "nnx.initializers" if name == "initializers" else f"nnx.initializers.{name}"
    return Code(dotted_node(found), frozenset({"nnx"}))


CONSTRUCT = Construct(
    __doc__,
    rules=(
        NameRule(
            name="initializers",
            symbols=frozenset(f"flax.linen.initializers.{name}" for name in (*SAME, *SAME_RESULT))
            | linen("initializers", "zeros", "ones", "zeros_init", "ones_init", *DEFAULTS),
            example=Example("nn.initializers.lecun_normal()", "nnx.initializers.lecun_normal()"),
            reference=reference,
            is_same=True,
        ),
    ),
    example="""
class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Dense(16, kernel_init=nn.initializers.xavier_uniform())(x)
        scale = self.param("scale", nn.initializers.ones, (1, 16))
        return x * scale
""",
    inputs="jnp.ones((2, 8))",
)
