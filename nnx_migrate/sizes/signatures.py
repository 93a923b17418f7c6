"""Which arguments a summary looks at: what it does not know of may change any shape.

A summary declares its function's parameters in their order, as text: ``"a axis dtype * where"``. Listed are those that
it reads and those that change no shape (``dtype``); a call with any other is unknown.

* ``a|operand``: the summary reads it as ``a``, callers may also name it ``operand``.
* ``shape!``: understood only where it is left out, None or False.
* ``*``: what follows is given by name. ``*operands``: so is it, and before it come any number by position.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from nnx_migrate.abstract.values import STARRED, Static, Unknown, Value
from nnx_migrate.sizes.library_call import LibraryCall, Summary


@dataclass(frozen=True)
class Signature:
    """The parameters that a summary knows."""

    positional: tuple[str, ...]  # as the summary reads them
    names: Mapping[str, str]  # what callers may write, and how the summary reads it
    absent: frozenset[str]
    takes_any: bool  # any number by position, which the summary reads off the call itself

    @classmethod
    def of(cls, parameters: str) -> Signature:
        """The signature that a text declares."""
        positional: list[str] = []
        names: dict[str, str] = {}
        absent: set[str] = set()
        by_name = False
        for word in parameters.split():
            if word.startswith("*"):
                by_name = True
                continue
            first, *others = word.removesuffix("!").split("|")
            names.update(dict.fromkeys((first, *others), first))
            absent |= {first} if word.endswith("!") else set()
            positional += [] if by_name else [first]
        return cls(tuple(positional), names, frozenset(absent), "*operands" in parameters.split())

    def bind(self, call: LibraryCall) -> dict[str, Value] | None:
        """The arguments by what the summary calls them; None where it does not know one."""
        if STARRED in call.args or not call.kwargs.keys() <= self.names.keys():
            return None
        if len(call.args) > len(self.positional) and not self.takes_any:
            return None
        bound = dict(zip(self.positional, call.args, strict=False))
        bound |= {self.names[name]: value for name, value in call.kwargs.items()}
        values = [bound[name] for name in self.absent & bound.keys()]
        return bound if all(map(_is_left_out, values)) else None


def _is_left_out(value: Value) -> bool:
    """Whether an argument is as good as not given: None or False."""
    return isinstance(value, Static) and value.expr.is_constant and not value.expr.constant


def reading(parameters: str, summary: Summary) -> Summary:
    """The summary for calls all of whose arguments it knows; of others nothing is known."""
    signature = Signature.of(parameters)

    def read(call: LibraryCall) -> Value:
        bound = signature.bind(call)
        if bound is None:
            return Unknown(f"{call.symbol} with an argument that its summary does not know")
        return summary(replace(call, bound=bound))

    read.signature = signature  # type: ignore[attr-defined]
    return read
