"""Functions, and what the interpreter keeps while one or a loop runs."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.values import (
    ConcatenatedList,
    Instance,
    Record,
    RepeatedItem,
    Rounds,
    Sequence,
    Static,
    Unknown,
    Value,
)
from nnx_migrate.sizes.loop_names import LoopNames
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.names import FunctionNode
from nnx_migrate.source.project import Scope


@dataclass
class Frame:
    """One running function."""

    scope: Scope
    env: dict[str, Value]
    instance: Instance | None = None
    defined_in: ClassInfo | None = None
    own: bool = False  # code of the root class itself
    returns: list[tuple[Expr | None, Value]] = field(default_factory=list)
    depth: int = 0  # conditions that were already open when the function started
    jumps: list[dict[str, Value]] = field(default_factory=list)  # locals at break and continue
    tests: dict[str, ast.expr] = field(default_factory=dict)  # local name -> the test it holds
    mutations: list[Value] = field(default_factory=list)  # values as they were before a change
    node: ast.AST | None = None  # the function that runs

    def change(self, name: str, value: Value) -> None:
        """Bind a local to what its value has become, in place: its other names know no more of it."""
        old = self.env.get(name)
        self.env[name] = value
        if old is not None:
            self.forget(old)

    def is_held(self, value: Value) -> bool:
        """Whether a local is, or contains, an object."""
        return any(_holds(one, value) for one in self.env.values())

    def forget(self, old: Value) -> None:
        """Take what still holds ``old``, which has changed, for unknown."""
        self.mutations.append(old)
        held_by = [self.env]
        if self.instance is not None:
            held_by += [self.instance.attributes, self.instance.fields]
        for names in held_by:
            for name, value in names.items():
                if _holds(value, old):
                    names[name] = Unknown("what it holds is changed under another name")


def _holds(value: Value, old: Value) -> bool:
    """Whether a value is, or contains, an object. What only a text names is it by its text."""
    if value is old or (isinstance(old, Static) and value == old):
        return True
    match value:
        case Sequence(items=items):
            return any(_holds(one, old) for one in items)
        case Record(entries=entries):
            return any(_holds(one, old) for one in entries.values())
        case RepeatedItem(item=item):
            return _holds(item, old)
        case ConcatenatedList(parts=parts):
            return any(_holds(one, old) for one in parts)
        case Rounds(each=each):
            return _holds(each, old)
    return False


@dataclass(frozen=True)
class Function(Value):
    """A function or lambda of the project; ``owner`` is set for bound methods."""

    node: FunctionNode
    scope: Scope
    env: dict[str, Value] = field(default_factory=dict, compare=False)
    owner: Value | None = None
    defined_in: ClassInfo | None = None
    home: Frame | None = field(default=None, compare=False)  # of the function it stands in


@dataclass
class Loop:
    """A loop being run once for all its iterations."""

    node: ast.AST
    names: LoopNames
    origins: list[ast.AST] = field(default_factory=list)
    first: list[Value] = field(default_factory=list)  # items that come before the alike ones
    last: dict[str, Expr] = field(default_factory=dict)
    rounds: Expr | None = None  # how many there are
    ends: bool = True  # it meets everything that the loops of its origins made
    foreign: bool = False  # of another class: __init__ cannot read its variables
    counters: dict[str, bool] = field(default_factory=dict)  # go up by one; whether from 0
    is_reordered: bool = (
        False  # items come in another order than the loop of their origin made them
    )
    has_rounds: Expr | None = None  # what may be tested for that; None: nothing over fields alone
    is_open: bool = False  # whether it has a round an argument of the call says
    # Constructor calls of what its rounds go through, by id
    submodule_calls: frozenset[int] = frozenset()

    def count(self, target: ast.expr | None, *, from_zero: bool) -> None:
        """Note a variable that goes up by one."""
        if isinstance(target, ast.Name):
            self.counters[self.variable(target.id)] = from_zero

    def meet(self, origin: ast.AST, length: Expr | None) -> None:
        """Note that each of its rounds meets one of so many items that another loop made."""
        self.origins.append(origin)
        self.ends &= length is not None and length == self.rounds

    def variable(self, identifier: str) -> str:
        """The name of a loop variable in expressions."""
        if self.foreign:
            return f"{ex.FOREIGN}{identifier}"
        return self.names.of(self.node, identifier)
