"""What the report says of the sizes that a class's submodules need, and where each comes from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from nnx_migrate.model import ArgumentResult, SizeArgument, SizeResult
from nnx_migrate.rewrite.classes.writing.document import describe, speaks_for_itself
from nnx_migrate.sizes import ClassSizes, Origin, Site, SiteKind, SizeSource
from nnx_migrate.sizes.evidence import ClassEvidence, ProjectEvidence
from nnx_migrate.sizes.factories import factory_of_call
from nnx_migrate.sizes.scope_functions import scope_functions
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.growth import grown
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import walk

# Of several calls of one function, the source that asks most of whoever constructs the class.
_WORST_FIRST = (SizeSource.ARGUMENT, SizeSource.RECORDED, SizeSource.STATIC, SizeSource.BOTH)


def size_results(
    project: Project, cls: ClassInfo, sizes: Mapping[str, ClassSizes]
) -> tuple[SizeResult, ...]:
    """Every size that a class's submodules need, also those that functions build for it."""
    paths = {id(node): owner.module.path for owner in cls.mro for node in walk(owner.node)}
    functions = {one.symbol: one.module.path for one in scope_functions(project).values()}
    found: dict[tuple[str, int, int, str], SizeResult] = {}
    for site, name, text, origin, function in _all(sizes[cls.name], sizes):
        path = functions[function] if function else paths.get(id(site.call), cls.module.path)
        line, column = site.call.lineno, site.call.col_offset + 1
        one = SizeResult(path, line, column, name, text, origin.source.value, origin.note)
        for place in (one, *_in_factory(project, site, one)):
            key = (place.path, place.line, place.column, name)
            found[key] = _worse(found[key], place) if key in found else place
    return tuple(found.values())


def _in_factory(project: Project, site: Site, size: SizeResult) -> Iterator[SizeResult]:
    """The same size where a factory function builds the submodule that a call gets."""
    function = factory_of_call(project, site.call)
    if function is None:
        return
    for call, _ in function.calls:
        line, column = call.lineno, call.col_offset + 1
        yield replace(size, path=function.module.path, line=line, column=column)


_Entry = tuple[Site, str, str, Origin, str]  # with the function that builds it, "" for the class


def _all(own: ClassSizes, sizes: Mapping[str, ClassSizes]) -> Iterator[_Entry]:
    """The sizes of a class, each followed by those inside the functions that it calls."""
    arguments = dict.fromkeys(_argument_names(own), _ASKED)
    for key, site in own.sites.items():
        origins = {
            name: _evidence_origin(own.origins.get((key, name)), _origin(text, arguments))
            for name, text in site.sizes.items()
        }
        if site.kind is SiteKind.FUNCTION:
            yield from _inside(site, origins, sizes)
        else:
            yield from ((site, name, site.sizes[name], one, "") for name, one in origins.items())


_ASKED = Origin(SizeSource.ARGUMENT)


def _argument_names(own: ClassSizes) -> frozenset[str]:
    """Names in ``__init__`` that hold what an argument says, also at the start of a loop."""
    carries = [one for many in own.loop_carries.values() for one in many]
    return grown(
        (one.name for one in own.new_arguments if one.submodule is not None),
        lambda found: (
            one.name
            for one in carries
            if found & set(re.findall(r"\w+", f"{one.before} {one.after}"))
        ),
    )


def _evidence_origin(origin: Origin | None, read: Origin) -> Origin:
    """What is known of a size with evidence; calls that agree do not tell what an argument says."""
    is_argument = read.source is SizeSource.ARGUMENT
    recorded = origin is not None and origin.source is SizeSource.RECORDED
    return origin if origin is not None and (recorded or not is_argument) else read


def _inside(
    call: Site, arguments: Mapping[str, Origin], sizes: Mapping[str, ClassSizes]
) -> Iterator[_Entry]:
    """The sizes that a function needs when a call passes it others."""
    function = str(call.symbol)
    for site in sizes[function].sites.values():
        origins = {name: _origin(text, arguments) for name, text in site.sizes.items()}
        if site.kind is SiteKind.FUNCTION:
            yield from _inside(site, origins, sizes)
        else:
            texts = site.sizes.items()
            yield from ((site, name, text, origins[name], function) for name, text in texts)


def _origin(text: str, arguments: Mapping[str, Origin]) -> Origin:
    """Where a size comes from that reads others: the code, unless one of them asks for more."""
    read = [arguments[word] for word in re.findall(r"\w+", text) if word in arguments]
    found = [one for source in _WORST_FIRST for one in read if one.source is source]
    return found[0] if found else Origin(SizeSource.STATIC)


def _worse(one: SizeResult, other: SizeResult) -> SizeResult:
    source = next(worst for worst in _WORST_FIRST if worst in (one.source, other.source))
    return replace(one, source=source.value)


# What the report says of constructor arguments that remain, and what evidence would remove them.


def argument_results(
    cls: ClassInfo,
    arguments: Sequence[SizeArgument],
    sizes: ClassSizes,
    evidence: ProjectEvidence | None,
) -> tuple[ArgumentResult, ...]:
    """The arguments that the conversion of a class adds, one by one."""
    own = evidence.of(cls) if evidence is not None else None
    return tuple(
        ArgumentResult(one.name, describe(one), _remedy(cls, one, sizes, own)) for one in arguments
    )


def _remedy(
    cls: ClassInfo, one: SizeArgument, sizes: ClassSizes, evidence: ClassEvidence | None
) -> str:
    """What to record so that the argument goes away; why nothing would, where that is so."""
    name = cls.node.name
    if speaks_for_itself(one):
        return "none: NNX builds before the first call, and only callers know what they pass"
    if one.fact is not None:
        return "none: it tells apart initial calls that build different submodules"
    reaching = f" with calls that reach {one.submodule}" if one.submodule else ""
    if evidence is None:
        return f"run `nnx-migrate record` on code that builds {name}{reaching}"
    reasons = sorted(set(_reasons(one, sizes, evidence)))
    if not reasons:
        return f"no recorded call has it: record code that builds {name}{reaching}"
    return (
        f"record {name} with other numbers, one at a time: so far {reasons[0]}"
        f" ({len(evidence.record.instances)} instances)"
    )


def _reasons(one: SizeArgument, sizes: ClassSizes, evidence: ClassEvidence) -> Iterator[str]:
    """Why what was recorded at the places that take the argument gives no expression."""
    for site in sizes.sites.values():
        texts = (re.findall(r"\w+", text) for text in site.sizes.values())
        place = evidence.place_of(site.call) if any(one.name in text for text in texts) else None
        for (where, *_, axis), size in evidence.record.sizes.items():
            if (
                where == place
                and place is not None
                and axis == (-1 if one.axis is None else one.axis)
            ):
                yield size.reason or f"{size.expression} cannot be read in __init__"
