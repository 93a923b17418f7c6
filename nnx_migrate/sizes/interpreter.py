"""What one analysis of a Linen class keeps, and what those who run parts of its code ask of each other.

`Interpreter` has the state and its bookkeeping. Expressions, statements, constructors and library calls
run each other through its abstract methods, so that none of their files imports the others;
`machine` fills them in.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.joining import as_array
from nnx_migrate.abstract.questions import held_modules
from nnx_migrate.abstract.slices import is_one
from nnx_migrate.abstract.values import (
    Argument,
    Array,
    CallForm,
    Instance,
    RepeatedItem,
    Sequence,
    Static,
    Submodule,
    Unknown,
    Use,
    Value,
)
from nnx_migrate.sizes.extras import NO_EXTRAS, Extras
from nnx_migrate.sizes.factory_calls import FactoryFunction
from nnx_migrate.sizes.fields.numbers import Ones, may_be_several
from nnx_migrate.sizes.flow import UNLESS_LEFT, Rest
from nnx_migrate.sizes.frames import Frame, Function, Loop
from nnx_migrate.sizes.loop_names import LoopNames
from nnx_migrate.sizes.presence import ALWAYS, Side
from nnx_migrate.sizes.ranks import Ranks
from nnx_migrate.sizes.scope_functions import ScopeFunction
from nnx_migrate.sizes.statics import static_of
from nnx_migrate.source.leaving import leaves
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.walking import walk

_STEPS = 200_000


class TooDeep(Exception):
    """The code needs more steps than size inference spends on one class."""


@dataclass
class Interpreter(ABC):
    """State of one analysis; see the module docstring."""

    project: Project
    root: Instance
    candidates: dict[tuple[str, str], tuple[Value, ...]] = field(default_factory=dict)
    factories: Mapping[int, FactoryFunction] = field(default_factory=dict)
    scope_functions: Mapping[int, ScopeFunction] = field(default_factory=dict)
    conditions: list[Expr | None] = field(default_factory=list)
    presence: dict[str, bool] = field(default_factory=dict)  # of call parameters, here
    facts: dict[str, Expr] = field(default_factory=dict)
    loops: list[Loop] = field(default_factory=list)
    # Loops with carried sizes, outermost first
    carrying: list[ast.AST] = field(default_factory=list)
    statics: dict[int, str | None] = field(default_factory=dict)
    lengths: dict[int, str | None] = field(default_factory=dict)  # of what loops run over
    submodules: dict[int, Submodule | Instance] = field(default_factory=dict)
    # What the loops have to hold for a round in which each is built
    made_in: dict[int, frozenset[Expr]] = field(default_factory=dict)
    # Constructor calls of layers given parameters
    applied_layers: set[int] = field(default_factory=set)
    carries: dict[int, list[tuple[str, Expr, Expr]]] = field(default_factory=dict)
    # What each `nn.Sequential` of a loop runs
    turns: dict[tuple[int, int], ast.For] = field(default_factory=dict)
    problems: list[tuple[ast.AST, str]] = field(default_factory=list)
    final: set[str] = field(default_factory=set)  # problems that no other run is without
    review: list[tuple[ast.AST, str]] = field(default_factory=list)
    loop_names: LoopNames = field(default_factory=LoopNames)
    # Names of carried sizes, by the loop and the local
    symbols: dict[tuple[ast.For, str], str] = field(default_factory=dict)
    carried_by_call: frozenset[str] = frozenset()  # carried sizes that `__call__` has shown
    endings: dict[str, Expr] = field(default_factory=dict)  # carried sizes in terms of fields
    # Carried sizes of loops in rounds of others
    nested_carries: set[str] = field(default_factory=set)
    plain_sums: dict[int, ast.BinOp] = field(default_factory=dict)  # a += b as a + b, by statement
    primary: bool = True
    initial_facts: set[int] = field(default_factory=set)  # ids of conditions on the initial call
    # Calls that led into a function of the project
    entered_calls: set[int] = field(default_factory=set)
    # Constructor calls of what these return
    through_functions: set[int] = field(default_factory=set)
    # Whether a call is of a function, of a class: of either in different rounds of a loop
    callee_kinds: dict[int, set[bool]] = field(default_factory=dict)
    known_callees: dict[int, bool] = field(default_factory=dict)  # of calls that were followed
    item_calls: list[ast.AST] = field(default_factory=list)  # of what unknown lists hold
    journal: list[list[Use]] = field(default_factory=list)  # lists of uses, in the order of calls
    reads: list[Use] = field(default_factory=list)  # of the root's attributes that hold submodules
    extras: Extras = NO_EXTRAS
    # Parameters beside its facts, asked by conditions
    untold: set[str] = field(default_factory=set)
    varying: frozenset[str] = frozenset()  # attributes that a class of the same __init__ has anew
    names_entries: bool = True  # unknown sizes at a loop's start get a name of their own
    # Last sizes that an operator met; under how many conditions and loops
    equal: dict[frozenset[str], tuple[int, int]] = field(default_factory=dict)
    ranks: Ranks = field(default_factory=Ranks)
    met: set[int] = field(default_factory=set)  # built in lists that a loop meets whole by an index
    picked: set[int] = field(default_factory=set)  # in lists that are read by an index at all
    # Constructor calls: some of theirs no call may reach
    unsure: set[int] = field(default_factory=set)
    apart: set[int] = field(default_factory=set)  # modules that stand for several, told by index
    frames: list[Frame] = field(default_factory=list)  # of the running functions, innermost last
    depth: int = 0
    steps: int = 0

    # ---- bookkeeping

    @cached_property
    def ones(self) -> Ones:
        """The texts of sizes that may be 1, and so may be broadcast."""
        return Ones(self.project, self.root.info)

    def single(self, value: Value) -> Value:
        """A value, which nobody knows where fields may hold several numbers for it: ``self.mean``."""
        if isinstance(value, Static) and may_be_several(
            self.project, self.root.info, value.expr.text
        ):
            return Unknown(f"{value.expr.text} may be several")
        return value

    def copy_for_notes(self) -> Self:
        """The same with notes of its own: who reads a finished run adds to them."""
        return replace(
            self,
            statics={**self.statics},
            carries={key: [*entries] for key, entries in self.carries.items()},
            problems=[*self.problems],
            review=[*self.review],
            ranks=replace(self.ranks, proofs={**self.ranks.proofs}),
        )

    def step(self) -> None:
        """Count one evaluation. Raises TooDeep when the budget is spent."""
        self.steps += 1
        if self.steps > _STEPS:
            raise TooDeep(f"more than {_STEPS} steps in {self.root.info.name}")

    def builds_by(self, body: ast.AST, node: ast.Call) -> bool:
        """Whether a call is one of a factory function by its name: ``body`` is the function called."""
        function = self.factories.get(id(body))
        return function is not None and id(node) in function.uses

    def refuse(self, node: ast.AST, text: str, *, is_final: bool = False) -> None:
        """Note a problem, the first one of a place."""
        _note_once(self.problems, node, text)
        if is_final:
            self.final.add(text)

    @property
    def is_refused(self) -> bool:
        """Whether the class has a problem that makes all else needless to know."""
        is_class = self.root.info.function is None  # of a method only its own problems count
        return is_class and any(text in self.final for _, text in self.problems)

    def leave(self, value: Value) -> None:
        """Leave what is built there to first calls: Linen makes none that no call reaches."""
        self.unsure.update(id(one.call) for one in held_modules(value))

    def ask(self, node: ast.AST, text: str) -> None:
        """Note what a person should look at, the first note of a place."""
        _note_once(self.review, node, text)

    def meet(self, one: Array | None, other: Array | None) -> None:
        """Note that the last sizes of two arrays are equal, which an operator takes together."""
        sizes = [array.axis(-1) for array in (one, other) if array is not None]
        texts = frozenset(size.text for size in sizes if size is not None and not is_one(size))
        if len(texts) == 2:
            depth = len(self.conditions), len(self.loops)
            self.equal[texts] = min(self.equal.get(texts, depth), depth)

    @contextmanager
    def under(self, condition: Expr | None) -> Iterator[None]:
        """Run a block that only happens when ``condition`` holds."""
        self.conditions.append(condition)
        try:
            yield
        finally:
            self.conditions.pop()

    @contextmanager
    def in_round(self, loop: ast.For) -> Iterator[None]:
        """Run a round of a loop that an earlier round may have left."""
        if not leaves(loop.body):
            yield
            return
        with self.under(UNLESS_LEFT):
            yield

    @contextmanager
    def knowing(self, presence: Mapping[str, bool]) -> Iterator[None]:
        """Run a block in which these parameters of the call are given, or are None."""
        before = self.presence
        self.presence = {**before, **presence}
        try:
            yield
        finally:
            self.presence = before

    @contextmanager
    def on(self, side: Side) -> Iterator[None]:
        """Run one branch of a test: `under` and `knowing` at once."""
        before, count = self.presence, len(self.conditions)
        self.conditions += [side.condition] if side.condition != ALWAYS else []
        self.presence = {**before, **side.presence}
        try:
            yield
        finally:
            self.presence = before
            del self.conditions[count:]

    def prove(
        self,
        array: Array | None,
        *,
        least: int = 0,
        exact: int | None = None,
        usual: int | None = None,
    ) -> None:
        """Note how many axes an array has, where every call shows it."""
        if array is not None and not self.conditions:
            self.ranks.prove(array, least=least, exact=exact, usual=usual)

    def array(self, value: Value | None) -> Array | None:
        """A value as an array, with what is known of its rank."""
        found = as_array(value) if value is not None else None
        return self.ranks.with_rank(found) if found is not None else None

    def as_array(self, value: Value) -> Value:
        """The value, as an array where something is known of its rank."""
        array = value.array() if isinstance(value, Argument) else value
        found = self.ranks.with_rank(array) if isinstance(array, Array) else value
        return value if found == array else found

    def note(self, node: ast.expr, value: Value, frame: Frame) -> None:
        """Remember what a root expression is when it is static."""
        if isinstance(node, ast.Starred):  # no value by itself
            return
        if not frame.own or (id(node) in self.initial_facts and not self.primary):
            return
        found = static_of(value)
        expr = self.loop_names.at(found, node) if found is not None else None
        text = expr.text if expr is not None and spellable(expr) else None
        if id(node) in self.statics and self.statics[id(node)] != text:
            text = None
        self.statics[id(node)] = text

    def record(
        self,
        module: Submodule | Instance,
        sizes: dict[str, Expr | None],
        method: str = "__call__",
        arguments: dict[str, Value] | None = None,
        form: CallForm | None = None,
    ) -> None:
        """Remember one call of a submodule with the one that built it."""
        if module.owner is not None:
            conditions = tuple(self.conditions)
            around = self._loops_around(module)
            use = Use(
                module,
                sizes,
                conditions,
                self.primary,
                method,
                arguments or {},
                id(module) in self.apart,
                self.presence,
                self.ranks.method,
                form,
                self._rounds(module, around),
                any(one.is_open for one in around),
                self.current_symbols(),
            )
            self.add(use)

    def current_symbols(self) -> frozenset[str]:
        """The carried sizes of the rounds that run."""
        loops = {id(one) for one in self.carrying}
        named = self.symbols.items() if loops else ()
        return frozenset(symbol for (loop, _), symbol in named if id(loop) in loops)

    def add(self, use: Use) -> None:
        """Remember a call of a submodule that a module owns."""
        assert use.module.owner is not None
        uses = use.module.owner.records.setdefault(id(use.module.call), [])
        uses.append(use)
        self.journal.append(uses)

    def note_read(self, value: Value) -> None:
        """Remember that an attribute is read which holds submodules, other than to call it."""
        for one in held_modules(value):
            rounds = self._rounds(one, self._loops_around(one))
            self.reads.append(Use(one, {}, tuple(self.conditions), self.primary, rounds=rounds))

    def _rounds(self, module: Submodule | Instance, loops: Iterable[Loop]) -> tuple[Expr, ...]:
        """What holds where the loops around a call have a round."""
        found = [one.has_rounds for one in loops]
        known = self.made_in.get(id(module.call), frozenset())
        return tuple(dict.fromkeys(one for one in found if one is not None and one not in known))

    def _loops_around(self, module: Submodule | Instance) -> list[Loop]:
        """The running loops, those aside that made or hold the module."""
        call = module.call
        if call is None or id(call) in self.met:
            return []
        around = [one for one in self.loops if id(call) not in one.submodule_calls]
        return [one for one in around if not any(node is call for node in walk(one.node))]

    # ---- what runs code, in machine.py
    @abstractmethod
    def evaluate(self, node: ast.expr, frame: Frame) -> Value:
        """Abstract value of an expression."""

    @abstractmethod
    def run_block(self, body: list[ast.stmt], frame: Frame) -> tuple[str | None, Rest]:
        """Run a block; what ended it early, or None and the conditions under which its end is met."""

    def run(self, body: list[ast.stmt], frame: Frame) -> str | None:
        """Run a block; what ended it early, or None."""
        return self.run_block(body, frame)[0]

    @abstractmethod
    def attribute(self, base: Value, name: str, frame: Frame) -> Value:
        """``base.name``."""

    @abstractmethod
    def call(
        self,
        target: Value,
        args: tuple[Value, ...],
        kwargs: dict[str, Value],
        node: ast.Call,
        frame: Frame,
    ) -> Value:
        """Result of calling an abstract value."""

    @abstractmethod
    def call_library(
        self,
        symbol: str,
        args: tuple[Value, ...],
        kwargs: dict[str, Value],
        node: ast.Call,
        frame: Frame,
    ) -> Value:
        """Result of calling a function by its symbol."""

    @abstractmethod
    def call_function(
        self, function: Function, args: tuple[Value, ...], kwargs: dict[str, Value]
    ) -> Value:
        """Result of calling a function of the project."""

    @abstractmethod
    def call_submodule(
        self, layer: Submodule, args: tuple[Value, ...], kwargs: dict[str, Value]
    ) -> Value:
        """Call a built-in layer, or a submodule whose class is only known at run time."""

    @abstractmethod
    def call_instance(
        self, instance: Instance, method: str, args: tuple[Value, ...], kwargs: dict[str, Value]
    ) -> Value:
        """Call a method of a Linen instance."""

    @abstractmethod
    def set_up(self, instance: Instance) -> None:
        """Run an instance's ``setup`` once."""

    def call_value(
        self, target: Value, args: tuple[Value, ...], kwargs: dict[str, Value], node: ast.Call
    ) -> Value:
        """Call any value outside a frame (layers that call other layers)."""
        frame = Frame(Scope(self.root.info.module), {}, None)
        return self.call(target, args, kwargs, node, frame)

    def call_in_turn(self, rounds: RepeatedItem, value: Value, layer: Submodule) -> Value:
        """What a layer makes of a value: ``for layers in rounds: x = layers[0](x)``, and so on."""
        assert layer.call is not None
        assert isinstance(rounds.item, Sequence)
        own = layer.owner is self.root
        env = {"rounds": rounds, "x": value}
        frame = Frame(Scope(self.root.info.module), env, self.root, own=own)
        key = id(layer.call), id(rounds.origin)
        loop = self.turns.setdefault(key, _turns(layer.call, len(rounds.item.items)))
        self.run([loop], frame)
        return frame.env["x"]


def _turns(call: ast.Call, count: int) -> ast.For:
    """The loop that a call of `nn.Sequential` is, of which each round calls so many layers."""
    calls = "".join(f"\n    x = layers[{number}](x)" for number in range(count))
    (loop,) = ast.parse(f"for layers in rounds:{calls}").body
    assert isinstance(loop, ast.For)
    return ast.increment_lineno(loop, call.lineno - 1)


def spellable(expression: Expr) -> bool:
    """Whether an expression can be written in the root's ``__init__``."""
    return not any(one.startswith(ex.FOREIGN) for one in expression.names)


def _note_once(notes: list[tuple[ast.AST, str]], node: ast.AST, text: str) -> None:
    if all(one is not node for one, _ in notes):
        notes.append((node, text))
