"""What an explicit class has to know of the sizes around its lazy submodules: nothing of theirs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from nnx_migrate.sizes import ClassSizes
from nnx_migrate.sizes.factory_calls import FactoryFunction
from nnx_migrate.sizes.result import Site, SiteKind
from nnx_migrate.source.growth import grown
from nnx_migrate.source.names import names_in_text

_TAKING = (SiteKind.CLASS, SiteKind.FUNCTION)  # what is built by a call that takes sizes of its own


def without_lazy_submodules(
    sizes: Mapping[str, ClassSizes],
    lazy: Collection[str],
    factories: Iterable[FactoryFunction] = (),
    lifted_classes: Collection[str] = (),
) -> dict[str, ClassSizes]:
    """The sizes of classes some of whose submodules are of ``lazy`` classes: those take theirs in the call.

    So do what ``factories`` build, that stay as they are, and what is built through values of ``lifted_classes``
    classes. A size argument that nothing else needs is gone,
    also from where the class is built. What nobody knows of the sizes of lazy submodules is no problem.
    """
    factories = tuple(factories)
    uses = {key: one.symbol for one in factories for key in one.uses}
    inside = {id(call) for one in factories for call, _ in one.calls}
    by_kind = {
        SiteKind.CLASS: {*lazy, *uses.values()},
        SiteKind.FACTORY: {*lazy, *uses.values(), *lifted_classes},
    }
    found = {
        name: _without(_by_factories(one, uses), by_kind, inside) for name, one in sizes.items()
    }
    return _passed_on(sizes, found)


def _passed_on(
    sizes: Mapping[str, ClassSizes], sizes_by_class: dict[str, ClassSizes]
) -> dict[str, ClassSizes]:
    """What was found, where builders do without the arguments that a class does without now."""
    changed = {name for name in sizes_by_class if sizes_by_class[name] is not sizes[name]}
    while changed:
        before = sizes_by_class
        sizes_by_class = {name: _passing_on(one, before, changed) for name, one in before.items()}
        changed = {name for name in sizes_by_class if sizes_by_class[name] is not before[name]}
    return sizes_by_class


def left_to_first_calls(
    sizes: Mapping[str, ClassSizes],
    names: Collection[str],
    calls: Mapping[str, Collection[int]] = MappingProxyType({}),
) -> dict[str, ClassSizes]:
    """The sizes, where first calls make what no constructor can be told to make in time.

    Args:
      names: classes whose builders cannot tell them what the initial call has, or never reach all of them.
      calls: by class, ids of other calls that build such submodules.
    """
    open_calls = {name: _open_calls(sizes[name]) for name in names if name in sizes}
    open_calls |= {name: open_calls.get(name, frozenset()) | {*one} for name, one in calls.items()}
    found = {name: _left(one, open_calls.get(name, ())) for name, one in sizes.items()}
    return _passed_on(sizes, found)


def _open_calls(sizes: ClassSizes) -> frozenset[int]:
    return frozenset(id(one.call) for one in sizes.untold) | {
        id(one.call) for one in sizes.elsewhere
    }


def _left(sizes: ClassSizes, lazy_calls: Collection[int]) -> ClassSizes:
    sites = {
        key: site.left_to_first_call()
        for key, site in sizes.sites.items()
        if key in lazy_calls and not site.in_function and site.out_variable is None
    }
    if not sites:
        return sizes
    return replace(
        _with_sites(sizes, sites),
        untold=tuple(one for one in sizes.untold if id(one.call) not in sites),
        elsewhere=tuple(one for one in sizes.elsewhere if id(one.call) not in sites),
    )


def _by_factories(sizes: ClassSizes, uses: Mapping[int, str]) -> ClassSizes:
    """The sizes, where a call of a factory function builds what that is called."""
    theirs = {
        key: replace(site, symbol=uses[key]) for key, site in sizes.sites.items() if key in uses
    }
    return replace(sizes, sites={**sizes.sites, **theirs}) if theirs else sizes


def _without(
    sizes: ClassSizes, lazy: Mapping[SiteKind, Collection[str]], inside: Collection[int]
) -> ClassSizes:
    theirs = {
        key: replace(site, sizes={}, only_with=frozenset(), takes_some=False)
        for key, site in sizes.sites.items()
        if site.symbol in lazy.get(site.kind, ())
    }
    if not theirs:
        return sizes
    known = theirs.keys() | inside
    return replace(
        _with_sites(sizes, theirs),
        problems=tuple(one for one in sizes.problems if id(one[0]) not in known),
        untold=tuple(one for one in sizes.untold if id(one.call) not in theirs),
        elsewhere=tuple(one for one in sizes.elsewhere if id(one.call) not in theirs),
    )


def _passing_on(
    sizes: ClassSizes, every: Mapping[str, ClassSizes], changed_classes: Collection[str]
) -> ClassSizes:
    """The sizes of a class that builds ``changed_classes``: they get what they still take."""
    sites = {}
    for key, site in sizes.sites.items():
        if site.kind in _TAKING and site.symbol in changed_classes:
            parameter_names = {one.name for one in every[str(site.symbol)].new_arguments}
            remaining_sizes = {
                name: text for name, text in site.sizes.items() if name in parameter_names
            }
            if remaining_sizes != site.sizes:
                sites[key] = replace(
                    site, sizes=remaining_sizes, only_with=site.only_with & remaining_sizes.keys()
                )
    return _with_sites(sizes, sites) if sites else sizes


def _with_sites(sizes: ClassSizes, sites: Mapping[int, Site]) -> ClassSizes:
    """The sizes with other sites, without what these need no longer."""
    made = replace(sizes, sites={**sizes.sites, **sites})
    unread = _read(sizes) - _read(made)
    loop_carries = {
        key: used_loops
        for key, loops in sizes.loop_carries.items()
        if (used_loops := tuple(one for one in loops if one.name not in unread))
    }
    arguments = tuple(one for one in sizes.new_arguments if one.name not in unread)
    return replace(made, loop_carries=loop_carries, new_arguments=arguments)


def _read(sizes: ClassSizes) -> frozenset[str]:
    """Names that sizes are read by, those of what a loop carries if somebody reads that."""
    carries = [one for loops in sizes.loop_carries.values() for one in loops]
    read = {name for text in _texts(sizes) for name in names_in_text(text)}
    return grown(
        read,
        lambda known: {
            name
            for one in carries
            if one.name in known
            for name in names_in_text(one.before) | names_in_text(one.after)
        },
    )


def _texts(sizes: ClassSizes) -> Iterator[str]:
    for site in sizes.sites.values():
        yield from site.sizes.values()
        yield from filter(None, (site.condition, site.rounds))
    yield from sizes.dims.values()
    yield from sizes.full_shapes.values()
    for arguments in sizes.base_arguments.values():
        yield from arguments.values()
    if sizes.out_features and sizes.exports_out_features:
        yield sizes.out_features
