"""Whether a receiver is, may be, or cannot be a Linen module."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from nnx_migrate.ledger.externals import NOT_FLAX, is_class_name
from nnx_migrate.ledger.infer import Inference
from nnx_migrate.ledger.resolve import LINEN, Definition, Symbol, Unknown, under
from nnx_migrate.ledger.scope_data import Scope
from nnx_migrate.ledger.values import Instance, Value, Values, lacks_method, symbol_state


class Verdict(Enum):
    """What calling a Linen module method on a value is."""

    LINEN = "linen"  # on a Linen module
    MAYBE = "maybe"  # on something not known
    STALE = "stale"  # on an NNX module, which has no such method
    NO = "no"  # on something that is no module


ClassKey = tuple[
    str, int, int, str
]  # path, line, column and name: a file may be read more than once


def class_key(scope: Scope) -> ClassKey:
    """What a class is known by in all parts of a count."""
    line, column = getattr(scope.node, "lineno", 0), getattr(scope.node, "col_offset", 0)
    return scope.unit.path, line, column, scope.name


class Judge:
    """Judges receivers in one project."""

    def __init__(self, inference: Inference) -> None:
        self.inference = inference

    def receiver(self, values: Values, method: str) -> Verdict:
        """The verdict on all that a receiver may be: Linen only when nothing else is possible."""
        verdicts = {self.value(value, method) for value in values} or {Verdict.MAYBE}
        if verdicts == {Verdict.LINEN}:
            return Verdict.LINEN
        if verdicts & {Verdict.LINEN, Verdict.MAYBE}:
            return Verdict.MAYBE
        return Verdict.STALE if Verdict.STALE in verdicts else Verdict.NO

    def mixins(self, values: Values, method: str) -> frozenset[ClassKey]:
        """The classes of a receiver that are none of modules, unless a Linen class has them as a base.

        A mixin's ``self``, or a value annotated with it, may be an instance of a Linen subclass.
        """
        found = (one.of if isinstance(one, Instance) else one for one in values)
        classes = (one.scope for one in found if isinstance(one, Definition))
        return frozenset(
            class_key(one)
            for one in classes
            if one.kind == "class"
            and self.inference.state(one) == "other"
            and not self.inference.has_member(one, method)
        )

    def annotated_classes(self, values: Values) -> frozenset[ClassKey]:
        """The NNX classes of a receiver of which only annotations speak."""
        classes = (one.of for one in values if isinstance(one, Instance) and one.is_annotated)
        scopes = (one.scope for one in classes if isinstance(one, Definition))
        return frozenset(class_key(one) for one in scopes if self.inference.state(one) == "nnx")

    def bases(self, scope: Scope) -> Iterator[ClassKey]:
        """A Linen class and its bases in the project."""
        if self.inference.state(scope) == "linen":
            yield from map(class_key, self.inference.chain(scope))

    def value(self, value: Value, method: str) -> Verdict:
        """The verdict on one possible receiver."""
        if isinstance(value, Instance):
            if isinstance(value.of, Symbol):
                return self.outside(value.of.name, method, is_called=True)
            return self.of_class(value.of.scope, method)
        if isinstance(value, Definition):
            is_class = value.scope.kind == "class"
            return self.of_class(value.scope, method) if is_class else Verdict.NO
        if isinstance(value, Symbol):
            return Verdict.NO if value.module else self.outside(value.name, method, is_called=False)
        return Verdict.MAYBE if isinstance(value, Unknown) else Verdict.NO

    def outside(self, name: str, method: str, *, is_called: bool) -> Verdict:
        """A class outside the project (its methods taken unbound) or what calling it gives."""
        if under(name.partition(".")[0], "builtins") or name.partition(".")[0] in NOT_FLAX:
            return Verdict.NO
        if under(name, LINEN) and not is_class_name(name):
            return Verdict.MAYBE if is_called else Verdict.NO
        if under(name, "flax.nnx") and not is_called and not is_class_name(name):
            return Verdict.NO
        if symbol_state(name) == "nnx" and not lacks_method(name, method):
            return Verdict.NO
        return _STATES[symbol_state(name)]

    def of_class(self, scope: Scope, method: str) -> Verdict:
        """A class of the project, or its instances."""
        state = self.inference.state(scope)
        own = self.inference.has_member(scope, method)
        if state == "linen":
            return Verdict.MAYBE if own else Verdict.LINEN
        if own:
            return Verdict.NO
        return _STATES[state]


_STATES = {
    "linen": Verdict.LINEN,
    "lazy": Verdict.NO,
    "nnx": Verdict.STALE,
    "maybe": Verdict.MAYBE,
    "other": Verdict.NO,
}
