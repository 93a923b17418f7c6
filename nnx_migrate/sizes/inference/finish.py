"""From what the interpreter saw to what the rewriter needs: sites, sizes, new arguments."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.joining import as_array
from nnx_migrate.abstract.values import Choice, Sequence, Use, Value
from nnx_migrate.model import SizeArgument
from nnx_migrate.sizes.inference.arguments import name_arguments, renamed_site, renamer, shown_by
from nnx_migrate.sizes.inference.base_arguments import InitSizes, base_arguments
from nnx_migrate.sizes.inference.checks import misplaced_submodules, only_elsewhere
from nnx_migrate.sizes.inference.class_analysis import INPUT, ClassAnalysis
from nnx_migrate.sizes.inference.early_sizes import spell_early_sizes
from nnx_migrate.sizes.inference.initial_call import METHOD
from nnx_migrate.sizes.inference.parts import reaching
from nnx_migrate.sizes.inference.places import entered_at
from nnx_migrate.sizes.inference.required_sizes import needed_inputs
from nnx_migrate.sizes.inference.shape_reads import shape_reads
from nnx_migrate.sizes.inference.sites import site_of
from nnx_migrate.sizes.interpreter import Interpreter, spellable
from nnx_migrate.sizes.result import ClassSizes, LoopCarry, Site
from nnx_migrate.source.growth import grown
from nnx_migrate.source.names import defaults_of
from nnx_migrate.source.walking import is_none_literal


def finish(analysis: ClassAnalysis) -> ClassSizes:
    """Collect sites and choose the constructor arguments for the sizes that stay open."""
    drop_ambiguous(analysis.interpreter)
    spell_early_sizes(analysis)
    sites = {
        key: site_of(analysis, module) for key, module in analysis.interpreter.submodules.items()
    }
    analysis.problems.extend(misplaced_submodules(analysis))
    last = _output_features(analysis)
    statics = {k: v for k, v in analysis.interpreter.statics.items() if v is not None}
    every = {
        key: tuple((name, one.text, two.text) for name, one, two in entries)
        for key, entries in analysis.interpreter.carries.items()
    }
    exported = [last.text] if last and analysis.exports_out_features else []
    carries = used_carries(every, [*_site_sizes(sites), *statics.values(), *exported])
    whole = _whole_shapes(analysis)
    needed = needed_inputs(analysis, sites, carries) | set(whole.values())
    needed |= {n for n in (last.names if last else ()) if _path(n) in analysis.shapes}
    arguments = name_arguments(analysis, needed, entered_at(analysis, sites, carries))
    rename = renamer(analysis, arguments)
    found = _init_sizes(analysis, sites, carries, needed, arguments, rename)
    return ClassSizes(
        new_arguments=tuple(
            {a.name: a for a in (*arguments.values(), *analysis.opaque.values())}.values()
        ),
        sites=found.sites,
        dims=found.dims,
        loop_carries=found.loop_carries,
        base_arguments=base_arguments(analysis, found),
        facts=frozenset(
            key
            for key in found.dims
            if any(ex.fact_of(name) for name in INPUT.findall(statics[key]))
        ),
        decisive=_decisive(analysis, sites, arguments),
        full_shapes={path: arguments[name].name for path, name in whole.items()},
        statics={k: v for k, v in statics.items() if not INPUT.search(v)},
        lengths={k: v for k, v in analysis.interpreter.lengths.items() if v is not None},
        out_features=(
            rename(last.text)
            if last and _exportable(last, needed, _names(every) - _names(carries))
            else None
        ),
        exports_out_features=analysis.exports_out_features,
        problems=(
            *analysis.problems,
            *analysis.interpreter.problems,
            *_needed_early(found.sites.values()),
        ),
        untold=(*analysis.untold,),
        elsewhere=(*analysis.elsewhere,),
        reaching=reaching(analysis),
        unpassable_facts=(*analysis.unpassable_facts,),
        review=(*analysis.interpreter.review, *only_elsewhere(analysis)),
        origins=analysis.origins,
    )


def _output_features(analysis: ClassAnalysis) -> Expr | None:
    """The size of the output's last axis, spelled behind the last statement of the class."""
    output = as_array(_first_output(analysis.output))
    last = output.axis(-1) if output else None
    return last and analysis.interpreter.loop_names.at(last, analysis.root.info.node)


def _site_sizes(sites: Mapping[int, Site]) -> Iterator[str]:
    return (text for site in sites.values() for text in site.sizes.values())


def _whole_shapes(analysis: ClassAnalysis) -> Mapping[str, str]:
    """The call parameters whose whole shape is an argument, each noted as required or optional."""
    whole = {path: ex.input_shape(path).text for path in analysis.shapes}
    spared = _omissible(analysis)
    for path, name in whole.items():
        (analysis.optional if path in spared else analysis.required_sizes).add(name)
    return whole


def _init_sizes(
    analysis: ClassAnalysis,
    sites: Mapping[int, Site],
    carries: Mapping[int, tuple[tuple[str, str, str], ...]],
    needed_sizes: set[str],
    arguments: Mapping[str, SizeArgument],
    rename: Callable[[str], str],
) -> InitSizes:
    """Sites and sizes in the words of the constructor."""
    statics, reads = analysis.interpreter.statics, shape_reads(analysis)
    dims = {
        key: rename(text)
        for key, text in statics.items()
        if text is not None
        and (set(INPUT.findall(text)) <= needed_sizes if INPUT.search(text) else key in reads)
    }
    used = {*_site_sizes(sites), *dims.values()}
    used |= {text for entries in carries.values() for entry in entries for text in entry[1:]}
    return InitSizes(
        {key: renamed_site(site, rename, used) for key, site in sites.items()},
        dims,
        lambda key: rename(statics[key] or "") if key in statics else None,
        {
            key: tuple(LoopCarry(n, rename(one), rename(two)) for n, one, two in entries)
            for key, entries in carries.items()
        },
        arguments,
    )


def _needed_early(sites: Iterable[Site]) -> Iterator[tuple[ast.AST, str]]:
    """Constructor calls that take sizes which only the first call shows, and cannot wait for it."""
    for site in sites:
        if site.is_lazy and site.in_function:
            yield site.call, "sizes of what this function builds are known to its calls alone"
        elif site.is_lazy and site.out_variable is not None:
            yield site.call, "the width of what is built here is known after its first call alone"


def _decisive(
    analysis: ClassAnalysis, sites: Mapping[int, Site], arguments: Mapping[str, SizeArgument]
) -> frozenset[str]:
    """Arguments whose being None decides a size here, or in a class that gets them."""
    texts = _site_sizes(sites)
    names = {shown_by(name, arguments) for text in texts for name in INPUT.findall(text)}
    known = {**arguments, **analysis.opaque}
    for site in sites.values():
        if site.symbol in analysis.interpreter.project.linen:
            child = analysis.sizes_of(site.symbol)
            sizes = [site.sizes.get(name, "") for name in child.decisive]
            names |= {known[text].name for text in sizes if text in known}
    return frozenset(name for name in names if name is not None)


def _omissible(analysis: ClassAnalysis) -> frozenset[str]:
    """Parameters that callers leave out, or give as None: they have no shape then."""
    found = analysis.root.info.find(METHOD)
    defaults = defaults_of(found[1].args) if found else {}
    return frozenset(name for name, node in defaults.items() if is_none_literal(node))


def _first_output(value: Value) -> Value:
    if isinstance(value, Sequence) and value.items:
        return value.items[0]
    if isinstance(value, Choice):
        firsts = [_first_output(one) for one in value.options]
        return firsts[0] if all(one == firsts[0] for one in firsts) else value
    return value


def _path(name: str) -> str | None:
    """The call parameter whose size a name is."""
    return ex.input_of(name)[0] if ex.is_input(name) else None


def _exportable(last: Expr, needed_sizes: set[str], lost_sizes: set[str]) -> bool:
    """Whether ``__init__`` can spell a size: not with what no loop of it carries."""
    return (
        spellable(last)
        and not last.names & lost_sizes
        and {n for n in last.names if ex.is_input(n)} <= needed_sizes
    )


def _names(carries: Mapping[int, tuple[tuple[str, str, str], ...]]) -> set[str]:
    return {name for entries in carries.values() for name, _, _ in entries}


# ---- carried sizes that one local variable cannot hold
# A loop inside an unrolled loop, or a list that two loops run over, is met more than once. Where the
# sizes it carries differ from time to time nobody knows them.

Carries = list[tuple[str, Expr, Expr]]


def drop_ambiguous(interpreter: Interpreter) -> None:
    """Keep each carried size once, and forget those that differ from time to time."""
    names = {name for carries in interpreter.carries.values() for name in _ambiguous(carries)}
    interpreter.carries = {
        key: [one for one in dict.fromkeys(carries) if not _reads(one, names)]
        for key, carries in interpreter.carries.items()
    }
    if not names:
        return
    for uses in interpreter.root.records.values():
        uses[:] = [_forgetting(use, names) for use in uses]
    for key, text in interpreter.statics.items():
        if text is not None and not names.isdisjoint(_words(text)):
            interpreter.statics[key] = None


def used_carries(
    all_carries: Mapping[int, tuple[tuple[str, str, str], ...]], texts: Iterable[str]
) -> dict[int, tuple[tuple[str, str, str], ...]]:
    """The carried sizes that some text, or the update of another such size, reads."""
    entries = [one for carries in all_carries.values() for one in carries]
    read = grown(
        (word for text in texts for word in _words(text)),
        lambda known: (
            word
            for name, *both in entries
            if name in known
            for text in both
            for word in _words(text)
        ),
    )
    return {
        key: tuple(one for one in carries if one[0] in read) for key, carries in all_carries.items()
    }


def _ambiguous(carries: Carries) -> set[str]:
    names = [name for name, _, _ in dict.fromkeys(carries)]
    return {name for name in names if names.count(name) > 1}


def _reads(carry: tuple[str, Expr, Expr], names: set[str]) -> bool:
    name, first, last = carry
    return name in names or not names.isdisjoint(first.names | last.names)


def _forgetting(use: Use, names: set[str]) -> Use:
    sizes = {
        key: None if size is not None and size.names & names else size
        for key, size in use.sizes.items()
    }
    return replace(use, sizes=sizes, arguments=use.arguments)


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text))
