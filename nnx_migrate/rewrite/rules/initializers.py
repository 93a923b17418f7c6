"""Initialisers: ``nn.initializers.x`` and the four that ``flax.linen`` exports itself.

``flax.linen.initializers``, ``flax.nnx.initializers`` and ``jax.nn.initializers`` hold the same
functions, so values from the same key are the same bits. ``zeros_init`` and ``ones_init`` are
different functions in Linen and NNX that return the same ``jax.nn.initializers`` object.

flax 0.12.8 and 0.12.12: linen/initializers.py, nnx/nn/initializers.py.
"""

from __future__ import annotations

from nnx_migrate.rewrite.rules.base import Code, Context, Example, NameRule, last, linen

# Same object in flax.linen.initializers and flax.nnx.initializers (a test compares them).
SAME = (
    *("Initializer", "constant", "delta_orthogonal", "glorot_normal", "glorot_uniform"),
    *("he_normal", "he_uniform", "kaiming_normal", "kaiming_uniform", "lecun_normal"),
    *("lecun_uniform", "normal", "ones", "orthogonal", "truncated_normal", "uniform"),
    *("variance_scaling", "xavier_normal", "xavier_uniform", "zeros"),
)
# Functions without arguments that return the same object.
SAME_RESULT = ("ones_init", "zeros_init")


def reference(symbol: str, context: Context) -> Code:
    """``nnx.initializers`` or a name in it."""
    name = last(symbol)
    text = "nnx.initializers" if name == "initializers" else f"nnx.initializers.{name}"
    return Code(text, frozenset({"nnx"}))


RULES = (
    NameRule(
        name="initializers",
        symbols=frozenset(f"flax.linen.initializers.{name}" for name in (*SAME, *SAME_RESULT))
        | linen("initializers", "zeros", "ones", "zeros_init", "ones_init"),
        example=Example("nn.initializers.lecun_normal()", "nnx.initializers.lecun_normal()"),
        reference=reference,
    ),
)
