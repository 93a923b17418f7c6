"""What code does with a value that it reads inside of a bound module, and whether explicit ones carry it."""

from __future__ import annotations

import ast
from functools import lru_cache

from nnx_migrate.rewrite.proof.members import assigned_in
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Module, Project
from nnx_migrate.source.walking import each, is_name, walk

# What asks for its class gets NNX's: ``isinstance``, ``type`` and ``hasattr`` are none of these.
_LOOKS = frozenset({"bool", "id", "print", "repr", "str"})
# Around a value of which nothing else is kept.
_USES = (
    ast.Expr,
    ast.Compare,
    ast.AugAssign,
    ast.BinOp,
    ast.UnaryOp,
    ast.FormattedValue,
    ast.If,
    ast.While,
    ast.Assert,
)
# What Linen's modules have beside their own members, `apply` and `variables` aside.
INTERFACE = frozenset(
    "bind clone copy get_variable has_rng has_variable init init_with_output is_initializing "  # noqa: SIM905
    "is_mutable_collection lazy_init make_rng module_paths name param parent path perturb put_variable "
    "scope setup sow tabulate unbind variable".split()
)


def is_supported(project: Project, module: Module, node: ast.AST, depth: int = 8) -> bool:
    """Whether code only calls, reads, applies and looks at a value."""
    parents = module.parents
    parent = parents.of(node)
    if isinstance(getattr(node, "ctx", None), ast.Store | ast.Del) or depth == 0:
        return depth > 0
    match parent:
        case ast.Attribute(attr="apply"):
            call = parents.of(parent)
            names = {one.arg for one in call.keywords} if isinstance(call, ast.Call) else {None}
            return (
                isinstance(call, ast.Call) and call.func is parent and not names & {"method", None}
            )
        case ast.Attribute(attr=name):
            return name not in INTERFACE
        case ast.Call(func=function) if function is node:
            hands = isinstance(node, ast.Attribute) and node.attr in _handing(project)
            return not hands or is_supported(project, module, parent, depth - 1)
        case ast.Call(func=ast.Name(id=name)) if name in _LOOKS:
            return True
        case ast.IfExp(test=test) if test is node:
            return True
        case ast.Subscript() | ast.BoolOp() | ast.IfExp():
            return is_supported(project, module, parent, depth - 1)
        case ast.Assign(targets=[ast.Name(id=name)]):
            around = parents.function(node)
            loads = walk(around) if around is not None else ()
            named = [one for one in loads if is_name(one, name)]
            return bool(named) and all(
                is_supported(project, module, one, depth - 1) for one in named
            )
        case ast.Return():
            method = parents.function(node)
            is_method = isinstance(parents.of(method) if method is not None else None, ast.ClassDef)
            return (
                is_method
                and isinstance(method, ast.FunctionDef)
                and all(
                    isinstance(home.parents.of(one), ast.Call)
                    and is_supported(project, home, one, depth - 1)
                    for home, one in _attributes(project, method.name)
                )
            )
    return isinstance(parent, _USES)


@lru_cache(maxsize=512)
def _attributes(project: Project, name: str) -> tuple[tuple[Module, ast.Attribute], ...]:
    """Every place that reads an attribute of a name."""
    return tuple(
        (module, one)
        for module in project.modules.values()
        for one in each(module.tree, ast.Attribute)
        if one.attr == name
    )


def hands_attributes(cls: ClassInfo, name: str) -> bool:
    """Whether a method of a class returns attributes of its module: submodules, maybe."""
    found = cls.find(name)
    return found is not None and _returns_attributes(found[1])


@lru_cache(maxsize=2)
def _handing(project: Project) -> frozenset[str]:
    """Methods of Linen classes that return attributes of their module: submodules, maybe."""
    return frozenset(
        name
        for cls in project.linen.values()
        for name, method in cls.methods.items()
        if _returns_attributes(method)
    )


def _returns_attributes(method: ast.FunctionDef) -> bool:
    return any(isinstance(one, ast.Return) and _hands(method, one.value) for one in walk(method))


def _hands(method: ast.FunctionDef, value: ast.expr | None, depth: int = 6) -> bool:
    match value:
        case _ if depth == 0:
            return True
        case ast.Attribute(value=ast.Name(id="self")):
            return True
        case ast.Attribute(value=inner) | ast.Subscript(value=inner):
            parts = [inner]
        case ast.Tuple(elts=every) | ast.List(elts=every) | ast.BoolOp(values=every):
            parts = every
        case ast.IfExp(body=body, orelse=orelse):
            parts = [body, orelse]
        case ast.Name(id=name):
            assignments = assigned_in(method).get(name, [])
            parts = [one for one in assignments if one is not None and not _holds(one, name)]
        case _:
            return False
    return any(_hands(method, one, depth - 1) for one in parts)


def _holds(node: ast.expr, name: str) -> bool:
    """Whether a name is read in an expression: ``x = x.T``."""
    return any(is_name(one, name) for one in walk(node))
