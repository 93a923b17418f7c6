"""Which values that ``setup`` keeps are a list or a dict: Linen makes a tuple or a FrozenDict of these.

Followed are names, functions and methods of the project, and what annotations say::

    widths = [self.dim] * 2
    self.widths = widths             # a list
    self.rates = sorted(self.given)  # a list
    self.shape = self.sizes()        # what that method returns
    self.act = ACTIVATIONS[self.act] # nobody says
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from nnx_migrate.rewrite.classes.reading.annotations import is_container
from nnx_migrate.source.classes import ClassInfo, Field
from nnx_migrate.source.names import Assignment
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.walking import each, is_self

_WRITTEN = ast.List | ast.ListComp | ast.Dict | ast.DictComp
_MAKERS = frozenset({"dict", "list", "sorted"})
_COPIES = frozenset({"copy.copy", "copy.deepcopy"})
# Functions of jax and numpy that give a list (jax 0.10.2).
_LISTS = frozenset({"split", "array_split", "hsplit", "vsplit", "dsplit", "leaves", "tree_leaves"})
_LIBRARIES = ("jax.", "numpy.")
_SEQUENCES = ast.Add | ast.Mult | ast.BitOr
_DEPTH = 6  # names and functions between an attribute and its value


@dataclass(frozen=True)
class Containers:
    """The values of one function; ``cls`` is the class that it is a method of."""

    project: Project
    scope: Scope
    function: ast.FunctionDef | None
    cls: ClassInfo | None = None
    depth: int = _DEPTH

    def has(self, value: ast.expr) -> bool:
        """Whether a value is, or holds, a list or a dict, as far as the code shows."""
        return any(home._is_written(one) for home, one in self._sources(value))

    def _is_written(self, value: ast.expr) -> bool:
        match value:
            case ast.Tuple(elts=parts):
                return any(map(self.has, parts))
            case ast.BinOp(left=left, op=op, right=right) if isinstance(op, _SEQUENCES):
                return self.has(left) or self.has(right)
            case ast.Subscript(value=inner, slice=ast.Slice()):
                return self.has(inner)
            case ast.Subscript(value=inner):
                sources = self._sources(inner)
                return any(home.has(part) for home, one in sources for part in _parts(one))
            case ast.Call():
                return self._makes(value)
            case ast.Attribute():
                return self._is_typed(value)
        return isinstance(value, _WRITTEN)

    def _sources(self, value: ast.expr) -> Iterator[tuple[Containers, ast.expr]]:
        """What a value may be, with where that stands: behind names, and what functions return."""
        found: list[tuple[Containers, ast.expr]]
        match value:
            case ast.BoolOp(values=parts):
                found = [(self, one) for one in parts]
            case ast.IfExp(body=body, orelse=orelse):
                found = [(self, body), (self, orelse)]
            case ast.Call(func=called) if self.depth:
                found = list(self._results(called))
            case ast.Name() if self.depth:
                found = list(self._bound(value))
            case _:
                found = []
        if not found:
            yield self, value
        for home, one in found:
            yield from home._sources(one)

    def _makes(self, call: ast.Call) -> bool:
        """Whether a function that nobody here wrote gives a list or a dict."""
        match call.func:
            case ast.Name(id=name) if self.scope.lookup(name) is None:
                return name in _MAKERS
            case ast.Attribute(attr="tolist"):
                return True
        symbol = self.project.resolve(call.func, self.scope) or ""
        match call:
            case ast.Call(args=[value]) if symbol in _COPIES:
                return self.has(value)
            case ast.Call(func=ast.Attribute(value=value, attr="copy"), args=[]):
                return self.has(value)
        return symbol.startswith(_LIBRARIES) and symbol.rpartition(".")[2] in _LISTS

    def _results(self, callee: ast.expr) -> Iterator[tuple[Containers, ast.expr]]:
        """What a function of the project or a method of the class returns."""
        found = self._method(callee) or self._function(self.project.resolve(callee, self.scope))
        if found is not None and found.function is not None:
            for one in each(found.function, ast.Return):
                if one.value is not None:
                    yield found, one.value

    def _method(self, callee: ast.expr) -> Containers | None:
        if self.cls is None or not isinstance(callee, ast.Attribute) or not is_self(callee.value):
            return None
        found = self.cls.find(callee.attr)
        if found is None:
            return None
        return self._inside(found[0].scope, found[1], self.cls)

    def _function(self, symbol: str | None) -> Containers | None:
        found = self.project.definition(symbol) if symbol is not None else None
        if found is None or not isinstance(found[1], ast.FunctionDef):
            return None
        return self._inside(Scope(found[0]), found[1], None)

    def _inside(self, scope: Scope, function: ast.FunctionDef, cls: ClassInfo | None) -> Containers:
        return Containers(self.project, scope.enter(function), function, cls, self.depth - 1)

    def _bound(self, name: ast.Name) -> Iterator[tuple[Containers, ast.expr]]:
        """What a local or global name is bound to."""
        deeper = replace(self, depth=self.depth - 1)
        local = _assigned_values(self.function, name.id) if self.function is not None else []
        binding = self.scope.lookup(name.id)
        if local:
            yield from ((deeper, one) for one in local)
        elif isinstance(binding, Assignment):
            yield deeper, binding.value
        else:
            found = self.project.definition(self.project.resolve(name, self.scope) or "")
            if found is not None and isinstance(found[1], ast.expr):
                yield replace(deeper, scope=Scope(found[0]), function=None, cls=None), found[1]

    def _is_typed(self, value: ast.Attribute) -> bool:
        """``self.config.widths`` where the class of the field says ``widths: list[int]``."""
        owner = value.value
        if self.cls is None or not isinstance(owner, ast.Attribute) or not is_self(owner.value):
            return False
        fields = (one for one in self.cls.fields if one.name == owner.attr)
        symbols = (
            self.project.resolve(type_, one.owner.scope) for one in fields for type_ in _types(one)
        )
        infos = (self.project.classes.get(one or "") for one in symbols)
        return any(
            isinstance(one, ast.AnnAssign)
            and ast.unparse(one.target) == value.attr
            and is_container(one.annotation)
            for info in infos
            if info is not None
            for owner in info.mro
            for one in owner.node.body
        )


def _assigned_values(function: ast.FunctionDef, name: str) -> list[ast.expr]:
    """What assignments give a local."""
    return [
        value
        for one in each(function, ast.Assign | ast.AnnAssign)
        if (value := one.value) is not None
        and name in {target.id for target in _targets(one) if isinstance(target, ast.Name)}
    ]


def _targets(statement: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    return statement.targets if isinstance(statement, ast.Assign) else [statement.target]


def _parts(value: ast.expr) -> list[ast.expr]:
    """The items of what is written out."""
    match value:
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Dict(values=parts):
            return parts
        case ast.ListComp(elt=part) | ast.DictComp(value=part):
            return [part]
    return []


def _types(one: Field) -> Iterator[ast.expr]:
    """What says the class of a field's value: its annotation, or what its default is made by."""
    yield one.annotation
    match one.default:
        case ast.Call(keywords=[ast.keyword(arg="default_factory", value=made)]):
            yield made
        case ast.Call(func=made):
            yield made
