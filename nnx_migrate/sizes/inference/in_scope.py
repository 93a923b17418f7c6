"""Sites at which a scope function is called: it builds submodules of the class under analysis."""

from __future__ import annotations

import ast
import re
from dataclasses import replace

from nnx_migrate.abstract.questions import class_name, constant_of
from nnx_migrate.abstract.values import Instance, Submodule
from nnx_migrate.model import SizeArgument
from nnx_migrate.sizes.inference.class_analysis import ClassAnalysis
from nnx_migrate.sizes.inference.nesting import given_name
from nnx_migrate.sizes.inference.order import method_with, number_of, total_of
from nnx_migrate.sizes.result import ClassSizes, Site, SiteKind
from nnx_migrate.sizes.static_parameters import bound_arguments

UNKNOWN = "a size of what a function outside the class builds for it is not known"


def is_in_scope(module: Submodule | Instance) -> bool:
    """Whether a module stands for the call of a scope function."""
    return isinstance(module, Instance) and module.info.function is not None


def function_site(
    analysis: ClassAnalysis, module: Instance, sizes: dict[str, str], condition: str | None
) -> Site:
    """The site of one call of a scope function."""
    assert module.call is not None
    node = module.info.function
    assert node is not None
    function = analysis.interpreter.scope_functions[id(node)]
    bound = bound_arguments(function.function, module.call) or {}
    return Site(
        module.call,
        SiteKind.FUNCTION,
        module.info.name,
        sizes,
        condition=condition,
        scope_arguments={name: bound[name] for name in function.known_parameters if name in bound},
        numbers=numbered_by(analysis.sizes_of(module.info.name)),
    )


def numbered_by(sizes: ClassSizes) -> frozenset[str]:
    """Class names under which Linen counts what a class builds; "" for those that nobody knows."""
    found: set[str] = set()
    for site in sizes.sites.values():
        if site.kind is SiteKind.FUNCTION:
            found |= site.numbers
        elif given_name(site.call) is None:
            found.add(site.class_name or "")
    return frozenset(found)


def numbered_at(analysis: ClassAnalysis, module: Submodule | Instance) -> frozenset[str]:
    """What :func:`numbered_by` says of the scope function whose call a module stands for."""
    assert isinstance(module, Instance)
    return numbered_by(analysis.sizes_of(module.info.name))


def shown_at(
    analysis: ClassAnalysis, module: Instance, argument: SizeArgument
) -> SizeArgument | None:
    """Where, under the caller, the size shows that a function needs: in what submodule's input.

    None when its scope name is not certain: the number may hang on a loop, a condition, or an order.
    """
    sizes = analysis.sizes_of(module.info.name)
    shown = (
        (one, _size_of_parameter(analysis, one, argument, sizes)) for one in sizes.sites.values()
    )
    site, size = next(((one, size) for one, size in shown if size is not None), (None, None))
    name = _scope_name(analysis, module, site, sizes) if site is not None else None
    if size is None or name is None:
        return None
    return replace(size, submodule=f"{name}/{size.submodule}" if size.submodule else name)


def _scope_name(
    analysis: ClassAnalysis, module: Instance, site: Site, sizes: ClassSizes
) -> str | None:
    """Scope name, under the caller, of what a site in a function builds."""
    assert module.call is not None
    if given_name(site.call) is not None:
        return _given_name(module, site.call)
    function = analysis.interpreter.scope_functions[id(module.info.function)].function
    kind = site.class_name or ""
    method = method_with(analysis.root.info.mro, module.call)
    before = None if method is None else number_of(method, _counts(analysis, kind), module.call)
    inner = number_of(function, _counts_of(sizes, kind), site.call)
    return None if before is None or inner is None else f"{kind}_{before + inner}"


def _size_of_parameter(
    analysis: ClassAnalysis, site: Site, argument: SizeArgument, sizes: ClassSizes
) -> SizeArgument | None:
    """Which size of what a site builds is one that comes from a parameter of its function."""
    if parameter_axes(site, argument, sizes):
        return SizeArgument("", axis=argument.axis)
    if site.kind is not SiteKind.CLASS or argument.argument is None or site.symbol is None:
        return None
    needed = analysis.sizes_of(site.symbol).new_arguments
    arguments = [one for one in needed if site.sizes.get(one.name) == argument.name]
    plain = [one for one in arguments if one.fact is None]
    same = [one for one in plain if one.method == argument.method and one.axis == argument.axis]
    return same[0] if same else None


def _given_name(module: Instance, call: ast.Call) -> str | None:
    """The one name that a function gives to what a call in it builds; None when it may vary."""
    built = [use.module for use in module.records.get(id(call), ())]
    names = {constant_of(one.arguments.get("name")) for one in built if isinstance(one, Submodule)}
    name = names.pop() if len(names) == 1 else None
    return name if isinstance(name, str) else None


def parameter_axes(site: Site, argument: SizeArgument, sizes: ClassSizes) -> tuple[int, ...]:
    """The last axes of a layer's input that are a size which comes from a parameter of its function.

    A whole shape is shown by one that reads its last axes, if nothing else reads any of it.
    """
    text = site.sizes.get("in_features", "")
    if site.kind is not SiteKind.LAYER or argument.argument is None:
        return ()
    if argument.axis == -1:
        return (-1,) if text == argument.name else ()
    axes = [int(one) for one in re.findall(rf"\b{argument.name}\[(-\d+)\]", text)]
    texts = [one for other in sizes.sites.values() for one in other.sizes.values()]
    texts += [*sizes.dims.values(), *(sizes.full_shapes.values())]
    read = [one for one in texts if re.search(rf"\b{argument.name}\b", one)]
    return tuple(axes) if axes == [*range(-len(axes), 0)] and read == [text] else ()


def _counts(analysis: ClassAnalysis, kind: str) -> dict[int, int | None]:
    """How many submodules of a class each call of the class under analysis numbers."""
    found: dict[int, int | None] = {}
    for key, one in analysis.interpreter.submodules.items():
        assert one.call is not None
        if isinstance(one, Instance) and is_in_scope(one):
            found[key] = _count_at(analysis, one, kind)
        else:
            counted = class_name(one) in (kind, "") and given_name(one.call) is None
            found[key] = int(counted) if class_name(one) else None
    return found


def _count_at(analysis: ClassAnalysis, module: Instance, kind: str) -> int | None:
    """How many of a class one call of a scope function numbers."""
    numbers = numbered_at(analysis, module)
    if "" in numbers or kind not in numbers:
        return None if "" in numbers else 0
    function = analysis.interpreter.scope_functions[id(module.info.function)].function
    return total_of(function, _counts_of(analysis.sizes_of(module.info.name), kind))


def _counts_of(sizes: ClassSizes, kind: str) -> dict[int, int | None]:
    """The same for what a function builds."""
    found: dict[int, int | None] = {}
    for key, site in sizes.sites.items():
        if site.kind is SiteKind.FUNCTION:
            found[key] = None if {kind, ""} & site.numbers else 0
        elif given_name(site.call) is not None:
            found[key] = 0
        else:
            found[key] = int(site.class_name == kind) if site.class_name else None
    return found
