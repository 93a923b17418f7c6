"""Attributes of ``setup`` that follow a parameter or variable: properties that compute them.

``self.scaled = 2 * self.param("scale", ...)`` becomes ``self.scale = nnx.Param(...)`` and a property
``scaled`` that returns ``2 * self.scale[...]``, as Linen computes it anew at every call.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from nnx_migrate.edit.expressions import Expression, contents, dotted_node
from nnx_migrate.edit.rendering import Renderer
from nnx_migrate.edit.statements import GONE, Statement, assign, line, on_one_line
from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.items import Item, ItemKind, stored_name
from nnx_migrate.rewrite.classes.reading.arrays import Inliner, is_alone, property_value
from nnx_migrate.rewrite.classes.reading.attributes import Attribute, Kind, statements
from nnx_migrate.rewrite.classes.setup.dependence import Dependence
from nnx_migrate.rewrite.classes.setup.kept_values import KeptValues
from nnx_migrate.rewrite.classes.uses.references import Edits
from nnx_migrate.rewrite.classes.writing.construct import Builder
from nnx_migrate.source.walking import is_name, walk

RULE = "setup"
_MAYBE = (ast.IfExp, ast.BoolOp, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp)


@dataclass(frozen=True)
class Storing:
    """Stores the variables that one statement of ``setup`` makes inside a larger expression."""

    items: Mapping[int, Item]
    builder: Builder

    def statements(self, items: Iterable[Item], renderer: Renderer) -> list[Statement]:
        """One assignment for each variable."""
        return [assign(f"self.{stored_name(one)}", self.builder(one, renderer)) for one in items]

    def made_in(self, statement: ast.AST) -> list[Item]:
        """Variables made in ``statement``, in the order in which Linen makes them."""
        found = [self.items[id(one)] for one in walk(statement) if id(one) in self.items]
        made = [one for one in found if one.is_own_variable]
        return sorted(made, key=lambda one: (one.call.lineno, one.call.col_offset))

    def before(self, statement: ast.Assign) -> Callable[[Renderer], Sequence[Statement]]:
        """Edit: ``width = 2 * self.param(...)`` of a local name, the variables stored first."""
        made = self.made_in(statement)
        reads = reads_of(made)

        def make(renderer: Renderer) -> Sequence[Statement]:
            read = renderer.without(statement, *(one.call for one in made)).with_edits(reads)
            return [*self.statements(made, renderer), line(read.inner(statement))]

        return make


def reads_of(items: Iterable[Item]) -> dict[int, Expression]:
    """What reads each variable, by the id of the call that makes it."""
    found: dict[int, Expression] = {}
    for one in items:
        reference = dotted_node(f"self.{stored_name(one)}")
        found[id(one.call)] = contents(reference) if one.kind is ItemKind.PARAM else reference
    return found


def certain_items(value: ast.AST, items: Mapping[int, Item]) -> Iterator[int]:
    """Variables (by id of their call) that evaluating ``value`` always makes."""
    item = items.get(id(value))
    if item is not None:
        yield id(value)
    elif not isinstance(value, _MAYBE):
        for child in ast.iter_child_nodes(value):
            yield from certain_items(child, items)


@dataclass(frozen=True)
class ComputedAttributes:
    """Converts the computed attributes of one ``setup``."""

    method: ast.FunctionDef
    storing: Storing
    inliner: Inliner
    kept_values: KeptValues

    def add(
        self,
        attributes: list[Attribute],
        renderer: Renderer,
        edits: Edits,
        properties: dict[str, Expression],
    ) -> None:
        """Give every computed attribute its property.

        Raises:
          Refused: an attribute that follows a variable cannot be computed where it is read.
        """
        for one in attributes:
            if one.kind is not Kind.COMPUTED:
                continue
            made = self.storing.made_in(one.statement)
            edits[id(one.statement)] = self._storing(made) if made else GONE
            steps = self._steps(attributes, one)
            if steps and one is not steps[-1]:
                continue
            is_steady = self.kept_values.is_steady(one, max(len(steps), 1))
            value = self._value(steps, renderer) if is_steady else None
            if value is None:
                raise ClassRefused(
                    one.statement,
                    f"self.{one.name} follows a parameter or variable, and only setup can compute it",
                    "compute it in the method that reads it",
                    RULE,
                )
            properties[one.storage_name or one.name] = value

    def _steps(self, attributes: list[Attribute], one: Attribute) -> list[Attribute]:
        """The statements that compute an attribute, one right after the other; none where others do."""
        steps = [other for other in attributes if other.name == one.name]
        body = self.method.body
        if not all(is_alone(step) and step.statement in body for step in steps):
            return []
        first = body.index(steps[0].statement)
        same = body[first : first + len(steps)] == [step.statement for step in steps]
        return steps if same else []

    def _value(self, steps: list[Attribute], renderer: Renderer) -> Expression | None:
        """The last value, in which what ``self.a = self.a * 2`` reads is the value before."""
        before: Expression | None = None
        for number, step in enumerate(steps):
            reads = [one for one in walk(step.value) if _is_read(one, step.name)] if number else []
            edits = {} if before is None else {id(one): on_one_line(before) for one in reads}
            before = property_value(self.inliner, step.value, renderer.with_edits(edits))
            if before is None:
                return None
        return before

    def _storing(self, items: list[Item]) -> Callable[[Renderer], Sequence[Statement]]:
        return lambda renderer: self.storing.statements(items, renderer)


def check_assignments(
    method: ast.FunctionDef, attributes: list[Attribute], dependence: Dependence
) -> None:
    """Refuse what ``setup`` keeps of a variable in a way no property stands for.

    Raises:
      Refused: ``self.a, self.b = jnp.split(w, 2)``, ``self.a += w``, ``setattr(self, "a", w)``.
    """
    known = {id(one.target) for one in attributes if one.kind is not Kind.PLAIN}
    for statement in statements(method.body):
        for target, value in _stores(statement):
            is_attribute = isinstance(target, ast.Attribute) and id(target) in known
            if not is_attribute and dependence.of(value) and _is_ours(target, dependence.receiver):
                raise ClassRefused(
                    statement,
                    "what this keeps follows a parameter or variable, and __init__ runs only once",
                    "compute it in the method that reads it",
                    RULE,
                )


def _stores(statement: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr]]:
    match statement:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
                spread = isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(parts)
                if spread and len(parts) > 1:
                    yield from zip(parts, value.elts, strict=True)  # type: ignore[attr-defined]
                else:
                    yield from ((part, value) for part in parts)
        case ast.AugAssign(target=target, value=value):
            yield target, value
        case ast.Expr(value=ast.Call(func=ast.Name("setattr"), args=[owner, _, value])):
            yield ast.Attribute(owner, "", ast.Store()), value


def _is_ours(target: ast.AST, receiver: str) -> bool:
    """Whether assigning to ``target`` changes an attribute of the module."""
    return any(
        isinstance(one, ast.Attribute) and is_name(one.value, receiver) for one in walk(target)
    )


def _is_read(node: ast.AST, name: str) -> bool:
    match node:
        case ast.Attribute(value=ast.Name(id="self"), attr=attr, ctx=ast.Load()):
            return attr == name
    return False
