"""Values that the project's own constructors give to class-valued fields."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from nnx_migrate.sizes.families import members_of
from nnx_migrate.sizes.fields.given import constructed
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.facts import Fact
from nnx_migrate.source.names import Assignment, Import, dotted
from nnx_migrate.source.project import Module, Project, Scope
from nnx_migrate.source.walking import each, walk

_SIZING = frozenset(
    {"axis", "features", "input_dilation", "kernel_dilation", "kernel_size", "out_features"}
    | {"padding", "qkv_features", "strides"}
)
_DEPTH = 5  # longest chain of fields and partials that is followed


@dataclass(frozen=True)
class ConstructorArgument:
    """One constructor argument: the expression and where it stands."""

    value: ast.expr
    scope: Scope
    cls: ClassInfo | None  # Linen class whose method holds the constructor call
    function: ast.FunctionDef | None


@dataclass(frozen=True)
class Candidate:
    """A layer or class that a class-valued field may hold: ``MLP`` of ``partial(MLP, hidden=(8, 8))``.

    ``given`` are the fields that partials of it set.
    """

    symbol: str
    given: frozenset[str] = frozenset()


Table = dict[tuple[str, str], list[ConstructorArgument]]


@dataclass(frozen=True, eq=False)
class Candidates:
    """Index of every constructor call of the project's Linen classes."""

    project: Project

    @cached_property
    def _calls(self) -> list[_Call]:
        """Every call outside the libraries' own names, with the symbol it constructs, if any."""
        return [
            _Call(scope, cls, function, call, *constructed(self.project, scope, call))
            for scope, cls, function, call in _calls(self.project)
            if self._may_construct(scope, call)
        ]

    def _may_construct(self, scope: Scope, call: ast.Call) -> bool:
        """Whether a call can be a constructor: cheaper than resolving every call of the project."""
        parts = dotted(call.func)
        if parts is None:
            return False
        return (
            parts[0] == "self"
            or parts[-1] in self._short
            or parts[-1] == "partial"
            or parts[-1] in self._aliases(scope.module)
        )

    @cached_property
    def _short(self) -> frozenset[str]:
        return frozenset(cls.node.name for cls in self.project.linen.values())

    def _aliases(self, module: Module) -> frozenset[str]:
        """Top-level names of a module that stand for something of another name."""
        if module.name not in self._known_aliases:
            self._known_aliases[module.name] = frozenset(
                name
                for name, binding in module.table.items()
                if isinstance(binding, Assignment)
                or (isinstance(binding, Import) and binding.target.rpartition(".")[2] != name)
            )
        return self._known_aliases[module.name]

    @cached_property
    def _known_aliases(self) -> dict[str, frozenset[str]]:
        return {}

    @cached_property
    def _direct(self) -> Table:
        """Arguments of constructor calls that name their class."""
        found: Table = {}
        for one in self._calls:
            for argument, value in self._bound(one.symbol or "", one.args, one.call):
                given = ConstructorArgument(value, one.scope, one.cls, one.function)
                found.setdefault((one.symbol or "", argument), []).append(given)
        return found

    @cached_property
    def _given(self) -> Table:
        """The same with constructors reached through class-valued fields (``self.block_cls(..)``)."""
        found = {key: list(values) for key, values in self._direct.items()}
        for one in self._calls:
            parts = dotted(one.call.func)
            if one.symbol or one.cls is None or not parts or parts[0] != "self" or len(parts) != 2:
                continue
            for symbol in self._through_field(one.cls, parts[1]):
                for argument, value in self._bound(symbol, one.args, one.call):
                    given = ConstructorArgument(value, one.scope, one.cls, one.function)
                    found.setdefault((symbol, argument), []).append(given)
        return found

    def _through_field(self, caller: ClassInfo, field: str) -> tuple[str, ...]:
        """Classes that a class-valued field of ``caller`` may hold."""
        givens = list(self._direct.get((caller.name, field), ()))
        default = self._default(caller, field)
        found = [
            one.symbol
            for given in [*givens, *([default] if default else [])]
            for one in self._found(given, given.value, _DEPTH, self._direct)
        ]
        return tuple(dict.fromkeys(found))

    def _bound(
        self, symbol: str, args: list[ast.expr], call: ast.Call
    ) -> Iterator[tuple[str, ast.expr]]:
        cls = self.project.linen.get(symbol)
        if cls is None:
            return
        names = [one.name for one in cls.fields]
        yield from zip(names, args, strict=False)
        for keyword in call.keywords:
            if keyword.arg:
                yield keyword.arg, keyword.value

    def factories(self, cls: ClassInfo, field: str) -> tuple[Candidate, ...]:
        """Layers or classes that reach a class-valued field, each once; () when any is unknown."""
        return self._factories(cls, field, _DEPTH, self._given)

    def _factories(
        self, cls: ClassInfo, field: str, depth: int, table: Table
    ) -> tuple[Candidate, ...]:
        sources: list[ConstructorArgument] = []
        for one in members_of(self.project, cls):
            sources += table.get((one.name, field), ())
            default = self._default(one, field)
            if default is not None:
                sources.append(default)
        every: list[Candidate] = []
        for source in sources:
            found = self._found(source, source.value, depth, table)
            if not found:
                return ()
            every += found
        return _each_once(every)

    def _default(self, cls: ClassInfo, field: str) -> ConstructorArgument | None:
        found = next((f for f in cls.fields if f.name == field), None)
        if found is None or found.default is None:
            return None
        return ConstructorArgument(found.default, found.owner.scope, None, None)

    def _found(
        self, source: ConstructorArgument, value: ast.expr, depth: int, table: Table
    ) -> tuple[Candidate, ...]:
        if depth == 0:
            return ()
        if isinstance(value, ast.IfExp):
            branches = [
                self._found(source, one, depth - 1, table) for one in (value.body, value.orelse)
            ]
            return _each_once(sum(branches, ())) if all(branches) else ()
        if isinstance(value, ast.Call):
            target = self.project.resolve(value.func, source.scope)
            if target != "functools.partial" or not value.args:
                return ()
            found = self._found(source, value.args[0], depth - 1, table)
            return tuple(self._with_given(one, value) for one in found)
        parts = dotted(value)
        if parts and parts[0] == "self" and len(parts) == 2 and source.cls is not None:
            return self._factories(source.cls, parts[1], depth - 1, table)
        if parts and len(parts) == 1 and source.function is not None:
            local = _local_value(source.function, parts[0])
            if local is not None:
                return self._found(source, local, depth - 1, table)
        symbol = self.project.resolve(value, source.scope)
        if symbol and (symbol in self.project.linen or symbol.startswith("flax.linen.")):
            return (Candidate(symbol),)
        held = self.project.definition(symbol) if symbol else None
        if held is not None and isinstance(held[1], ast.expr):  # ``base = partial(MLP, (8, 8))``
            home = ConstructorArgument(held[1], Scope(held[0]), None, None)
            return self._found(home, held[1], depth - 1, table)
        return ()

    def _with_given(self, one: Candidate, partial: ast.Call) -> Candidate:
        """A candidate with the fields that a partial of it sets; of layers, those that decide about sizes."""
        named = {keyword.arg for keyword in partial.keywords if keyword.arg is not None}
        cls = self.project.linen.get(one.symbol)
        if cls is None:
            return replace(one, given=one.given | (named & _SIZING))
        fields = [field.name for field in cls.fields]
        is_open = any(keyword.arg is None for keyword in partial.keywords)
        placed = fields if is_open else fields[: len(partial.args) - 1]
        return replace(one, given=one.given | {*named, *placed})


def _each_once(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    found: dict[str, frozenset[str]] = {}
    for one in candidates:
        found[one.symbol] = found.get(one.symbol, frozenset()) | one.given
    return tuple(Candidate(symbol, given) for symbol, given in found.items())


@Fact  # it reads every call of the project
def candidates_of(project: Project) -> Candidates:
    """The index of a project."""
    return Candidates(project)


def _local_value(function: ast.FunctionDef, name: str) -> ast.expr | None:
    values = [
        node.value
        for node in each(function, ast.Assign)
        if any(isinstance(t, ast.Name) and t.id == name for t in node.targets)
    ]
    return values[0] if len(values) == 1 else None


@dataclass(frozen=True, eq=False)
class _Call:
    """A call, where it stands, and the class it constructs (also below ``functools.partial``)."""

    scope: Scope
    cls: ClassInfo | None
    function: ast.FunctionDef | None
    call: ast.Call
    symbol: str | None
    args: list[ast.expr]


Call = tuple[Scope, ClassInfo | None, ast.FunctionDef | None, ast.Call]


def _calls(project: Project) -> Iterator[Call]:
    for module in project.modules.values():
        yield from _calls_in(module.tree.body, Scope(module), None, None, project)


def _calls_in(
    body: list[ast.stmt],
    scope: Scope,
    cls: ClassInfo | None,
    function: ast.FunctionDef | None,
    project: Project,
) -> Iterator[Call]:
    for statement in body:
        if isinstance(statement, ast.ClassDef):
            found = project.by_node.get(id(statement))
            yield from _calls_in(statement.body, scope, found, function, project)
        elif isinstance(statement, ast.FunctionDef):
            yield from _calls_in(statement.body, scope.enter(statement), cls, statement, project)
        else:
            for node in walk(statement):
                if isinstance(node, ast.Call):
                    yield scope, cls, function, node
