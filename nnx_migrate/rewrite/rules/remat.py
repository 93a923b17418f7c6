"""remat / checkpoint of a module class: recompute its call in the backward pass.

``nn.remat(Block, static_argnums=(2,), policy=p)`` becomes ``nnm.remat(Block, ...)``: a subclass whose
``__call__`` goes through ``nnx.remat``; constructor, parameters and paths are those of ``Block``.
``nn.remat`` counts ``self`` in ``static_argnums``, ``flax.linen.partitioning.remat`` does not: the
latter gets ``counts_self=False``. ``prevent_cse`` and ``policy`` mean the same in both.

Refused: lifting filters (``variables=``, ``rngs=``, ``methods=``; everything is lifted here, Linen's
default), ``concrete=``, functions and built-in layers.

flax 0.12.8 and 0.12.12: linen/transforms.py, linen/partitioning.py, nnx/transforms/autodiff.py.
"""

from __future__ import annotations

import ast

from nnx_migrate.rewrite.rules.base import (
    CallRule,
    Code,
    Context,
    Example,
    LayerCall,
    Refusal,
    bind,
    is_literal,
    linen,
)

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
    target = arguments.given.get("target")
    if arguments.open or target is None:
        return Refusal(
            "remat whose arguments the call does not show", "pass the class and options", call.call
        )
    for name, default in _DEFAULTS.items():
        value = arguments.given.get(name)
        if value is not None and not is_literal(value, default):
            return Refusal(
                f"remat with {name}=", "wrap a function of the module in nnx.remat by hand", value
            )
    refusal = _not_a_class(target, call)
    if refusal:
        return refusal
    texts = [call.render(target)]
    texts += [
        f"{name}={call.render(arguments.given[name])}" for name in _KEPT if name in arguments.given
    ]
    if call.symbol == _PARTITIONING and "static_argnums" in arguments.given:
        texts.append("counts_self=False")
    return Code(f"nnm.remat({', '.join(texts)})", frozenset({"nnm"}))


def _not_a_class(target: ast.expr, call: LayerCall) -> Refusal | None:
    symbol = call.resolve(target)
    if isinstance(target, ast.Lambda) or (isinstance(target, ast.Attribute) and symbol is None):
        return Refusal(
            "remat of a function or method",
            "decorate a function that takes the module first with nnx.remat",
            target,
        )
    if symbol is not None and symbol.startswith("flax.linen."):
        return Refusal(
            f"remat of the built-in layer {symbol}",
            "wrap it in a module of your own and remat that",
            target,
        )
    return None


def reference(symbol: str, context: Context) -> Refusal:
    """remat that is not called with a class here: a decorator, a value."""
    return Refusal(
        f"{symbol} used as a {context.value}",
        "apply it to a module class, or use nnx.remat on a function that takes the module first",
    )


RULES = (
    CallRule(
        name="remat",
        symbols=linen("remat", "checkpoint") | {_PARTITIONING},
        example=Example(
            "nn.remat(Block, static_argnums=(2,))", "nnm.remat(Block, static_argnums=(2,))"
        ),
        convert=convert,
        reference=reference,
    ),
)
