"""vjp, jvp, grad, value_and_grad, custom_vjp: derivatives of functions of the module, in its call.

``nn.vjp(f, self.head, x)`` becomes ``nnm.vjp(f, self.head, x)``; cotangents of variables come as Linen's,
by collection and scope path. ``nn.grad`` and ``nn.value_and_grad`` differentiate the arguments and no
variable, as in Linen. ``nn.custom_vjp(f, forward_fn=..., backward_fn=..., grad_vars=...)`` likewise.

Refused: lifting filters (``variables=``, ``rngs=``), ``multi_scope=``, ``reduce_axes=``, options the text
does not show, functions that build layers.

flax 0.12.8 and 0.12.12: linen/transforms.py, core/lift.py.
"""

from __future__ import annotations

from collections.abc import Callable

from nnx_migrate.constructs.base import (
    CallRule,
    Code,
    Example,
    LayerCall,
    Refusal,
    is_literal,
    linen,
)
from nnx_migrate.constructs.lifts import not_all_lifted, reference, renamed_call

_DROPPED = {"multi_scope": False, "reduce_axes": ()}


def _direct(name: str) -> Callable[[LayerCall], Code | Refusal]:
    def convert(call: LayerCall) -> Code | Refusal:
        given = {one.arg: one.value for one in call.call.keywords if one.arg is not None}
        if any(one.arg is None for one in call.call.keywords):
            reason = f"{name} whose arguments the call does not show"
            return Refusal(reason, "pass them one by one", call.call)
        for option, default in _DROPPED.items():
            if option in given and not is_literal(given[option], default):
                recipe = "leave it out, or call jax's function after nnx.split"
                return Refusal(f"{name} with {option}=", recipe, given[option])
        refusal = not_all_lifted(name, given, f"call nnm.{name} of a function of the module")
        return refusal or renamed_call(f"nnm.{name}", call, without=frozenset(_DROPPED))

    return convert


_EXAMPLES = {
    "vjp": "(f, self.head, x)",
    "jvp": '(f, self.head, (x,), (t,), {"params": tangents})',
    "grad": "(f, self.head, x)",
    "value_and_grad": "(f, self.head, x)",
    "custom_vjp": "(f, forward_fn=fwd, backward_fn=bwd)(self.head, x)",
}

RULES = tuple(
    CallRule(
        name=name,
        symbols=linen(name),
        example=Example(f"nn.{name}{arguments}", f"nnm.{name}{arguments}"),
        convert=_direct(name),
        reference=reference,
    )
    for name, arguments in _EXAMPLES.items()
)
