"""Edits of every Linen name and Linen function call inside one class (layer sites excluded)."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any

from nnx_migrate.constructs import (
    convert_call,
    convert_carry,
    convert_decorator,
    is_layer,
    is_linen,
    layer_of,
    name_rule,
    rule_for,
)
from nnx_migrate.constructs.common.base import Code, Context, LayerCall, Refusal, Source
from nnx_migrate.constructs.common.rules import NameRule
from nnx_migrate.edit.expressions import dotted_node
from nnx_migrate.edit.rendering import Renderer, Replacement
from nnx_migrate.edit.statements import GONE
from nnx_migrate.model import Confidence
from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.render import renderer_of
from nnx_migrate.sizes.carry_cells import carry_cells
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.names import name_parts, table_of
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.walking import each, walk

RULE = "class"
Edits = dict[int, Replacement]
_TYPE_QUESTIONS = (("isinstance",), ("issubclass",))
_Resolve = Callable[[ast.expr], str | None]
_Convert = Callable[[ast.Call, Source, _Resolve], Code | Refusal | None]


@dataclass
class Remarks:
    """What the pieces of a conversion leave behind: imports, remarks, reasons to look."""

    imports: set[str] = field(default_factory=set)
    notes: list[tuple[ast.AST, str]] = field(default_factory=list)
    review: list[tuple[ast.AST, str]] = field(default_factory=list)

    def copy(self) -> Remarks:
        """A copy to go back to."""
        return Remarks(set(self.imports), list(self.notes), list(self.review))

    def restore(self, other: Remarks) -> None:
        """Forget what came after ``other`` was copied."""
        self.imports, self.notes, self.review = other.imports, other.notes, other.review

    def take(self, code: Code | Refusal, node: ast.AST) -> Any:
        """The node of ``code``; ``GONE`` of a decorator that goes.

        Raises:
          Refused: it is a refusal.
        """
        if isinstance(code, Refusal):
            raise ClassRefused(code.node or node, code.reason, code.recipe, RULE)
        self.imports |= code.imports
        self.notes += [(node, note) for note in code.findings]
        if code.confidence is Confidence.REVIEW:
            self.review += [(node, note) for note in code.findings or ("look at this",)]
        return GONE if code.node is None else code.node


@dataclass(frozen=True)
class Reference:
    """The longest dotted expression that resolves to a symbol, and where it stands."""

    node: ast.expr
    symbol: str
    context: Context
    call: ast.Call | None = None  # the call whose function it is


def references(project: Project, cls: ClassInfo) -> Iterator[Reference]:
    """Every resolved dotted expression in the class statement, nested Linen classes left out."""
    node = cls.node
    for decorator in node.decorator_list:
        yield from _walk(project, decorator, cls.scope, Context.DECORATOR)
    for base in node.bases:
        yield from _walk(project, base, cls.scope, Context.BASE)
    table, _ = table_of(node.body, cls.module.package)
    inside = Scope(cls.scope.module, (table, *cls.scope.tables))
    for statement in node.body:
        yield from _statement(project, statement, inside, cls.scope)


def _inherited_defaults(project: Project, cls: ClassInfo) -> Iterator[Reference]:
    """Those in the defaults of inherited fields, which the constructor of the class has again."""
    for one in cls.fields:
        if one.owner is not cls and one.default is not None:
            yield from _walk(project, one.default, one.owner.scope, Context.VALUE)


def _statement(project: Project, node: ast.AST, scope: Scope, outer: Scope) -> Iterator[Reference]:
    """A class-body statement; functions see ``outer``, not the class' own names."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield from _function(project, node, scope, outer)
    else:
        yield from _walk(project, node, scope, Context.VALUE)


def _function(
    project: Project, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope, outer: Scope
) -> Iterator[Reference]:
    for decorator in node.decorator_list:
        yield from _walk(project, decorator, scope, Context.DECORATOR)
    if node.returns is not None:
        yield from _walk(project, node.returns, scope, Context.ANNOTATION)
    yield from _walk(project, node.args, scope, Context.VALUE)
    inside = outer.enter(node)
    for statement in node.body:
        yield from _walk(project, statement, inside, Context.VALUE)


def _walk(project: Project, node: ast.AST, scope: Scope, context: Context) -> Iterator[Reference]:
    match node:
        case ast.Name() | ast.Attribute():
            symbol = project.resolve(node, scope) if isinstance(node.ctx, ast.Load) else None
            if symbol is not None:
                yield Reference(node, symbol, context)
            elif isinstance(node, ast.Attribute):
                yield from _walk(project, node.value, scope, Context.VALUE)
            return
        case ast.Call(func=function):
            found = list(_walk(project, function, scope, Context.CALL))
            if len(found) == 1 and found[0].node is function:
                yield Reference(function, found[0].symbol, Context.CALL, node)
            else:
                yield from found
            _, *operands = ast.iter_child_nodes(node)
            for child in operands:
                yield from _walk(project, child, scope, Context.VALUE)
            return
        case ast.AnnAssign(annotation=annotation):
            yield from _walk(project, annotation, scope, Context.ANNOTATION)
            for part in (node.target, node.value):
                if part is not None:
                    yield from _walk(project, part, scope, context)
            return
        case ast.arg(annotation=ast.expr() as annotation):
            yield from _walk(project, annotation, scope, Context.ANNOTATION)
            return
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield from _function(project, node, scope, scope)
            return
        case ast.Lambda():
            yield from _walk(project, node.args, scope, Context.VALUE)
            yield from _walk(project, node.body, scope.enter(node), Context.VALUE)
            return
        case ast.ClassDef():
            if any(one.node is node and one.linen for one in project.classes.values()):
                return
    inner_context = context if context in (Context.ANNOTATION, Context.DECORATOR) else Context.VALUE
    for child in ast.iter_child_nodes(node):
        yield from _walk(project, child, scope, inner_context)


def name_edits(
    project: Project,
    cls: ClassInfo,
    handled_nodes: Collection[int],
    remarks: Remarks,
    initializers: Collection[int] = (),
) -> Edits:
    """Edits of the Linen names in the class.

    Args:
      handled_nodes: ids of nodes that someone else replaces (sites, removed decorators, bases).
      remarks: takes the imports and remarks of the rules.
      initializers: ids of what layers and parameters call as initialiser.
    """
    edits, inside = _whole_edits(project, cls, handled_nodes, remarks)
    types = _asked_types(cls)
    for reference in chain(references(project, cls), _inherited_defaults(project, cls)):
        if not is_linen(reference.symbol) or id(reference.node) in inside:
            continue
        call = reference.call
        if id(reference.node) in handled_nodes or (call is not None and id(call) in handled_nodes):
            continue
        layer = layer_of(reference.symbol)
        if id(reference.node) in types and layer is not None and layer.is_one_class:
            edits[id(reference.node)] = dotted_node(layer.target)
            remarks.imports |= layer.imports
            continue
        if call is None and id(reference.node) in types and is_layer(reference.symbol):
            raise ClassRefused(
                reference.node,
                f"isinstance asks for {reference.symbol}, which is no one class in NNX",
                "ask for something the class says itself, a field or its own class",
                RULE,
            )
        if call is None:
            found = name_rule(reference.symbol, reference.context)
            edits[id(reference.node)] = remarks.take(found, reference.node)
            continue
        if is_layer(reference.symbol):
            raise ClassRefused(
                call,
                f"{reference.symbol.rpartition('.')[2]} is built where NNX cannot build it",
                "build it in setup or in a compact method",
                RULE,
            )
        if isinstance(rule_for(reference.symbol), NameRule):
            found = name_rule(reference.symbol, Context.CALL)
            edits[id(reference.node)] = remarks.take(found, reference.node)
        else:
            edits[id(call)] = _call_edit(
                call,
                reference.symbol,
                remarks,
                is_initializer=id(call) in initializers,
            )
    return edits


def _asked_types(cls: ClassInfo) -> set[int]:
    """Ids of what ``isinstance`` and ``issubclass`` are asked for, also inside a tuple or union."""
    return {
        id(inner)
        for node in each(cls.node, ast.Call)
        if name_parts(node.func) in _TYPE_QUESTIONS
        for argument in node.args[1:2]
        for inner in walk(argument)
    }


def _whole_edits(
    project: Project, cls: ClassInfo, handled_nodes: Collection[int], remarks: Remarks
) -> tuple[Edits, set[int]]:
    """Decorators and cell carries, which change as a whole; and the ids of the nodes in them."""
    edits: Edits = {}
    inside: set[int] = set()
    for method in cls.methods.values():
        scope = cls.scope.enter(method)
        for decorator in method.decorator_list:
            if isinstance(decorator, ast.Call) and id(decorator) not in handled_nodes:
                _whole(project, cls.scope, decorator, convert_decorator, edits, inside, remarks)
        for cell in carry_cells(method).values():
            convert = partial(_carry, cell.cell)
            if not _whole(project, scope, cell.carry_call, convert, edits, inside, remarks):
                continue
            if cell.statement is not None:
                edits[id(cell.statement)] = GONE
                inside.update(map(id, walk(cell.statement)))
    return edits, inside


def _carry(
    cell: ast.Call, carry_call: ast.Call, source: Source, resolve: _Resolve
) -> Code | Refusal | None:
    return convert_carry(carry_call, cell, source, resolve)


def _whole(
    project: Project,
    scope: Scope,
    node: ast.Call,
    convert: _Convert,
    edits: Edits,
    inside: set[int],
    remarks: Remarks,
) -> bool:
    """Replace a node that ``convert`` knows; whether it does."""

    def resolve(one: ast.expr) -> str | None:
        return project.resolve(one, scope)

    if convert(node, renderer_of(scope.module), resolve) is None:
        return False

    def make(renderer: Renderer) -> Any:
        found = convert(node, renderer, resolve)
        assert found is not None
        return remarks.take(found, node)

    edits[id(node)] = make
    parts = [node.func, *node.args[:1]] if convert is convert_decorator else [node.func]
    inside.update(id(child) for part in parts for child in walk(part))
    return True


def _call_edit(
    call: ast.Call, symbol: str, remarks: Remarks, *, is_initializer: bool
) -> Callable[[Renderer], Any]:
    def make(renderer: Renderer) -> Any:
        found = LayerCall(symbol, call, renderer, is_initializer=is_initializer)
        return remarks.take(convert_call(found), call)

    return make


__all__ = ["Edits", "Reference", "Remarks", "dotted_node", "name_edits", "references"]
