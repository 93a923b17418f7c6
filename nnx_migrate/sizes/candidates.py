"""Values that the project's own constructors give to class-valued fields."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

from nnx_migrate.sizes.families import members_of
from nnx_migrate.sizes.fields.constructor_arguments import constructor_call, dict_keywords
from nnx_migrate.source.bindings import bound_values
from nnx_migrate.source.changed_globals import changed_globals
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.facts import Fact
from nnx_migrate.source.names import Assignment, Import, name_parts
from nnx_migrate.source.project import Module, Project, Scope
from nnx_migrate.source.walking import is_none_literal, walk

_SIZING = frozenset(
    {"axis", "features", "input_dilation", "kernel_dilation", "kernel_size", "out_features"}
    | {"padding", "qkv_features", "strides"}
)
_DEPTH = 5  # longest chain of fields and partials that is followed


@dataclass(frozen=True)
class Place:
    """Where an expression stands."""

    scope: Scope
    cls: ClassInfo | None = None  # Linen class whose method holds it
    function: ast.FunctionDef | None = None


@dataclass(frozen=True)
class Candidate:
    """A layer or class that a class-valued field may hold: ``MLP`` of ``partial(MLP, hidden=(8, 8))``.

    ``partial_fields`` are the fields that partials of it set.
    """

    symbol: str
    partial_fields: frozenset[str] = frozenset()


_NONE = Candidate("")  # nothing is built
Argument = tuple[ast.expr, Place]
Table = dict[tuple[str, str], list[Argument]]


@dataclass(frozen=True, eq=False)
class Candidates:
    """Index of every constructor call of the project's Linen classes."""

    project: Project

    @cached_property
    def _calls(self) -> list[_Call]:
        """Every call outside the libraries' own names, with the symbol it constructs, if any."""
        return [
            _Call(place, call, *constructor_call(self.project, place.scope, call))
            for place, call in _calls(self.project)
            if self._may_construct(place.scope, call)
        ]

    def _may_construct(self, scope: Scope, call: ast.Call) -> bool:
        """Whether a call can be a constructor: cheaper than resolving every call of the project."""
        parts = name_parts(call.func)
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
            for argument, value in self._bound(one.symbol or "", one):
                found.setdefault((one.symbol or "", argument), []).append((value, one.place))
        return found

    @cached_property
    def _by_argument(self) -> Table:
        """The same with constructors reached through class-valued fields (``self.block_cls(..)``)."""
        found = {key: list(values) for key, values in self._direct.items()}
        for one in self._calls:
            parts = name_parts(one.call.func)
            cls = one.place.cls
            if one.symbol or cls is None or not parts or parts[0] != "self" or len(parts) != 2:
                continue
            for symbol in self._through_field(cls, parts[1]):
                for argument, value in self._bound(symbol, one):
                    found.setdefault((symbol, argument), []).append((value, one.place))
        return found

    def _through_field(self, caller: ClassInfo, field: str) -> tuple[str, ...]:
        """Classes that a class-valued field of ``caller`` may hold."""
        givens = list(self._direct.get((caller.name, field), ()))
        default = self._default(caller, field)
        found = [
            one.symbol
            for value, place in [*givens, *([default] if default else [])]
            for one in self._candidates_of(place, value, _DEPTH, self._direct)
        ]
        return tuple(dict.fromkeys(found))

    def _bound(self, symbol: str, one: _Call) -> Iterator[tuple[str, ast.expr]]:
        cls = self.project.linen.get(symbol)
        if cls is None:
            return
        names = [field.name for field in cls.fields]
        yield from zip(names, one.args, strict=False)
        for keyword in (*one.call.keywords, *dict_keywords(one.call, one.place.scope)):
            if keyword.arg:
                yield keyword.arg, keyword.value

    def factories(self, cls: ClassInfo, field: str) -> tuple[Candidate, ...]:
        """Layers or classes that reach a class-valued field, each once; () when any is unknown."""
        return tuple(one for one in self._reaching(cls, field) if one != _NONE)

    def is_optional(self, cls: ClassInfo, field: str) -> bool:
        """Whether None reaches a class-valued field, too."""
        return _NONE in self._reaching(cls, field)

    def _reaching(self, cls: ClassInfo, field: str) -> tuple[Candidate, ...]:
        key = cls.name, field
        if key not in self._table:
            self._table[key] = self._factories(cls, field, _DEPTH, self._by_argument)
        return self._table[key]

    @cached_property
    def _table(self) -> dict[tuple[str, str], tuple[Candidate, ...]]:
        return {}

    def _factories(
        self, cls: ClassInfo, field: str, depth: int, table: Table
    ) -> tuple[Candidate, ...]:
        sources: list[Argument] = []
        for one in members_of(self.project, cls):
            sources += table.get((one.name, field), ())
            default = self._default(one, field)
            if default is not None:
                sources.append(default)
        every: list[Candidate] = []
        for value, place in sources:
            found = self._candidates_of(place, value, depth, table)
            if not found:
                return ()
            every += found
        return _each_once(every)

    def _default(self, cls: ClassInfo, field: str) -> Argument | None:
        found = cls.field(field)
        if found is None or found.default is None:
            return None
        return found.default, Place(found.owner.scope)

    def _candidates_of(
        self, place: Place, value: ast.expr, depth: int, table: Table
    ) -> tuple[Candidate, ...]:
        if depth == 0:
            return ()
        if is_none_literal(value):
            return (_NONE,)
        if isinstance(value, ast.IfExp):
            return self._any(place, (value.body, value.orelse), depth, table)
        if isinstance(value, ast.Call):
            target = self.project.resolve(value.func, place.scope)
            if target != "functools.partial" or not value.args:
                return self._results_of(target, depth, table)
            found = self._candidates_of(place, value.args[0], depth - 1, table)
            return tuple(self._with_partial_fields(one, value) for one in found)
        if isinstance(value, ast.Subscript):
            return self._entries(place, value.value, depth, table)
        parts = name_parts(value)
        if parts and parts[0] == "self" and len(parts) == 2 and place.cls is not None:
            return self._factories(place.cls, parts[1], depth - 1, table)
        if parts and len(parts) == 1 and place.function is not None:
            local = [*bound_values(place.function, parts[0])]
            if local:
                return self._any(place, local, depth, table)
        symbol = self.project.resolve(value, place.scope)
        if symbol and (symbol in self.project.linen or symbol.startswith("flax.linen.")):
            return (Candidate(symbol),)
        definition = self.project.definition(symbol) if symbol else None
        if definition is not None and isinstance(
            definition[1], ast.expr
        ):  # ``base = partial(MLP, (8, 8))``
            return self._candidates_of(Place(Scope(definition[0])), definition[1], depth - 1, table)
        return ()

    def _any(
        self,
        place: Place,
        values: Iterable[ast.expr | None],
        depth: int,
        table: Table,
    ) -> tuple[Candidate, ...]:
        """What may be given by one of several expressions; () when any is unknown."""
        found = [self._candidates_of(place, one, depth - 1, table) if one else () for one in values]
        return _each_once(chain(*found)) if all(found) else ()

    def _results_of(self, symbol: str | None, depth: int, table: Table) -> tuple[Candidate, ...]:
        """What a function of the project returns: ``def norm_of(kind): return partial(nn.LayerNorm)``."""
        definition = self.project.definition(symbol) if symbol else None
        if definition is None:
            return ()
        module, function = definition
        if not isinstance(function, ast.FunctionDef) or function.decorator_list:
            return ()
        home = Place(Scope(module).enter(function), function=function)
        values = [one.value for one in module.parents.returns(function)]
        return self._any(home, values, depth, table)

    def _entries(
        self, place: Place, owner: ast.expr, depth: int, table: Table
    ) -> tuple[Candidate, ...]:
        """What a dict holds, of which nothing is changed: ``NORMS[self.kind]``."""
        if isinstance(owner, ast.Name) and place.function is not None:
            match [*bound_values(place.function, owner.id)]:
                case [ast.Dict() as local]:
                    return self._any(place, _values(local), depth, table)
        symbol = self.project.resolve(owner, place.scope)
        definition = self.project.definition(symbol) if symbol else None
        if definition is None or not isinstance(definition[1], ast.Dict):
            return ()
        name = (symbol or "").rpartition(".")[2]
        if changed_globals(self.project).may_change(definition[0].name, name):
            return ()
        return self._any(Place(Scope(definition[0])), _values(definition[1]), depth, table)

    def _with_partial_fields(self, one: Candidate, partial: ast.Call) -> Candidate:
        """A candidate with the fields that a partial of it sets; of layers, those that decide about sizes."""
        named = {keyword.arg for keyword in partial.keywords if keyword.arg is not None}
        cls = self.project.linen.get(one.symbol)
        if cls is None:
            return replace(one, partial_fields=one.partial_fields | (named & _SIZING))
        fields = [field.name for field in cls.fields]
        is_open = any(keyword.arg is None for keyword in partial.keywords)
        placed = fields if is_open else fields[: len(partial.args) - 1]
        return replace(one, partial_fields=one.partial_fields | {*named, *placed})


def _values(entries: ast.Dict) -> list[ast.expr | None]:
    """The values of a dict; None for those that it takes from another."""
    pairs = zip(entries.keys, entries.values, strict=True)
    return [value if key is not None else None for key, value in pairs]


def _each_once(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    found: dict[str, frozenset[str]] = {}
    for one in candidates:
        found[one.symbol] = found.get(one.symbol, frozenset()) | one.partial_fields
    return tuple(Candidate(symbol, fields) for symbol, fields in found.items())


@Fact  # it reads every call of the project
def candidates_of(project: Project) -> Candidates:
    """The index of a project."""
    return Candidates(project)


@dataclass(frozen=True, eq=False)
class _Call:
    """A call, where it stands, and the class it constructs (also below ``functools.partial``)."""

    place: Place
    call: ast.Call
    symbol: str | None
    args: list[ast.expr]


def _calls(project: Project) -> Iterator[tuple[Place, ast.Call]]:
    for module in project.modules.values():
        yield from _calls_in(module.tree.body, Place(Scope(module)), project)


def _calls_in(
    body: list[ast.stmt], place: Place, project: Project
) -> Iterator[tuple[Place, ast.Call]]:
    for statement in body:
        if isinstance(statement, ast.ClassDef):
            found = project.by_node.get(id(statement))
            yield from _calls_in(statement.body, replace(place, cls=found), project)
        elif isinstance(statement, ast.FunctionDef):
            inner = Place(place.scope.enter(statement), place.cls, statement)
            yield from _calls_in(statement.body, inner, project)
        else:
            yield from ((place, node) for node in walk(statement) if isinstance(node, ast.Call))
