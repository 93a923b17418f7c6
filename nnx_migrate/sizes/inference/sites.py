"""Sites: what each constructor call builds, and the sizes it needs."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace

from nnx_migrate.abstract.questions import class_name
from nnx_migrate.abstract.values import Instance, Submodule, Use
from nnx_migrate.constructs import layer_of
from nnx_migrate.sizes.carry_cells import carry_cells
from nnx_migrate.sizes.inference.call_forms import call_forms
from nnx_migrate.sizes.inference.checks import refuse_parts
from nnx_migrate.sizes.inference.class_analysis import ClassAnalysis
from nnx_migrate.sizes.inference.in_scope import UNKNOWN, function_site
from nnx_migrate.sizes.inference.instance_sizes import instance_sizes
from nnx_migrate.sizes.inference.layer_sizes import layer_sizes, option_sizes, unseen_sizes
from nnx_migrate.sizes.inference.options import (
    takes_different_sizes,
)
from nnx_migrate.sizes.inference.parts import check_whole
from nnx_migrate.sizes.inference.reachability import (
    is_in_setup,
    note_handed_on,
    note_unseen,
    reach_condition,
    reached_in_setup,
    rounds_of,
)
from nnx_migrate.sizes.inference.witnesses import has_presence_everywhere
from nnx_migrate.sizes.out_variables import out_variable
from nnx_migrate.sizes.result import Site, SiteKind
from nnx_migrate.source.walking import walk


def site_of(analysis: ClassAnalysis, module: Submodule | Instance) -> Site:
    """The site of one submodule."""
    uses = [use for use in analysis.root.records.get(id(module.call), []) if use.primary]
    if uses and all(use.is_open for use in uses):
        note_unseen(analysis, module)
    argument_names = set(analysis.opaque)
    site = _lazily(analysis, _site_of(analysis, module))
    if site.is_lazy:  # its first call shows the sizes that it was about to ask for
        for name in analysis.opaque.keys() - argument_names:
            del analysis.opaque[name]
    in_function = id(site.call) in analysis.interpreter.through_functions
    site = replace(site, in_function=in_function or site.kind is SiteKind.FUNCTION)
    if is_in_setup(analysis, site.call):
        return replace(site, is_absent=id(site.call) in analysis.absent)
    return replace(site, rounds=rounds_of(uses))


def _site_of(analysis: ClassAnalysis, module: Submodule | Instance) -> Site:
    """The site, but for what loops without a round make of it."""
    refuse_parts(analysis, module)
    uses = analysis.root.records.get(id(module.call), [])
    uses = [use for use in uses if use.primary] or uses
    assert module.call is not None
    if isinstance(module, Submodule):
        uses = [_spelled_at(analysis, module.call, use) for use in uses]
    if isinstance(module, Instance) and module.info.function is not None:
        return function_site(
            analysis, module, instance_sizes(analysis, module, uses), reach_condition(uses)
        )
    if isinstance(module, Instance):
        sizes = instance_sizes(analysis, module, uses)
        check_whole(analysis, module, [use for use in uses if use.primary])
        return Site(
            module.call,
            _kind(analysis, module),
            module.info.name,
            sizes,
            condition=_init_condition(analysis, module, uses, sizes),
            class_name=class_name(module) or None,
            only_with=_only_with(analysis, module, uses),
            methods=frozenset(one.method for one in uses if one.primary and not one.conditions),
        )
    kind = _kind(analysis, module)
    if kind is SiteKind.LAYER and _is_for_carry(analysis, module):
        name = class_name(module) or None
        return Site(module.call, kind, module.symbol, {}, condition="False", class_name=name)
    options = module.options
    sizes = option_sizes(analysis, module, uses) if options else layer_sizes(analysis, module, uses)
    if not uses and kind is not SiteKind.FACTORY:
        sizes = unseen_sizes(analysis, module)
    variable = out_variable(module) if options else None
    name = class_name(module) or None
    # Only such layers are built otherwise for other calls, and to find all calls reads every file.
    layer = layer_of(module.symbol) if kind is SiteKind.LAYER else None
    has_options = layer is not None and bool(layer.at_call)
    return Site(
        module.call,
        kind,
        module.symbol or None,
        sizes,
        variable,
        _init_condition(analysis, module, uses, sizes),
        name,
        takes_some=takes_different_sizes(analysis, options) and bool(sizes),
        is_open=kind is SiteKind.FACTORY and not (options or module.symbol),
        calls=call_forms(analysis, module) if has_options else frozenset(),
    )


def _lazily(analysis: ClassAnalysis, site: Site) -> Site:
    """The site, left to the first call of what it builds where only that shows a size or whether it is made."""
    interpreter, call = analysis.interpreter, id(site.call)
    are_met = call not in interpreter.picked or call in interpreter.met
    if call not in analysis.lazy | interpreter.unsure and are_met:
        return site
    if analysis.root.info.function is not None:
        analysis.problems.append((site.call, UNKNOWN))
        return site
    return site.left_to_first_call()


def _is_for_carry(analysis: ClassAnalysis, module: Submodule) -> bool:
    """Whether it is a cell that a method only asks for a carry."""
    layer = layer_of(module.symbol)
    if layer is None or "initialize_carry" not in layer.methods:
        return False
    cells = (
        one for method in analysis.root.info.every_method for one in carry_cells(method).values()
    )
    return any(one.cell is module.call for one in cells)


def _init_condition(
    analysis: ClassAnalysis,
    module: Submodule | Instance,
    uses: list[Use],
    sizes: Mapping[str, str],
) -> str | None:
    """The condition over what ``__init__`` knows under which the initial call reaches it."""
    assert module.call is not None
    if is_in_setup(analysis, module.call):
        return reached_in_setup(analysis, module, uses, sizes)
    if not uses:
        note_unseen(analysis, module)
    note_handed_on(analysis, module, uses)
    return reach_condition(uses)


def _spelled_at(analysis: ClassAnalysis, place: ast.Call, use: Use) -> Use:
    """A use whose sizes have the names that loop variables have where it is built."""
    names = analysis.interpreter.loop_names
    sizes = {key: size and names.at(size, place) for key, size in use.sizes.items()}
    return replace(use, sizes=sizes)


def _only_with(analysis: ClassAnalysis, module: Instance, uses: list[Use]) -> frozenset[str]:
    """Decisive sizes of the class that are handed on only where what they measure is given."""
    child = analysis.sizes_of(module.info.name)
    return frozenset(
        one.name
        for one in child.new_arguments
        if one.name in child.decisive and has_presence_everywhere(one, uses)
    )


def _kind(analysis: ClassAnalysis, module: Submodule | Instance) -> SiteKind:
    symbol = _direct_symbol(analysis, module)
    if isinstance(module, Instance):
        return SiteKind.CLASS if symbol == module.info.name else SiteKind.FACTORY
    return SiteKind.LAYER if symbol == module.symbol and module.symbol else SiteKind.FACTORY


def _direct_symbol(analysis: ClassAnalysis, module: Submodule | Instance) -> str | None:
    """Symbol the constructor call spells itself, None when a local or field stands between."""
    assert module.call is not None
    cls = analysis.root.info
    for owner in cls.mro:
        for method in owner.methods.values():
            if any(node is module.call for node in walk(method)):
                scope = owner.scope.enter(method)
                return analysis.interpreter.project.resolve(module.call.func, scope)
    return None
