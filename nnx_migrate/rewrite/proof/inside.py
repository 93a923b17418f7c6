"""Attributes of bound modules that code reads, and whether an explicit module has them for Linen's callers.

Code around an explicit class sees a lazy module, and what it finds inside of that (`linen.core.inside`)
can be called, applied to other variables and read further. A submodule that is handed on, returned or
asked for more of Linen's interface needs the class to be lazy.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from nnx_migrate.constructs import is_linen
from nnx_migrate.rewrite.proof.graph import Graph
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.parents import Parents
from nnx_migrate.source.project import Module, Project, Scope
from nnx_migrate.source.walking import walk

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_LOOKS = frozenset({"bool", "hasattr", "id", "isinstance", "print", "repr", "str", "type"})
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
_ARRAYS = frozenset({"jax", "math", "numpy"})  # packages without modules
_GIVING = frozenset({"apply", "init", "init_with_output", "lazy_init"})
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
_INTERFACE = frozenset(
    "bind clone copy get_variable has_rng has_variable init init_with_output is_initializing "  # noqa: SIM905
    "is_mutable_collection lazy_init make_rng module_paths name param parent path perturb put_variable "
    "scope setup sow tabulate unbind variable".split()
)


@dataclass(frozen=True)
class Read:
    """An attribute that is read of what may be a bound module.

    Attributes:
      carried: whether what is done with it works inside of explicit modules.
      beside: what else the code reads of that module each time; only what has all of it can be meant.
      classes: the classes that the module is of, where that is known.
    """

    word: str
    path: str
    line: int
    carried: bool
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
    for module in project.modules.values():
        calls = [one for one in module.nodes if _gives_bound(project, module, one)]
        for call in calls:
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
            beside = _always_read(one) if isinstance(one, _FUNCTIONS) else frozenset()
            for read, node in _in(project, module, [one], explicit):
                direct = _is_name(node.value, _first(one))
                yield replace(read, beside=beside) if direct else read
        return
    key = graph.at(module.path, call.lineno)  # it may be handed anywhere
    for one in {key, *graph.names.get(key, ())} if key is not None else ():
        home = project.modules[one[0]]
        for read, _ in _in(project, home, graph.statements.get(one, ()), explicit):
            yield read


def _in(
    project: Project, module: Module, nodes: Iterable[ast.AST], explicit: frozenset[int]
) -> Iterator[tuple[Read, ast.Attribute]]:
    parents = _parents(module)
    todo = [*nodes]
    while todo:
        node = todo.pop()
        if id(node) in explicit:
            continue
        todo.extend(ast.iter_child_nodes(node))
        if not isinstance(node, ast.Attribute) or _is_self(node.value):
            continue
        if not _is_no_module(project, module, node.value, parents):
            carried = _is_carried(project, module, node)
            made = _made_of(project, node.value, parents)
            yield Read(node.attr, module.path, node.lineno, carried, classes=made), node


# ---- where bound modules are


def _gives_bound(project: Project, module: Module, node: ast.AST) -> bool:
    """Whether a call gives code a bound module: ``bind``, ``apply(method=function)``, ``nn.apply``."""
    match node:
        case ast.Call(func=ast.Attribute(attr="bind", value=owner)):
            return not _is_signature(owner, module)
        case ast.Call(func=ast.Attribute(attr=name) as function) if name in _GIVING:
            given = [one.value for one in node.keywords if one.arg == "method"]
            if any(not isinstance(one, ast.Constant | ast.Attribute) for one in given):
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
                for one in module.nodes
                if isinstance(one, ast.Assign)
                and any(isinstance(t, ast.Name) and t.id == name for t in one.targets)
            ]
            return bool(values) and all(
                not isinstance(one, ast.Name) and _is_signature(one, module) for one in values
            )
    return False


def _readers(project: Project, module: Module, call: ast.Call) -> list[ast.AST] | None:
    """The code that reads the bound modules of a call; None where they may get anywhere."""
    parents = _parents(module)
    if isinstance(call.func, ast.Attribute) and call.func.attr == "bind":
        above = parents.above(call)
        return [above[-2]] if len(above) > 1 and _is_carried(project, module, call) else None
    given = [one.value for one in call.keywords if one.arg == "method"] or call.args[:1]
    functions = _functions(module, given[0]) if given else []
    for function in functions:
        first = _first(function)
        loads = (one for one in walk(function) if isinstance(one, ast.Name) and one.id == first)
        if first is None or not all(_is_carried(project, module, one) for one in loads):
            return None
    return [*functions] or None


def _first(function: ast.AST) -> str | None:
    """The first parameter of a function."""
    if not isinstance(function, _FUNCTIONS):
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
        if isinstance(node, ast.Attribute) and _is_name(node.value, _first(function)):
            found.add(node.attr)
    return frozenset(found)


def _made_of(project: Project, node: ast.expr, parents: Parents) -> frozenset[str] | None:
    """The classes of which ``self.part`` is made in a Linen class, where they are plain."""
    match node:
        case ast.Attribute(value=ast.Name(id="self")):
            cls = next((one for one in parents.above(node) if isinstance(one, ast.ClassDef)), None)
            info = project.by_node.get(id(cls)) if cls is not None else None
        case _:
            return None
    if info is None or info.name not in project.linen or node.attr in {f.name for f in info.fields}:
        return None
    found: set[str] = set()
    # A subclass may set it, too.
    owners = {
        id(o): o
        for one in project.linen.values()
        if any(o is info for o in one.mro)
        for o in one.mro
    }
    for owner in owners.values():
        if any(_is_name(one, "setattr") for one in walk(owner.node) if isinstance(one, ast.Name)):
            return None
        for method in owner.methods.values():
            for value in _assigned(method).get(f"self.{node.attr}", ()):
                called = value.func if isinstance(value, ast.Call) else None
                symbol = project.resolve(called, owner.scope) if called is not None else None
                if symbol is None or symbol not in project.linen:
                    return None
                found.add(symbol)
    return frozenset(found) or None


def _has_all(cls: ClassInfo, names: frozenset[str]) -> bool:
    """Whether modules of a class may have attributes of these names."""
    found = {one.name for one in cls.fields}
    for owner in cls.mro:
        for node in walk(owner.node):
            match node:
                case ast.FunctionDef(name=name) | ast.Attribute(attr=name, ctx=ast.Store()):
                    found.add(name)
                case ast.Name(id="setattr" | "__getattr__"):
                    return True
                case ast.Name(id=name, ctx=ast.Store()):
                    found.add(name)
    return (
        names <= found | _INTERFACE | {"apply", "variables", "__getattr__"}
        or "__getattr__" in found
    )


def _functions(module: Module, given: ast.expr) -> list[_Function]:
    """The functions of the file that an argument may be."""
    if isinstance(given, ast.Lambda):
        return [given]
    if not isinstance(given, ast.Name):
        return []
    bound = [one for one in module.nodes if isinstance(one, ast.Name) and one.id == given.id]
    named = [one for one in module.nodes if isinstance(one, ast.arg) and one.arg == given.id]
    if named or any(not isinstance(one.ctx, ast.Load) for one in bound):
        return []
    every = (one for one in module.nodes if isinstance(one, ast.FunctionDef))
    return [one for one in every if one.name == given.id]


def _is_no_module(project: Project, module: Module, node: ast.expr, parents: Parents) -> bool:
    """Whether an expression is no bound module: of another library, or said to be something else."""
    symbol = project.resolve(node, Scope(module))
    if symbol is not None and project.split(symbol)[0] is None and not _is_bound(node, parents):
        return True
    match node:
        case ast.Attribute(value=ast.Name(id="self"), attr=name):
            cls = next((one for one in parents.above(node) if isinstance(one, ast.ClassDef)), None)
            info = project.by_node.get(id(cls)) if cls is not None else None
            fields = {one.name: one.annotation for one in info.fields} if info is not None else {}
            if info is not None and name in fields:
                return _is_other_class(project, info.scope, fields[name])
    return False


def _is_bound(node: ast.expr, parents: Parents) -> bool:
    """Whether a function around binds the first name of an expression itself."""
    while isinstance(node, ast.Attribute):
        node = node.value
    if not isinstance(node, ast.Name):
        return True
    return any(
        (isinstance(one, ast.arg) and one.arg == node.id)
        or (isinstance(one, ast.Name) and one.id == node.id and not isinstance(one.ctx, ast.Load))
        for function in parents.above(node)
        if isinstance(function, _FUNCTIONS)
        for one in walk(function)
    )


def _is_other_class(project: Project, scope: Scope, annotation: ast.expr) -> bool:
    """Whether an annotation names a class of the project, or a builtin, that is no module.

    A file that has nothing to do with Flax is not read: none of its classes is a module.
    """
    symbol = project.resolve(annotation, scope)
    if symbol is None:
        return isinstance(annotation, ast.Name) and hasattr(builtins, annotation.id)
    root = symbol.partition(".")[0]
    if root in _ARRAYS:
        return True
    is_own = any(name.partition(".")[0] == root for name in project.modules)
    return (is_own and symbol not in project.linen and project.definition(symbol) is None) or (
        symbol in project.classes and symbol not in project.linen
    )


def plain_members(project: Project, cls: ClassInfo) -> set[str]:
    """Attributes that methods set to numbers, strings and the like, worked out of the fields."""
    found: dict[str, bool] = {}
    for owner in cls.mro:
        for method in owner.methods.values():
            values = _assigned(method)
            for node in walk(method):
                match node:
                    case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                        given = values.get(f"self.{name}", [None])
                        plain = all(_is_plain(project, owner, values, one) for one in given)
                        found[name] = found.get(name, True) and plain
    return {name for name, plain in found.items() if plain}


def _assigned(method: ast.FunctionDef) -> dict[str, list[ast.expr | None]]:
    """What the names of a method, and the attributes of self, are assigned; None: something else."""
    found: dict[str, list[ast.expr | None]] = {}
    plainly: set[int] = set()
    for node in walk(method):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
            if isinstance(target, ast.Name | ast.Attribute):
                plainly.add(id(target))
                found.setdefault(ast.unparse(target), []).append(node.value)
    for node in walk(method):
        if isinstance(node, ast.Name | ast.Attribute) and id(node) not in plainly:
            if not isinstance(node.ctx, ast.Load):
                found.setdefault(ast.unparse(node), []).append(None)
        elif isinstance(node, ast.arg) and node.arg != "self":
            found.setdefault(node.arg, []).append(None)
    return found


def _is_plain(
    project: Project,
    cls: ClassInfo,
    values: dict[str, list[ast.expr | None]],
    node: ast.AST | None,
    depth: int = 6,
) -> bool:
    """Whether an expression gives no module and no variable."""
    if node is None or depth == 0:
        return False
    if isinstance(node, ast.Name | ast.Attribute):
        text = ast.unparse(node)
        if text in values:
            return all(_is_plain(project, cls, values, one, depth - 1) for one in values[text])
        if isinstance(node, ast.Attribute) and not _is_self(node.value):
            return _is_plain(project, cls, values, node.value, depth - 1)
        if isinstance(node, ast.Attribute):
            kinds = [one.annotation for one in cls.fields if one.name == node.attr]
            return bool(kinds) and _is_other_class(project, cls.scope, kinds[0])
        symbol = project.resolve(node, cls.scope)
        return hasattr(builtins, node.id) if symbol is None else project.split(symbol)[0] is None
    if isinstance(node, ast.Call):
        symbol = project.resolve(node.func, cls.scope)
        head = (symbol or "").partition(".")[0]
        builtin = (
            isinstance(node.func, ast.Name) and symbol is None and hasattr(builtins, node.func.id)
        )
        if not builtin and head not in _ARRAYS:
            return False
    if isinstance(node, ast.Lambda | ast.Starred | ast.NamedExpr | ast.Await):
        return False
    parts = [one for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr | ast.keyword)]
    return all(_is_plain(project, cls, values, one, depth) for one in parts)


def _is_self(node: ast.expr) -> bool:
    return _is_name(node, "self")


def _is_name(node: ast.expr, name: str | None) -> bool:
    return isinstance(node, ast.Name) and node.id == name


# ---- what is done with what is read


def _is_carried(project: Project, module: Module, node: ast.AST, depth: int = 8) -> bool:
    """Whether code only calls, reads, applies and looks at a value."""
    parents = _parents(module)
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
            return name not in _INTERFACE
        case ast.Call(func=function) if function is node:
            hands = isinstance(node, ast.Attribute) and node.attr in _handing(project)
            return not hands or _is_carried(project, module, parent, depth - 1)
        case ast.Call(func=ast.Name(id=name)) if name in _LOOKS:
            return True
        case ast.IfExp(test=test) if test is node:
            return True
        case ast.Subscript() | ast.BoolOp() | ast.IfExp():
            return _is_carried(project, module, parent, depth - 1)
        case ast.Assign(targets=[ast.Name(id=name)]):
            around = _function(parents, node)
            loads = walk(around) if around is not None else ()
            named = [one for one in loads if isinstance(one, ast.Name) and one.id == name]
            return bool(named) and all(
                _is_carried(project, module, one, depth - 1) for one in named
            )
        case ast.Return():
            method = _function(parents, node)
            is_method = isinstance(parents.of(method) if method is not None else None, ast.ClassDef)
            return (
                is_method
                and isinstance(method, ast.FunctionDef)
                and all(
                    isinstance(_parents(home).of(one), ast.Call)
                    and _is_carried(project, home, one, depth - 1)
                    for home, one in _attributes(project, method.name)
                )
            )
    return isinstance(parent, _USES)


def _function(parents: Parents, node: ast.AST) -> _Function | None:
    """The function around a node."""
    return next((one for one in parents.above(node) if isinstance(one, _FUNCTIONS)), None)


@lru_cache(maxsize=512)
def _attributes(project: Project, name: str) -> tuple[tuple[Module, ast.Attribute], ...]:
    """Every place that reads an attribute of a name."""
    return tuple(
        (module, one)
        for module in project.modules.values()
        for one in module.nodes
        if isinstance(one, ast.Attribute) and one.attr == name
    )


@lru_cache(maxsize=2)
def _handing(project: Project) -> frozenset[str]:
    """Methods of Linen classes that return attributes of their module: submodules, maybe."""
    return frozenset(
        name
        for cls in project.linen.values()
        for name, method in cls.methods.items()
        if any(isinstance(one, ast.Return) and _hands(method, one.value) for one in walk(method))
    )


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
            given = _assigned(method).get(name, [])
            parts = [one for one in given if one is not None and not _holds(one, name)]
        case _:
            return False
    return any(_hands(method, one, depth - 1) for one in parts)


def _holds(node: ast.expr, name: str) -> bool:
    """Whether a name is read in an expression: ``x = x.T``."""
    return any(isinstance(one, ast.Name) and one.id == name for one in walk(node))


@lru_cache(maxsize=256)
def _parents(module: Module) -> Parents:
    return Parents(module.tree)
