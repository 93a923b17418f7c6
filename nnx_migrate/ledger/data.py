"""What the ledger counts and says: frozen plain data."""

from __future__ import annotations

from dataclasses import dataclass

from nnx_migrate.model import Outcome, Tally


@dataclass(frozen=True)
class Source:
    """One Python file of the project; ``module`` is its dotted import name."""

    path: str
    module: str
    text: str


@dataclass(frozen=True, order=True)
class Place:
    """One counted place. Lines and columns count from 1, columns in characters.

    ``scope`` is the qualified name of the class or function whose text holds the place (a class's
    bases and decorators and a function's defaults and annotations belong to it), or the module's
    name. ``symbol`` is the resolved Linen name of a reference, the method's name of a call site,
    the qualified name of a class. ``certain`` is False when the place may not be Linen after all.
    """

    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    symbol: str
    scope: str
    certain: bool = True

    @property
    def at(self) -> tuple[str, int, int]:
        """Path, line and column, by which the parts of a run name a place to each other."""
        return self.path, self.line, self.column


@dataclass(frozen=True)
class Count:
    """Everything counted in one state of the project, each in the order of its places.

    ``handles`` are Linen module methods named without calling them (``apply_fn=model.apply``): just
    as stale once the class is NNX. ``stale`` are calls of
    Linen module methods on NNX modules, which have none of them. ``constructors`` are calls of the
    project's Linen classes; ``stale_constructors`` are calls of NNX classes that lack the ``rngs``
    their ``__init__`` asks for. ``classes`` are Linen classes.
    ``missing_lazy_forms`` are NNX classes that annotations give to callers of Linen's methods, where nobody
    makes their lazy form. ``unreadable`` are the paths that do not parse.
    """

    references: tuple[Place, ...] = ()
    call_sites: tuple[Place, ...] = ()
    handles: tuple[Place, ...] = ()
    stale: tuple[Place, ...] = ()
    stale_handles: tuple[Place, ...] = ()
    constructors: tuple[Place, ...] = ()
    stale_constructors: tuple[Place, ...] = ()
    classes: tuple[Place, ...] = ()
    missing_lazy_forms: frozenset[str] = frozenset()
    paths: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()


@dataclass(frozen=True)
class Entry:
    """The outcome one input place has in the books; ``is_claimed`` when the rewriter said so first."""

    place: Place
    outcome: Outcome
    is_claimed: bool


@dataclass(frozen=True)
class Ledger:
    """The settled books. ``violations`` is empty when nobody lied; then both tallies balance."""

    references: Tally
    call_sites: Tally
    violations: tuple[str, ...] = ()
    reference_entries: tuple[Entry, ...] = ()
    call_site_entries: tuple[Entry, ...] = ()
    handle_entries: tuple[Entry, ...] = ()
    missing_lazy_forms: frozenset[str] = frozenset()
