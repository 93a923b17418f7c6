"""Functions outside a class that use what only Linen modules have, of a module they are given.

``def body(module, carry, x): ... module.param(...)``, lifted or called by a method: what the rewriter
does to ``self.param`` it does in methods alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnx_migrate.abstract.values import Argument, Instance, Submodule, Value
from nnx_migrate.sizes.frames import Frame

if TYPE_CHECKING:
    from nnx_migrate.sizes.interpreter import Interpreter

# What every Linen module makes, reads and asks of its variables.
MODULE_METHODS = frozenset(
    "param variable make_rng sow perturb put_variable get_variable has_variable is_initializing"  # noqa: SIM905
    " is_mutable_collection".split()
)
_METHODS = MODULE_METHODS | {"has_rng"}
_ATTRIBUTES = frozenset({"variables", "scope", "path"})
_EVERY = _METHODS | _ATTRIBUTES


def check_outside(interpreter: Interpreter, base: Value, name: str, frame: Frame) -> None:
    """Refuse the root where its own code lets a function outside use ``base.<name>``."""
    if name not in _EVERY:
        return
    if isinstance(base, Argument):
        # A function that builds layers is analysed as a class; what it is handed may be a module.
        is_ours = interpreter.root.info.function is not None and name in _METHODS
    else:
        is_ours = _is_module(base, name) and _is_outside(frame) and _for_root(interpreter)
    if is_ours:
        verb = "calls" if name in _METHODS else "reads"
        reason = f"a function outside the class {verb} self.{name} for it"
        info = interpreter.root.info
        interpreter.refuse(info.function or info.node, reason)


def _is_module(base: Value, name: str) -> bool:
    if isinstance(base, Instance):
        own = base.info.field_names | base.attributes.keys()
        return name not in own and base.info.find(name) is None
    return isinstance(base, Submodule)


def _is_outside(frame: Frame) -> bool:
    is_method = frame.defined_in is not None and frame.defined_in.linen
    return frame.instance is None and not is_method


def _for_root(interpreter: Interpreter) -> bool:
    """Whether the class under analysis runs the function, and no class of a submodule."""
    callers = (one.instance for one in reversed(interpreter.frames) if one.instance is not None)
    return next(callers, interpreter.root) is interpreter.root
