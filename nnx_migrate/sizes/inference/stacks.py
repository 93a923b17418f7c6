"""Submodules that hold several layers: those that a lift stacks, and lifted ones of no said number.

A lifted function (``nn.scan(f, variable_axes=...)(block, x)``) or method stacks the variables of what is
called in it first, also those of a module that somebody else built and handed in. The constructor
needs to know how many layers there are: where no option says it, the calls show it.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from dataclasses import replace

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.values import Instance, Lift, Sequence, Submodule, Use, Value
from nnx_migrate.sizes.inference.class_analysis import ClassAnalysis
from nnx_migrate.sizes.interpreter import spellable
from nnx_migrate.sizes.result import Site
from nnx_migrate.source.walking import walk

# What constructors of lifted classes call the number of their layers.
LAYERS = "stacked_size"


def with_layers(analysis: ClassAnalysis, module: Submodule | Instance, site: Site) -> Site:
    """The site with the lift that stacks its variables, and the number of its layers."""
    uses = analysis.root.records.get(id(module.call), [])
    if any(not one.sized for one in module.lifts):
        if any(use.stack for use in uses):
            analysis.problems.append((site.call, "lifts stack its variables twice"))
        return _of_lifted(analysis, module, site, uses)
    found = {id(use.stack.lift.call) if use.stack else 0: use.stack for use in uses}
    if len(found) > 1:
        reason = "it is called in a lifted function that stacks its variables, and elsewhere"
        analysis.problems.append((site.call, reason))
        return site
    stack = next(iter(found.values()), None)
    if stack is None or stack.lift.call is None:
        return site
    if not _reads_alike(analysis, stack.lift.call):
        reason = "a method of another class stacks its variables, by options that are no literals"
        analysis.problems.append((site.call, reason))
    fields = module.fields if isinstance(module, Instance) else {}
    alone = [one for one in site.holds if not _is_stacked(analysis, fields[one], stack.lift.call)]
    site = replace(site, stacked_by=stack.lift.call, unstacked=tuple(alone))
    if stack.lift.sized:
        return site
    sizes = [use.stack.layers for use in uses if use.stack is not None]
    text = _text(analysis, site, stack.lift, uses, sizes)
    return replace(site, layers=text, layers_as=stack.lift.option)


def _is_stacked(analysis: ClassAnalysis, value: Value, lift: ast.Call) -> bool:
    """Whether a lift stacks the variables of all modules in a value, wherever they are built."""
    match value:
        case Submodule(call=call) | Instance(call=call):
            uses = analysis.root.records.get(id(call), [])
            stacks = [use.stack for use in uses]
            return bool(uses) and all(one is not None and one.lift.call is lift for one in stacks)
        case Sequence(items=items):
            return all(_is_stacked(analysis, one, lift) for one in items)
    return False


def _of_lifted(
    analysis: ClassAnalysis, module: Submodule | Instance, site: Site, uses: Collection[Use]
) -> Site:
    fields = {one.name for one in module.info.fields} if isinstance(module, Instance) else set()
    if LAYERS in fields:
        analysis.problems.append((site.call, f"it has a field {LAYERS!r} of its own"))
    lift = next(one for one in module.lifts if not one.sized)
    text = _text(analysis, site, lift, uses, [use.layers for use in uses])
    return replace(site, layers=text, layers_as=LAYERS)


def _text(
    analysis: ClassAnalysis,
    site: Site,
    lift: Lift,
    uses: Collection[Use],
    sizes: Collection[ex.Expr | None],
) -> str | None:
    """The number of layers that the calls show."""
    seen = {one for one in sizes if one is not None and spellable(one)}
    if len(seen) != 1 or not any(use.certain for use in uses):
        reason = f"it stacks variables without {lift.option}=, and no call shows how many layers"
        analysis.problems.append((site.call, reason))
        return None
    size = seen.pop()
    analysis.required.update(name for name in size.names if ex.is_input(name))
    return size.text


def _reads_alike(analysis: ClassAnalysis, lift: ast.Call) -> bool:
    """Whether the options of a lift mean in the class under analysis what they mean where they stand."""
    if any(one is lift for node in analysis.nodes for one in walk(node)):
        return True
    return all(_is_literal(keyword.value) for keyword in lift.keywords)


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except ValueError:
        return False
    return True


def sized_lifts(
    modules: Mapping[int, Submodule | Instance], sites: Mapping[int, Site]
) -> frozenset[int]:
    """Ids of the lifts whose every site says the number of layers."""
    said = {id(one.stacked_by): True for one in sites.values() if one.layers and one.stacked_by}
    for key, module in modules.items():
        for lift in module.lifts:
            if lift.call is not None and not lift.sized:
                shown = sites[key].layers is not None
                said[id(lift.call)] = said.get(id(lift.call), True) and shown
    return frozenset(key for key, shown in said.items() if shown)
