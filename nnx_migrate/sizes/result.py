"""What size inference tells the rewriter about one class.

Every expression here is Python text valid inside the migrated class' ``__init__``: it reads fields
as ``self.<field>``, new size arguments by name, loop variables of the loop the site stands in, and
the helper variables named in ``LoopCarry`` and ``Site.out_variable``.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from nnx_migrate.abstract.values import CallForm
from nnx_migrate.model import SizeArgument
from nnx_migrate.source.names import names_in_text


class SiteKind(StrEnum):
    """How the submodule that a call builds is chosen."""

    LAYER = "layer"  # a built-in Linen layer, named directly
    CLASS = "class"  # a Linen class of the project, named directly
    FUNCTION = "function"  # all that a scope function of the project builds, which it calls too
    FACTORY = "factory"  # through a partial, a class-valued field, a local alias: Linen signature


@dataclass(frozen=True)
class Site:
    """One place that builds a submodule (a constructor call)."""

    call: ast.Call
    kind: SiteKind
    symbol: str | None  # flax.linen.Dense, project class name; None when only known at run time
    sizes: Mapping[str, str] = field(default_factory=dict)  # size argument -> expression
    # When set, right after the site is built __init__ must bind this local variable to
    # ``nnm.out_features(<the built submodule>, <sizes["in_features"]>)``.
    out_variable: str | None = None
    # Condition over fields under which Linen's initial call reaches the submodule: None = always,
    # "False" = never (it has no parameters in Linen, so it must not be built).
    condition: str | None = None
    # Linen class names the auto-name counts under (Dense of Dense_0); None when only known at run time.
    class_name: str | None = None
    # Of a scope function: what it is passed of all it builds from, by parameter, and the class names
    # under which Linen counts what it builds without a name.
    scope_arguments: Mapping[str, ast.expr] = field(default_factory=dict)
    numbers: frozenset[str] = frozenset()
    # Size arguments that are None when Linen's initial call never reaches the submodule.
    only_with: frozenset[str] = frozenset()
    # Whether the callable is one of several that do not all take every one of ``sizes``.
    takes_some: bool = False
    # How a layer with fields that a call takes too is called, everywhere; empty where not all calls are
    # in sight.
    calls: frozenset[CallForm] = frozenset()
    # Its methods that Linen's initial call calls whatever the fields and arguments are.
    methods: frozenset[str] = frozenset()
    # What has to hold for the loops around its calls to have a round, where a compact method builds it
    # outside of them. Without a round it has no parameters in Linen.
    rounds: str | None = None
    # Whether its attribute is read where ``condition`` does not hold: it is None there.
    is_absent: bool = False
    # Whether what the call builds is made in its own first call: a size of it is one that no argument can
    # name, as that of each round of a loop, or ``setup`` cannot tell whether Linen's init reaches it.
    is_lazy: bool = False
    is_open: bool = False  # built by a value that nobody knows, of a class in either form
    in_function: bool = False  # a function of the project builds it, which takes its sizes

    def left_to_first_call(self) -> Site:
        """The site without sizes and conditions, which the first call of what it builds shows."""
        return replace(
            self, sizes={}, only_with=frozenset(), takes_some=False, condition=None, is_lazy=True
        )

    @property
    def size_names(self) -> frozenset[str]:
        """The names that its sizes read."""
        return frozenset(name for text in self.sizes.values() for name in names_in_text(text))

    @property
    def in_width(self) -> str:
        """The last axis of what the submodule is given; "None" where nothing needs it."""
        return self.sizes.get("in_features", "None")


class SizeSource(StrEnum):
    """Where a size comes from."""

    STATIC = "static"  # the source code
    RECORDED = "recorded"  # an evidence file
    BOTH = "both"  # the source code, and recorded calls agree
    ARGUMENT = "argument"  # neither: whoever constructs the class passes it


@dataclass(frozen=True)
class Origin:
    """Where one size of one site comes from, and how sure that is."""

    source: SizeSource
    note: str = ""


@dataclass(frozen=True)
class Untold:
    """A submodule of ``setup`` of which the constructor cannot tell whether Linen's init reaches it.

    ``parameters`` of ``__call__`` are asked about on the way: told what the initial call has for
    them (``with_c``, ``init_train``), the constructor may.
    """

    call: ast.Call
    reason: str
    parameters: frozenset[str]


@dataclass(frozen=True)
class Elsewhere:
    """A submodule of ``setup`` that ``__call__`` never reaches, and methods that always do.

    ``self.head = Dense(10)`` that only ``def logits(self, x): return self.head(x)`` calls: Linen's
    init makes its parameters where the module that builds this one calls ``logits``.
    """

    call: ast.Call
    methods: frozenset[str]


@dataclass(frozen=True)
class LoopCarry:
    """A size that a loop of a compact method changes: bound before it, updated at its body's end."""

    name: str
    before: str
    after: str


@dataclass(frozen=True)
class ClassSizes:
    """Sizes of one class. ``sites`` and ``dims`` are keyed by ``id`` of the ``ast`` node."""

    new_arguments: tuple[SizeArgument, ...] = ()
    sites: Mapping[int, Site] = field(default_factory=dict)
    # expressions of the source that read array shapes (``x.shape[-1]``, also whole expressions
    # that only sizes make static) -> their text in __init__
    dims: Mapping[int, str] = field(default_factory=dict)
    # By id of the loop
    loop_carries: Mapping[int, tuple[LoopCarry, ...]] = field(default_factory=dict)
    # parameters of __call__ whose whole shape, every axis, is an argument -> its name
    full_shapes: Mapping[str, str] = field(default_factory=dict)
    # those of ``dims`` that hold in Linen's initial call and may be otherwise in a later one
    facts: frozenset[int] = frozenset()
    # by base class, what its constructor is given for size arguments that are others here
    base_arguments: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    # every other expression whose value is static, also names of locals (``config`` ->
    # ``self.config``): what __init__ may write instead of copying the statements it comes from
    statics: Mapping[int, str] = field(default_factory=dict)
    # expressions that loops run over, and ``len(...)``, where the items are arrays -> their number,
    # as text over fields
    lengths: Mapping[int, str] = field(default_factory=dict)
    # names of size arguments that are None exactly when Linen's initial call lacks what they measure
    decisive: frozenset[str] = frozenset()
    # the last axis of the first output of __call__, as text valid in __init__, when known
    out_features: str | None = None
    # the class is a value of some class-valued field: it must have an ``out_features`` attribute
    exports_out_features: bool = False
    # places that could not be understood and make the class unconvertible: (node, reason)
    problems: tuple[tuple[ast.AST, str], ...] = ()
    untold: tuple[Untold, ...] = ()
    elsewhere: tuple[Elsewhere, ...] = ()
    # for each submodule with variables, the methods that reach it wherever ``__call__`` does
    reaching: tuple[frozenset[str], ...] = ()
    # facts of the initial call that it cannot pass on to a class that it also calls by default: the
    # class, and its argument
    unpassable_facts: tuple[tuple[str, str], ...] = ()
    review: tuple[tuple[ast.AST, str], ...] = ()  # assumptions worth a person's look
    # by id of the site's call and name of the size argument; empty without an evidence file
    origins: Mapping[tuple[int, str], Origin] = field(default_factory=dict)
