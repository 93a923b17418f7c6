"""What may change a local in place without a word: ``heapq.heappush(ws, 3)``, ``t()``, ``push = ws.append``.

Only of what the method makes itself: its own lists and dicts, objects whose methods change them
(``random.Random(0)``, a counter of the project). Where such a statement stands in ``__init__`` as well, the two run alike.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from nnx_migrate.rewrite.classes.reading.changes import CHANGING, holders
from nnx_migrate.rewrite.classes.reading.objects import changing_method, plain_class
from nnx_migrate.source.bindings import bindings_below, target_names
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.walking import each, walk

_DISPLAYS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
_CONTAINERS = frozenset(
    {"list", "dict", "set", "sorted", "bytearray", "deque", "defaultdict", "OrderedDict", "Counter"}
    | {"copy", "deepcopy", "SimpleNamespace"}
)
# Packages whose functions change none of their arguments, and keep no state that their results would share.
_PURE = frozenset(
    {
        "builtins",
        "dataclasses",
        "einops",
        "enum",
        "flax",
        "functools",
        "itertools",
        "jax",
        "jaxtyping",
    }
    | {"logging", "math", "ml_collections", "nnx_migrate", "numpy", "operator", "optax", "typing"}
    | {"collections", "copy", "json", "re", "string", "types", "warnings", "absl", "os", "pathlib"}
)
_IMPURE_MODULES = ("numpy.random.",)
_IMPURE = frozenset(
    {f"builtins.{name}" for name in ("delattr", "eval", "exec", "setattr", "vars")}
    | {f"numpy.{name}" for name in ("copyto", "fill_diagonal", "place", "put", "putmask")}
    | {f"operator.{name}" for name in ("delitem", "iadd", "iconcat", "imul", "ior", "setitem")}
)
_TYPES = frozenset({"bytearray", "deque", "dict", "list", "object", "set"})


@dataclass(frozen=True)
class _Locals:
    """Names that hold what the method makes.

    Attributes:
      made: lists, dicts, objects: what a function may change that is given them.
      objects: those whose methods, or calls, change them.
    """

    made: frozenset[str]
    objects: frozenset[str]


def effects_on(
    project: Project, scope: Scope, method: ast.FunctionDef
) -> Mapping[str, tuple[ast.AST, ...]]:
    """Locals of a method, with the places that may change them and do not look like it."""
    own = _own(project, scope, method)
    found: dict[str, list[ast.AST]] = {}
    if not own.made:
        return {}
    called = {id(one.func) for one in each(method, ast.Call)}
    for node in walk(method):
        for name in _changed(project, scope, node, own, id(node) in called):
            found.setdefault(name, []).append(node)
    return {name: tuple(nodes) for name, nodes in found.items()}


def _own(project: Project, scope: Scope, method: ast.FunctionDef) -> _Locals:
    bindings = [*bindings_below(method)]
    made, objects = set[str](), set[str]()
    for target, value in bindings:
        names = {*target_names(target)}
        if _is_made(value) or (isinstance(value, ast.Call) and _is_numpys(project, scope, value)):
            made |= names
        if isinstance(value, ast.Call) and _makes_state(project, scope, value):
            objects |= names
    made |= objects
    grown = True
    while grown:  # ``ys = xs``
        before = len(made), len(objects)
        for target, value in bindings:
            held = {*holders(value, whole=True)} if isinstance(value, ast.expr) else set()
            made |= {*target_names(target)} if held & made else set()
            objects |= {*target_names(target)} if held & objects else set()
        grown = (len(made), len(objects)) != before
    return _Locals(frozenset(made), frozenset(objects))


def _is_made(value: ast.AST) -> bool:
    """Whether a value is a list, dict or set that is made here."""
    match value:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in _CONTAINERS
        case ast.BinOp(left=left, right=right):
            return _is_made(left) or _is_made(right)
    return isinstance(value, _DISPLAYS)


def _is_numpys(project: Project, scope: Scope, value: ast.Call) -> bool:
    return (project.resolve(value.func, scope) or "").startswith("numpy.")


def _makes_state(project: Project, scope: Scope, value: ast.Call) -> bool:
    """Whether a call makes an object whose methods change it."""
    cls = plain_class(project, scope, value)
    if cls is not None:
        return bool(changing_method(cls))
    symbol = project.resolve(value.func, scope)
    return symbol is not None and project.split(symbol)[0] is None and not _is_pure(symbol)


def _is_pure(symbol: str) -> bool:
    is_impure = symbol in _IMPURE or symbol.startswith(_IMPURE_MODULES)
    return symbol.partition(".")[0] in _PURE and not is_impure


def _changed(
    project: Project, scope: Scope, node: ast.AST, own: _Locals, is_called: bool
) -> Iterator[str]:
    match node:
        case ast.Call(func=function):
            if _may_change_arguments(project, scope, function):
                given = [*node.args, *(one.value for one in node.keywords)]
                yield from {name for one in given for name in holders(one, whole=False)} & own.made
            called = function.value if isinstance(function, ast.Attribute) else function
            if not _is_reading(function):
                yield from {*holders(called, whole=True)} & own.objects
        case ast.Attribute(value=value, attr=attr, ctx=ast.Load()) if (
            attr in CHANGING and not is_called
        ):
            yield from {*holders(value, whole=False)} & own.made


def _is_reading(function: ast.expr) -> bool:
    """Whether a method of an object only reads it: ``q.empty()``."""
    return isinstance(function, ast.Attribute) and function.attr in _READING


_READING = frozenset(
    {"copy", "count", "empty", "full", "get_state", "getstate", "index", "items", "keys"}
)


def _may_change_arguments(project: Project, scope: Scope, function: ast.expr) -> bool:
    """Whether a function is another package's that may change what it is given, or a type's method: ``list.append``.

    Functions of the project are read by `changed_elsewhere`.
    """
    match function:
        case ast.Attribute(value=ast.Name(id=kind), attr=attr) if kind in _TYPES:
            return attr in CHANGING
    symbol = project.resolve(function, scope)
    if symbol is None:
        is_builtin = isinstance(function, ast.Name) and scope.lookup(function.id) is None
        return is_builtin and f"builtins.{ast.unparse(function)}" in _IMPURE
    return project.split(symbol)[0] is None and not _is_pure(symbol)
