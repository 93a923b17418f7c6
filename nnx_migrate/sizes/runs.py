"""Runs of the interpreter over the classes of a project, each made once.

What a run finds hangs on the code, on what the constructor is told of the initial call, and on the ranks
that are known beforehand; not on the sizes of other classes. So a class whose submodules' classes get other
sizes is judged anew from the run that there is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from nnx_migrate.abstract.expression import Expr, is_given
from nnx_migrate.abstract.joining import join
from nnx_migrate.abstract.values import (
    NONE,
    SPREAD,
    STARRED,
    Argument,
    Class,
    Factories,
    Instance,
    Library,
    Partial,
    Static,
    Submodule,
    Unknown,
    Value,
)
from nnx_migrate.constructs import layer_of
from nnx_migrate.sizes.annotations import annotated_symbol, says_module
from nnx_migrate.sizes.candidates import Candidate, candidates_of
from nnx_migrate.sizes.extras import NO_EXTRAS, Extras
from nnx_migrate.sizes.factories import factory_functions
from nnx_migrate.sizes.families import members_of, varying_in
from nnx_migrate.sizes.frames import Function
from nnx_migrate.sizes.interpreter import Interpreter
from nnx_migrate.sizes.lifts import call_through_lifts
from nnx_migrate.sizes.machine import Machine
from nnx_migrate.sizes.method_lifts import lifts_of
from nnx_migrate.sizes.open_fields import builds_from, is_called_twice
from nnx_migrate.sizes.ranks import Rank, Ranks
from nnx_migrate.sizes.scope_functions import scope_functions
from nnx_migrate.sizes.statements.functions import run_function, set_up
from nnx_migrate.sizes.unknown_builders import refuse_unknown_builders
from nnx_migrate.source.classes import ClassInfo, Field
from nnx_migrate.source.names import name_parts, positional_names
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import walk

_NOT_RUN = frozenset({"setup", "__post_init__", "__hash__", "__eq__", "__repr__", "__getattr__"})

_HELD = 3  # how deep modules in fields hold others in theirs


@dataclass(frozen=True)
class Question:
    """What a run is made with.

    Attributes:
      extras: what is decided of the class.
      ranks: what is known of the ranks of arguments.
      names_entries: whether unknown sizes at a loop's start get a name of their own.
    """

    extras: Extras = NO_EXTRAS
    ranks: frozenset[tuple[tuple[str, str], Rank]] = frozenset()
    names_entries: bool = True


@dataclass(frozen=True)
class Run:
    """A finished run and what ``__call__`` returned."""

    interpreter: Interpreter
    output: Value


class Runs:
    """Runs over the classes of one project."""

    def __init__(self, project: Project) -> None:
        """Index the constructor calls and factory functions once."""
        self.project = project
        self.candidates = candidates_of(project)
        self.factories = factory_functions(project)
        self.scope_functions = scope_functions(project)
        self.by_symbol = {one.symbol: one for one in self.scope_functions.values()}
        self._known: dict[tuple[str, Question], Run] = {}

    def of(self, info: ClassInfo, question: Question) -> Run:
        """A run over a class; its notes are the caller's own, to add to."""
        key = (info.name, question)
        if key not in self._known:
            self._known[key] = self._run(info, question)
        known = self._known[key]
        return Run(known.interpreter.copy_for_notes(), known.output)

    def _run(self, info: ClassInfo, question: Question) -> Run:
        """Run all methods."""
        root = Instance(info, {}, None, None)
        interpreter = Machine(
            self.project,
            root,
            factories=self.factories,
            extras=question.extras,
            varying=varying_in(members_of(self.project, info)),
            scope_functions=self.scope_functions,
            names_entries=question.names_entries,
            ranks=Ranks(dict(question.ranks)),
        )
        root.fields = {one.name: self._field(info, one, question.extras) for one in info.fields}
        output = _run_methods(interpreter, info, root, self._known_parameters(info))
        refuse_unknown_builders(interpreter, info)
        _leave_rest_to_class(interpreter, info)
        return Run(interpreter, output)

    def _known_parameters(self, info: ClassInfo) -> dict[str, Value]:
        """Parameters of a scope function that stand for what its callers know beforehand."""
        function = self.by_symbol.get(info.name)
        names = function.known_parameters if function is not None else ()
        return {name: Static(Expr(ast.Name(name, ast.Load()))) for name in names}

    @cached_property
    def exporting_classes(self) -> frozenset[str]:
        """Classes that a field or local may hold, or that a factory function builds."""
        fields = (
            candidate.symbol
            for cls in self.project.linen.values()
            for one in cls.fields
            for candidate in self.candidates.factories(cls, one.name)
        )
        functions = (symbol for one in self.factories.values() for _, symbol in one.calls)
        local = (
            symbol for cls in self.project.linen.values() for symbol in self._class_choices(cls)
        )
        return frozenset((*fields, *functions, *local))

    def _class_choices(self, cls: ClassInfo) -> Iterator[str]:
        """Classes that a method chooses from: ``block = A if self.deep else B``, ``(A, B)[i]``."""
        for method in cls.methods.values():
            scope = cls.scope.enter(method)
            for node in walk(method):
                for one in _values(node):
                    symbol = self.project.resolve(one, scope) if name_parts(one) else None
                    if symbol in self.project.linen:
                        yield symbol

    def _field(self, info: ClassInfo, one: Field, extras: Extras) -> Value:
        own = Static(Expr(ast.Attribute(ast.Name("self", ast.Load()), one.name, ast.Load())))
        owner = one.owner if info.function else info
        found = self.candidates.factories(owner, one.name)
        is_unknown = not (found or says_module(self.project, one))
        is_open = is_unknown or one.name in extras.open_fields
        if is_open and builds_from(self.project, info, one.name):
            factories = Factories((), f"self.{one.name}")
        elif found and (is_called_twice(info, one.name) or self._only_classes(found)):
            factories = Factories(tuple(map(self._option, found)), f"self.{one.name}")
        else:
            return self._given_module(one, own, _HELD)
        is_optional = bool(found) and self.candidates.is_optional(owner, one.name)
        return join(is_given(own.expr), factories, NONE) if is_optional else factories

    def _option(self, one: Candidate) -> Value:
        """A candidate, of whose fields nobody knows those that partials set."""
        cls = self.project.linen.get(one.symbol)
        option = Library(one.symbol) if cls is None else Class(cls)
        values: dict[str, Value] = {
            name: Unknown("what a partial sets") for name in one.partial_fields
        }
        return Partial(option, (), values) if values else option

    def _given_module(self, one: Field, own: Static, depth: int) -> Value:
        """The module that a field is declared to hold, and those that its own fields hold."""
        module = self._annotated_module(one)
        if module is None:
            layer = annotated_symbol(self.project, one)
            return _layer_field(layer, own) if layer_of(layer) else own
        fields: dict[str, Value] = {}
        for inner in module.fields:
            part = Static(Expr(ast.Attribute(own.expr.node, inner.name, ast.Load())))
            is_any = annotated_symbol(self.project, inner) == "flax.linen.Module"
            if is_any or (depth == 0 and self._annotated_module(inner) is not None):
                fields[inner.name] = Unknown("a field that holds a module")
            else:
                fields[inner.name] = self._given_module(inner, part, depth - 1)
        return Instance(module, fields, None, None)

    def _only_classes(self, candidates: tuple[Candidate, ...]) -> bool:
        return all(one.symbol in self.project.linen or layer_of(one.symbol) for one in candidates)

    def _annotated_module(self, one: Field) -> ClassInfo | None:
        return self.project.linen.get(annotated_symbol(self.project, one))


def _layer_field(symbol: str, own: Static) -> Submodule:
    """A built-in layer that comes in as a field, with the sizes that keep their names in NNX."""
    layer = layer_of(symbol)
    assert layer is not None
    same_names = (layer.attributes or {}).items() & {(name, name) for name in layer.required_fields}
    names = sorted(name for name, _ in same_names)
    sizes: dict[str, Value] = {
        name: Static(Expr(ast.Attribute(own.expr.node, name, ast.Load()))) for name in names
    }
    return Submodule(symbol, sizes, ast.Call(own.expr.node, [], []), None)


def _run_methods(
    interpreter: Interpreter, info: ClassInfo, root: Instance, known_arguments: Mapping[str, Value]
) -> Value:
    """Run ``__call__`` first, then every other public method, on unknown arguments.

    ``known_arguments`` are parameters of ``__call__`` that are known.
    """
    set_up(interpreter, root)
    output: Value = Unknown("no __call__")
    has_call = info.find("__call__") is not None
    if has_call:
        output = _run_method(interpreter, info, root, "__call__", known_arguments)
    interpreter.primary = not has_call
    if has_call:
        carries = interpreter.carries.values()
        interpreter.carried_by_call = frozenset(name for every in carries for name, *_ in every)
    if info.function is not None:
        return output
    names = {
        name
        for cls in info.mro
        if cls.linen
        for name, node in cls.methods.items()
        if id(node) not in interpreter.scope_functions and id(node) not in interpreter.factories
    }
    for name in sorted(names - _NOT_RUN - {"__call__"}):
        if not name.startswith("_"):
            _run_method(interpreter, info, root, name, {})
    return output


def _values(node: ast.AST) -> list[ast.expr]:
    """What a node hands on as it is."""
    match node:
        case ast.Assign(value=one):
            return [one]
        case ast.IfExp(body=one, orelse=other):
            return [one, other]
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Dict(values=parts):
            return parts
    return []


def _leave_rest_to_class(interpreter: Interpreter, info: ClassInfo) -> None:
    """Keep of a helper method's analysis what stands in it: ``setup`` is its class's."""
    if info.function is None:
        return
    inside = {id(node) for node in walk(info.function)}
    interpreter.submodules = {
        key: one for key, one in interpreter.submodules.items() if key in inside
    }
    interpreter.problems = [one for one in interpreter.problems if id(one[0]) in inside]
    interpreter.review = [one for one in interpreter.review if id(one[0]) in inside]


def _run_method(
    interpreter: Interpreter,
    info: ClassInfo,
    root: Instance,
    name: str,
    known_arguments: Mapping[str, Value],
) -> Value:
    found = info.find(name)
    if found is None:
        return Unknown("no such method")
    if interpreter.is_refused:
        return Unknown("the class stays lazy")
    cls, node = found
    decorators = interpreter.project.decorators(cls, node)
    if any(one in ("staticmethod", "classmethod") for one in decorators):
        return Unknown("no instance method")
    spec = node.args
    positional = positional_names(spec)[1:]
    args = tuple(known_arguments.get(one, Argument(one)) for one in positional)
    args = (*args, STARRED) if spec.vararg is not None else args
    keywords = [one.arg for one in spec.kwonlyargs]
    kwargs = {one: known_arguments.get(one, Argument(one)) for one in keywords}
    if spec.kwarg is not None:
        kwargs[SPREAD] = Unknown("arguments by name")
    function = Function(node, cls.scope, {}, root, cls)
    interpreter.ranks.method = name
    lifts = lifts_of(interpreter, cls, node)
    return (
        call_through_lifts(  # the arguments are what the body sees, the result is what callers get
            lifts, args, lambda _: run_function(interpreter, function, args, kwargs)
        )
    )
