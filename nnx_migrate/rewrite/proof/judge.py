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
from nnx_migrate.rewrite.proof.doubt import Doubt, is_of_arrays
from nnx_migrate.rewrite.proof.graph import Graph, Key, graph_of
from nnx_migrate.rewrite.proof.lazily import lazy_doubts
from nnx_migrate.rewrite.proof.uses import doubtful_uses
from nnx_migrate.source.classes import ClassInfo

_LEFT = (Outcome.REFUSED, Outcome.BRIDGED)


@dataclass
class Verdict:
    """Classes that may not be explicit, by name, and lines that go lazy with them, by path."""

    doubts: dict[str, Doubt] = field(default_factory=dict)
    lines: dict[str, frozenset[int]] = field(default_factory=dict)
    around: frozenset[str] = frozenset()  # every class that hangs together with one of `doubts`


def judge(loaded: Loaded, attempt: Attempt, books: ledger.Ledger, result: RewriteResult) -> Verdict:
    """Find the converted classes that hang together with anything unproven.

    Those that code around them builds by ``lazy(Class)`` are judged each by itself.
    """
    graph = graph_of(loaded.project)
    doubts = list(_doubts(loaded, attempt, books, result))
    seeds = _seeds(doubts, graph)
    concerned = graph.reaching([*_holding(loaded, books, graph), *seeds])
    seeds |= _read_only(loaded, concerned)
    verdict = Verdict()
    for component in graph.components(concerned):
        found = [seeds[one] for one in component & seeds.keys()]
        classes = [one for one in loaded.project.linen.values() if _key(one, graph) in component]
        if not found or attempt.lazily & {one.name for one in classes}:
            continue
        for cls in classes:
            if cls.name in attempt.decisions.converted:
                key = _key(cls, graph)
                seed = seeds.get(key) if key is not None else None
                verdict.doubts[cls.name] = seed or _nearest(found, cls.module.path)
        verdict.around |= {one.name for one in classes}
        _freeze(component, graph, verdict)
    verdict.doubts |= {**dict(_inside(loaded, attempt, doubts)), **_lazily(loaded, attempt, graph)}
    return verdict


def _lazily(loaded: Loaded, attempt: Attempt, graph: Graph) -> dict[str, Doubt]:
    targets = frozenset(module.name for module in loaded.targets.values())
    return lazy_doubts(loaded.project, targets, attempt, graph)


def _inside(loaded: Loaded, attempt: Attempt, doubts: list[Doubt]) -> Iterator[tuple[str, Doubt]]:
    """What is unproven in the text of a class that is built by ``lazy(Class)``."""
    for name in attempt.lazily:
        cls = loaded.project.linen[name]
        lines = range(cls.node.lineno, (cls.node.end_lineno or cls.node.lineno) + 1)
        for one in doubts:
            if one.path == cls.module.path and one.line in lines:
                yield name, one


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


def _seeds(doubts: list[Doubt], graph: Graph) -> dict[Key, Doubt]:
    """Nodes with something unproven, and the first such thing."""
    seeds: dict[Key, Doubt] = {}
    for one in reversed(doubts):
        key = graph.at(one.path, one.line)
        if key is not None:
            seeds[key] = one
    return seeds


def _doubts(
    loaded: Loaded, attempt: Attempt, books: ledger.Ledger, result: RewriteResult
) -> list[Doubt]:
    """Everything unproven."""
    found: list[Doubt] = []
    for name, cls in loaded.project.linen.items():
        if name not in attempt.decisions.converted:
            reason = f"{cls.qualified} is not explicit"
            found.append(Doubt(cls.module.path, cls.node.lineno, reason))
    for entry in _entries(books):
        if entry.outcome in _LEFT and not is_of_arrays(entry.place.symbol):
            what = f"{entry.place.symbol} is not rewritten here"
            found.append(Doubt(entry.place.path, entry.place.line, what))
    harmless = {
        (entry.place.path, entry.place.line, entry.place.column)
        for entry in _entries(books)
        if is_of_arrays(entry.place.symbol)
    }
    for finding in result.findings:
        if (
            finding.outcome in _LEFT
            and (finding.path, finding.line, finding.column) not in harmless
        ):
            found.append(Doubt(finding.path, finding.line, finding.message))
    return found + [Doubt(*use) for use in doubtful_uses(loaded.project, attempt)]


def _read_only(loaded: Loaded, concerned: set[Key]) -> dict[Key, Doubt]:
    """Nodes of files that are only read: nobody rewrites what they do with a class."""
    targets = {module.name for module in loaded.targets.values()}
    found: dict[Key, Doubt] = {}
    for key in concerned:
        if key[0] not in targets:
            path = loaded.project.modules[key[0]].path
            found[key] = Doubt(path, 1, "this file is not rewritten in this run")
    return found
