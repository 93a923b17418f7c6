"""References to Linen names outside the classes.

A function (activation, initialiser) is the same object in NNX, so it is always safe to change. What
is about module classes (layers as values, ``nn.Module`` as a type, lifted transforms) changes only
in code that belongs to explicit classes; all other code keeps Linen's style and becomes lazy.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from nnx_migrate.constructs import (
    convert_call,
    convert_decorator,
    is_layer,
    is_linen,
    name_rule,
    rule_for,
)
from nnx_migrate.constructs.common.base import Code, Context, LayerCall, Refusal, last
from nnx_migrate.constructs.common.rules import NameRule
from nnx_migrate.edit.expressions import Expression
from nnx_migrate.edit.rendering import Renderer
from nnx_migrate.rewrite.outside.data import Draft, OutsideContext
from nnx_migrate.rewrite.outside.places import Place, Places
from nnx_migrate.rewrite.render import renderer_of
from nnx_migrate.source.project import Project

RULE = "reference"


def convert_references(
    project: Project, places: Places, context: OutsideContext, draft: Draft
) -> None:
    """Edit the Linen names of a module outside the skipped classes that are to become NNX."""
    for place in places:
        node = place.node
        if not isinstance(node, ast.Name | ast.Attribute) or not isinstance(node.ctx, ast.Load):
            continue
        above = place.parent
        if isinstance(above, ast.Attribute) and is_linen(project.resolve(above, place.scope)):
            continue  # the longest expression counts
        symbol = project.resolve(node, place.scope)
        if symbol is None or not is_linen(symbol) or id(node) in draft.edits:
            continue
        if id(place.top) in context.explicit_statements or _is_function(symbol):
            _Reference(project, places, draft, place, node, symbol).convert()


def _is_function(symbol: str) -> bool:
    """Whether a name means the same function in both libraries."""
    rule = rule_for(symbol)
    return isinstance(rule, NameRule) and rule.is_same


class _Reference:
    """One reference to a Linen name."""

    def __init__(
        self,
        project: Project,
        places: Places,
        draft: Draft,
        place: Place,
        node: ast.Name | ast.Attribute,
        symbol: str,
    ) -> None:
        self.project, self.places, self.draft = project, places, draft
        self.place, self.node, self.symbol = place, node, symbol

    def convert(self) -> None:
        if self.project.is_alias(self.node, self.place.scope):
            return  # the assignment it stands for is edited
        if self.place.context is Context.DECORATOR:
            self._decorator()
        elif self.place.context is Context.CALL and isinstance(self.place.parent, ast.Call):
            self._call(self.place.parent)
        else:
            self._take(name_rule(self.symbol, self.place.context))

    def _decorator(self) -> None:
        code = convert_decorator(self.node, renderer_of(self.places.module), self._resolve)
        if isinstance(code, Code) and code.node is None:
            code = Refusal(
                f"@nn.{last(self.symbol)} outside of a Linen class", "remove the decorator by hand"
            )
        if code is not None:
            self._take(code)

    def _call(self, call: ast.Call) -> None:
        if is_layer(self.symbol):
            self._refuse(
                f"nn.{last(self.symbol)}(...) is built outside of a Linen class; NNX layers need"
                " their input size and rngs when they are built: build it in the class that owns it"
            )
        elif isinstance(rule_for(self.symbol), NameRule):
            self._take(name_rule(self.symbol, Context.CALL))
        else:
            found = convert_call(
                LayerCall(self.symbol, call, renderer_of(self.places.module), resolve=self._resolve)
            )
            if isinstance(found, Refusal):
                self._refuse(found.message)
                return
            self._note(found)
            self.draft.edits[id(call)] = self._convert(call)

    def _convert(self, call: ast.Call) -> Callable[[Renderer], Expression | None]:
        def make(renderer: Renderer) -> Expression | None:
            found = convert_call(LayerCall(self.symbol, call, renderer, resolve=self._resolve))
            assert isinstance(found, Code)
            return found.node

        return make

    def _take(self, conversion: Code | Refusal) -> None:
        if isinstance(conversion, Refusal):
            self._refuse(conversion.message)
            return
        self._note(conversion)
        self.draft.edits[id(self.node)] = conversion.node
        if _is_function(self.symbol):
            self.draft.plain.add(id(self.node))

    def _note(self, code: Code) -> None:
        self.draft.imports |= code.imports
        for message in code.findings:
            self.draft.note(self.node, RULE, message, "reference")

    def _refuse(self, message: str) -> None:
        self.draft.refuse(self.node, RULE, message)

    def _resolve(self, node: ast.expr) -> str | None:
        return self.project.resolve(node, self.place.scope)
