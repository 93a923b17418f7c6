"""Static size inference over a whole project: one analysis per Linen class.

A class that others construct is analysed before them, so that they know which sizes to pass on.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.values import (
    SPREAD,
    Argument,
    Factories,
    Instance,
    Library,
    Static,
    Submodule,
    Unknown,
    Use,
    Value,
)
from nnx_migrate.constructs import layer_of
from nnx_migrate.sizes.annotations import annotated_symbol
from nnx_migrate.sizes.candidates import Candidates
from nnx_migrate.sizes.evidence import ProjectEvidence
from nnx_migrate.sizes.factories import factory_functions
from nnx_migrate.sizes.families import family_of
from nnx_migrate.sizes.frames import Function
from nnx_migrate.sizes.inference import ClassAnalysis, finish
from nnx_migrate.sizes.interpreter import Interpreter, TooDeep
from nnx_migrate.sizes.lifted_classes import lifts_axes, named_class
from nnx_migrate.sizes.lifts import call_lifted
from nnx_migrate.sizes.machine import Machine
from nnx_migrate.sizes.method_lifts import lifts_of
from nnx_migrate.sizes.ranks import Ranks
from nnx_migrate.sizes.result import ClassSizes
from nnx_migrate.sizes.scope_functions import scope_functions
from nnx_migrate.sizes.statements.functions import run_function, set_up
from nnx_migrate.sizes.static_parameters import defaults_of
from nnx_migrate.sizes.unknown_builders import refuse_unknown_builders
from nnx_migrate.source.classes import ClassInfo, Field
from nnx_migrate.source.names import dotted
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import walk

_NOT_RUN = frozenset({"setup", "__post_init__", "__hash__", "__eq__", "__repr__", "__getattr__"})

_HELD = 3  # how deep modules in fields hold others in theirs
_STUDIES = 3  # of one class, each with what the ones before proved


def analyse(
    project: Project,
    names: Iterable[str] | None = None,
    evidence: ProjectEvidence | None = None,
    shapes: Mapping[str, frozenset[str]] | None = None,
    told: Mapping[str, frozenset[str]] | None = None,
    dtypes: Mapping[str, frozenset[tuple[str, int]]] | None = None,
    denied: Mapping[str, frozenset[str]] | None = None,
    memory: Memory | None = None,
) -> Mapping[str, ClassSizes]:
    """Sizes of Linen classes of the project by qualified name.

    Args:
        names: the classes to analyse (and those they build); None: all.
        evidence: recorded calls, for sizes that the code leaves open and to check the others.
        shapes: by class, parameters of ``__call__`` whose whole shape becomes an argument.
        told: by class, parameters of ``__call__`` of which the constructor is told what the initial
            call has for them.
        dtypes: by class, parameters of ``__call__`` whose dtype becomes an argument, each with the
            ``id`` of an expression that reads it.
        denied: by class, parameters of ``__call__`` of which its callers cannot tell it.
        memory: what earlier calls with this project and evidence found; what this one finds is added.
    """
    memory = {} if memory is None else memory
    extras = (shapes or {}, told or {}, dtypes or {}, denied or {})
    analysis = ProjectAnalysis(project, evidence, *extras, memory)
    return analysis.run(project.linen if names is None else names)


@dataclass(frozen=True)
class _Result:
    """Sizes of a class, with all that they depend on beside the code.

    Attributes:
      extras: the constructor arguments that the class gets for what the initial call has.
      asked: the sizes of other classes that were asked for, by name.
    """

    sizes: ClassSizes
    extras: tuple[object, ...]
    asked: Mapping[str, ClassSizes]


Memory = dict[str, list[_Result]]  # by the name of the class or scope function


@dataclass
class ProjectAnalysis:
    """Analyses of one project, each made once, and taken from ``memory`` where that has it."""

    project: Project
    evidence: ProjectEvidence | None = None
    shapes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    told: Mapping[str, frozenset[str]] = field(default_factory=dict)
    dtypes: Mapping[str, frozenset[tuple[str, int]]] = field(default_factory=dict)
    denied: Mapping[str, frozenset[str]] = field(default_factory=dict)
    memory: Memory = field(default_factory=dict)
    done: dict[str, ClassSizes] = field(default_factory=dict)
    running: dict[str, dict[str, ClassSizes]] = field(default_factory=dict)  # and what they asked

    def __post_init__(self) -> None:
        """Index the constructor calls and factory functions once."""
        self.candidates = Candidates(self.project)
        self.factories = factory_functions(self.project)
        self.scope_functions = scope_functions(self.project)
        self.by_symbol = {one.symbol: one for one in self.scope_functions.values()}

    def run(self, names: Iterable[str]) -> Mapping[str, ClassSizes]:
        """Analyse the named classes."""
        for name in names:
            self.sizes_of(name)
        return self.done

    def sizes_of(self, name: str) -> ClassSizes:
        """Analyse one class or scope function, its submodules' classes first."""
        found = self.done.get(name) or self._found(name)
        if self.running:
            next(reversed(self.running.values()))[name] = found
        return found

    def _found(self, name: str) -> ClassSizes:
        function = self.by_symbol.get(name)
        info = self.project.linen[name] if function is None else function.cls
        if name in self.running:
            return ClassSizes(problems=((info.node, "the class constructs itself"),))
        self.running[name] = {}
        try:
            sizes = self._remembered(name)
            if sizes is None:
                asked: dict[str, ClassSizes] = {}
                self.running[name] = asked
                sizes = self._analysed(info)
                self.memory.setdefault(name, []).append(_Result(sizes, self._extras(name), asked))
        finally:
            del self.running[name]
        self.done[name] = sizes
        return sizes

    def _remembered(self, name: str) -> ClassSizes | None:
        """What is known of a class that gets the same, and whose submodules' classes have not changed."""
        for one in self.memory.get(name, ()):
            if one.extras == self._extras(name) and all(
                self.sizes_of(other) is sizes for other, sizes in one.asked.items()
            ):
                return one.sizes
        return None

    def _extras(self, name: str) -> tuple[object, ...]:
        every = (self.shapes, self.told, self.dtypes, self.denied)
        return tuple(one.get(name) for one in every)

    def _analysed(self, info: ClassInfo) -> ClassSizes:
        try:
            analysis, sizes = self._settled(info, names_entries=True)
            return self._settled(info, names_entries=False)[1] if analysis.unplaced else sizes
        except TooDeep as problem:
            return ClassSizes(problems=((info.node, f"size inference gave up: {problem}"),))
        except RecursionError:
            reason = "size inference gave up: calls nest too deeply"
            return ClassSizes(problems=((info.node, reason),))
        except Exception as bug:  # ours: it must not take the other classes down with it
            if os.environ.get("NNX_MIGRATE_DEBUG") == "1":
                raise
            return ClassSizes(problems=((info.node, f"size inference failed: {bug!r}"),))

    def _settled(self, info: ClassInfo, *, names_entries: bool) -> tuple[ClassAnalysis, ClassSizes]:
        """Run until nothing new is proved about the ranks of arguments; what was proved, stays."""
        ranks = Ranks()
        found = self._once(info, ranks, names_entries=names_entries)
        for _ in range(_STUDIES - 1):
            if ranks.gained:
                ranks = Ranks(ranks.together())
                found = self._once(info, ranks, names_entries=names_entries)
        return found

    def _once(
        self, info: ClassInfo, ranks: Ranks, *, names_entries: bool
    ) -> tuple[ClassAnalysis, ClassSizes]:
        """One run; ``names_entries`` gives unknown sizes at a loop's start an argument each."""
        interpreter, output = self._run(info, ranks, self._given(info), names_entries=names_entries)
        exported = info.name in self._exported
        recorded = self.evidence.of(info) if self.evidence and info.function is None else None
        shapes = self.shapes.get(info.name, frozenset())
        dtypes = self.dtypes.get(info.name, frozenset())
        analysis = ClassAnalysis(
            interpreter,
            interpreter.root,
            output,
            self.sizes_of,
            exported,
            recorded,
            shapes,
            dtypes,
            default_call=cache(lambda: self._default_call(info, ranks)),
        )
        return analysis, finish(analysis)

    def _default_call(self, info: ClassInfo, ranks: Ranks) -> Mapping[int, list[Use]]:
        """What is called in a call of the class that leaves out all that has a default."""
        method = info.find("__call__")
        defaults = defaults_of(method[1].args) if method else {}
        given = {
            name: Static(ex.literal(node.value))
            for name, node in defaults.items()
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str | int | float | bool | None)
        }
        return self._run(info, ranks, given, names_entries=True)[0].root.records

    def _run(
        self, info: ClassInfo, ranks: Ranks, given: Mapping[str, Value], *, names_entries: bool
    ) -> tuple[Interpreter, Value]:
        """Run all methods, with these parameters of ``__call__`` known."""
        root = Instance(info, {}, None, None)
        interpreter = Machine(
            self.project,
            root,
            factories=self.factories,
            told=self.told.get(info.name, frozenset()),
            denied=self.denied.get(info.name, frozenset()),
            varying=family_of(self.project, info).varying,
            scope_functions=self.scope_functions,
            names_entries=names_entries,
            ranks=ranks,
        )
        root.fields = {one.name: self._field(info, one, interpreter) for one in info.fields}
        for base in info.mro[1:]:
            if base.linen and lifts_axes(interpreter, base):
                reason = f"it inherits from {base.node.name}, which is lifted over axes"
                interpreter.refuse(info.node, reason)
        output = _run_methods(interpreter, info, root, given)
        refuse_unknown_builders(interpreter, info)
        _leave_rest_to_class(interpreter, info)
        return interpreter, output

    def _given(self, info: ClassInfo) -> dict[str, Value]:
        """Parameters of a scope function that stand for what its callers know beforehand."""
        function = self.by_symbol.get(info.name)
        names = function.given if function is not None else ()
        return {name: Static(Expr(ast.Name(name, ast.Load()))) for name in names}

    @cached_property
    def _exported(self) -> frozenset[str]:
        """Classes that a field or local may hold, or that a factory function builds."""
        fields = (
            symbol
            for cls in self.project.linen.values()
            for one in cls.fields
            for symbol in self.candidates.factories(cls, one.name)
        )
        functions = (symbol for one in self.factories.values() for _, symbol in one.calls)
        local = (symbol for cls in self.project.linen.values() for symbol in self._held(cls))
        return frozenset((*fields, *functions, *local))

    def _held(self, cls: ClassInfo) -> Iterator[str]:
        """Classes that a local name of a method holds: ``block = A if self.deep else B``."""
        for method in cls.methods.values():
            scope = cls.scope.enter(method)
            for node in walk(method):
                if isinstance(node, ast.Assign):
                    value = node.value
                    either = (
                        (value.body, value.orelse) if isinstance(value, ast.IfExp) else (value,)
                    )
                    for one in either:
                        symbol = self.project.resolve(one, scope) if dotted(one) else None
                        if symbol in self.project.linen:
                            yield symbol

    def _field(self, info: ClassInfo, one: Field, interpreter: Interpreter) -> Value:
        own = Static(Expr(ast.Attribute(ast.Name("self", ast.Load()), one.name, ast.Load())))
        symbols = self.candidates.factories(one.owner if info.function else info, one.name)
        if symbols and (_is_called_twice(info, one.name) or self._only_classes(symbols)):
            options = tuple(
                named_class(interpreter, self.project.linen[s])
                if s in self.project.linen
                else Library(s)
                for s in symbols
            )
            return Factories(options, f"self.{one.name}")
        return self._given_module(one, own, _HELD)

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

    def _only_classes(self, symbols: tuple[str, ...]) -> bool:
        return all(s in self.project.linen or layer_of(s) for s in symbols)

    def _annotated_module(self, one: Field) -> ClassInfo | None:
        return self.project.linen.get(annotated_symbol(self.project, one))


def _layer_field(symbol: str, own: Static) -> Submodule:
    """A built-in layer that comes in as a field, with the sizes that keep their names in NNX."""
    layer = layer_of(symbol)
    assert layer is not None
    kept = (layer.attributes or {}).items() & {(name, name) for name in layer.required}
    names = sorted(name for name, _ in kept)
    sizes: dict[str, Value] = {
        name: Static(Expr(ast.Attribute(own.expr.node, name, ast.Load()))) for name in names
    }
    return Submodule(symbol, sizes, ast.Call(own.expr.node, [], []), None)


def _is_called_twice(info: ClassInfo, name: str) -> bool:
    """Whether ``self.name(...)(...)`` occurs: the field is a factory of modules."""
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Call)
        and dotted(node.func.func) == ("self", name)
        for cls in info.mro
        for node in walk(cls.node)
    )


def _run_methods(
    interpreter: Interpreter, info: ClassInfo, root: Instance, given: Mapping[str, Value]
) -> Value:
    """Run ``__call__`` first, then every other public method, on unknown arguments.

    ``given`` are parameters of ``__call__`` that are known.
    """
    set_up(interpreter, root)
    output: Value = Unknown("no __call__")
    has_call = info.find("__call__") is not None
    if has_call:
        output = _run_method(interpreter, info, root, "__call__", given)
    interpreter.primary = not has_call
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


def _leave_rest_to_class(interpreter: Interpreter, info: ClassInfo) -> None:
    """Keep of a helper method's analysis what stands in it: ``setup`` is its class's."""
    if info.function is None:
        return
    inside = {id(node) for node in walk(info.function)}
    interpreter.built = {key: one for key, one in interpreter.built.items() if key in inside}
    interpreter.problems = [one for one in interpreter.problems if id(one[0]) in inside]
    interpreter.review = [one for one in interpreter.review if id(one[0]) in inside]


def _run_method(
    interpreter: Interpreter, info: ClassInfo, root: Instance, name: str, given: Mapping[str, Value]
) -> Value:
    found = info.find(name)
    if found is None:
        return Unknown("no such method")
    cls, node = found
    decorators = interpreter.project.decorators(cls, node)
    if any(one in ("staticmethod", "classmethod") for one in decorators):
        return Unknown("no instance method")
    spec = node.args
    positional = [one.arg for one in (*spec.posonlyargs, *spec.args)][1:]
    args = tuple(given.get(one, Argument(one)) for one in positional)
    keywords = [one.arg for one in spec.kwonlyargs]
    kwargs = {one: given.get(one, Argument(one)) for one in keywords}
    if spec.kwarg is not None:
        kwargs[SPREAD] = Unknown("arguments by name")
    function = Function(node, cls.scope, {}, root, cls)
    interpreter.ranks.method = name
    lifts = lifts_of(interpreter, cls, node)
    return call_lifted(  # the arguments are what the body sees, the result is what callers get
        lifts, args, lambda _: run_function(interpreter, function, args, kwargs)
    )
