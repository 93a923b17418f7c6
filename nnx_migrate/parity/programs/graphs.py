"""From StableHLO text to terms, and the question whether two programs are the same graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jax.interpreters import mlir
from jaxlib.mlir import ir

from nnx_migrate.parity.programs.equivalences import (
    DATAFLOW,
    LOOP_CARRIES,
    PRIVATE_FUNCTIONS,
    RULES,
    STRUCTURAL,
)
from nnx_migrate.parity.programs.loops import Loop, level
from nnx_migrate.parity.programs.terms import NOTHING, Attributes, Rule, TensorType, Term, Terms
from nnx_migrate.parity.programs.unit_mesh_axes import UNIT_MESH_AXES, without_unit_axes

_MAP = "sdy.manual_computation"
_NAMES = ("jax.result_info", "jax.arg_info")
# Above this many lines, finding out which rules were needed costs more than it tells.
_MINIMISE_BELOW = 8_000


def equal_by_rules(left: str, right: str) -> tuple[str, ...] | None:
    """Return the equivalences under which two StableHLO modules are the same, or None.

    ``DATAFLOW`` is one of them unless ``UNIT_MESH_AXES`` is enough. Rules that were not needed are
    left out, except in very long programs. Raises ValueError for text that is not a StableHLO
    module.
    """
    shorter = [without_unit_axes(text) for text in (left, right)]
    if shorter[0] == shorter[1] and left != right:
        return (UNIT_MESH_AXES,)
    with mlir.make_ir_context():
        forms: list[tuple[tuple[str, ...], Any, Any]] = [((), parse(left), parse(right))]
        if shorter != [left, right]:
            forms.append(((UNIT_MESH_AXES,), parse(shorter[0]), parse(shorter[1])))
        # Reading without rules is fast and mostly enough: it goes first, for both forms.
        for axes, ours, theirs in forms:
            if _same(ours, theirs, ()) is not None:
                return (*axes, DATAFLOW)
        may_minimise = left.count("\n") + right.count("\n") < _MINIMISE_BELOW
        for axes, ours, theirs in forms:
            rules = _rules_needed(ours, theirs, may_minimise)
            if rules is not None:
                return (*axes, DATAFLOW, *rules)
    return None


def same_but(left: str, right: str, without: Mapping[str, Rule]) -> bool:
    """Whether two StableHLO modules are the same once these rules were applied, too."""
    with mlir.make_ir_context():
        modules = parse(without_unit_axes(left)), parse(without_unit_axes(right))
        return _same(*modules, (*RULES, *STRUCTURAL), without) is not None


def _rules_needed(left: Any, right: Any, may_minimise: bool) -> tuple[str, ...] | None:
    """Return the rules under which two modules are the same, or None."""
    everything = (*RULES, *STRUCTURAL)
    rules_used = _same(left, right, everything)
    if rules_used is None:
        return None
    rules = [name for name in everything if name in rules_used]
    for name in list(rules) if may_minimise else ():
        fewer = [other for other in rules if other != name]
        if _same(left, right, fewer) is not None:
            rules = fewer
    return tuple(rules)


def _same(
    left: Any, right: Any, rules: Iterable[str], before: Mapping[str, Rule] | None = None
) -> set[str] | None:
    """Return the rules that fired when the two are the same under ``rules``, those before first."""
    names = frozenset(rules)
    rules_by_name = {name: rule for name, rule in RULES.items() if name in names}
    terms = Terms({**(before or {}), **rules_by_name})
    ours, theirs = (Reader(terms, names, module).program() for module in (left, right))
    return terms.fired if ours == theirs else None


def parse(text: str) -> Any:
    """The module of a text. Raises ValueError for text that is none."""
    try:
        return ir.Module.parse(text)
    except ir.MLIRError as error:
        raise ValueError(f"not a StableHLO module: {error}") from error


@dataclass
class Scope:
    """Where values are looked up: block arguments and results seen so far, by MLIR value.

    A region shares the values of what is around it: each is set anew before it is used.
    """

    depth: int
    values: dict[Any, int] = field(default_factory=dict)
    effects: list[int] = field(default_factory=list)


class Reader:
    """Reads a parsed module into terms."""

    def __init__(self, terms: Terms, rules: frozenset[str], module: Any) -> None:
        self._terms = terms
        self._rules = rules
        self._functions: dict[str, Any] = {}
        self._declarations: list[str] = []
        self._read_functions: dict[tuple[str, int], int] = {}
        self._loops = 0
        self._types: dict[Any, TensorType] = {}
        self._texts: dict[Any, str] = {}
        for operation in module.body.operations:
            if operation.operation.name == "func.func":
                name = ir.StringAttr(operation.attributes["sym_name"]).value
                self._functions[name] = operation.operation
            else:
                self._declarations.append(str(operation))

    def program(self) -> tuple[Any, ...]:
        """Return what decides equality: signature, declarations, results and effects."""
        main = self._functions["main"]
        block = main.regions[0].blocks[0]
        scope = Scope(0)
        for index, argument in enumerate(block.arguments):
            scope.values[argument] = self._argument(argument, index)
        results = self._block(block, scope)
        signature = tuple(
            str(main.attributes[name])
            for name in ("arg_attrs", "res_attrs")
            if name in main.attributes
        )
        types = tuple(str(argument.type) for argument in block.arguments)
        return types, signature, tuple(sorted(self._declarations)), results, tuple(scope.effects)

    def _argument(self, argument: Any, place: int) -> int:
        """What stands for an argument of the program."""
        return self._terms.intern(Term("argument", (), (), self._type(argument.type), place))

    def _block(self, block: Any, scope: Scope) -> tuple[int, ...]:
        """Read a block into ``scope`` and return what its terminator hands on."""
        for op_view in block.operations:
            operation = op_view.operation
            operands = tuple(scope.values[value] for value in operation.operands)
            if operation.name.endswith(".return"):
                return operands
            for result, number in zip(
                operation.results, self._operation(operation, operands, scope), strict=True
            ):
                scope.values[result] = number
        return ()

    def _operation(self, operation: Any, operands: tuple[int, ...], scope: Scope) -> list[int]:
        if operation.name == "func.call":
            return self._call(operation, operands, scope)
        if operation.name == "stablehlo.while" and LOOP_CARRIES in self._rules:
            loop = self._while(operation, operands, scope)
            if loop is not None:
                self._terms.fired.add(LOOP_CARRIES)
                return loop
        is_constant = operation.name == "stablehlo.constant"
        attributes = _constant(operation) if is_constant else self._attributes(operation)
        regions = tuple(self._region(region, scope) for region in operation.regions)
        operands += regions
        results = [
            self._terms.make(
                Term(operation.name, attributes, operands, self._type(result.type), index)
            )
            for index, result in enumerate(operation.results)
        ]
        # With no results and no effects within, jax's maps over stages do nothing.
        is_idle = operation.name == _MAP and not any(self._terms[one].index for one in regions)
        if ("has_side_effect", "true") in attributes or not (results or is_idle):
            term = Term(operation.name, attributes, operands, NOTHING, len(scope.effects))
            scope.effects.append(self._terms.intern(term))
        return results

    def _call(self, operation: Any, operands: tuple[int, ...], scope: Scope) -> list[int]:
        callee = ir.FlatSymbolRefAttr(operation.attributes["callee"]).value
        block = self._functions[callee].regions[0].blocks[0]
        if PRIVATE_FUNCTIONS in self._rules:
            self._terms.fired.add(PRIVATE_FUNCTIONS)
            inner = Scope(scope.depth, dict(zip(block.arguments, operands, strict=True)))
            results = list(self._block(block, inner))
            scope.effects += inner.effects
            return results
        place = (callee, scope.depth)
        function = self._read_functions.get(place)
        if function is None:
            function = self._region(self._functions[callee].regions[0], Scope(scope.depth))
            self._read_functions[place] = function
        term = Term("func.call", (), (*operands, function), NOTHING)
        return [
            self._terms.make(Term(term.op, (), term.operands, self._type(result.type), index))
            for index, result in enumerate(operation.results)
        ]

    def _region(self, region: Any, scope: Scope) -> int:
        """Return a region as a term; its arguments are told apart by depth and place."""
        inner = Scope(scope.depth + 1, scope.values)
        results: tuple[int, ...] = ()
        types: list[str] = []
        for block in region.blocks:
            for index, argument in enumerate(block.arguments):
                types.append(str(argument.type))
                inner.values[argument] = self._terms.intern(
                    Term("argument", level(inner.depth), (), self._type(argument.type), index)
                )
            results = self._block(block, inner)
        attributes = (("arguments", ",".join(types)), *level(inner.depth))
        return self._terms.intern(
            Term("region", attributes, (*results, *inner.effects), NOTHING, len(inner.effects))
        )

    def _while(self, operation: Any, initial: tuple[int, ...], scope: Scope) -> list[int] | None:
        """Return the results of a loop by what each carried value is, not by its place.

        Carried values are told apart by refinement: by initial value, then by how the body
        computes them from values already told apart, until nothing new is told apart. Values
        that never change are their initial value. None when a body has effects.
        """
        self._loops += 1
        condition, body = (region.blocks[0] for region in operation.regions)
        types = [self._type(value.type) for value in operation.results]
        carry = self._loop_carry(types, initial)
        for block in (condition, body):
            scope.values.update(zip(block.arguments, carry, strict=True))
        inner = [Scope(scope.depth + 1, scope.values) for _ in (condition, body)]
        (test,), steps = (
            self._block(block, one) for block, one in zip((condition, body), inner, strict=True)
        )
        if inner[0].effects or inner[1].effects:
            return None
        return Loop(self._terms, carry, initial, test, steps, scope.depth + 1).results()

    def _loop_carry(self, types: Sequence[TensorType], initial: tuple[int, ...]) -> list[int]:
        """What stands for the values that the newest loop carries, by their places."""
        loop = (("loop", str(self._loops)),)
        return [
            self._terms.intern(Term("carried", loop, (), one, place))
            for place, one in enumerate(types)
        ]

    def _type(self, kind: Any) -> TensorType:
        found = self._types.get(kind)
        if found is None:
            found = self._types[kind] = _tensor_type(kind)
        return found

    def _attributes(self, operation: Any) -> Attributes:
        found = []
        for entry in operation.attributes:
            name = entry if isinstance(entry, str) else entry.name
            if name not in _NAMES:
                try:
                    value = self._text(operation.attributes[name])
                except TypeError:  # the bindings do not read complex elements
                    value = str(operation).partition("=")[2].strip()
                found.append((name, value))
        return tuple(sorted(found))

    def _text(self, attribute: Any) -> str:
        found = self._texts.get(attribute)
        if found is None:
            found = self._texts[attribute] = str(attribute)
        return found


def _tensor_type(kind: Any) -> TensorType:
    if not isinstance(kind, ir.RankedTensorType):
        return TensorType(None, str(kind))
    if kind.encoding is not None or not kind.has_static_shape:
        return TensorType(None, str(kind))
    return TensorType(tuple(kind.shape), str(kind.element_type))


def _constant(operation: Any) -> Attributes:
    """Return a constant's value; of a repeated value, the value once, without its shape."""
    try:
        value = operation.attributes["value"]
        elements = ir.DenseElementsAttr(value)
    except (TypeError, ValueError):  # element types that the bindings do not read: complex
        return (("value", str(operation).partition("=")[2].strip()),)
    if elements.is_splat:
        text = str(elements)
        return (("splat", text[text.index("<") + 1 : text.rindex("> :")]),)
    return (("value", str(value)),)
