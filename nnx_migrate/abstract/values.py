"""Abstract values of the size interpreter: what is known about a value without running anything."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.expression import Expr

if TYPE_CHECKING:
    from nnx_migrate.source.classes import ClassInfo


class Value:
    """Base of all abstract values."""


@dataclass(frozen=True)
class Unknown(Value):
    """Nothing is known.

    ``made_by`` is set when the value may be a module: what an unknown callable returned; ``is_foreign``
    when its methods are no module's: that is another package's, or itself a module. ``is_item``: what an
    unknown list holds, or the like. ``is_draw``: a random number of Python's. ``is_size``: an axis of an
    array. ``first`` is what it is in the first round of a loop that changes it.
    """

    why: str = ""
    made_by: str = field(default="", compare=False)
    is_foreign: bool = field(default=False, compare=False)
    is_item: bool = field(default=False, compare=False)
    is_draw: bool = field(default=False, compare=False)
    is_size: bool = field(default=False, compare=False)
    first: Value | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Static(Value):
    """A Python value that ``__init__`` can compute."""

    expr: Expr


@dataclass(frozen=True)
class Array(Value):
    """An array. ``tail`` are its last axes (None = unknown size); ``rank`` None = unknown.

    A size in ``tail`` says how long the axis is if the array has that many; ``least`` is how many
    it is known to have. ``path`` is set for a call argument as it came in: axes outside ``tail``
    are input sizes. ``grown`` says by how many axes the rank differs from that of an argument.
    """

    tail: tuple[Expr | None, ...] = ()
    rank: int | None = None
    path: str | None = None
    least: int = 0
    grown: tuple[str, int] | None = None

    @property
    def origin(self) -> tuple[str, int] | None:
        """The argument whose rank this one's follows from, and the difference."""
        return self.grown or ((self.path, 0) if self.path else None)

    @property
    def depth(self) -> int:
        """How many axes the array has at least; what is used as an array has one."""
        return self.rank if self.rank is not None else max(self.least, 1)

    def has(self, count: int) -> bool:
        """Whether the array is known to have so many axes, whatever it is used as."""
        return (self.rank if self.rank is not None else self.least) >= count

    def axis(self, index: int) -> Expr | None:
        """Size of one axis; negative indices always work, others need the rank."""
        if index >= 0 and self.rank is not None:
            index -= self.rank
        if index < 0 and -index <= len(self.tail):
            return self.tail[index]
        if index >= 0 and self.grown is not None:  # not the axis of that number of the argument
            return None
        return ex.input_size(self.path, index) if self.path else None

    def last_sizes(self, count: int) -> tuple[Expr | None, ...]:
        """The last ``count`` axes."""
        return tuple(self.axis(index) for index in range(-count, 0))

    def with_one_batch_axis(self, count: int) -> Array:
        """The array as what goes over windows of ``count - 2`` axes takes it: one batch axis before those.

        Linen's convolutions take none as well (one image), or several.
        """
        if self.rank is not None:
            return self
        is_read = self.origin is not None and len(self.tail) < count
        batch = ex.batch_size(self.origin[0]) if self.origin and is_read else self.axis(-count)
        return replace(self, tail=(batch, *self.last_sizes(count - 1)), rank=count)

    def over_windows(self, spatial: tuple[Expr | None, ...], last: Expr | None) -> Array:
        """What a convolution or pooling makes of the array: other spatial axes, and another last one."""
        count = len(spatial) + 2
        batched = self.with_one_batch_axis(count)
        return Array((batched.axis(-count), *spatial, last), batched.rank)

    def with_last(self, last: Expr | None) -> Array:
        """The same array with another size of the last axis."""
        width = max(len(self.tail), min(self.rank or 4, 6))
        return self.of((*self.last_sizes(width)[:-1], last))

    def of(self, tail: tuple[Expr | None, ...], more: int = 0) -> Array:
        """An array of other sizes that has ``more`` axes than this one."""
        if self.rank is not None:
            return Array(tail, self.rank + more)
        origin = self.origin
        grown = (origin[0], origin[1] + more) if origin else None
        return Array(tail, least=max(self.depth + more, 0), grown=grown)

    def behind(self, axis: int, more: int = 0) -> Array:
        """What is certain of an array of unknown rank when something happens at ``axis``.

        The axes behind ``axis`` stay what they are, as far as they are known to exist; ``more``
        is how many axes the result has more than the array. An axis of -1 is in front of all: what
        gets one there may be a number.
        """
        least = self.least_behind(axis)
        result = self.of(self.last_sizes(max(least - axis - 1, 0)) or (None,), more)
        return replace(result, least=max(least + more, 0))

    def least_behind(self, axis: int) -> int:
        """How many axes an array of unknown rank has at least if something may happen at ``axis``."""
        return self.depth if axis >= 0 else self.least


def ending(*tail: Expr | None) -> Array:
    """An array that ends with these axes, whatever stands before them.

    ``table[ids]`` ends with the rows of a table, also if ``ids`` is a number.
    """
    return Array(tail, least=len(tail))


@dataclass(frozen=True)
class Argument(Value):
    """A call argument of the class under analysis: array, tuple or plain value, nobody knows yet."""

    path: str
    default: Value | None = None
    present: bool = field(default=False, compare=False)  # known not to be None here

    def array(self) -> Array:
        """The argument seen as an array."""
        return Array(path=self.path)


@dataclass(frozen=True)
class Sequence(Value):
    """A tuple or list whose items are known one by one."""

    items: tuple[Value, ...]
    is_list: bool = False


@dataclass(frozen=True)
class RepeatedItem(Value):
    """A sequence of unknown length whose items are alike: a comprehension, a filled list.

    ``origin`` is the loop that made it; ``source`` what that loop ran over, by loop variable.
    """

    item: Value
    length: Expr | None = None
    origin: ast.AST | None = None
    last: dict[str, Expr] = field(default_factory=dict, compare=False)
    is_reordered: bool = False  # not in the order of the loop that made it
    is_numbered: bool = True  # False: only some rounds made an item, nobody knows which


@dataclass(frozen=True)
class ExtendedList(Value):
    """A list of a few known items followed by what a loop appended."""

    first: tuple[Value, ...]
    rest: RepeatedItem


@dataclass(frozen=True)
class RepeatedDict(Value):
    """A dict of submodules that a loop makes: no key tells them apart, only loops go through all of them."""

    each: RepeatedItem


@dataclass(frozen=True)
class Rounds(Value):
    """What the rounds of a loop append, several items each: ``layers += [Dense(n), relu]``.

    The item of ``each`` is the `Sequence` of what one round appends.
    """

    each: RepeatedItem


@dataclass(frozen=True)
class Perhaps(Value):
    """An item that only some rounds append: ``if i < last: layers.append(nn.relu)``."""

    item: Value
    test: Expr | None


@dataclass(frozen=True)
class ConcatenatedList(Value):
    """A list of several parts, one after the other: ``[Dense(8), *blocks, Dense(2)]``."""

    parts: tuple[Sequence | RepeatedItem | Rounds, ...]


@dataclass(frozen=True)
class Record(Value):
    """A dict, named tuple, dataclass or model output with known entries (in order)."""

    entries: dict[str, Value]
    default: Value | None = None  # what other keys hold


@dataclass(frozen=True)
class Choice(Value):
    """One of several values, nobody knows which."""

    options: tuple[Value, ...]
    test: Expr | None = None  # with two options: the first one when it holds
    parameter: str | None = (
        None  # with two: the first one when this parameter of the call is not None
    )


@dataclass(frozen=True)
class Library(Value):
    """A function, class or module outside the project, by symbol."""

    symbol: str


@dataclass(frozen=True)
class Lift:
    """A lifted transformation of a class that changes the axes its call sees (nn.scan, nn.vmap).

    ``in_axes`` and ``out_axes`` are as the user gives them; with ``carries``, the first argument
    and the first of two results pass through. ``call`` is where the options stand, if they stack
    variables.
    """

    in_axes: Value
    out_axes: Value
    carries: bool
    call: ast.Call | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Class(Value):
    """A Linen class of the project as a value; ``lift`` says how it went through nn.remat or so.

    ``lift`` is what Linen puts before the class's name, None when a flag decides it; ``lifts`` are the transformations that change axes, outermost first.
    """

    info: ClassInfo
    lift: str | None = ""
    lifts: tuple[Lift, ...] = ()


@dataclass(frozen=True)
class DataClass(Value):
    """A class of the project that is no Linen module."""

    info: ClassInfo


@dataclass(frozen=True)
class Partial(Value):
    """``functools.partial``."""

    target: Value
    args: tuple[Value, ...]
    kwargs: dict[str, Value]


@dataclass(frozen=True)
class Native(Value):
    """A callable that a library summary describes."""

    function: Callable[[tuple[Value, ...], dict[str, Value]], Value]


@dataclass(frozen=True)
class Factories(Value):
    """A class-valued field: one of several classes or partials, chosen by whoever constructs.

    Nobody knows which where there are no ``options``.
    """

    options: tuple[Value, ...]
    text: str


@dataclass(eq=False)
class Submodule(Value):
    """A built-in Linen layer that a call constructed."""

    symbol: str
    arguments: dict[str, Value]
    call: ast.Call
    owner: Instance | None
    factory: bool = False
    options: tuple[Submodule | Instance, ...] = ()  # for a class only known at run time
    class_name: str = ""  # the Linen class of all options, where they have one in common
    lifts: tuple[Lift, ...] = ()
    is_conditional: bool = False  # built in one branch of a test


@dataclass(eq=False)
class Instance(Value):
    """An instance of a Linen class of the project, with its own attributes and records."""

    info: ClassInfo
    fields: dict[str, Value]
    call: ast.Call | None
    owner: Instance | None
    factory: bool = False
    lift: str | None = ""
    lifts: tuple[Lift, ...] = ()
    attributes: dict[str, Value] = field(default_factory=dict)
    records: dict[int, list[Use]] = field(default_factory=dict)
    is_set_up: bool = False
    is_conditional: bool = False  # built in one branch of a test
    variables: dict[str, Value] = field(default_factory=dict)


@dataclass(frozen=True)
class CallForm:
    """How a call gives its arguments: ``drop(x, rng=key)`` is ``CallForm(1, {"rng"})``."""

    positional: int
    keywords: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Use:
    """One call of a submodule: the sizes it shows, and under which conditions.

    A condition that is None hangs on a call argument: ``__init__`` cannot evaluate it.
    """

    module: Submodule | Instance
    sizes: dict[str, Expr | None]
    conditions: tuple[Expr | None, ...]
    primary: bool  # reached from the initial call
    method: str = "__call__"
    arguments: dict[str, Value] = field(default_factory=dict)  # of a project class' method
    apart: bool = False  # the module stands for several that one constructor call builds
    # parameters of the root's call that are given, or None, wherever it happens
    presence: Mapping[str, bool] = field(default_factory=dict)
    entry: str = "__call__"  # the root's method that was called from outside
    form: CallForm | None = None  # of a layer's call, where the text shows its arguments
    rounds: tuple[Expr, ...] = ()  # hold where the loops around it that made it not have a round
    is_open: bool = False  # whether such a loop has a round, only the call knows
    current: frozenset[str] = frozenset()  # carried sizes of the rounds that it is a part of

    @property
    def certain(self) -> bool:
        """Whether it happens whatever the arguments of the call are."""
        return all(
            one is not None and not any(ex.fact_of(name) for name in one.names)
            for one in self.conditions
        )


NONE = Static(ex.literal(None))
STARRED = Unknown("starred")  # among a call's arguments: any number of them by position
SPREAD = "**"  # among a call's arguments: there may be more of them, by names that nobody knows
