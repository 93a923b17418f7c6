"""jit of a module class or method: its call compiled on its own.

``nn.jit(Block, static_argnums=(2,))`` becomes ``nnm.jit(Block, ...)``: a subclass whose ``__call__`` goes
through ``jax.jit``; constructor, parameters and paths are those of ``Block``. ``@nn.jit`` on a method
becomes ``@nnm.jit``. Options mean the same; position 0 is ``self``. Variables that the call changes
come back; modules of the same structure share one compilation.

Refused: lifting filters (``variables=``, ``rngs=``; everything is lifted here, Linen's default),
lambdas and functions that a call compiles in place: make them methods, decorated with ``@nnm.jit``.

flax 0.12.8 and 0.12.12: linen/transforms.py, core/lift.py.
"""

from __future__ import annotations

from nnx_migrate.constructs.base import (
    CallRule,
    Code,
    Context,
    Example,
    LayerCall,
    Refusal,
    linen,
)
from nnx_migrate.constructs.lifts import Given, convert_lift, no_named_class, not_all_lifted
from nnx_migrate.constructs.references import name

_KEPT = (*("static_argnums", "static_argnames", "donate_argnums", "device", "backend", "methods"),)
_FIELDS = ("target", "variables", "rngs", *_KEPT)
_BY_HAND = "decorate a method of the module with nnm.jit"


def convert(call: LayerCall) -> Code | Refusal:
    """``nnm.jit(Class, static_argnums=..., ...)``."""
    return convert_lift("jit", call, _FIELDS, _KEPT, _unsupported)


def _unsupported(given: Given) -> Refusal | None:
    return not_all_lifted("jit", given, _BY_HAND) or no_named_class("jit", given, _BY_HAND)


def reference(symbol: str, context: Context) -> Code | Refusal:
    """``@nn.jit`` on a method of a module; any other bare use is refused."""
    if context is Context.DECORATOR:
        return name("nnm.jit")
    return Refusal(f"{symbol} used as a {context.value}", "call it with a module class")


RULES = (
    CallRule(
        name="jit",
        symbols=linen("jit"),
        example=Example("nn.jit(Block)(8)", "nnm.jit(Block)(8, in_features=..., rngs=rngs)"),
        convert=convert,
        reference=reference,
    ),
)
