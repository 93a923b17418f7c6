"""Attributes of bound modules that code reads, and whether an explicit module has them for Linen's callers.

Code around an explicit class sees a lazy module, and what it finds inside of that (`linen.core.inside`)
can be called, applied to other variables and read further. A submodule that is handed on, returned or
asked for more of Linen's interface needs the class to be lazy.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from nnx_migrate.constructs import is_linen
from nnx_migrate.rewrite.proof.graph import Graph
from nnx_migrate.rewrite.proof.members import classes_of, made_of
from nnx_migrate.rewrite.proof.value_uses import INTERFACE, is_supported
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.modules import FUNCTIONS
from nnx_migrate.source.names import FunctionNode
from nnx_migrate.source.other_values import is_no_module
from nnx_migrate.source.project import Module, Project, Scope
from nnx_migrate.source.walking import children, each, is_name, is_self, walk

# What need not run with the statement that it stands in.
_NOT_ALWAYS = (
    ast.IfExp,
    ast.BoolOp,
    ast.Lambda,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
)
_GIVING = frozenset({"apply", "init", "init_with_output", "lazy_init"})


@dataclass(frozen=True)
class Read:
    """An attribute that is read of what may be a bound module.

    Attributes:
      is_supported: whether what is done with it works inside of explicit modules.
      beside: what else the code reads of that module each time; only what has all of it can be meant.
      classes: the classes that the module is of, where that is known.
    """

    word: str
    path: str
    line: int
    is_supported: bool
    beside: frozenset[str] = frozenset()
    classes: frozenset[str] | None = None

    def may_mean(self, cls: ClassInfo) -> bool:
        """Whether a module of a class may be read here."""
        if self.classes is not None and cls.name not in self.classes:
            return False
        return _has_all(cls, self.beside)


def reads(
    project: Project, graph: Graph, lazy: Iterable[ClassInfo], explicit: frozenset[int]
) -> Iterator[Read]:
    """The attributes that code around explicit classes reads of what may be a bound module.

    Args:
      lazy: Linen classes that are not explicit: they may hold explicit ones.
      explicit: ids of nodes whose inside is explicit.
    """
    for module, call in _bound_calls(project):
        yield from _around(project, graph, module, call, explicit)
    for cls in lazy:
        for read, _ in _in(project, cls.module, [cls.node], explicit):
            yield read


def _around(
    project: Project, graph: Graph, module: Module, call: ast.AST, explicit: frozenset[int]
) -> Iterator[Read]:
    """What code reads of the bound modules that a call gives it."""
    assert isinstance(call, ast.Call)
    readers = _readers(project, module, call)
    if readers is not None:
        for one in readers:
            beside = _always_read(one) if isinstance(one, FUNCTIONS) else frozenset()
            for read, node in _in(project, module, [one], explicit):
                if is_name(node.value, _first(one)):
                    yield replace(read, beside=beside)
                else:
                    owners = _owners(project, node.value, _first(one), beside)
                    yield replace(read, classes=owners if read.classes is None else read.classes)
        return
    key = graph.at(module.path, call.lineno)  # it may be handed anywhere
    for one in {key, *graph.names.get(key, ())} if key is not None else ():
        home = project.modules[one[0]]
        for read, _ in _in(project, home, graph.statements.get(one, ()), explicit):
            yield read


def _in(
    project: Project, module: Module, nodes: Iterable[ast.AST], explicit: frozenset[int]
) -> Iterator[tuple[Read, ast.Attribute]]:
    todo = [*nodes]
    while todo:
        node = todo.pop()
        if id(node) in explicit:
            continue
        todo.extend(children(node))
        if not isinstance(node, ast.Attribute) or is_self(node.value):
            continue
        if not is_no_module(project, module, node.value):
            carried = is_supported(project, module, node)
            made = classes_of(project, module, node.value)
            yield Read(node.attr, module.path, node.lineno, carried, classes=made), node


# ---- where bound modules are


@lru_cache(maxsize=1)  # every attempt of a run asks
def _bound_calls(project: Project) -> tuple[tuple[Module, ast.AST], ...]:
    """The calls that give code a bound module."""
    return tuple(
        (module, one)
        for module in project.modules.values()
        for one in module.nodes
        if _gives_bound(project, module, one)
    )


def _gives_bound(project: Project, module: Module, node: ast.AST) -> bool:
    """Whether a call gives code a bound module: ``bind``, ``apply(method=function)``, ``nn.apply``."""
    match node:
        case ast.Call(func=ast.Attribute(attr="bind", value=owner)):
            return not _is_signature(owner, module)
        case ast.Call(func=ast.Attribute(attr=name) as function) if name in _GIVING:
            methods = [one.value for one in node.keywords if one.arg == "method"]
            if any(not isinstance(one, ast.Constant | ast.Attribute) for one in methods):
                return True
            return is_linen(project.resolve(function, Scope(module)))
        case ast.Call(func=ast.Name() as function):
            symbol = project.resolve(function, Scope(module)) or ""
            return is_linen(symbol) and symbol.rpartition(".")[2] in _GIVING
    return False


def _is_signature(node: ast.expr, module: Module) -> bool:
    """``inspect.signature(function).bind(...)``, also of a name for it."""
    match node:
        case ast.Call(func=ast.Attribute(attr="signature") | ast.Name(id="signature")):
            return True
        case ast.Name(id=name):
            values = [
                one.value
                for one in each(module.tree, ast.Assign)
                if any(is_name(t, name) for t in one.targets)
            ]
            return bool(values) and all(
                not isinstance(one, ast.Name) and _is_signature(one, module) for one in values
            )
    return False


def _readers(project: Project, module: Module, call: ast.Call) -> list[ast.AST] | None:
    """The code that reads the bound modules of a call; None where they may get anywhere."""
    parents = module.parents
    if isinstance(call.func, ast.Attribute) and call.func.attr == "bind":
        above = parents.above(call)
        return [above[-2]] if len(above) > 1 and is_supported(project, module, call) else None
    methods = [one.value for one in call.keywords if one.arg == "method"] or call.args[:1]
    functions = _functions(module, methods[0]) if methods else []
    for function in functions:
        first = _first(function)
        loads = (one for one in each(function, ast.Name) if one.id == first)
        if first is None or not all(is_supported(project, module, one) for one in loads):
            return None
    return [*functions] or None


def _first(function: ast.AST) -> str | None:
    """The first parameter of a function."""
    if not isinstance(function, FUNCTIONS):
        return None
    return next((one.arg for one in (*function.args.posonlyargs, *function.args.args)), None)


def _always_read(function: ast.AST) -> frozenset[str]:
    """The attributes of its first parameter that every run of a function reads."""
    found: set[str] = set()
    todo: list[ast.AST] = []
    if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        for statement in function.body:
            if not isinstance(statement, ast.Assign | ast.Expr | ast.Return | ast.AugAssign):
                break  # from here on not everything runs each time
            todo.append(statement)
    elif isinstance(function, ast.Lambda):
        todo.append(function.body)
    while todo:
        node = todo.pop()
        if isinstance(node, _NOT_ALWAYS):
            continue
        todo.extend(ast.iter_child_nodes(node))
        if isinstance(node, ast.Attribute) and is_name(node.value, _first(function)):
            found.add(node.attr)
    return frozenset(found)


def _owners(
    project: Project, node: ast.expr, first: str | None, beside: frozenset[str]
) -> frozenset[str] | None:
    """The classes of ``module.model.decoder``, where ``module`` has all of ``beside``."""
    if is_name(node, first):
        return frozenset(name for name, cls in project.linen.items() if _has_all(cls, beside))
    if not isinstance(node, ast.Attribute):
        return None
    around = _owners(project, node.value, first, beside)
    if around is None:
        return None
    found: set[str] = set()
    for name in around:
        cls = project.linen[name]
        if not _has_all(cls, frozenset({node.attr})):
            continue
        made = made_of(project, cls, node.attr)
        if made is None:
            return None
        found |= made
    return frozenset(found)


def _has_all(cls: ClassInfo, names: frozenset[str]) -> bool:
    """Whether modules of a class may have attributes of these names."""
    found = _members(cls)
    return found is None or names <= found | INTERFACE | {"apply", "variables", "__getattr__"}


@lru_cache(maxsize=4096)  # every place that reads inside of modules asks
def _members(cls: ClassInfo) -> frozenset[str] | None:
    """The attributes that modules of a class may have; None where those may be any."""
    found = {*cls.field_names}
    for owner in cls.mro:
        for node in walk(owner.node):
            match node:
                case (
                    ast.FunctionDef(name="__getattr__")
                    | ast.Attribute(attr="__getattr__", ctx=ast.Store())
                    | ast.Name(id="setattr" | "__getattr__")
                ):
                    return None
                case ast.FunctionDef(name=name) | ast.Attribute(attr=name, ctx=ast.Store()):
                    found.add(name)
                case ast.Name(id=name, ctx=ast.Store()):
                    found.add(name)
    return frozenset(found)


def _functions(module: Module, argument: ast.expr) -> list[FunctionNode]:
    """The functions of the file that an argument may be."""
    if isinstance(argument, ast.Lambda):
        return [argument]
    if not isinstance(argument, ast.Name):
        return []
    bound = [one for one in each(module.tree, ast.Name) if one.id == argument.id]
    named = [one for one in each(module.tree, ast.arg) if one.arg == argument.id]
    if named or any(not isinstance(one.ctx, ast.Load) for one in bound):
        return []
    every = (one for one in each(module.tree, ast.FunctionDef))
    return [one for one in every if one.name == argument.id]
