"""What a run with lazy classes says: every class and place, counted before and after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from nnx_migrate import ledger
from nnx_migrate.ledger.words import names_linen
from nnx_migrate.model import (
    ClassResult,
    FileResult,
    FileStatus,
    Finding,
    Form,
    Outcome,
    RewriteResult,
    Tally,
)
from nnx_migrate.rewrite.lazy.instance_checks import instance_checks
from nnx_migrate.rewrite.lazy.leftovers import left
from nnx_migrate.rewrite.lazy.metaclasses import disagreements
from nnx_migrate.rewrite.lazy.names import is_missing, names_core_lift
from nnx_migrate.rewrite.lazy.run import LazyTexts
from nnx_migrate.rewrite.loading import relative
from nnx_migrate.rewrite.request import RewriteRequest
from nnx_migrate.source.roots import import_names


@dataclass(frozen=True)
class Report:
    """The result of a run, and the callers that break though their class is explicit."""

    result: RewriteResult
    broken_callers: tuple[ledger.Place, ...]


def report(
    request: RewriteRequest,
    lazy_texts: LazyTexts,
    texts: Mapping[str, str],
    *,
    is_mixed: bool = False,
    read: ledger.Read | None = None,
) -> Report:
    """The result of a run whose new texts are ``texts`` (by path; the others stay as they are).

    Args:
      is_mixed: whether classes are explicit in it; then calls that they do not take are looked for.
      read: files as earlier counts of this run read them.
    """
    sources = _sources(request)
    paths = frozenset(relative(one.path, request.base or request.root) for one in request.files)
    before = ledger.count(sources, paths, read)
    changed = [replace(one, text=texts.get(one.path, one.text)) for one in sources]
    # Where no file names ``flax.linen``, none is left, and lazy classes take Linen's calls.
    is_done = not is_mixed and not any(names_linen(one.text) for one in changed)
    after = ledger.Count() if is_done else ledger.count(changed, paths, read)
    references = settle(before.references, after.references)
    stale = _stale(before, after) if is_mixed else []
    calls = settle(_sites(before), [*(one for one in _sites(after) if one.certain), *stale])
    without = partial(
        _without_successor, lifts_scopes=any(names_core_lift(s.text) for s in sources)
    )
    broken = tuple(_broken_callers(calls, stale))
    findings = (
        *_findings(request, references, lazy_texts, texts, without),
        *map(_left, broken),
        *_metaclasses(sources, before, lazy_texts),
        *_instance_checks(request, before),
    )
    result = RewriteResult(
        files=_files(paths, lazy_texts, texts),
        classes=_classes(before, after, lazy_texts),
        findings=findings,
        references=_tally(references, lazy_texts, without),
        call_sites=_tally(calls, lazy_texts),
    )
    return Report(result, broken)


def _sources(request: RewriteRequest) -> list[ledger.Source]:
    """The files of a request that can matter, as the ledger reads them."""
    base = request.base or request.root
    own = {id(one) for one in request.files}
    names = import_names(request.relevant, request.root)
    found = []
    for one in request.relevant:
        path = relative(one.path, base) if id(one) in own else str(one.path)
        found.append(ledger.Source(path, names[id(one)][0], one.text))
    return found


def _sites(count: ledger.Count) -> tuple[ledger.Place, ...]:
    return (*count.call_sites, *count.handles, *count.constructors)


def _stale(before: ledger.Count, after: ledger.Count) -> list[ledger.Place]:
    """Calls in the output that NNX classes do not take; not those that the input has, too."""
    kinds = ("stale", "stale_handles", "stale_constructors")
    return [
        place
        for kind in kinds
        for place, is_new in settle(getattr(after, kind), getattr(before, kind))
        if is_new
    ]


def _broken_callers(calls: Settled, stale: Iterable[ledger.Place]) -> Iterable[ledger.Place]:
    """Callers that the output leaves as they were though their class is explicit."""
    keys = {(one.path, one.scope, one.symbol) for one in stale}
    for place, is_gone in calls:
        if not is_gone and (place.path, place.scope, place.symbol) in keys:
            yield place


def _left(place: ledger.Place) -> Finding:
    message = f"{place.symbol} is used as before here, but the class is explicit; {_WAY}"
    return Finding("call_site", place.path, place.line, place.column, Outcome.REFUSED, message)


def _metaclasses(
    sources: Iterable[ledger.Source], before: ledger.Count, lazy_texts: LazyTexts
) -> Iterable[Finding]:
    rewritten = {(one.path, one.line) for one in before.classes} - lazy_texts.linen_classes.keys()
    return disagreements(((one.path, one.text) for one in sources), rewritten)


def _instance_checks(request: RewriteRequest, before: ledger.Count) -> Iterable[Finding]:
    base = request.base or request.root
    texts = ((relative(one.path, base), one.text) for one in request.files)
    return instance_checks(texts) if before.classes else ()


def _without_successor(symbol: str, *, lifts_scopes: bool) -> str | None:
    """Why a symbol of ``flax.linen`` has none in ``nnx_migrate.linen``; None if it has.

    Args:
      lifts_scopes: whether the project names ``flax.core.lift``, whose functions take no scopes but
        Linen's own.
    """
    if is_missing(symbol):
        ours = symbol.replace("flax.linen", "nnx_migrate.linen", 1)
        return f"{ours} does not exist: {symbol} is no public name of flax; write it another way"
    if lifts_scopes and symbol.rpartition(".")[2] in _LIFTS_OF_SCOPES:
        return f"{symbol} of a function of flax.core.lift works on Linen's scopes only; {_LIFT}"
    return None


_LIFTS_OF_SCOPES = frozenset({"lift_transform", "lift_transform_cached", "lift_direct_transform"})
_LIFT = "lift the class with nn.vmap, nn.scan, nn.remat or nn.map_variables"


_WAY = "change the call, or run with --form lazy"

Settled = list[tuple[ledger.Place, bool]]  # a place of the input, and whether it is gone


def settle(before: Iterable[ledger.Place], after: Iterable[ledger.Place]) -> Settled:
    """Of places alike in file, owner and symbol, as many are gone as the output has fewer."""
    left = Counter((one.path, one.scope, one.symbol) for one in after)
    found: Settled = []
    for one in sorted(before):
        key = (one.path, one.scope, one.symbol)
        found.append((one, left[key] <= 0))
        left[key] -= 1
    return found


def _tally(
    places: Settled,
    lazy_texts: LazyTexts,
    without: Callable[[str], str | None] = lambda symbol: None,
) -> Tally:
    """What is left is kept where the user keeps something, refused where a file failed.

    Args:
      without: why a symbol names nothing that works once it is rewritten; that is refused, too.
    """
    broken = sum(1 for place, is_gone in places if is_gone and without(place.symbol))
    rewritten = sum(1 for _, is_gone in places if is_gone) - broken
    refused = broken + sum(
        1 for place, is_gone in places if not is_gone and _is_refused(place, lazy_texts)
    )
    rest = len(places) - rewritten - refused
    return Tally(len(places), rewritten=rewritten, refused=refused, kept=rest)


def _is_refused(place: ledger.Place, lazy_texts: LazyTexts) -> bool:
    return place.path in lazy_texts.failures or not (
        lazy_texts.keeps_linen or lazy_texts.linen_classes
    )


def _files(
    paths: Iterable[str], lazy_texts: LazyTexts, texts: Mapping[str, str]
) -> tuple[FileResult, ...]:
    files = []
    for path in sorted(paths):
        if path in lazy_texts.failures:
            files.append(FileResult(path, FileStatus.FAILED, error=lazy_texts.failures[path]))
        elif path in texts:
            files.append(FileResult(path, FileStatus.REWRITTEN, texts[path]))
        else:
            files.append(FileResult(path, FileStatus.UNCHANGED))
    return tuple(files)


def _classes(
    before: ledger.Count, after: ledger.Count, lazy_texts: LazyTexts
) -> tuple[ClassResult, ...]:
    still = Counter((one.path, one.symbol) for one in after.classes)
    found = {}
    for place in before.classes:
        at = (place.path, place.line)
        name = lazy_texts.names.get(at)
        name = place.symbol if name is None else _qualified_name(place.symbol, name)
        result = ClassResult(name, *at, Outcome.REWRITTEN, form=Form.LAZY)
        if place.path in lazy_texts.failures:
            reason = f"its file failed: {lazy_texts.failures[place.path]}"
            result = ClassResult(name, *at, Outcome.REFUSED, reason=reason)
        elif still[place.path, place.symbol] > 0:
            still[place.path, place.symbol] -= 1
            linen_class = lazy_texts.linen_classes.get(at)
            reason = linen_class.reason if linen_class else "a base of it stays Linen"
            result = ClassResult(name, *at, Outcome.KEPT, reason=reason)
        found[at] = result
    for at, linen_class in lazy_texts.linen_classes.items():
        if at not in found and at[0] not in lazy_texts.failures:
            found[at] = ClassResult(linen_class.name, *at, Outcome.KEPT, reason=linen_class.reason)
    return tuple(found[at] for at in sorted(found))


def _qualified_name(symbol: str, inner: str) -> str:
    """The ledger's name of a class in a function, with the ``<locals>`` that Python writes."""
    plain = inner.replace(".<locals>", "")
    return symbol.removesuffix(plain) + inner if symbol.endswith(plain) else symbol


def _findings(
    request: RewriteRequest,
    references: Settled,
    lazy_texts: LazyTexts,
    texts: Mapping[str, str],
    without: Callable[[str], str | None],
) -> Iterable[Finding]:
    said = set()
    for place, is_gone in references:
        if is_gone and (reason := without(place.symbol)):
            at = (place.line, place.column)
            yield Finding("reference", place.path, *at, Outcome.REFUSED, reason)
        elif (
            not is_gone and place.path not in lazy_texts.failures and _is_refused(place, lazy_texts)
        ):
            message = f"{place.symbol} stays Linen: how it is reached from here is not understood"
            said.add((place.path, place.line))
            yield Finding(
                "reference", place.path, place.line, place.column, Outcome.REFUSED, message
            )
    for path, call, why in lazy_texts.lift_calls:
        at = (call.lineno, call.col_offset + 1)
        yield Finding("reference", path, *at, Outcome.REFUSED, why)
    if lazy_texts.keeps_linen or lazy_texts.linen_classes:
        return
    for source in request.files:
        path = relative(source.path, request.base or request.root)
        if path in lazy_texts.failures or path in lazy_texts.silent:
            continue
        for line, column, outcome, message in left(source.text, texts.get(path, source.text)):
            if (path, line) not in said:
                yield Finding("reference", path, line, column, outcome, message)
