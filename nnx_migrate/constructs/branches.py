"""cond, switch, while_loop of functions of the module: what runs is decided in the call.

``nn.cond(pred, self.take, self.skip, self, x)`` becomes ``nnm.cond(...)`` with the same arguments; so do
``nn.switch(index, branches, self, x)`` and ``nn.while_loop(goes_on, body, self, init,
carry_variables="state")``. The module has afterwards what the branch or the steps that ran made of its
variables.

Refused: lifting filters (``variables=``, ``rngs=``), functions that build layers or make variables (Linen
makes those of the branch that ``init`` takes), options the text does not show.

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
    linen,
)
from nnx_migrate.constructs.lifts import not_all_lifted, reference, renamed_call


def _direct(name: str, first: tuple[str, ...]) -> Callable[[LayerCall], Code | Refusal]:
    """The rule of a function that takes ``first``, the module and operands."""

    def convert(call: LayerCall) -> Code | Refusal:
        given = {one.arg: one.value for one in call.call.keywords if one.arg is not None}
        if len(call.call.args) + len(given) < len(first) or any(
            one.arg is None for one in call.call.keywords
        ):
            reason = f"{name} whose arguments the call does not show"
            return Refusal(reason, "pass them one by one", call.call)
        refusal = not_all_lifted(name, given, f"call nnm.{name} of a function of the module")
        return refusal or renamed_call(f"nnm.{name}", call)

    return convert


_FUNCTIONS = {
    "cond": ("pred", "true_fun", "false_fun", "mdl"),
    "switch": ("index", "branches", "mdl"),
    "while_loop": ("cond_fn", "body_fn", "mdl", "init"),
}
_EXAMPLES = {
    "cond": Example("nn.cond(p, self.f, self.g, self, x)", "nnm.cond(p, self.f, self.g, self, x)"),
    "switch": Example("nn.switch(i, branches, self, x)", "nnm.switch(i, branches, self, x)"),
    "while_loop": Example("nn.while_loop(f, g, self, x)", "nnm.while_loop(f, g, self, x)"),
}

RULES = tuple(
    CallRule(
        name=name,
        symbols=linen(name),
        example=_EXAMPLES[name],
        convert=_direct(name, first),
        reference=reference,
    )
    for name, first in _FUNCTIONS.items()
)
