"""Decorators of a class that keep it for others to build, and give it back as it is.

``def register(cls): REGISTRY[cls.__name__] = cls; return cls``: who takes the class from there builds it
as Linen does, so what is kept is the lazy form of an explicit class.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from copy import copy

from nnx_migrate.rewrite.classes.writing.layout import docstring_of
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.names import positional_names
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.walking import callee_of, each, is_name, walk

_DESCRIBING = frozenset({"__doc__", "__module__", "__name__", "__qualname__"})
_LOOKS = frozenset(
    {"callable", "hasattr", "id", "isinstance", "issubclass", "print", "repr", "str"}
)
_BINDING = frozenset({"classmethod", "staticmethod"})
_PUTS = frozenset({"add", "append", "insert", "setdefault"})


def keeping_decorators(project: Project, cls: ClassInfo) -> list[ast.expr]:
    """The decorators of ``cls`` that are proven to do no more; none where others stand beside them."""
    found = [one for one in cls.node.decorator_list if _keeps(project, cls, one)]
    return found if len(found) == len(cls.node.decorator_list) else []


def _keeps(project: Project, cls: ClassInfo, decorator: ast.expr) -> bool:
    target = callee_of(decorator)
    function = project.function(project.resolve(target, cls.scope))
    bound = 0
    if function is None and isinstance(target, ast.Attribute):
        function, bound = _method(project, target, cls.scope)
    if function is None:
        return False
    either = _either_way(function, bound)
    if either is not None and _leaves_out(decorator, function, bound):
        return _gives_back(either, 0)
    if isinstance(decorator, ast.Call):
        function, bound = _returned_function(function), 0
    return function is not None and _gives_back(function, bound)


def _method(
    project: Project, target: ast.Attribute, scope: Scope
) -> tuple[ast.FunctionDef | None, int]:
    """A method of a class of the project or of a global instance of one, as a plain function, and how
    many of its arguments are bound: ``Registry.register``, ``MODELS.register``."""
    symbol = project.resolve(target.value, scope) or ""
    cls = project.classes.get(symbol)
    instance = project.definition(symbol) if symbol and cls is None else None
    match instance:
        case (home, ast.Call(func=called)):
            cls = project.classes.get(project.resolve(called, Scope(home)) or "")
    found = cls.find(target.attr) if cls is not None and not cls.is_ambiguous else None
    kinds = project.decorators(*found) if found is not None else ()
    if found is None or not _BINDING.issuperset(kinds) or not (kinds or instance):
        return None, 0
    plain = copy(found[1])
    plain.decorator_list = []  # they say what is bound
    return plain, 0 if "staticmethod" in kinds else 1


def _returned_function(function: ast.FunctionDef) -> ast.FunctionDef | None:
    """The function inside of another that every call of that returns."""
    inner = [one for one in function.body if isinstance(one, ast.FunctionDef)]
    if len(inner) != 1 or function.decorator_list:
        return None
    name = inner[0].name
    stored = [
        one
        for one in each(function, ast.Name)
        if one.id == name and not isinstance(one.ctx, ast.Load)
    ]
    inside = {id(one) for one in walk(inner[0])}
    own = [one for one in each(function, ast.Return) if id(one) not in inside]
    return inner[0] if not stored and _all_are(function.body, own, name) else None


def _either_way(function: ast.FunctionDef, bound: int) -> ast.FunctionDef | None:
    """The function inside of another that decorates with and without arguments.

    ``def register(cls=None, *, name=None): ...; return wrap(cls) if cls is not None else wrap``.
    """
    first = next(iter(_parameters(function)[bound:]), None)
    text = docstring_of(function.body)
    match [one for one in function.body if one is not text]:
        case [ast.FunctionDef() as inner, ast.Return(value=ast.IfExp() as either)]:
            test, one, other = either.test, either.body, either.orelse
        case [
            ast.FunctionDef() as inner,
            ast.If(test=test, body=[ast.Return(value=ast.expr() as one)], orelse=[]),
            ast.Return(value=ast.expr() as other),
        ]:
            pass
        case _:
            return None
    is_given = _says_presence(test, first) if first is not None else None
    used = any(name.id == first for name in each(inner, ast.Name))
    if is_given is None or used or function.decorator_list:
        return None
    present, left_out = (one, other) if is_given else (other, one)
    ways = ast.unparse(present), ast.unparse(left_out)
    return inner if ways == (f"{inner.name}({first})", inner.name) else None


def _parameters(function: ast.FunctionDef) -> list[str]:
    return positional_names(function.args)


def _says_presence(test: ast.expr, name: str) -> bool | None:
    """Whether a test holds where an argument is given, or where it is not; None where it says something else."""
    text = ast.unparse(test)
    if text in (f"{name} is not None", f"callable({name})", name):
        return True
    if text in (f"{name} is None", f"not callable({name})", f"not {name}"):
        return False
    return None


def _leaves_out(decorator: ast.expr, function: ast.FunctionDef, bound: int) -> bool:
    """Whether a decorator gives the function nothing for the class: ``@register``, ``@register(name="mlp")``."""
    if not isinstance(decorator, ast.Call):
        return True
    names = {one.arg for one in decorator.keywords}
    return not decorator.args and not names & {None, _parameters(function)[bound]}


def _gives_back(function: ast.FunctionDef, bound: int) -> bool:
    """Whether a function returns its first argument but the bound ones, and beside that keeps and
    describes it."""
    names = _parameters(function)[bound:]
    nodes = list(walk(function))
    others = (ast.Yield, ast.YieldFrom, ast.Nonlocal, ast.Global, ast.Lambda, ast.Await)
    inner = [one for one in nodes[1:] if isinstance(one, ast.FunctionDef | ast.ClassDef)]
    if not names or function.decorator_list or inner or any(isinstance(n, others) for n in nodes):
        return False
    returns = [one for one in nodes if isinstance(one, ast.Return)]
    if not _all_are(function.body, returns, names[0]):
        return False
    fine = {id(one) for node in nodes for one in _harmless(node)}
    uses = (one for one in nodes if is_name(one, names[0]))
    return all(id(one) in fine for one in uses)


def _all_are(body: Sequence[ast.stmt], returns: Sequence[ast.Return], name: str) -> bool:
    """Whether a function ends by a ``return``, and each returns the value of a name."""
    values = (one.value for one in returns)
    return isinstance(body[-1], ast.Return) and all(is_name(one, name) for one in values)


def _harmless(node: ast.AST) -> list[ast.expr]:
    """What a node only looks at, keeps or returns."""
    match node:
        case ast.Return(value=ast.expr() as value):
            return [value]
        case ast.Attribute(value=value, attr=name, ctx=ast.Load()) if name in _DESCRIBING:
            return [value]
        case ast.Assign(targets=targets, value=value):
            return [value] if all(isinstance(one, ast.Subscript) for one in targets) else []
        case ast.Compare(left=left, comparators=others):
            return [left, *others]
        case ast.Call(func=ast.Attribute(attr=name), args=args) if name in _PUTS:
            return list(args)
        case ast.Call(func=ast.Name(id=name), args=args) if name in _LOOKS:
            return list(args)
        case ast.FormattedValue(value=value):
            return [value]
    return []
