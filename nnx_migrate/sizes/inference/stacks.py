"""Lifted submodules that stack variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.values import Instance, Submodule
from nnx_migrate.sizes.inference.class_analysis import ClassAnalysis
from nnx_migrate.sizes.inference.module_arguments import holds_state
from nnx_migrate.sizes.interpreter import spellable
from nnx_migrate.sizes.result import LAYERS, Site


def refuse_parts(analysis: ClassAnalysis, module: Submodule | Instance) -> None:
    """A stacked submodule that is given others: Linen stacks their variables, too, where they are made."""
    if not isinstance(module, Instance) or all(one.call is None for one in module.lifts):
        return
    assert module.call is not None
    for name, value in module.fields.items():
        if holds_state(analysis, value):
            reason = (
                f"a lift stacks its variables, and those of the submodule that is given as {name!r}"
            )
            analysis.problems.append((module.call, reason))


def with_layers(analysis: ClassAnalysis, module: Submodule | Instance, site: Site) -> Site:
    """The site with the number of its layers, which the calls show where no option of the lift says it."""
    lift = next((one for one in module.lifts if not one.sized), None)
    if lift is None:
        return site
    fields = {one.name for one in module.info.fields} if isinstance(module, Instance) else set()
    if LAYERS in fields:
        analysis.problems.append((site.call, f"it has a field {LAYERS!r} of its own"))
    uses = analysis.root.records.get(id(module.call), [])
    seen = {use.layers for use in uses if use.layers is not None and spellable(use.layers)}
    if len(seen) != 1 or not any(use.certain for use in uses):
        reason = f"it stacks variables without {lift.option}=, and no call shows how many layers"
        analysis.problems.append((site.call, reason))
        return site
    size = seen.pop()
    analysis.required.update(name for name in size.names if ex.is_input(name))
    return replace(site, layers=size.text)


def sized_lifts(
    modules: Mapping[int, Submodule | Instance], sites: Mapping[int, Site]
) -> frozenset[int]:
    """Ids of the lifts whose every site says the number of layers."""
    said: dict[int, bool] = {}
    for key, module in modules.items():
        for lift in module.lifts:
            if lift.call is not None and not lift.sized:
                shown = sites[key].layers is not None
                said[id(lift.call)] = said.get(id(lift.call), True) and shown
    return frozenset(key for key, shown in said.items() if shown)
