"""Sizes of a child's arguments, read off its calls or off the sites inside it."""

from __future__ import annotations

import ast
import re
from dataclasses import replace

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.joining import as_array
from nnx_migrate.abstract.questions import is_none
from nnx_migrate.abstract.values import (
    SPREAD,
    Argument,
    Array,
    Choice,
    Instance,
    Record,
    Sequence,
    Use,
    Value,
)
from nnx_migrate.model import SizeArgument
from nnx_migrate.sizes.inference.class_analysis import ClassAnalysis
from nnx_migrate.sizes.inference.consensus import agreed_size
from nnx_migrate.sizes.interpreter import spellable
from nnx_migrate.sizes.ranks import Rank, Ranks
from nnx_migrate.sizes.result import ClassSizes, Site, SiteKind

_NONE = ex.literal(None)


def witness_of(
    analysis: ClassAnalysis, child: ClassSizes, argument: SizeArgument, uses: list[Use]
) -> tuple[Expr | None, bool]:
    """Size of a child's argument: read off the call, else off a site inside that has this size."""
    axes = _axes_read(analysis, child, argument.name)
    passing = [use for use in uses if is_passed(argument, use)]
    decisive = argument.name in child.decisive and bool(passing)
    if decisive and not all(_tells(argument, use) for use in passing):
        return None, False
    # A decisive size is None in the calls that go without what it measures: those count, too.
    shown = [
        use
        for use in uses
        if is_passed(argument, use) or (decisive and use.method == argument.method)
    ]
    sizes = [
        replace(
            use,
            sizes={
                "": _argument_size(analysis, argument, use, axes)
                if is_passed(argument, use)
                else _NONE
            },
        )
        for use in shown
    ]
    known = {id(use.module) for use in sizes if use.sizes[""] is not None}
    if sizes and known == {id(use.module) for use in uses}:
        return agreed_size(sizes, "")
    for key, site in child.sites.items():
        for name, text in site.sizes.items():
            if text != argument.name:
                continue
            inner = [
                one
                for use in uses
                if isinstance(use.module, Instance)
                for one in use.module.records.get(key, [])
            ]
            size, conditional = shown_inside(analysis, site, name, inner)
            if size is not None:
                return size, conditional
    return None, False


def shown_inside(
    analysis: ClassAnalysis, site: Site, name: str, uses: list[Use]
) -> tuple[Expr | None, bool]:
    """The size that these calls of what a site of a child builds show, and whether it hangs on the call."""
    if site.kind is SiteKind.FUNCTION or site.symbol in analysis.interpreter.project.linen:
        assert site.symbol is not None
        grandchild = analysis.sizes_of(site.symbol)
        argument = next((a for a in grandchild.new_arguments if a.name == name), None)
        return witness_of(analysis, grandchild, argument, uses) if argument else (None, False)
    return agreed_size(uses, name)


def is_passed(argument: SizeArgument, use: Use) -> bool:
    """Whether a call hands in what the size is read off: then it is needed, known or not."""
    head = ex.parameter_of(argument.argument or "")
    if not head or use.method != argument.method:
        return False
    value = use.arguments.get(head, use.arguments.get(SPREAD))
    return value is not None and not is_none(value)


def _tells(argument: SizeArgument, use: Use) -> bool:
    """Whether a size is passed exactly when the call has what it measures.

    It does always, or the caller's own argument is handed on: its size is None without it.
    """
    value = use.arguments.get(argument.argument or "", use.arguments.get(SPREAD))
    options = value.options if isinstance(value, Choice) else (value,)
    if all(one is None or is_none(one) is False for one in options):
        return True
    return isinstance(value, Argument) and value.path.isidentifier() and use.primary


def has_presence_everywhere(argument: SizeArgument, uses: list[Use]) -> bool:
    """Whether every call hands on a parameter of the caller, and where that is known to be given."""
    calls = [use for use in uses if use.method == argument.method]
    return bool(calls) and all(_is_given(use, argument.argument or "") for use in calls)


def _is_given(use: Use, name: str) -> bool:
    value = use.arguments.get(name)
    if not isinstance(value, Argument | Array) or value.path is None:
        return False
    return use.presence.get(value.path) is True or (isinstance(value, Argument) and value.present)


def _axes_read(analysis: ClassAnalysis, child: ClassSizes, name: str) -> frozenset[int] | None:
    """The axes that a class reads of a shape it is handed; None when it may be any, or the rank."""
    if name in child.full_shapes.values():
        return None
    texts = [*child.dims.values(), child.out_features or ""]
    texts += [
        t for many in child.loop_carries.values() for one in many for t in (one.before, one.after)
    ]
    found: set[int] = set()
    for site in child.sites.values():
        for key, text in site.sizes.items():
            if text != name or not _is_analysed(analysis, site):
                texts.append(text)
                continue
            inner = _axes_read(analysis, analysis.sizes_of(str(site.symbol)), key)
            if inner is None:
                return None
            found |= inner
    read = [one for text in texts for one in re.findall(rf"\b{name}\b(?:\[(-?\d+)\])?", text)]
    return frozenset(found | {int(one) for one in read}) if all(read) else None


def _is_analysed(analysis: ClassAnalysis, site: Site) -> bool:
    """Whether what a site builds is one class or function of the project."""
    return site.kind is SiteKind.FUNCTION or site.symbol in analysis.interpreter.project.linen


def _argument_size(
    analysis: ClassAnalysis, argument: SizeArgument, use: Use, axes: frozenset[int] | None
) -> Expr | None:
    """Size of a call argument as the caller passes it; of a shape, ``axes`` must be known.

    Without ``axes`` the rank and every axis must be.
    """
    if argument.submodule is not None or argument.argument is None:
        return None
    if use.method != argument.method:
        return None
    head, *steps = re.findall(r"-?\w+", argument.argument)
    value: Value | None = use.arguments.get(head)
    for step in steps:
        value = _step(value, step)
    array = as_array(value) if value is not None else None
    if array is None:
        return None
    if argument.axis is not None:
        return array.axis(argument.axis)
    if array.path and array.rank is None and not array.tail and array.grown is None:
        return ex.input_shape(array.path)
    if axes is None and (array.rank is None or None in array.last_sizes(array.rank)):
        return None
    rank = array.rank if array.rank is not None else _axis_count(array, axes)
    if any(array.axis(one) is None for one in axes or ()):
        return None
    whole = _whole(analysis.interpreter.ranks, use.entry, array.last_sizes(rank))
    if whole is not None:
        return whole
    is_read = [axes is None or not axes.isdisjoint((one, one + rank)) for one in range(-rank, 0)]
    sizes = zip(array.last_sizes(rank), is_read, strict=True)
    nodes = [
        size.node if size is not None and (read or spellable(size)) else ast.Constant(None)
        for size, read in sizes
    ]
    return Expr(ast.Tuple(nodes, ast.Load())) if nodes else None


def _whole(ranks: Ranks, method: str, sizes: tuple[Expr | None, ...]) -> Expr | None:
    """The shape of the argument of a method that has just these axes."""
    names = [one.text for one in sizes if one is not None and one.text.isidentifier()]
    axes = [ex.input_of(one) for one in names if ex.is_input(one)]
    path = axes[0][0] if axes else ""
    known = ranks.known_ranks.get((method, path), Rank())
    is_own = axes == [(path, one) for one in range(-len(sizes), 0)]
    return ex.input_shape(path) if is_own and known.exact == len(sizes) else None


def _axis_count(array: Array, axes: frozenset[int] | None) -> int:
    """How many of the last axes to spell of an array whose rank is not known.

    Those before the ones that are read need not be there: ``x.shape[-3]`` raises for a vector.
    """
    read = [-one for one in axes or ()]
    return max(read) if read and min(read) > 0 else len(array.tail)


def _step(value: Value | None, step: str) -> Value | None:
    match value:
        case Sequence(items=items) if _is_index(step) and -len(items) <= int(step) < len(items):
            return items[int(step)]
        case Record(entries=entries):
            return entries.get(step)
        case Argument(path=path):
            return Argument(f"{path}[{step}]" if _is_index(step) else f"{path}.{step}")
    return None


def _is_index(step: str) -> bool:
    return step.removeprefix("-").isdigit()


def hangs_on_fields(child: ClassSizes, argument: SizeArgument) -> bool:
    """Whether fields of the child decide if it needs a size that no input of its own shows.

    ``if self.deep: x = nn.Dense(4)(hidden)``: whoever builds the child may hand on such a field.
    """
    facts = {one.name for one in child.new_arguments if one.fact is not None}
    carries = [one for loop in child.loop_carries.values() for one in loop]
    texts = {
        argument.name,
        *(one.name for one in carries if argument.name in (one.before, one.after)),
    }
    reached = [
        set(re.findall(r"\w+", site.condition))
        for site in child.sites.values()
        if site.condition not in (None, "False") and texts & {*site.sizes.values()}
    ]
    return argument.submodule is not None and any(not one & facts for one in reached)
