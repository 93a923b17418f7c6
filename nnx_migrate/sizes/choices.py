"""What is read of each of several values of which nobody knows which it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.questions import is_none
from nnx_migrate.abstract.values import Choice, Instance, Submodule, Use, Value

if TYPE_CHECKING:
    from nnx_migrate.sizes.interpreter import Interpreter


def each(
    interpreter: Interpreter,
    choice: Choice,
    options: Iterable[Value],
    read: Callable[[Value], Value],
) -> list[Value]:
    """What is read of options of a choice, each under the condition that it is the one.

    A module that one branch of a test builds is the one wherever it is built, and what is None is none.
    Of such modules that are built alike one is read, and what that showed noted of the others.
    """
    tests = (choice.test, ex.negation(choice.test)) if choice.test is not None else ()
    is_only = sum(is_none(one) is not True for one in choice.options) == 1
    found: list[Value] = []
    last: _Reading | None = None
    for one in options:
        at = next(i for i, option in enumerate(choice.options) if option is one)
        if is_only or (isinstance(one, Submodule | Instance) and one.is_conditional):
            if last is not None and isinstance(one, Instance) and last.is_of(one):
                found.append(found[-1])
                last.share(interpreter, one)
            else:
                before = _Before.of(interpreter, one)
                found.append(read(one))
                last = before.reading(interpreter, one)
            continue
        with interpreter.under(tests[at] if tests else None):
            found.append(read(one))
    return found


@dataclass(frozen=True)
class _Before:
    """What there was before a value was read."""

    calls: int
    notes: tuple[int, int]
    is_new: bool  # a module of which nobody has called anything

    @classmethod
    def of(cls, interpreter: Interpreter, value: Value) -> _Before:
        notes = len(interpreter.problems), len(interpreter.review)
        is_new = isinstance(value, Instance) and _is_new(value)
        return cls(len(interpreter.journal), notes, is_new)

    def reading(self, interpreter: Interpreter, value: Value) -> _Reading | None:
        """The reading of a module that another may have shown as well; None where it has notes."""
        notes = len(interpreter.problems), len(interpreter.review)
        if not isinstance(value, Instance) or value.owner is None or notes != self.notes:
            return None
        own = value.owner.records.get(id(value.call), [])
        number = sum(one is own for one in interpreter.journal[self.calls :])
        return _Reading(value, own[len(own) - number :], self.is_new)


@dataclass(frozen=True)
class _Reading:
    """A module that was read, and the calls of its own methods that this made."""

    module: Instance
    calls: list[Use]
    was_new: bool

    def is_of(self, other: Instance) -> bool:
        """Whether another module would have shown the same: one of the same class with the same fields."""
        one = self.module
        if other.records is not one.records and not (self.was_new and _is_new(other)):
            return False
        if one.info is not other.info or one.lifts != other.lifts:
            return False
        named = {"name": one.fields.get("name")}  # says where it hangs, not what it computes
        return one.fields | named == other.fields | named

    def share(self, interpreter: Interpreter, other: Instance) -> None:
        """Note the same calls of ``other``, which from now on holds what the read one does."""
        one = self.module
        other.attributes, other.records, other.variables = (
            one.attributes,
            one.records,
            one.variables,
        )
        other.is_set_up = one.is_set_up
        for use in self.calls:
            is_apart = id(other) in interpreter.apart
            interpreter.add(replace(use, module=other, apart=is_apart))


def _is_new(module: Instance) -> bool:
    return not (module.is_set_up or module.attributes or module.records)
