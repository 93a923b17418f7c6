"""From StableHLO text to terms, and the question whether two programs are the same graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
    without_mark,
)
from nnx_migrate.parity.programs.terms import Attributes, Rule, TensorType, Term, Terms
from nnx_migrate.parity.programs.unit_mesh_axes import UNIT_MESH_AXES, without_unit_axes

_NAMES = ("jax.result_info", "jax.arg_info")
_NOTHING = TensorType(None, "")
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
    rules = _rules(left, right)
    if rules is not None or shorter == [left, right]:
        return rules
    rules = _rules(*shorter)
    return None if rules is None else (UNIT_MESH_AXES, *rules)


def same_but_marks(left: str, right: str) -> bool:
    """Whether two StableHLO modules are the same once constraints and barriers are left out."""
    with mlir.make_ir_context():
        modules = parse(without_unit_axes(left)), parse(without_unit_axes(right))
        return _same(*modules, (*RULES, *STRUCTURAL), {"marks": without_mark}) is not None


def _rules(left: str, right: str) -> tuple[str, ...] | None:
    """Return the equivalences of dataflow under which two modules are the same, or None."""
    everything = (*RULES, *STRUCTURAL)
    with mlir.make_ir_context():
        modules = parse(left), parse(right)
        if _same(*modules, ()) is not None:
            return (DATAFLOW,)
        fired = _same(*modules, everything)
        if fired is None:
            return None
        needed = [name for name in everything if name in fired]
        if left.count("\n") + right.count("\n") < _MINIMISE_BELOW:
            for name in list(needed):
                fewer = [other for other in needed if other != name]
                if _same(*modules, fewer) is not None:
                    needed = fewer
    return (DATAFLOW, *needed)


def _same(
    left: Any, right: Any, rules: Iterable[str], before: Mapping[str, Rule] | None = None
) -> set[str] | None:
    """Return the rules that fired when the two are the same under ``rules``, those before first."""
    names = frozenset(rules)
    chosen = {name: rule for name, rule in RULES.items() if name in names}
    terms = Terms({**(before or {}), **chosen})
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
    """Where values are looked up: block arguments and results seen so far, by MLIR value."""

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
        self._loops = 0
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
            scope.values[argument] = self._terms.intern(
                Term("argument", (), (), _type(argument.type), index)
            )
        results = self._block(block, scope)
        signature = tuple(
            str(main.attributes[name])
            for name in ("arg_attrs", "res_attrs")
            if name in main.attributes
        )
        types = tuple(str(argument.type) for argument in block.arguments)
        return types, signature, tuple(sorted(self._declarations)), results, tuple(scope.effects)

    def _block(self, block: Any, scope: Scope) -> tuple[int, ...]:
        """Read a block into ``scope`` and return what its terminator hands on."""
        for wrapped in block.operations:
            operation = wrapped.operation
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
        attributes = _attributes(operation)
        if operation.name == "stablehlo.constant":
            attributes = _constant(operation)
        operands += tuple(self._region(region, scope) for region in operation.regions)
        results = [
            self._terms.make(Term(operation.name, attributes, operands, _type(result.type), index))
            for index, result in enumerate(operation.results)
        ]
        if dict(attributes).get("has_side_effect") == "true" or not results:
            term = Term(operation.name, attributes, operands, _NOTHING, len(scope.effects))
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
        function = self._region(self._functions[callee].regions[0], Scope(scope.depth))
        term = Term("func.call", (), (*operands, function), _NOTHING)
        return [
            self._terms.make(Term(term.op, (), term.operands, _type(result.type), index))
            for index, result in enumerate(operation.results)
        ]

    def _region(self, region: Any, scope: Scope) -> int:
        """Return a region as a term; its arguments are told apart by depth and place."""
        inner = Scope(scope.depth + 1, dict(scope.values))
        results: tuple[int, ...] = ()
        types: list[str] = []
        for block in region.blocks:
            for index, argument in enumerate(block.arguments):
                types.append(str(argument.type))
                inner.values[argument] = self._terms.intern(
                    Term("argument", _depth(inner), (), _type(argument.type), index)
                )
            results = self._block(block, inner)
        attributes = (("arguments", ",".join(types)),)
        return self._terms.intern(
            Term("region", attributes, (*results, *inner.effects), _NOTHING, len(inner.effects))
        )

    def _while(self, operation: Any, initial: tuple[int, ...], scope: Scope) -> list[int] | None:
        """Return the results of a loop by what each carried value is, not by its place.

        Carried values are told apart by refinement: by initial value, then by how the body
        computes them from values already told apart, until nothing new is told apart. Values
        that never change are their initial value. None when a body has effects.
        """
        self._loops += 1
        condition, body = (region.blocks[0] for region in operation.regions)
        carried = [
            self._terms.intern(
                Term("carried", (("loop", str(self._loops)),), (), _type(value.type), index)
            )
            for index, value in enumerate(operation.results)
        ]
        inner = [
            Scope(
                scope.depth + 1,
                {**scope.values, **dict(zip(block.arguments, carried, strict=True))},
            )
            for block in (condition, body)
        ]
        (test,), steps = (
            self._block(block, one) for block, one in zip((condition, body), inner, strict=True)
        )
        if inner[0].effects or inner[1].effects:
            return None
        return _Loop(self._terms, carried, initial, test, steps, scope.depth + 1).results()


@dataclass
class _Loop:
    """A loop over ``carried`` placeholders: ``test`` and ``steps`` are terms over them."""

    terms: Terms
    carried: list[int]
    initial: tuple[int, ...]
    test: int
    steps: tuple[int, ...]
    depth: int

    def results(self) -> list[int]:
        """Return the term of every result, in the operation's order."""
        return [self._result(index) for index in range(len(self.carried))]

    def _result(self, index: int) -> int:
        if self.steps[index] == self.carried[index]:
            return self.initial[index]
        live = self._live({index})
        colours = self._colours(live)
        place = self._placed(colours)
        values = self.terms.substitute([self.test], place)
        parts = (values[self.test], colours[index], *sorted(set(colours.values())))
        return self.terms.intern(
            Term("loop", _level(self.depth), parts, self.terms[self.carried[index]].type)
        )

    def _live(self, wanted: set[int]) -> list[int]:
        """Return which carried values the wanted ones and the test depend on."""
        places = {number: index for index, number in enumerate(self.carried)}
        live = set(wanted)
        todo = [self.test, *(self.steps[index] for index in wanted)]
        while todo:
            for number in self.terms.reachable([todo.pop()]):
                index = places.get(number)
                if index is not None and index not in live:
                    live.add(index)
                    todo.append(self.steps[index])
        return sorted(live)

    def _colours(self, live: list[int]) -> dict[int, int]:
        fixed = [index for index in live if self.steps[index] == self.carried[index]]
        moving = [index for index in live if index not in fixed]
        colours = {index: self.initial[index] for index in fixed}
        colours |= {index: self._colour((self.initial[index],)) for index in moving}
        known = 0
        while len({colours[index] for index in moving}) > known:
            known = len({colours[index] for index in moving})
            values = self.terms.substitute(
                [self.steps[index] for index in moving], self._placed(colours, fixed)
            )
            colours |= {
                index: self._colour((colours[index], values[self.steps[index]])) for index in moving
            }
        self._fixed = fixed
        return colours

    def _colour(self, parts: tuple[int, ...]) -> int:
        return self.terms.intern(Term("colour", _level(self.depth), parts, _NOTHING))

    def _placed(
        self, colours: dict[int, int], fixed: Iterable[int] | None = None
    ) -> dict[int, int]:
        """Return what stands for each placeholder: an unchanging value, or "the value so coloured"."""
        fixed = set(self._fixed if fixed is None else fixed)
        return {
            self.carried[index]: colour
            if index in fixed
            else self.terms.intern(
                Term("carry", _level(self.depth), (colour,), self.terms[self.carried[index]].type)
            )
            for index, colour in colours.items()
        }


def _level(depth: int) -> Attributes:
    return (("depth", str(depth)),)


def _depth(scope: Scope) -> Attributes:
    return _level(scope.depth)


def _type(value: Any) -> TensorType:
    if not isinstance(value, ir.RankedTensorType):
        return TensorType(None, str(value))
    kind = value
    if kind.encoding is not None or not kind.has_static_shape:
        return TensorType(None, str(value))
    return TensorType(tuple(kind.shape), str(kind.element_type))


def _attributes(operation: Any) -> Attributes:
    found = []
    for entry in operation.attributes:
        name = entry if isinstance(entry, str) else entry.name
        if name not in _NAMES:
            try:
                value = str(operation.attributes[name])
            except TypeError:  # the bindings do not read complex elements
                value = str(operation).partition("=")[2].strip()
            found.append((name, value))
    return tuple(sorted(found))


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
