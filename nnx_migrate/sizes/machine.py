"""Run a Linen class abstractly: constructors, calls and control flow, over abstract values.

Nothing of the user's code is imported or executed. One `Machine` analyses one class (the
*root*): its methods run on unknown inputs, methods of its submodules are followed inline, so that
every size comes out as an expression over the root's own fields and inputs.
"""

from __future__ import annotations

import ast
from contextlib import nullcontext

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.joining import as_array, join, join_all
from nnx_migrate.abstract.questions import by_position
from nnx_migrate.abstract.values import (
    SPREAD,
    STARRED,
    Argument,
    Array,
    CallForm,
    Choice,
    Class,
    DataClass,
    Factories,
    Instance,
    Library,
    Native,
    Partial,
    Perhaps,
    Static,
    Submodule,
    Unknown,
    Value,
)
from nnx_migrate.constructs import layer_of
from nnx_migrate.constructs.common.shapes import ShapeCall, opaque
from nnx_migrate.sizes import construction
from nnx_migrate.sizes.attributes import attribute_of
from nnx_migrate.sizes.callables import changes_size, is_of_helper
from nnx_migrate.sizes.choices import each
from nnx_migrate.sizes.expressions.evaluation import evaluate
from nnx_migrate.sizes.fields.modules import is_module
from nnx_migrate.sizes.frames import Frame, Function
from nnx_migrate.sizes.interpreter import Interpreter
from nnx_migrate.sizes.library.dispatch import call_library
from nnx_migrate.sizes.lifts import call_through_lifts
from nnx_migrate.sizes.lists import lose_arguments
from nnx_migrate.sizes.loop_names import loop_around
from nnx_migrate.sizes.out_variables import out_variable
from nnx_migrate.sizes.statements.blocks import run_block
from nnx_migrate.sizes.statements.functions import call_function, set_up
from nnx_migrate.sizes.unknown_builders import check_class_or_function, check_maker, note_unknown
from nnx_migrate.source.names import positional_names

_DEPTH = 60


class Machine(Interpreter):
    """Runs code of a class under analysis; see the module docstring."""

    evaluate = evaluate
    run_block = run_block
    attribute = attribute_of
    call_library = call_library
    call_function = call_function
    set_up = set_up

    # ---- calls

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
        self.known_callees.setdefault(id(node), True)
        if self.depth > _DEPTH:
            return Unknown("calls nest too deeply")
        self.depth += 1
        try:
            return self._call(target, args, kwargs, node, frame)
        finally:
            self.depth -= 1

    def _call_perhaps(
        self,
        item: Value,
        test: Expr | None,
        args: tuple[Value, ...],
        kwargs: dict[str, Value],
        node: ast.Call,
        frame: Frame,
    ) -> Value:
        """What a layer makes that may not be there: else its argument goes on as it is."""
        is_module = isinstance(item, Submodule | Instance) and item.is_conditional
        with nullcontext() if is_module else self.under(test):  # a module is where it is built
            made = self._call(item, args, kwargs, node, frame)
        if len(args) != 1 or kwargs:
            return Unknown("several arguments of a layer that may not be there")
        return join(None, made, args[0])

    def _call(
        self,
        target: Value,
        args: tuple[Value, ...],
        kwargs: dict[str, Value],
        node: ast.Call,
        frame: Frame,
    ) -> Value:
        if isinstance(target, Function):
            self.entered_calls.add(id(node))
        match target:
            case Submodule():
                return self.call_submodule(target, args, kwargs)
            case Instance():
                return self.call_instance(target, "__call__", args, kwargs)
            case Perhaps(item=item, test=test):
                return self._call_perhaps(item, test, args, kwargs, node, frame)
            case Partial():
                merged = {**target.kwargs, **kwargs}
                return self._call(target.target, (*target.args, *args), merged, node, frame)
            case Class():
                return construction.construct(self, target, args, kwargs, node, frame)
            case Factories():
                return construction.construct_any(self, target, args, kwargs, node, frame)
            case DataClass():
                return construction.construct_record(target, args, kwargs)
            case Function(node=body) if self.builds_by(body, node):
                return construction.construct_through(self, target, args, kwargs, node, frame)
            case Function(node=body) if id(body) in self.scope_functions:
                function = self.scope_functions[id(body)]
                return construction.call_in_scope(self, function, None, args, kwargs, node, frame)
            case Function():
                return call_function(self, target, args, kwargs)
            case Library(symbol=symbol) if layer_of(symbol):
                return construction.construct_layer(self, symbol, args, kwargs, node, frame)
            case Library(symbol=symbol):
                return call_library(self, symbol, args, kwargs, node, frame)
            case Native(function=function):
                return function(args, kwargs)
            case Choice():
                return self.call_choice(target, args, kwargs, node, frame)
            case _:
                lose_arguments((*args, *kwargs.values()), frame)
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
        classes = Class | Partial | Factories
        if all(isinstance(one, classes) or self._is_layer_value(one) for one in target.options):
            return construction.construct_any(
                self, Factories(target.options, ""), args, kwargs, node, frame
            )
        for one in target.options:
            check_maker(self, one, "", node, frame)
        check_class_or_function(self, target.options, node)
        known = [one for one in target.options if not isinstance(one, Static | Unknown | Argument)]
        if not known:
            lose_arguments((*args, *kwargs.values()), frame)
            return self.call_unknown(target.options[0], args, node, frame)
        results = each(self, target, known, lambda one: self._call(one, args, kwargs, node, frame))
        return join_all(target.test, results)

    def call_unknown(
        self, target: Value, args: tuple[Value, ...], node: ast.Call, frame: Frame
    ) -> Value:
        """A callable nobody knows: a field is an activation, by far most often, and keeps its input's shape."""
        note_unknown(self, target, node, args)
        check_maker(self, target, "", node, frame)
        if isinstance(target, Static) and is_module(self.project, self.root.info, target.expr.text):
            # A class among the fields is called twice: ``self.block(4)(x)``.
            maker = ast.unparse(node.func)
            return Unknown("what a module of any class returns", made_by=maker, is_foreign=True)
        array = as_array(args[0]) if len(args) == 1 else None
        if array is not None and (isinstance(target, Static) or is_of_helper(self, target)):
            if not changes_size(self, target, array, node, frame):
                return array
            return Unknown(f"{ast.unparse(node.func)} changes the size of what it is given")
        return Unknown("the called value is unknown", made_by=ast.unparse(node.func))

    def _is_layer_value(self, value: Value) -> bool:
        return isinstance(value, Library) and layer_of(value.symbol) is not None

    # ---- submodule calls

    def call_submodule(
        self, layer: Submodule, args: tuple[Value, ...], kwargs: dict[str, Value]
    ) -> Value:
        """Call a built-in layer, or a submodule whose class is only known at run time."""
        if layer.options:
            return self._call_options(layer, args, kwargs)
        if layer.lifts:
            arguments = self._to_lift(args)
            return call_through_lifts(
                layer.lifts, arguments, lambda one: self._call_layer(layer, one, kwargs)
            )
        return self._call_layer(layer, args, kwargs)

    def _call_layer(
        self, layer: Submodule, args: tuple[Value, ...], kwargs: dict[str, Value]
    ) -> Value:
        chosen = next((one for one in (*args, *kwargs.values()) if _is_by_presence(one)), None)
        if chosen is not None:
            return self._call_by_presence(chosen, layer, args, kwargs)
        known = layer_of(layer.symbol)
        shape = opaque if known is None else known.shape
        call = ShapeCall(self, layer, args, kwargs)
        sizes, output = shape(call)
        if "in_features" in sizes:
            self.prove(call.first, least=1)
        is_open = SPREAD in kwargs or STARRED in args
        form = None if is_open else CallForm(len(args), frozenset(kwargs))
        self.record(layer, sizes, form=form)
        return output

    def _call_by_presence(
        self, choice: Value, layer: Submodule, args: tuple[Value, ...], kwargs: dict[str, Value]
    ) -> Value:
        """``layer(c if c is not None else x)`` is one of two calls: ``layer(c)`` and ``layer(x)``."""
        assert isinstance(choice, Choice)
        assert choice.parameter is not None
        outputs = []
        for option, is_given in zip(choice.options, (True, False), strict=True):
            left = tuple(option if one is choice else one for one in args)
            named = {name: option if one is choice else one for name, one in kwargs.items()}
            fact = ex.call_fact(choice.parameter, ex.GIVEN)
            test = fact if is_given else ex.negation(fact)
            with self.under(test), self.knowing({choice.parameter: is_given}):
                outputs.append(self._call_layer(layer, left, named))
        return join(None, *outputs)

    def _call_options(
        self, layer: Submodule, args: tuple[Value, ...], kwargs: dict[str, Value]
    ) -> Value:
        outputs = [self.call_value(one, args, kwargs, layer.call) for one in layer.options]
        array = as_array(args[0]) if args else None
        self.prove(array, least=1)
        self.record(layer, {"in_features": array.axis(-1) if array else None})
        result = outputs[0]
        for other in outputs[1:]:
            result = join(None, result, other)
        joined = as_array(result)
        if joined is not None and joined.axis(-1) is None:
            variable = out_variable(layer)
            if layer.owner is not self.root:
                return joined.with_last(ex.name(f"{ex.FOREIGN}{variable}"))
            loop = loop_around(self.root.info, layer.call)
            name = variable if loop is None else self.loop_names.of(loop, variable)
            return joined.with_last(ex.name(name))
        return result

    def call_instance(
        self, instance: Instance, method: str, args: tuple[Value, ...], kwargs: dict[str, Value]
    ) -> Value:
        """Call a method of a Linen instance."""
        lifts = instance.lifts if method == "__call__" else ()
        if lifts:
            arguments = self._to_lift(args)
            return call_through_lifts(
                lifts, arguments, lambda one: self._run_method(instance, method, one, kwargs)
            )
        return self._run_method(instance, method, args, kwargs)

    def _to_lift(self, args: tuple[Value, ...]) -> tuple[Value, ...]:
        """Arguments of a lifted call, whose axes are counted from the front."""
        arguments = tuple(map(self.as_array, args))
        arrays = [one for one in arguments if isinstance(one, Argument | Array)]
        self.ranks.lacks_ranks |= any(getattr(one, "rank", None) is None for one in arrays)
        return arguments

    def _run_method(
        self, instance: Instance, method: str, args: tuple[Value, ...], kwargs: dict[str, Value]
    ) -> Value:
        found = instance.info.find(method)
        if found is None:
            return Unknown(f"{instance.info.name} has no method {method}")
        self.set_up(instance)
        cls, node = found
        names = positional_names(node.args)[1:]
        arguments = {**by_position(names, args), **kwargs}
        self.record(instance, {}, method, arguments)
        function = Function(node, cls.scope, {}, instance, cls)
        return call_function(self, function, args, kwargs)


def _is_by_presence(value: Value) -> bool:
    return isinstance(value, Choice) and value.parameter is not None
