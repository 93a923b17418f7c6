"""Run a Linen class abstractly: constructors, calls and control flow, over abstract values.

Nothing of the user's code is imported or executed. One ``Interpreter`` studies one class (the
*root*): its methods run on unknown inputs, methods of its submodules are followed inline, so that
every size comes out as an expression over the root's own fields and inputs.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from nnx_migrate.sizes import construction
from nnx_migrate.sizes import expression as ex
from nnx_migrate.sizes.annotations import annotated_symbol
from nnx_migrate.sizes.callables import changes_size
from nnx_migrate.sizes.expression import Expr
from nnx_migrate.sizes.factories import FactoryFunction
from nnx_migrate.sizes.frames import Frame, Loop
from nnx_migrate.sizes.layers import LayerCall, call_layer, is_layer
from nnx_migrate.sizes.loop_names import LoopNames
from nnx_migrate.sizes.ranks import Ranks
from nnx_migrate.sizes.scope_functions import ScopeFunction
from nnx_migrate.sizes.statics import static_of
from nnx_migrate.sizes.values import (
    Argument,
    Array,
    Choice,
    Class,
    DataClass,
    Factories,
    Function,
    Instance,
    Library,
    Lift,
    LiftedLayer,
    Native,
    Partial,
    Stack,
    Static,
    Submodule,
    Unknown,
    Use,
    Value,
    join,
)
from nnx_migrate.source.project import Project, Scope

OUT_VARIABLE = "out_features_"
_DEPTH = 60
_STEPS = 1_500_000


class TooDeep(Exception):
    """The code needs more steps than size inference spends on one class."""


@dataclass
class Interpreter:
    """State of one study; see the module docstring."""

    project: Project
    root: Instance
    candidates: dict[tuple[str, str], tuple[Value, ...]] = field(default_factory=dict)
    factories: Mapping[int, FactoryFunction] = field(default_factory=dict)
    scope_functions: Mapping[int, ScopeFunction] = field(default_factory=dict)
    conditions: list[Expr | None] = field(default_factory=list)
    presence: dict[str, bool] = field(default_factory=dict)  # of call parameters, here
    facts: dict[str, Expr] = field(default_factory=dict)
    loops: list[Loop] = field(default_factory=list)
    carrying: list[ast.AST] = field(
        default_factory=list
    )  # loops with carried sizes, outermost first
    statics: dict[int, str | None] = field(default_factory=dict)
    built: dict[int, Submodule | Instance] = field(default_factory=dict)
    applied: set[int] = field(default_factory=set)  # constructor calls of layers given parameters
    carried: dict[int, list[tuple[str, Expr, Expr]]] = field(default_factory=dict)
    problems: list[tuple[ast.AST, str]] = field(default_factory=list)
    review: list[tuple[ast.AST, str]] = field(default_factory=list)
    loop_names: LoopNames = field(default_factory=LoopNames)
    symbols: dict[tuple[ast.For, str], str] = field(
        default_factory=dict
    )  # names of carried sizes, by the loop and the local
    unfolded: dict[int, ast.BinOp] = field(default_factory=dict)  # a += b as a + b, by statement
    primary: bool = True
    entered: set[int] = field(default_factory=set)  # calls that led into a function of the project
    journal: list[list[Use]] = field(default_factory=list)  # lists of uses, in the order of calls
    told: frozenset[str] = frozenset()  # parameters of the call that the constructor knows about
    varying: frozenset[str] = frozenset()  # attributes that a class of the same __init__ has anew
    names_entries: bool = True  # unknown sizes at a loop's start get a name of their own
    ranks: Ranks = field(default_factory=Ranks)
    stacking: dict[int, Stack] = field(default_factory=dict)  # lifts of a module, by its call
    stacks: list[Stack] = field(default_factory=list)  # lifts around all that is called now
    layers: dict[int, Expr | None] = field(default_factory=dict)  # of lifted modules, by their call
    apart: set[int] = field(default_factory=set)  # modules that stand for several, told by index
    named_classes: dict[int, Value] = field(default_factory=dict)  # what names of classes hold
    frames: list[Frame] = field(default_factory=list)  # of the running functions, innermost last
    depth: int = 0
    steps: int = 0

    # ---- bookkeeping

    def step(self) -> None:
        """Count one evaluation. Raises TooDeep when the budget is spent."""
        self.steps += 1
        if self.steps > _STEPS:
            raise TooDeep(f"more than {_STEPS} steps in {self.root.info.name}")

    def refuse(self, node: ast.AST, text: str) -> None:
        """Note a problem, the first one of a place."""
        _note_once(self.problems, node, text)

    def ask(self, node: ast.AST, text: str) -> None:
        """Note what a person should look at, the first note of a place."""
        _note_once(self.review, node, text)

    @contextmanager
    def under(self, condition: Expr | None) -> Iterator[None]:
        """Run a block that only happens when ``condition`` holds."""
        self.conditions.append(condition)
        try:
            yield
        finally:
            self.conditions.pop()

    @contextmanager
    def knowing(self, presence: Mapping[str, bool]) -> Iterator[None]:
        """Run a block in which these parameters of the call are given, or are None."""
        before = self.presence
        self.presence = {**before, **presence}
        try:
            yield
        finally:
            self.presence = before

    def prove(self, array: Array | None, *, least: int = 0, exact: int | None = None) -> None:
        """Note how many axes an array has, where every call shows it."""
        if array is not None and not self.conditions:
            self.ranks.prove(array, least=least, exact=exact)

    def array(self, value: Value | None) -> Array | None:
        """A value as an array, with what is known of its rank."""
        from nnx_migrate.sizes.values import as_array

        found = as_array(value) if value is not None else None
        return self.ranks.settled(found) if found is not None else None

    def settled(self, value: Value) -> Value:
        """The value, as an array where something is known of its rank."""
        array = value.array() if isinstance(value, Argument) else value
        found = self.ranks.settled(array) if isinstance(array, Array) else value
        return value if found == array else found

    def note(self, node: ast.expr, value: Value, frame: Frame) -> None:
        """Remember what a root expression is when it is static."""
        if not frame.own:
            return
        found = static_of(value)
        expr = self.loop_names.at(found, node) if found is not None else None
        text = expr.text if expr is not None and spellable(expr) else None
        if id(node) in self.statics and self.statics[id(node)] != text:
            text = None
        self.statics[id(node)] = text

    def record(
        self,
        module: Submodule | Instance,
        sizes: dict[str, Expr | None],
        method: str = "__call__",
        arguments: dict[str, Value] | None = None,
    ) -> None:
        """Remember one call of a submodule with the one that built it."""
        if module.owner is not None:
            conditions = tuple(self.conditions)
            key = id(module.call)
            around = [*self.stacks, *([self.stacking[key]] if key in self.stacking else [])]
            if len(around) > 1 and module.owner is self.root:
                self.refuse(module.call or self.root.info.node, "lifts stack its variables twice")
            use = Use(
                module,
                sizes,
                conditions,
                self.primary,
                method,
                arguments or {},
                around[-1] if around else None,
                self.layers.get(key),
                id(module) in self.apart,
                self.presence,
            )
            uses = module.owner.records.setdefault(id(module.call), [])
            uses.append(use)
            self.journal.append(uses)

    @contextmanager
    def stacked(self, lifts: tuple[Lift, ...], args: tuple[Value, ...]) -> Iterator[None]:
        """Run a method whose decorators are ``lifts``: they may stack what it calls."""
        from nnx_migrate.sizes.lifted import layers_seen

        found = [Stack(one, layers_seen(one, args)) for one in lifts if one.call is not None]
        if found and len(lifts) > 1:
            self.refuse(self.root.info.node, "a method under several lifts stacks variables")
        before = len(self.stacks)
        self.stacks += found
        try:
            yield
        finally:
            del self.stacks[before:]

    @contextmanager
    def unsized(self, module: Submodule | Instance, args: tuple[Value, ...]) -> Iterator[None]:
        """Call a lifted module: what it is given says how many layers it has."""
        from nnx_migrate.sizes.lifted import layers_seen

        key = id(module.call)
        if any(not one.sized for one in module.lifts):
            only = module.lifts[0] if len(module.lifts) == 1 else None
            self.layers[key] = None if only is None else layers_seen(only, args)
        try:
            yield
        finally:
            self.layers.pop(key, None)

    # ---- syntax

    def evaluate(self, node: ast.expr, frame: Frame) -> Value:
        """Abstract value of an expression."""
        from nnx_migrate.sizes.expressions import evaluate

        return evaluate(self, node, frame)

    def run(self, body: list[ast.stmt], frame: Frame) -> str | None:
        """Run a block; what ended it early, or None."""
        from nnx_migrate.sizes.statements import run

        return run(self, body, frame)

    # ---- calls

    def call_value(
        self, target: Value, args: tuple[Value, ...], kwargs: dict[str, Value], node: ast.Call
    ) -> Value:
        """Call any value outside a frame (layers that call other layers)."""
        frame = Frame(Scope(self.root.info.module), {}, None)
        return self.call(target, args, kwargs, node, frame)

    def call(
        self,
        target: Value,
        args: tuple[Value, ...],
        kwargs: dict[str, Value],
        node: ast.Call,
        frame: Frame,
    ) -> Value:
        """Result of calling an abstract value."""
        self.step()
        if self.depth > _DEPTH:
            return Unknown("calls nest too deeply")
        self.depth += 1
        try:
            return self._call(target, args, kwargs, node, frame)
        finally:
            self.depth -= 1

    def _call(
        self,
        target: Value,
        args: tuple[Value, ...],
        kwargs: dict[str, Value],
        node: ast.Call,
        frame: Frame,
    ) -> Value:
        from nnx_migrate.sizes.library import call_library
        from nnx_migrate.sizes.statements import call_function

        if isinstance(target, Function):
            self.entered.add(id(node))
        match target:
            case Submodule():
                return self.call_submodule(target, args, kwargs)
            case Instance():
                return self.call_instance(target, "__call__", args, kwargs)
            case Partial():
                merged = {**target.kwargs, **kwargs}
                return self._call(target.target, (*target.args, *args), merged, node, frame)
            case Class():
                return construction.construct(self, target, args, kwargs, node, frame)
            case Factories():
                return construction.construct_any(self, target, args, kwargs, node, frame)
            case DataClass():
                return construction.construct_record(self, target, args, kwargs)
            case Function(node=body) if id(body) in self.factories:
                return construction.construct_through(self, target, args, kwargs, node, frame)
            case Function(node=body) if id(body) in self.scope_functions:
                function = self.scope_functions[id(body)]
                return construction.call_in_scope(self, function, None, args, kwargs, node, frame)
            case Function():
                return call_function(self, target, args, kwargs)
            case LiftedLayer():
                return construction.construct_lifted(self, target, args, kwargs, node, frame)
            case Library(symbol=symbol) if is_layer(symbol):
                return construction.construct_layer(self, symbol, args, kwargs, node, frame)
            case Library(symbol=symbol):
                return call_library(self, symbol, args, kwargs, node, frame)
            case Native(function=function):
                return function(args, kwargs)
            case Choice():
                return self.call_choice(target, args, kwargs, node, frame)
            case _:
                return self.call_unknown(target, args, node, frame)

    def call_choice(
        self,
        target: Choice,
        args: tuple[Value, ...],
        kwargs: dict[str, Value],
        node: ast.Call,
        frame: Frame,
    ) -> Value:
        """One of several callables: those that are understood speak for the others."""
        from nnx_migrate.sizes.values import join_all

        classes = Class | Partial | Factories
        if all(isinstance(one, classes) or self._is_layer_value(one) for one in target.options):
            return construction.construct_any(
                self, Factories(target.options, ""), args, kwargs, node, frame
            )
        for one in target.options:
            self._check_no_module(one, node, frame)
        known = [one for one in target.options if not isinstance(one, Static | Unknown | Argument)]
        results = [self._call(one, args, kwargs, node, frame) for one in known]
        if not results:
            return self.call_unknown(target.options[0], args, node, frame)
        return join_all(target.test, results)

    def call_unknown(
        self, target: Value, args: tuple[Value, ...], node: ast.Call, frame: Frame
    ) -> Value:
        """A callable nobody knows: an activation, by far most often, keeps its input's shape."""
        from nnx_migrate.sizes.values import as_array

        self._check_no_module(target, node, frame)
        if isinstance(target, Static) and self._is_module_field(target):
            return Unknown("what a module of any class returns")
        is_callable = isinstance(target, Static | Argument)
        if is_callable and len(args) == 1 and (array := as_array(args[0])) is not None:
            if not changes_size(self, target, array, node, frame):
                return array
            return Unknown(f"{ast.unparse(node.func)} changes the size of what it is given")
        return Unknown("the called value is unknown", made_by=ast.unparse(node.func))

    def _check_no_module(self, target: Value, node: ast.Call, frame: Frame) -> None:
        """Calling what an unknown callable returned: it may be a submodule, built right here."""
        maker = target.made_by if isinstance(target, Unknown) else ""
        if isinstance(target, Array):  # an array is never called, so it was no activation
            maker = ast.unparse(node.func)
        is_ours = frame.instance is self.root or frame.instance is None
        if maker and is_ours:
            self.refuse(node, f"{maker} may build a submodule of a class that is not known")

    def _is_module_field(self, target: Static) -> bool:
        """Whether a value is a field that holds a module of any class."""
        name = target.expr.text.removeprefix("self.")
        found = next((one for one in self.root.info.fields if one.name == name), None)
        if found is None:
            return False
        return annotated_symbol(self.project, found) == "flax.linen.Module"

    def _is_layer_value(self, value: Value) -> bool:
        is_plain = isinstance(value, Library) and is_layer(value.symbol)
        return is_plain or isinstance(value, LiftedLayer)

    # ---- submodule calls

    def call_submodule(
        self, layer: Submodule, args: tuple[Value, ...], kwargs: dict[str, Value]
    ) -> Value:
        """Call a built-in layer, or a submodule whose class is only known at run time."""
        if layer.options:
            return self._call_options(layer, args, kwargs)
        if layer.lifts:
            from nnx_migrate.sizes.lifted import call_lifted

            given = self._to_lift(args)
            with self.unsized(layer, given):
                return call_lifted(
                    layer.lifts, given, lambda one: self._call_layer(layer, one, kwargs)
                )
        return self._call_layer(layer, args, kwargs)

    def _call_layer(
        self, layer: Submodule, args: tuple[Value, ...], kwargs: dict[str, Value]
    ) -> Value:
        chosen = next((one for one in (*args, *kwargs.values()) if _is_by_presence(one)), None)
        if chosen is not None:
            return self._call_by_presence(chosen, layer, args, kwargs)
        sizes, output = call_layer(LayerCall(self, layer, args, kwargs))
        self.record(layer, sizes)
        return output

    def _call_by_presence(
        self, chosen: Value, layer: Submodule, args: tuple[Value, ...], kwargs: dict[str, Value]
    ) -> Value:
        """``layer(c if c is not None else x)`` is one of two calls: ``layer(c)`` and ``layer(x)``."""
        assert isinstance(chosen, Choice)
        assert chosen.given is not None
        outputs = []
        for option, is_given in zip(chosen.options, (True, False), strict=True):
            left = tuple(option if one is chosen else one for one in args)
            named = {name: option if one is chosen else one for name, one in kwargs.items()}
            fact = ex.call_fact(chosen.given, ex.GIVEN)
            test = fact if is_given else ex.negation(fact)
            with self.under(test), self.knowing({chosen.given: is_given}):
                outputs.append(self._call_layer(layer, left, named))
        return join(None, *outputs)

    def _call_options(
        self, layer: Submodule, args: tuple[Value, ...], kwargs: dict[str, Value]
    ) -> Value:
        from nnx_migrate.sizes.values import as_array

        outputs = [self.call_value(one, args, kwargs, layer.call) for one in layer.options]
        array = as_array(args[0]) if args else None
        self.record(layer, {"in_features": array.axis(-1) if array else None})
        result = outputs[0]
        for other in outputs[1:]:
            result = join(None, result, other)
        joined = as_array(result)
        if joined is not None and joined.axis(-1) is None:
            own = layer.owner is self.root
            variable = out_variable(layer.call)
            return joined.with_last(ex.name(variable if own else f"{ex.FOREIGN}{variable}"))
        return result

    def call_instance(
        self, instance: Instance, method: str, args: tuple[Value, ...], kwargs: dict[str, Value]
    ) -> Value:
        """Call a method of a Linen instance."""
        from nnx_migrate.sizes.lifted import call_lifted

        lifts = tuple(one for one in instance.lifts if one.method == method)
        if lifts:
            given = self._to_lift(args)
            with self.unsized(instance, given):
                return call_lifted(
                    lifts,
                    given,
                    lambda one: self._run_method(instance, method, one, kwargs),
                )
        return self._run_method(instance, method, args, kwargs)

    def _to_lift(self, args: tuple[Value, ...]) -> tuple[Value, ...]:
        """Arguments of a lifted call, whose axes are counted from the front."""
        given = tuple(map(self.settled, args))
        arrays = [one for one in given if isinstance(one, Argument | Array)]
        self.ranks.wanted |= any(getattr(one, "rank", None) is None for one in arrays)
        return given

    def _run_method(
        self, instance: Instance, method: str, args: tuple[Value, ...], kwargs: dict[str, Value]
    ) -> Value:
        from nnx_migrate.sizes.statements import call_function, set_up

        found = instance.info.find(method)
        if found is None:
            return Unknown(f"{instance.info.name} has no method {method}")
        set_up(self, instance)
        cls, node = found
        names = [one.arg for one in (*node.args.posonlyargs, *node.args.args)][1:]
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        self.record(instance, {}, method, given)
        function = Function(node, cls.scope, {}, instance, cls)
        return call_function(self, function, args, kwargs)


def _is_by_presence(value: Value) -> bool:
    return isinstance(value, Choice) and value.given is not None


def out_variable(call: ast.Call) -> str:
    """Local variable of ``__init__`` that holds the output size of a run-time class."""
    return f"{OUT_VARIABLE}{call.lineno}_{call.col_offset}"


def spellable(expression: Expr) -> bool:
    """Whether an expression can be written in the root's ``__init__``."""
    return not any(one.startswith(ex.FOREIGN) for one in expression.names)


def _note_once(notes: list[tuple[ast.AST, str]], node: ast.AST, text: str) -> None:
    if all(one is not node for one, _ in notes):
        notes.append((node, text))
