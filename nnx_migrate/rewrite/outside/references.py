"""References to Linen names outside the classes.

A function (activation, initialiser) is the same object in NNX, so it is always safe to change. What
is about module classes (layers as values, ``nn.Module`` as a type, lifted transforms) changes only
where nothing that stays Linen can depend on it.
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
from nnx_migrate.rewrite.outside.survey import Survey, survey_of
from nnx_migrate.rewrite.render import renderer_of
from nnx_migrate.source.names import Assignment, Import, dotted
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.walking import walk

RULE = "reference"
_TYPES = frozenset({"flax.linen.Module"})


def convert_references(
    project: Project, places: Places, context: OutsideContext, draft: Draft
) -> None:
    """Edit or refuse every Linen name of a module outside the skipped classes."""
    survey = survey_of(project, context)
    for place in places:
        node = place.node
        if not isinstance(node, ast.Name | ast.Attribute) or not isinstance(node.ctx, ast.Load):
            continue
        above = place.parent
        if isinstance(above, ast.Attribute) and is_linen(project.resolve(above, place.scope)):
            continue  # the longest expression counts
        symbol = project.resolve(node, place.scope)
        if symbol is not None and is_linen(symbol) and not _in_draft(places, node, draft):
            _Reference(project, places, survey, draft, place, node, symbol).convert()


def _in_draft(places: Places, node: ast.AST, draft: Draft) -> bool:
    """Whether an edit of something around ``node`` replaces it as a whole."""
    return id(node) in draft.edits


class _Reference:
    """One reference to a Linen name."""

    def __init__(
        self,
        project: Project,
        places: Places,
        survey: Survey,
        draft: Draft,
        place: Place,
        node: ast.Name | ast.Attribute,
        symbol: str,
    ) -> None:
        self.project, self.places, self.survey, self.draft = project, places, survey, draft
        self.place, self.node, self.symbol = place, node, symbol

    def convert(self) -> None:
        reason = self._dependent()
        if reason is not None:
            self._refuse(reason)
        elif is_alias(self.project, self.node, self.place.scope):
            return  # the assignment it stands for is edited
        elif self.place.context is Context.DECORATOR:
            self._decorator()
        elif self.place.context is Context.CALL and isinstance(self.place.parent, ast.Call):
            self._call(self.place.parent)
        else:
            self._take(self.node, name_rule(self.symbol, self.place.context))

    def _dependent(self) -> str | None:
        """Why the reference must stay because of a class that stays Linen."""
        if isinstance(rule_for(self.symbol), NameRule) and self.symbol not in _TYPES:
            # A plain alias (``act = nn.relu``) counts as Linen wherever a Linen class reads it.
            return self._needed() if self._is_whole_value() else None
        about_types = self.place.context is Context.ANNOTATION or self.symbol in _TYPES
        if about_types:
            if not self.survey.unconverted:
                return None
            return (
                f"{self.survey.unconverted[0]} stays Linen, so nn.{last(self.symbol)} may mean a"
                " Linen or an NNX module here; write the type that is meant"
            )
        return self._needed() or self._given_linen()

    def _is_whole_value(self) -> bool:
        parent = self.place.parent
        return isinstance(parent, ast.Assign | ast.AnnAssign) and parent.value is self.node

    def _needed(self) -> str | None:
        """Why a name that stands for the reference must stay: a class that stays Linen reads it."""
        for name in _bound(self.place):
            user = self.survey.needed.get(f"{self.place.scope.module.name}.{name}")
            if user is not None:
                return (
                    f"{user} uses {name} and stays Linen; convert that class first, or give it a"
                    f" copy of {name} of its own"
                )
        return None

    def _given_linen(self) -> str | None:
        """Why a call must stay: it is given a class that stays Linen, ``nn.remat(Block)``."""
        call = self.place.parent
        given = [*call.args, *call.keywords] if isinstance(call, ast.Call) else []
        for node in (one for value in given for one in walk(value)):
            if isinstance(node, ast.Name | ast.Attribute):
                own = (
                    f"{self.place.scope.module.name}.{node.id}"
                    if isinstance(node, ast.Name)
                    else ""
                )
                symbol = self._resolve(node) or own  # a name that is bound anew has no one symbol
                if symbol in self.survey.unconverted:
                    return f"{symbol}, which it is given, stays Linen; convert that class first"
        return None

    def _decorator(self) -> None:
        code = convert_decorator(self.node, renderer_of(self.places.module), self._resolve)
        if isinstance(code, Code) and code.node is None:
            code = Refusal(
                f"@nn.{last(self.symbol)} outside of a Linen class", "remove the decorator by hand"
            )
        if code is not None:
            self._take(self.node, code)

    def _call(self, call: ast.Call) -> None:
        if is_layer(self.symbol):
            self._refuse(
                f"nn.{last(self.symbol)}(...) is built outside of a Linen class; NNX layers need"
                " their input size and rngs when they are built: build it in the class that owns it"
            )
        elif isinstance(rule_for(self.symbol), NameRule):
            self._take(self.node, name_rule(self.symbol, Context.CALL))
        else:
            found = convert_call(
                LayerCall(self.symbol, call, renderer_of(self.places.module), resolve=self._resolve)
            )
            if isinstance(found, Refusal):
                self._refuse(found.message)
                return
            self._note(found)
            self.draft.edits[id(call)] = self._converted(call)

    def _converted(self, call: ast.Call) -> Callable[[Renderer], Expression | None]:
        def make(renderer: Renderer) -> Expression | None:
            found = convert_call(LayerCall(self.symbol, call, renderer, resolve=self._resolve))
            assert isinstance(found, Code)
            return found.node

        return make

    def _take(self, node: ast.AST, found: Code | Refusal) -> None:
        if isinstance(found, Refusal):
            self._refuse(found.message)
            return
        self._note(found)
        self.draft.edits[id(node)] = found.node
        rule = rule_for(self.symbol)
        if node is self.node and isinstance(rule, NameRule) and rule.is_same:
            self.draft.plain.add(id(node))

    def _note(self, code: Code) -> None:
        self.draft.imports |= code.imports
        for message in code.findings:
            self.draft.note(self.node, RULE, message, "reference")

    def _refuse(self, message: str) -> None:
        self.draft.refuse(self.node, RULE, message, "reference")

    def _resolve(self, node: ast.expr) -> str | None:
        return self.project.resolve(node, self.place.scope)


def _bound(place: Place) -> list[str]:
    """Module-level names that the statement around the place gives a meaning to."""
    statement = place.top
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case None:
            return []
        case _:
            stores = (n for n in walk(statement) if isinstance(n, ast.Name))
            return [n.id for n in stores if isinstance(n.ctx, ast.Store)]


def is_alias(project: Project, node: ast.expr, scope: Scope) -> bool:
    """Whether the expression reaches Linen through ``name = nn.something`` in the project."""
    parts = dotted(node)
    if parts is None:
        return False
    binding, rest = scope.lookup(parts[0]), list(parts[1:])
    for _ in range(20):
        if isinstance(binding, Assignment):
            return True
        if not isinstance(binding, Import):
            return False
        module, inner = project.split(".".join([binding.target, *rest]))
        if module is None or not inner:
            return False
        binding, rest = module.table.get(inner[0]), list(inner[1:])
    return False
