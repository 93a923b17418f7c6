"""What may change a local in place without a word: ``heapq.heappush(ws, 3)``, ``t()``, ``push = ws.append``.

Only of what the method makes itself: its own lists and dicts, objects whose methods change them
(``random.Random(0)``, a counter of the project). Where such a statement stands in ``__init__`` as well, the two run alike.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from nnx_migrate.rewrite.classes.reading.objects import changing_method, plain_class
from nnx_migrate.source.bindings import bindings_below, target_names
from nnx_migrate.source.changes import (
    CHANGING,
    CHANGING_OPERATORS,
    changed_at,
    changed_names,
    given_to,
    holders,
)
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.names import FunctionNode, defaults_of, parameter_names
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.walking import each, given_values, is_name, walk

_DISPLAYS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
_CONTAINERS = frozenset(
    "list dict set sorted bytearray deque defaultdict OrderedDict Counter copy deepcopy SimpleNamespace".split()  # noqa: SIM905
)
# Packages whose functions change none of their arguments, and keep no state that their results would share.
_PURE = frozenset(
    "builtins collections copy dataclasses enum functools itertools json logging math operator os pathlib re"  # noqa: SIM905
    " string types typing warnings absl einops flax jax jaxtyping ml_collections nnx_migrate numpy optax".split()
)
_IMPURE_MODULES = ("numpy.random.",)
_IMPURE = frozenset(
    {f"builtins.{name}" for name in ("delattr", "eval", "exec", "setattr", "vars")}
    | {f"numpy.{name}" for name in ("copyto", "fill_diagonal", "place", "put", "putmask")}
    | {f"operator.{name}" for name in CHANGING_OPERATORS}
)
_TYPES = frozenset({"bytearray", "deque", "dict", "list", "object", "set"})
# Methods of objects that read.
_READING = frozenset(
    {"copy", "count", "empty", "full", "get_state", "getstate", "index", "items", "keys"}
)

_LOOKING = frozenset({"id", "isinstance", "len", "print", "repr", "str", "type"})

_Function = FunctionNode | ast.Lambda
Effects = Mapping[str, Sequence[ast.AST]]


def effects_on(project: Project, scope: Scope, cls: ClassInfo, method: ast.FunctionDef) -> Effects:
    """Locals of a method, with the places that may change them and do not look like it."""
    reading = _Reading(project, scope, cls, method)
    found: dict[str, list[ast.AST]] = {}
    for node in walk(method) if reading.mutable_names else ():
        for name in reading.changed_at(node):
            found.setdefault(name, []).append(node)
    return {name: tuple(nodes) for name, nodes in found.items()}


@dataclass(frozen=True)
class _Reading:
    project: Project
    scope: Scope
    cls: ClassInfo
    method: ast.FunctionDef

    # What the method makes -----------------------------------------------------------------

    @cached_property
    def mutable_names(self) -> frozenset[str]:
        """Names of lists, dicts, arrays of NumPy and objects: what may be changed."""
        return self._with_second_names(self._is_made) | self.objects

    @cached_property
    def objects(self) -> frozenset[str]:
        """Names of objects whose methods, or calls, change them."""
        return self._with_second_names(self._makes_state)

    @cached_property
    def _bindings(self) -> tuple[tuple[ast.AST, ast.AST], ...]:
        return tuple(bindings_below(self.method))

    @cached_property
    def _functions(self) -> Mapping[str, _Function]:
        """Local functions by name."""
        return {
            name: value
            for target, value in self._bindings
            if isinstance(value, ast.Lambda | ast.FunctionDef)
            for name in target_names(target)
        }

    @cached_property
    def _contents(self) -> Mapping[str, frozenset[str]]:
        """What objects of the method were given when they were made: ``options = Options(widths)``."""
        return {
            name: frozenset(
                one for arguments in given_values(value) for one in holders(arguments, whole=False)
            )
            for target, value in self._bindings
            if isinstance(value, ast.Call)
            for name in target_names(target)
            if name in self.objects
        }

    @cached_property
    def _origins(self) -> Mapping[str, frozenset[str]]:
        """What a local may be a part of: of ``ws`` and ``both``, where ``for one in both`` and ``both = [ws]``."""
        found: dict[str, set[str]] = {}
        for target, value in self._bindings:
            if isinstance(value, ast.expr):
                for name in target_names(target):
                    found.setdefault(name, set()).update(holders(value, whole=False))
        grew = True
        while grew:
            grew = False
            for origins in found.values():
                more = origins.union(*(found.get(one, ()) for one in origins))
                grew |= len(more) > len(origins)
                origins |= more
        return {name: frozenset(origins) for name, origins in found.items()}

    @cached_property
    def _callees(self) -> frozenset[int]:
        return frozenset(id(one.func) for one in each(self.method, ast.Call))

    def _with_second_names(self, counts: Callable[[ast.AST], bool]) -> frozenset[str]:
        names = {
            one for target, value in self._bindings if counts(value) for one in target_names(target)
        }
        before = -1
        while len(names) != before:  # ``ys = xs``
            before = len(names)
            for target, value in self._bindings:
                if isinstance(value, ast.expr) and names & {*holders(value, whole=True)}:
                    names |= {*target_names(target)}
        return frozenset(names)

    def _is_made(self, value: ast.AST) -> bool:
        match value:
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in _CONTAINERS:
                return True
            case ast.Call(func=function):
                return (self.project.resolve(function, self.scope) or "").startswith("numpy.")
            case (
                ast.BinOp(left=one, right=other)
                | ast.IfExp(body=one, orelse=other)
                | ast.BoolOp(values=[one, other])
            ):
                return self._is_made(one) or self._is_made(other)
            case ast.Subscript(slice=ast.Slice()):
                return True
        return isinstance(value, _DISPLAYS)

    def _makes_state(self, value: ast.AST) -> bool:
        if isinstance(value, ast.FunctionDef | ast.Lambda):
            return not defaults_of(value.args).keys().isdisjoint(self._changed_in(value))
        if not isinstance(value, ast.Call) or self._function(value.func) is not None:
            return False
        cls = plain_class(self.project, self.scope, value)
        if cls is not None:
            return bool(changing_method(cls))
        symbol = self.project.resolve(value.func, self.scope)
        return symbol is not None and self._is_foreign(symbol) and not _is_pure(symbol)

    def _is_foreign(self, symbol: str) -> bool:
        return self.project.split(symbol)[0] is None

    # What changes it -----------------------------------------------------------------------

    def changed_at(self, node: ast.AST) -> Iterator[str]:
        """Names of what a node may change."""
        for name in changed_at(node):
            yield from self.mutable_names & self._origins.get(name, frozenset())
        match node:
            case ast.Call(func=function):
                yield from self.mutable_names & {*self._changed_arguments(node, ())}
                if not self._only_reads(function):  # ``use(counter)``
                    arguments = {
                        name for one in given_values(node) for name in holders(one, whole=True)
                    }
                    yield from self.objects & arguments
                owner = function.value if isinstance(function, ast.Attribute) else function
                if not (isinstance(function, ast.Attribute) and function.attr in _READING):
                    for name in self.objects & {*holders(owner, whole=True)}:
                        yield from {name, *self._contents.get(name, ())}
            case ast.Name(id=name, ctx=ast.Load()) if name in self.objects & self._functions.keys():
                yield name  # ``map(width, ws)``, where ``def width(n, seen=[]): ...``
            case ast.Attribute(value=value, attr=attr, ctx=ast.Load()) if (
                attr in CHANGING and id(node) not in self._callees
            ):
                yield from holders(value, whole=False)

    def _changed_arguments(self, call: ast.Call, inside: tuple[_Function, ...]) -> Iterator[str]:
        """Names that a call may change what it is given of."""
        function = self._function(call.func)
        if function is None:
            if self._may_change_all(call.func):
                yield from (
                    one
                    for arguments in given_values(call)
                    for one in holders(arguments, whole=False)
                )
            return
        if function in inside:
            return
        changed = self._changed_in(function, inside)
        names = [one for one in parameter_names(function) if one != "self"]
        for name, value in given_to(names, call):
            if name in changed:
                yield from holders(value, whole=False)

    def _changed_in(
        self, function: _Function, inside: tuple[_Function, ...] = ()
    ) -> frozenset[str]:
        """Names whose objects a function changes, itself or by what it calls."""
        calls = each(function, ast.Call)
        called = (self._changed_arguments(one, (*inside, function)) for one in calls)
        return changed_names(function).union(*called)

    def _function(self, callee: ast.expr) -> _Function | None:
        """The function of the method, the class or the project that a call runs."""
        match callee:
            case ast.Name(id=name) if name in self._functions:
                return self._functions[name]
            case ast.Attribute(value=owner, attr=attr) if is_name(owner, "self"):
                found = self.cls.find(attr)
                return found[1] if found is not None else None
        return self.project.function(self.project.resolve(callee, self.scope))

    def _only_reads(self, callee: ast.expr) -> bool:
        """Whether a library function calls nothing of what it is given."""
        symbol = self.project.resolve(callee, self.scope)
        if symbol is None:
            is_builtin = isinstance(callee, ast.Name) and self.scope.lookup(callee.id) is None
            return is_builtin and ast.unparse(callee) in _LOOKING
        return self._is_foreign(symbol) and _is_pure(symbol)

    def _may_change_all(self, callee: ast.expr) -> bool:
        """Whether a function is another package's that may change what it is given, or ``list.append``."""
        match callee:
            case ast.Attribute(value=ast.Name(id=kind), attr=attr) if kind in _TYPES:
                return attr in CHANGING
        symbol = self.project.resolve(callee, self.scope)
        if symbol is None:
            is_builtin = isinstance(callee, ast.Name) and self.scope.lookup(callee.id) is None
            return is_builtin and f"builtins.{ast.unparse(callee)}" in _IMPURE
        return self._is_foreign(symbol) and not _is_pure(symbol)


def fills(symbol: str) -> bool:
    """Whether a library function is there to change what it is given: ``numpy.fill_diagonal``."""
    return symbol in _IMPURE or symbol.startswith(_IMPURE_MODULES)


def _is_pure(symbol: str) -> bool:
    return symbol.partition(".")[0] in _PURE and not fills(symbol)
