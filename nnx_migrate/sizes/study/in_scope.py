"""Sites at which a scope function is called: it builds submodules of the class under study."""

from __future__ import annotations

import ast

from nnx_migrate.model import SizeArgument
from nnx_migrate.sizes.given import bound_arguments
from nnx_migrate.sizes.result import ClassSizes, Site, SiteKind
from nnx_migrate.sizes.study.study import Study
from nnx_migrate.sizes.values import Instance, Submodule, class_name

UNKNOWN = "a size of what a function outside the class builds for it is not known"


def is_in_scope(module: Submodule | Instance) -> bool:
    """Whether a module stands for the call of a scope function."""
    return isinstance(module, Instance) and module.info.function is not None


def function_site(
    study: Study, module: Instance, sizes: dict[str, str], reached: str | None
) -> Site:
    """The site of one call of a scope function."""
    assert module.call is not None
    node = module.info.function
    assert node is not None
    given = study.interpreter.scope_functions[id(node)].given
    bound = bound_arguments(node, module.call) or {}
    return Site(
        module.call,
        SiteKind.FUNCTION,
        module.info.name,
        sizes,
        reached=reached,
        given={name: bound[name] for name in given if name in bound},
        numbers=numbered_by(study.sizes_of(module.info.name)),
    )


def numbered_by(sizes: ClassSizes) -> frozenset[str]:
    """Class names under which Linen counts what a class builds; "" for those that nobody knows."""
    found: set[str] = set()
    for site in sizes.sites.values():
        if site.kind is SiteKind.FUNCTION:
            found |= site.numbers
        elif _explicit(site.call) is None:
            found.add(site.class_name or "")
    return frozenset(found)


def numbered_at(study: Study, module: Submodule | Instance) -> frozenset[str]:
    """What :func:`numbered_by` says of the scope function whose call a module stands for."""
    assert isinstance(module, Instance)
    return numbered_by(study.sizes_of(module.info.name))


def shown_at(study: Study, module: Instance, argument: SizeArgument) -> str | None:
    """Scope name of a submodule that a function builds from a size argument, under its caller.

    None when its number hangs on a loop, a condition or another function before it.
    """
    assert module.call is not None
    function = study.interpreter.scope_functions[id(module.info.function)]
    sizes = study.sizes_of(module.info.name)
    for site in sizes.sites.values():
        shows = argument.argument is not None and any(
            text == argument.name or text.startswith(f"{argument.name}[")
            for text in (one.lstrip("(") for one in site.sizes.values())
        )
        if shows and site.kind is SiteKind.LAYER:
            named = _explicit(site.call)
            if named is None:
                inner = _number(function.node, sizes, site)
                before = _number_before(study, module, site.class_name or "")
                known = inner is not None and before is not None
                return f"{site.class_name}_{(inner or 0) + (before or 0)}" if known else None
            passed = bound_arguments(function.node, module.call) or {}
            value = passed.get(named.id) if isinstance(named, ast.Name) else named
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                return value.value
    return None


def _number(function: ast.FunctionDef, sizes: ClassSizes, site: Site) -> int | None:
    """How many submodules of the class a function builds before a site."""
    kind, number = site.class_name or "", 0
    for other in sizes.sites.values():
        if other is site:
            return number
        counted = other.numbers if other.kind is SiteKind.FUNCTION else {other.class_name or ""}
        if not {kind, ""} & counted or _explicit(other.call) is not None:
            continue
        if not _excludes(function, other.call, site.call):
            if other.kind is SiteKind.FUNCTION or _may_repeat(function, other.call, site.call):
                return None
            number += 1
    return None


def _number_before(study: Study, module: Instance, kind: str) -> int | None:
    """How many submodules of a class are built before the call of a function."""
    number = 0
    assert module.call is not None
    method = _method_of(study, module.call)
    for other in study.interpreter.built.values():
        if other.call is module.call:
            return number
        assert other.call is not None
        counted = numbered_at(study, other) if is_in_scope(other) else {class_name(other)}
        if not {kind, ""} & counted or (not is_in_scope(other) and _explicit(other.call)):
            continue
        if method is None or not _excludes(method, other.call, module.call):
            if method is None or is_in_scope(other):
                return None
            if _may_repeat(method, other.call, module.call):
                return None
            number += 1
    return None


def _method_of(study: Study, call: ast.Call) -> ast.FunctionDef | None:
    methods = (one for cls in study.root.info.mro for one in cls.methods.values())
    return next((one for one in methods if any(node is call for node in ast.walk(one))), None)


_REPEATS = (ast.For, ast.While, ast.comprehension, ast.If, ast.IfExp)


def _around(function: ast.FunctionDef, call: ast.Call) -> list[ast.AST]:
    return [one for one in ast.walk(function) if any(node is call for node in ast.walk(one))]


def _may_repeat(function: ast.FunctionDef, one: ast.Call, other: ast.Call) -> bool:
    """Whether a loop or condition that is not around ``other`` decides how often ``one`` runs."""
    shared = _around(function, other)
    loops = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, *_REPEATS)
    return any(isinstance(node, loops) and node not in shared for node in _around(function, one))


def _excludes(function: ast.FunctionDef, one: ast.Call, other: ast.Call) -> bool:
    """Whether the two calls stand in different branches of a condition."""
    for node in ast.walk(function):
        if isinstance(node, ast.If):
            sides = [
                [n for part in body for n in ast.walk(part)] for body in (node.body, node.orelse)
            ]
            where = [[any(n is call for n in side) for side in sides] for call in (one, other)]
            if where in ([[True, False], [False, True]], [[False, True], [True, False]]):
                return True
    return False


def _explicit(call: ast.Call) -> ast.expr | None:
    """What ``name=`` gives, unless that is None."""
    values = [one.value for one in call.keywords if one.arg == "name"]
    return next((v for v in values if not (isinstance(v, ast.Constant) and v.value is None)), None)
