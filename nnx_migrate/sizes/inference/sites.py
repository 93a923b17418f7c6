"""Sites: what each constructor call builds, and the sizes it needs."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract import shapes
from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.values import Instance, Submodule, Use, class_name
from nnx_migrate.constructs import layer_of
from nnx_migrate.model import SizeArgument
from nnx_migrate.sizes.carry_cells import carry_cells
from nnx_migrate.sizes.evidence import wanted
from nnx_migrate.sizes.expressions.list_parts import check_met
from nnx_migrate.sizes.inference.call_forms import call_forms
from nnx_migrate.sizes.inference.checks import refuse_parts
from nnx_migrate.sizes.inference.class_analysis import ClassAnalysis
from nnx_migrate.sizes.inference.consensus import agreed_size, is_called
from nnx_migrate.sizes.inference.in_scope import UNKNOWN, function_site, is_in_scope, shown_at
from nnx_migrate.sizes.inference.initial_call import Unsure, passed_fact
from nnx_migrate.sizes.inference.options import (
    IN_FEATURES,
    field_among,
    needs_width,
    own_uses,
    takes_different_sizes,
)
from nnx_migrate.sizes.inference.parts import check_whole
from nnx_migrate.sizes.inference.places import path_in_loop, place_of
from nnx_migrate.sizes.inference.reachability import (
    in_some_rounds,
    is_in_setup,
    reached,
    reached_in_setup,
    rounds_of,
)
from nnx_migrate.sizes.inference.records import with_evidence
from nnx_migrate.sizes.inference.witnesses import hangs_on_fields, is_passed, only_given, witness_of
from nnx_migrate.sizes.interpreter import out_variable, spellable
from nnx_migrate.sizes.result import SCOPE_NAME, UNSEEN, Site, SiteKind
from nnx_migrate.source.walking import walk


def site_of(analysis: ClassAnalysis, module: Submodule | Instance) -> Site:
    """The site of one submodule."""
    site = _site_of(analysis, module)
    if is_in_setup(analysis, site.call):
        return replace(site, is_absent=id(site.call) in analysis.absent)
    uses = analysis.root.records.get(id(module.call), [])
    return replace(site, rounds=rounds_of([use for use in uses if use.primary]))


def _site_of(analysis: ClassAnalysis, module: Submodule | Instance) -> Site:
    """The site, but for what loops without a round make of it."""
    refuse_parts(analysis, module)
    check_met(analysis.interpreter, module)
    uses = analysis.root.records.get(id(module.call), [])
    uses = [use for use in uses if use.primary] or uses
    assert module.call is not None
    if in_some_rounds(uses, analysis.interpreter.loop_names.loops):
        analysis.interpreter.ask(
            module.call, "some rounds do not reach it, and it is built for all"
        )
    if isinstance(module, Submodule):
        uses = [_spelled_at(analysis, module.call, use) for use in uses]
    if isinstance(module, Instance) and module.info.function is not None:
        return function_site(
            analysis, module, _instance_sizes(analysis, module, uses), reached(uses)
        )
    if isinstance(module, Instance):
        sizes = _instance_sizes(analysis, module, uses)
        check_whole(analysis, module, [use for use in uses if use.primary])
        return Site(
            module.call,
            _kind(analysis, module),
            module.info.name,
            sizes,
            reached=_reached(analysis, module, uses, sizes),
            class_name=class_name(module) or None,
            only_with=_only_with(analysis, module, uses),
            methods=frozenset(one.method for one in uses if one.primary and not one.conditions),
        )
    kind = _kind(analysis, module)
    if kind is SiteKind.LAYER and _is_for_carry(analysis, module):
        name = class_name(module) or None
        return Site(module.call, kind, module.symbol, {}, reached="False", class_name=name)
    options = module.options
    sizes = (
        _option_sizes(analysis, module, uses) if options else _layer_sizes(analysis, module, uses)
    )
    if not uses and kind is not SiteKind.FACTORY:
        sizes = _unseen(analysis, module)
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
        _reached(analysis, module, uses, sizes),
        name,
        takes_some=takes_different_sizes(analysis, options) and bool(sizes),
        calls=call_forms(analysis, module) if has_options else frozenset(),
    )


def _is_for_carry(analysis: ClassAnalysis, module: Submodule) -> bool:
    """Whether it is a cell that a method only asks for a carry."""
    layer = layer_of(module.symbol)
    if layer is None or "initialize_carry" not in layer.methods:
        return False
    methods = (one for cls in analysis.root.info.mro for one in cls.methods.values())
    cells = (one for method in methods for one in carry_cells(method).values())
    return any(one.built is module.call for one in cells)


def _reached(
    analysis: ClassAnalysis,
    module: Submodule | Instance,
    uses: list[Use],
    sizes: Mapping[str, str],
) -> str | None:
    """The condition over what ``__init__`` knows under which the initial call reaches it."""
    assert module.call is not None
    if is_in_setup(analysis, module.call):
        return reached_in_setup(analysis, module, uses, sizes)
    return reached(uses)


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
        if one.name in child.decisive and only_given(one, uses)
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


def _option_sizes(analysis: ClassAnalysis, module: Submodule, uses: list[Use]) -> dict[str, str]:
    """Sizes of a submodule whose class is one of several: all that some class takes."""
    options = module.options
    width = uses and needs_width(analysis, options)
    sizes = _layer_sizes(analysis, module, uses) if width else {}
    problem = None
    for option in options:
        if isinstance(option, Instance):
            own = own_uses(option)
            own = [use for use in own if use.primary] or own
            known = dict(analysis.opaque)
            found = _instance_sizes(analysis, option, own, without=IN_FEATURES)
            same = all(sizes.get(name, text) == text for name, text in found.items())
            alike = all(one == known.get(name, one) for name, one in analysis.opaque.items())
            problem = problem if same and alike else "sizes of one name that differ"
            sizes |= found
    field = field_among(analysis, options, sizes)
    problem = problem or (f"the size {field}, which is a field of another" if field else None)
    if problem is not None:
        analysis.problems.append(
            (module.call, f"the classes that may be built here need {problem}")
        )
    return sizes


def _layer_sizes(analysis: ClassAnalysis, module: Submodule, uses: list[Use]) -> dict[str, str]:
    sizes: dict[str, str] = {}
    for key in dict.fromkeys(key for use in uses for key in use.sizes):
        size, conditional = agreed_size(uses, key)
        axes = _feature_axes(module) if size is None and key == "in_features" else (-1,)
        if axes == (-1,):
            sizes[key] = _text(analysis, module, key, size, conditional, _NOT_FIRST.get(key))
        elif axes is None:
            analysis.problems.append((module.call, "the axes of this layer are not known here"))
        else:
            shape = _text(analysis, module, "input_shape", None, conditional, _WHOLE)
            parts = ", ".join(f"{shape}[{axis}]" for axis in axes)
            sizes[key] = parts if len(axes) == 1 else f"({parts})"
    return {key: text for key, text in sizes.items() if text}


# Sizes of built-in layers that are not the last axis of their first argument.
_WHOLE = SizeArgument("input_shape", axis=None)
_NOT_FIRST = {
    "in_shape": SizeArgument("in_shape", axis=None),
    "in_kv_features": SizeArgument("in_kv_features", argument="inputs_k"),
    "in_v_features": SizeArgument("in_v_features", argument="inputs_v"),
    "carry_features": SizeArgument("carry_features", argument="carry"),
}


def _feature_axes(module: Submodule) -> tuple[int, ...] | None:
    """The axes whose sizes are a layer's ``in_features``; None when they are not known."""
    axis = module.arguments.get("axis", module.arguments.get("feature_axes"))
    if axis is None:
        return (-1,)
    sizes = shapes.shape_of(axis) or ()
    known = [one.constant for one in sizes if one is not None and one.is_constant]
    axes = tuple(one for one in known if isinstance(one, int))
    return axes if axes and len(axes) == len(sizes) else None


def _unseen(analysis: ClassAnalysis, module: Submodule) -> dict[str, str]:
    """Sizes of a layer that no analysed call reaches; one that is only applied needs none."""
    layer = layer_of(module.symbol)
    needs = layer is not None and "in_features" in layer.sizes
    applied = id(module.call) in analysis.interpreter.applied
    if needs and not applied:
        assert module.call is not None
        analysis.interpreter.ask(module.call, UNSEEN)
    return {"in_features": _text(analysis, module, "in_features", None, applied)} if needs else {}


def _instance_sizes(
    analysis: ClassAnalysis, module: Instance, uses: list[Use], without: str = ""
) -> dict[str, str]:
    child, place = analysis.sizes_of(module.info.name), module.call
    assert place is not None
    unsure = bool(uses) and not is_called(uses)
    facts = [one for one in child.new_arguments if one.fact is not None and one.name != without]
    sizes = {one.name: _fact_text(analysis, module, one, uses) for one in facts}
    told = any(text not in ("", "False") for text in sizes.values())
    for argument in facts if without else ():  # another class may get it
        if argument.default is not None:
            sizes[argument.name] = sizes[argument.name] or repr(argument.default)
    for argument in child.new_arguments:
        if argument.name == without or argument.fact is not None:
            continue
        size, conditional = witness_of(analysis, child, argument, uses)
        size = size and analysis.interpreter.loop_names.at(size, place)
        size = size if size is not None and spellable(size) else None
        below = argument.name in child.decisive and argument.submodule is not None
        # What the child builds where a fact holds that it is told needs its sizes.
        passed = below or told or hangs_on_fields(child, argument)
        passed = passed or any(is_passed(argument, use) for use in uses)
        if size is None and argument.optional and not passed:
            continue
        conditional = conditional or unsure or argument.optional
        if (
            size is None
            and argument.name in child.decisive
            and not _is_recorded(analysis, module, argument)
        ):
            sizes[argument.name] = _asked(analysis, module, argument.name, conditional, argument)
            continue
        sizes[argument.name] = _text(analysis, module, argument.name, size, conditional, argument)
    ordered = {one.name: sizes.get(one.name, "") for one in child.new_arguments}
    return {key: text for key, text in ordered.items() if text}


def _is_recorded(analysis: ClassAnalysis, module: Instance, argument: SizeArgument) -> bool:
    """Whether a size that is None without what it measures has one in every recorded call."""
    assert module.call is not None
    want = wanted(argument.name, argument)
    return analysis.evidence is not None and analysis.evidence.always_given(module.call, want)


def _fact_text(
    analysis: ClassAnalysis, module: Instance, argument: SizeArgument, uses: list[Use]
) -> str:
    """What is passed for a fact of the child's initial call; "" to leave it to its default."""
    assert module.call is not None
    try:
        fact = passed_fact(analysis, argument, uses)
    except Unsure as unsure:
        analysis.problems.append((module.call, unsure.reason))
        if unsure.by_default:
            analysis.unpassed.append((module.info.name, argument.name))
        return ""
    return fact.text if fact is not None else ""


def _text(
    analysis: ClassAnalysis,
    module: Submodule | Instance,
    key: str,
    size: Expr | None,
    conditional: bool,
    argument: SizeArgument | None = None,
) -> str:
    """Text of a size; an unknown one becomes an argument of the class under analysis."""
    assert module.call is not None
    size = with_evidence(analysis, module.call, key, size, argument)
    if size is not None:
        inputs = {name for name in size.names if ex.is_input(name)}
        unsure = inputs if conditional else inputs & _named_by_facts(inputs)
        analysis.optional.update(unsure)
        analysis.required.update(inputs - unsure)
        return size.text
    return _asked(analysis, module, key, conditional, argument)


def _named_by_facts(inputs: set[str]) -> set[str]:
    """Sizes of parameters of which the size itself asks whether they are given, and those facts."""
    asked = {ex.input_of(one)[0] for one in inputs if ex.fact_of(one)}
    return {one for one in inputs if ex.input_of(one)[0] in asked}


def _asked(
    analysis: ClassAnalysis,
    module: Submodule | Instance,
    key: str,
    conditional: bool,
    argument: SizeArgument | None = None,
) -> str:
    """A constructor argument of the class under analysis for a size that nothing tells."""
    assert module.call is not None
    if analysis.root.info.function is not None:
        analysis.problems.append((module.call, UNKNOWN))
        return ""
    if is_in_scope(module):
        return _size_in_scope(analysis, module, argument, conditional)
    where = place_of(analysis, module.call, counted=not conditional)
    if where is None:
        return _size_by_name(analysis, module.call, key, argument, conditional)
    name = f"{where.replace('/', '_')}_{key}"
    analysis.opaque[name] = SizeArgument(
        name,
        argument=argument.argument if argument else _input_of(module, key),
        axis=argument.axis if argument else -1,
        submodule=where
        if argument is None or not argument.submodule
        else f"{where}/{argument.submodule}",
        optional=conditional,
        each=argument.each if argument else None,
        within=argument.within if argument else None,
    )
    return name


def _input_of(module: Submodule | Instance, key: str) -> str | None:
    """The input of a built-in layer that shows a size; None: its first."""
    layer = layer_of(module.symbol) if isinstance(module, Submodule) else None
    return layer.measured.get(key) if layer is not None else None


def _size_in_scope(
    analysis: ClassAnalysis,
    module: Submodule | Instance,
    argument: SizeArgument | None,
    conditional: bool,
) -> str:
    """An argument for a size that a scope function needs, named for the submodule that shows it."""
    assert isinstance(module, Instance)
    assert argument is not None
    shown = shown_at(analysis, module, argument)
    if shown is None or shown.submodule is None:
        analysis.problems.append((module.call or analysis.root.info.node, UNKNOWN))
        return ""
    key = "in_features" if argument.axis == -1 else argument.name
    name = f"{shown.submodule.replace('/', '_')}_{key}"
    asked = replace(shown, name=name, optional=conditional)
    if analysis.opaque.setdefault(name, asked) != asked:
        analysis.problems.append((module.call or analysis.root.info.node, UNKNOWN))
    return name


def _size_by_name(
    analysis: ClassAnalysis,
    call: ast.Call,
    key: str,
    argument: SizeArgument | None,
    conditional: bool,
) -> str:
    """An argument that holds this size of every submodule whose name only ``__init__`` knows."""
    within = path_in_loop(analysis, call)
    if within is None:
        text = f"{key} of this submodule is needed where its path below an attribute is not known"
        analysis.problems.append((call, text))
    stem = f"{within.replace('/', '_')}_{key}" if within else key
    name = f"{stem}_of"
    while name in {one.name for one in analysis.root.info.fields}:
        name = f"input_{name}"
    axis = argument.axis if argument else -1
    known = analysis.opaque.get(name)
    optional = conditional and (known is None or known.optional)
    analysis.opaque[name] = SizeArgument(
        name, axis=axis, each=key, within=within or None, optional=optional
    )
    if argument is not None and argument not in (
        *_NOT_FIRST.values(),
        _WHOLE,
    ):  # a class may leave out what needs the size
        return f"({name} or {{}}).get({SCOPE_NAME})"
    return f"{name}[{SCOPE_NAME}]"
