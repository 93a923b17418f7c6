"""Judges an explicit attempt: which of its classes have a place that is not proven.

A class stays explicit only with every place that it hangs together with; one place that nobody has
rewritten costs all of them the explicit form, never a caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from nnx_migrate import ledger
from nnx_migrate.model import Outcome, RewriteResult
from nnx_migrate.rewrite.attempt import Attempt
from nnx_migrate.rewrite.loading import Loaded
from nnx_migrate.rewrite.proof.graph import Graph, Key, graph_of
from nnx_migrate.rewrite.proof.uses import doubtful_uses
from nnx_migrate.source.classes import ClassInfo

_LEFT = (Outcome.REFUSED, Outcome.BRIDGED)

# What of Linen handles modules or their classes; all else in lower case handles arrays.
_OF_MODULES = ("flax.linen.transforms", "flax.linen.module", "flax.linen.summary")
_TAKING_MODULES = frozenset(
    [
        "add_metadata_axis",
        "apply",
        "bind",
        "checkpoint",
        "compact",
        "compact_name_scope",
        "cond",
        "custom_vjp",
        "fold_rngs",
        "grad",
        "init",
        "init_with_output",
        "intercept_methods",
        "jit",
        "jvp",
        "map_variables",
        "merge_param",
        "module",
        "named_call",
        "nowrap",
        "param_with_axes",
        "partitioning",
        "remat",
        "remat_scan",
        "scan",
        "scan_with_axes",
        "share_scope",
        "summary",
        "switch",
        "tabulate",
        "transforms",
        "value_and_grad",
        "variable_with_axes",
        "vjp",
        "vmap",
        "vmap_with_axes",
        "while_loop",
    ]
)


@dataclass(frozen=True)
class Doubt:
    """A place that is not proven."""

    path: str
    line: int
    reason: str

    @property
    def text(self) -> str:
        """The place and why, in one line."""
        return f"{self.path}:{self.line}: {self.reason}"


@dataclass
class Verdict:
    """Classes that may not be explicit, by name, and lines that go lazy with them, by path."""

    doubts: dict[str, Doubt] = field(default_factory=dict)
    lines: dict[str, frozenset[int]] = field(default_factory=dict)


def judge(loaded: Loaded, attempt: Attempt, books: ledger.Ledger, result: RewriteResult) -> Verdict:
    """Find the converted classes that hang together with anything unproven."""
    graph = graph_of(loaded.project)
    seeds = _seeds(loaded, attempt, books, result, graph)
    concerned = graph.reaching([*_holding(loaded, books, graph), *seeds])
    seeds |= _read_only(loaded, concerned)
    verdict = Verdict()
    for component in graph.components(concerned):
        found = [seeds[one] for one in component & seeds.keys()]
        if not found:
            continue
        for cls in loaded.project.linen.values():
            key = _key(cls, graph)
            if key in component and cls.name in attempt.decisions.converted:
                verdict.doubts[cls.name] = seeds.get(key) or _nearest(found, cls.module.path)
        _freeze(component, graph, verdict)
    return verdict


def _nearest(doubts: list[Doubt], path: str) -> Doubt:
    """The doubt to tell about a class: in its file, else in its folder, else the first."""
    folder = path.rpartition("/")[0]
    return min(
        doubts,
        key=lambda one: (
            one.path != path,
            one.path.rpartition("/")[0] != folder,
            one.path,
            one.line,
        ),
    )


def _key(cls: ClassInfo, graph: Graph) -> Key | None:
    return graph.at(cls.module.path, cls.node.lineno)


def _freeze(component: set[Key], graph: Graph, verdict: Verdict) -> None:
    for path, spans in graph.lines.items():
        lines = {
            n for first, last, key in spans if key in component for n in range(first, last + 1)
        }
        if lines:
            verdict.lines[path] = verdict.lines.get(path, frozenset()) | lines


def _entries(books: ledger.Ledger) -> Iterator[ledger.Entry]:
    yield from books.reference_entries
    yield from books.call_site_entries
    yield from books.handle_entries


def _holding(loaded: Loaded, books: ledger.Ledger, graph: Graph) -> Iterable[Key]:
    """Nodes that hold a Linen class, a reference or a call site."""
    found = {_key(cls, graph) for cls in loaded.project.linen.values()}
    found |= {graph.at(one.place.path, one.place.line) for one in _entries(books)}
    return [one for one in found if one is not None]


def _seeds(
    loaded: Loaded, attempt: Attempt, books: ledger.Ledger, result: RewriteResult, graph: Graph
) -> dict[Key, Doubt]:
    """Nodes with something unproven, and the first such thing."""
    found: list[Doubt] = []
    for name, cls in loaded.project.linen.items():
        if name not in attempt.decisions.converted:
            reason = f"{cls.qualified} is not explicit"
            found.append(Doubt(cls.module.path, cls.node.lineno, reason))
    for entry in _entries(books):
        if entry.outcome in _LEFT and not _is_of_arrays(entry.place.symbol):
            what = f"{entry.place.symbol} is not rewritten here"
            found.append(Doubt(entry.place.path, entry.place.line, what))
    harmless = {
        (entry.place.path, entry.place.line, entry.place.column)
        for entry in _entries(books)
        if _is_of_arrays(entry.place.symbol)
    }
    for finding in result.findings:
        if (
            finding.outcome in _LEFT
            and (finding.path, finding.line, finding.column) not in harmless
        ):
            found.append(Doubt(finding.path, finding.line, finding.message))
    found += [Doubt(*use) for use in doubtful_uses(loaded.project, attempt)]
    seeds: dict[Key, Doubt] = {}
    for one in reversed(found):
        key = graph.at(one.path, one.line)
        if key is not None:
            seeds[key] = one
    return seeds


def _is_of_arrays(symbol: str) -> bool:
    """Whether a name of Linen's is a function of arrays or a constant: its import alone changes.

    >>> _is_of_arrays("flax.linen.linear._conv_dimension_numbers"), _is_of_arrays("flax.linen.scan")
    (True, False)
    """
    home, _, name = symbol.rpartition(".")
    if not symbol.startswith("flax.linen.") or home in _OF_MODULES or name in _TAKING_MODULES:
        return False
    return name.lstrip("_")[:1].islower()


def _read_only(loaded: Loaded, concerned: set[Key]) -> dict[Key, Doubt]:
    """Nodes of files that are only read: nobody rewrites what they do with a class."""
    targets = {module.name for module in loaded.targets.values()}
    found: dict[Key, Doubt] = {}
    for key in concerned:
        if key[0] not in targets:
            path = loaded.project.modules[key[0]].path
            found[key] = Doubt(path, 1, "this file is not rewritten in this run")
    return found
