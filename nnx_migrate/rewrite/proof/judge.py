"""Judges an explicit attempt: which of its classes have a place that is not proven."""

from __future__ import annotations

from collections.abc import Iterator

from nnx_migrate import ledger
from nnx_migrate.model import Outcome, RewriteResult
from nnx_migrate.rewrite.attempt import Attempt
from nnx_migrate.rewrite.loading import Loaded
from nnx_migrate.rewrite.proof.doubt import Doubt, is_of_arrays
from nnx_migrate.rewrite.proof.graph import graph_of
from nnx_migrate.rewrite.proof.lazily import lazy_doubts
from nnx_migrate.rewrite.proof.uses import doubtful_uses


def judge(
    loaded: Loaded, attempt: Attempt, books: ledger.Ledger, result: RewriteResult
) -> dict[str, Doubt]:
    """Converted classes that may not be explicit, by name: what of each is not proven.

    Code around them builds them by ``lazy(Class)``, so each is judged by itself.
    """
    targets = frozenset(module.name for module in loaded.targets.values())
    doubts = dict(_inside(loaded, attempt, [*_left(books, result), *_uses(loaded, attempt)]))
    return doubts | lazy_doubts(loaded.project, targets, attempt, graph_of(loaded.project))


def _inside(loaded: Loaded, attempt: Attempt, doubts: list[Doubt]) -> Iterator[tuple[str, Doubt]]:
    """What is unproven in the text of a class."""
    for name in attempt.decisions.converted:
        cls = loaded.project.linen[name]
        lines = range(cls.node.lineno, (cls.node.end_lineno or cls.node.lineno) + 1)
        for one in doubts:
            if one.path == cls.module.path and one.line in lines:
                yield name, one


def _uses(loaded: Loaded, attempt: Attempt) -> Iterator[Doubt]:
    return (Doubt(*use) for use in doubtful_uses(loaded.project, attempt))


def _left(books: ledger.Ledger, result: RewriteResult) -> Iterator[Doubt]:
    """References, calls and findings that an explicit attempt leaves."""
    entries = [*books.reference_entries, *books.call_site_entries, *books.handle_entries]
    for entry in entries:
        if entry.outcome is Outcome.REFUSED and not is_of_arrays(entry.place.symbol):
            what = f"{entry.place.symbol} is not rewritten here"
            yield Doubt(entry.place.path, entry.place.line, what)
    harmless = {
        (entry.place.path, entry.place.line, entry.place.column)
        for entry in entries
        if is_of_arrays(entry.place.symbol)
    }
    for one in result.findings:
        if one.outcome is Outcome.REFUSED and (one.path, one.line, one.column) not in harmless:
            yield Doubt(one.path, one.line, one.message)
