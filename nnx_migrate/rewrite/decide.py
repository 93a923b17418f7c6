"""Which classes are converted: conversion, refusals and the cut, until nothing changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from nnx_migrate.model import SizeArgument
from nnx_migrate.rewrite.classes import (
    ClassRefusal,
    ConversionContext,
    ConvertedClass,
    ConvertedFunction,
)
from nnx_migrate.rewrite.classes.abstract_methods import is_interface
from nnx_migrate.rewrite.classes.data import Wants
from nnx_migrate.rewrite.classes.writing.construct import relax
from nnx_migrate.rewrite.conversions import Conversions, Memory
from nnx_migrate.rewrite.cut import Cut, cut, unreachable_classes
from nnx_migrate.rewrite.factories import becomes_nnx, stuck_in_scope, stuck_users
from nnx_migrate.rewrite.keep import is_kept, kept_lines
from nnx_migrate.rewrite.lazy_submodules import left_to_first_calls, without_lazy_submodules
from nnx_migrate.rewrite.links import Links, links_of
from nnx_migrate.rewrite.waiting import Waiting
from nnx_migrate.rewrite.workers import Team
from nnx_migrate.sizes import ClassSizes
from nnx_migrate.sizes.factories import factory_functions
from nnx_migrate.sizes.factory_calls import FactoryFunction
from nnx_migrate.sizes.scope_functions import scope_functions
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project


@dataclass
class Decisions:
    """What becomes of every Linen class of the project."""

    conversions: dict[str, ConvertedClass] = field(default_factory=dict)
    refusals: dict[str, ClassRefusal] = field(default_factory=dict)
    cuts: dict[str, Cut] = field(default_factory=dict)
    keep_classes: frozenset[str] = frozenset()
    outside: frozenset[str] = frozenset()  # classes of files that are only read
    factories: tuple[FactoryFunction, ...] = ()  # functions that build for converted classes only
    # Those that stay, by name: converted classes hold what they build as it is
    lazy_factories: Mapping[str, FactoryFunction] = field(default_factory=dict)
    scope_functions: dict[str, ConvertedFunction] = field(default_factory=dict)
    # Those of lazy submodules left out
    sizes: Mapping[str, ClassSizes] = field(default_factory=dict)


def decide(
    project: Project,
    sizes: Mapping[str, ClassSizes],
    targets: frozenset[int],
    select: tuple[str, ...],
    exclude: tuple[str, ...],
    known_refusals: Mapping[str, ClassRefusal],
    without_extras: frozenset[str],
    memory: Memory,
    team: Team,
) -> Decisions:
    """Decide over all classes.

    Args:
        targets: ``id`` of the modules that may change.
        known_refusals: classes that an earlier attempt showed cannot be converted.
        without_extras: classes that get no further arguments for what the initial call has.
        memory: conversions of earlier attempts on the same project.
        team: who converts them.
    """
    functions = [*factory_functions(project).values()]
    decisions = _early_decisions(project, functions, targets, select, exclude)
    decisions.refusals.update(known_refusals)
    explicit_or_lazy = project.linen.keys() - decisions.keep_classes - decisions.outside
    links = links_of(project)
    pending = frozenset(explicit_or_lazy - decisions.refusals.keys())
    pending -= _join_cuts(project, decisions, links, pending)
    released: dict[str, FactoryFunction] = {}
    lifted: frozenset[str] = frozenset()
    remaining: frozenset[str] = frozenset()
    waiting = Waiting(without_extras)
    while True:
        lazy = explicit_or_lazy - pending
        fixed = (one for one in functions if not becomes_nnx(one, sizes, pending))
        staying = {**released, **{one.symbol: one for one in fixed}}
        known = left_to_first_calls(sizes, remaining, waiting.calls)
        own = without_lazy_submodules(known, lazy, staying.values(), lifted)
        decisions.sizes, decisions.lazy_factories = own, staying
        context = replace(
            _context(own, pending, frozenset(lazy | staying.keys())), lifted_classes=lifted
        )
        refused = _convert(Conversions(project, own, context, memory), pending, decisions, team)
        again_waiting = waiting.learn(decisions.refusals, refused)
        refused -= again_waiting
        left = dict(unreachable_classes(project, own, pending - refused))
        again_late = left.keys() - remaining
        remaining |= again_late
        left = {name: one for name, one in left.items() if name not in again_late}
        decisions.refusals.update(left)
        refused |= left.keys()
        active = [one for one in functions if one.symbol not in staying]
        stuck = _helpless(decisions.refusals, refused)
        free = (one for one in active if one.method_of is None)
        fresh = {one.symbol: one for one in free if not one.users.isdisjoint(stuck)}
        released |= fresh  # a user may do with what they build lazily
        again = stuck & frozenset(name for one in fresh.values() for name in one.users)
        holders = _holders(decisions, links, stuck) - lifted
        lifted |= holders
        again |= {name for name in stuck if not holders.isdisjoint(links.holds[name])}
        for name in _hasty(links, refused) | again:
            del decisions.refusals[name]
            refused -= {name}
        dropouts = refused | _join_cuts(project, decisions, links, pending - refused)
        if not (dropouts or fresh or holders or again_late or again_waiting):
            decisions.factories = tuple(active)
            return decisions
        pending -= dropouts


def _early_decisions(
    project: Project,
    functions: Iterable[FactoryFunction],
    targets: frozenset[int],
    select: tuple[str, ...],
    exclude: tuple[str, ...],
) -> Decisions:
    """What is known before any class is converted: what stays as it is, and what is refused for its users."""
    outside = frozenset(n for n, cls in project.linen.items() if id(cls.module) not in targets)
    keep_classes = frozenset(
        name
        for name, cls in project.linen.items()
        if name not in outside
        and (
            is_kept(cls.module, cls.node, kept_lines(cls.module))
            or not is_selected(cls.qualname, select, exclude)
        )
    )
    refused = dict(stuck_users(project, functions, targets))
    refused |= stuck_in_scope(project, scope_functions(project), targets)
    refused |= {name: _repeat(cls) for name, cls in project.linen.items() if cls.is_ambiguous}
    return Decisions(keep_classes=keep_classes, outside=outside, refusals=refused)


def _helpless(
    refusals: Mapping[str, ClassRefusal], refused_classes: frozenset[str]
) -> frozenset[str]:
    """Those of the refused classes that no further argument would help."""
    return frozenset(name for name in refused_classes if refusals[name].wants == Wants())


def _holders(decisions: Decisions, links: Links, stuck: frozenset[str]) -> frozenset[str]:
    """Explicit classes with lazy submodules that some of the refused classes have as values."""
    values = {value for name in stuck for value in links.holds[name]}
    return frozenset(
        name for name, one in decisions.conversions.items() if one.holds_lazy and name in values
    )


def _hasty(links: Links, refused_classes: frozenset[str]) -> frozenset[str]:
    """Classes to decide again: they build one that has just become lazy, whose sizes they need no longer."""
    waiting = frozenset(
        name
        for name in refused_classes
        if not refused_classes.isdisjoint(links.builds[name])
        and links.through[name].isdisjoint(refused_classes)
    )
    return waiting if waiting != refused_classes else frozenset()  # they build each other


def _convert(
    conversions: Conversions,
    pending: frozenset[str],
    decisions: Decisions,
    team: Team,
) -> frozenset[str]:
    decisions.conversions = {}
    refused = set()
    for name, result in conversions.of_all(sorted(pending), team).items():
        if isinstance(result, ConvertedClass):
            decisions.conversions[name] = result
        elif result is not None:
            decisions.refusals[name] = result
            refused.add(name)
    decisions.scope_functions = conversions.functions(team)
    return frozenset(refused)


def _join_cuts(
    project: Project,
    decisions: Decisions,
    links: Links,
    pending: frozenset[str],
) -> frozenset[str]:
    staying = frozenset(links.bases) - pending
    fixed = {
        base for one in decisions.keep_classes | decisions.outside for base in links.bases[one]
    }
    interfaces = frozenset(
        one for one in pending - fixed if is_interface(project, project.linen[one])
    )
    cuts = cut(links, staying, pending, interfaces, decisions.keep_classes | decisions.outside)
    decisions.cuts.update({one.name: one for one in cuts})
    return frozenset(one.name for one in cuts)


def _context(
    sizes: Mapping[str, ClassSizes], pending: frozenset[str], lazy: frozenset[str]
) -> ConversionContext:
    arguments: dict[str, tuple[SizeArgument, ...]] = {
        name: relax(sizes[name]).new_arguments for name in pending
    }
    factories = frozenset(name for name in pending if sizes[name].exports_out_features)
    return ConversionContext(pending, arguments, factories, lazy)


def _repeat(cls: ClassInfo) -> ClassRefusal:
    reason = f"{cls.node.name} is bound more than once here: which one a use means is not known"
    return ClassRefusal(cls.node, reason, "give each class a name of its own", "class")


def is_selected(name: str, select: tuple[str, ...], exclude: tuple[str, ...]) -> bool:
    """Whether globs over qualified class names choose a class."""
    if any(fnmatchcase(name, glob) for glob in exclude):
        return False
    globs = class_globs(select)
    return not globs or any(fnmatchcase(name, glob) for glob in globs)


def class_globs(globs: tuple[str, ...]) -> list[str]:
    """Those that choose classes, not paths."""
    return [one for one in globs if "/" not in one and not one.endswith(".py")]
