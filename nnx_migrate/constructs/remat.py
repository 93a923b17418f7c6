"""remat / checkpoint of a module class: recompute its call in the backward pass.

``nn.remat(Block, static_argnums=(2,), policy=p)`` becomes ``nnm.remat(Block, ...)``: a subclass whose
``__call__`` goes through ``jax.checkpoint``; constructor, parameters and paths are those of ``Block``.
``nn.remat`` counts ``self`` in ``static_argnums``, ``flax.linen.partitioning.remat`` does not: the
latter gets ``counts_self=False``. ``prevent_cse`` and ``policy`` mean the same in both. ``@nn.remat``
on a method becomes ``@nnm.remat``.

Refused: lifting filters (``variables=``, ``rngs=``; everything is lifted here, Linen's default), ``concrete=``, ``methods=``, built-in layers (wrap them in a module), ``partial(nn.remat, ...)``.

flax 0.12.8 and 0.12.12: linen/transforms.py, linen/partitioning.py, nnx/transforms/autodiff.py.
"""

from __future__ import annotations

import ast

from nnx_migrate.constructs.common.base import (
    Code,
    Context,
    LayerCall,
    Refusal,
    bind,
    is_literal,
    linen,
)
from nnx_migrate.constructs.common.lifts import lift_call
from nnx_migrate.constructs.common.references import name
from nnx_migrate.constructs.common.rules import CallRule, Construct, Example
from nnx_migrate.edit.calls import named
from nnx_migrate.edit.expressions import code_of

_FIELDS = (
    *("target", "variables", "rngs", "concrete", "prevent_cse", "static_argnums", "policy"),
    "methods",
)
# Linen's defaults; anything else in these changes what is lifted.
_DEFAULTS = {"variables": True, "rngs": True, "concrete": False, "methods": None}
_KEPT = ("prevent_cse", "static_argnums", "policy")
_PARTITIONING = "flax.linen.partitioning.remat"


def convert(call: LayerCall) -> Code | Refusal:
    """``nnm.remat(Class, static_argnums=..., policy=..., prevent_cse=...)``."""
    arguments = bind(call.call, _FIELDS)
    if isinstance(arguments, Refusal):
        return arguments
    target = arguments.values.get("target")
    if arguments.open or target is None:
        return Refusal(
            "remat whose arguments the call does not show", "pass the class and options", call.call
        )
    for option, default in _DEFAULTS.items():
        value = arguments.values.get(option)
        if value is not None and not is_literal(value, default):
            return Refusal(
                f"remat with {option}=", "wrap a function of the module in nnm.remat by hand", value
            )
    refusal = _builtin_refusal(target, code_of(call.source.render(target)))
    if refusal:
        return refusal
    counts = call.symbol == _PARTITIONING and "static_argnums" in arguments.values
    extra = [named("counts_self", "False")] if counts else []
    return lift_call("nnm.remat", call, arguments.values, _KEPT, extra)


def _builtin_refusal(target: ast.expr, text: str) -> Refusal | None:
    if text.startswith("nnx."):
        return Refusal(
            f"remat of the built-in layer {text.rpartition('.')[2]}",
            "wrap it in a module of your own and remat that",
            target,
        )
    return None


def reference(symbol: str, context: Context) -> Code | Refusal:
    """``@nn.remat`` on a method or function of a module; any other bare use is refused."""
    if context is Context.DECORATOR:
        return name("nnm.remat")
    return Refusal(
        f"{symbol} used as a {context.value}",
        "call it with a module class, or decorate a method with nnm.remat",
    )


CONSTRUCT = Construct(
    __doc__,
    rules=(
        CallRule(
            name="remat",
            symbols=linen("remat", "checkpoint") | {_PARTITIONING},
            example=Example(
                "nn.remat(Block, static_argnums=(2,))", "nnm.remat(Block, static_argnums=(2,))"
            ),
            convert=convert,
            reference=reference,
        ),
    ),
    example="""
class Block(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        return nn.relu(nn.Dense(8)(x)) if train else x


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.remat(Block, static_argnums=(2,))()(x, True)
""",
    inputs="jnp.ones((2, 8))",
    lazy=(
        """
class Block(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(8)(x)


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.remat(Block, rngs=False)()(x)
""",
    ),
)
