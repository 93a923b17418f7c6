"""Keywords of partials that depend on the call: ``norm = partial(nn.BatchNorm, use_running_average=not train)``."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nnx_migrate.rewrite.classes.compact.local_uses import LocalUses
from nnx_migrate.rewrite.classes.compact.moves import Moves, refusal
from nnx_migrate.rewrite.classes.compact.views import are_layers, are_set_by, may_set
from nnx_migrate.rewrite.classes.items import Item
from nnx_migrate.sizes.result import SiteKind
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.walking import each, is_name


@dataclass(frozen=True)
class PartialMoves:
    """Moves keywords of partials to the calls of what is built with these, or of what is handed them."""

    project: Project
    scope: Scope
    cls: ClassInfo
    uses: LocalUses
    items: Mapping[int, Item]
    moves: Moves

    def move(self, partial: ast.Call, moving: Sequence[ast.keyword], *, is_layer: bool) -> None:
        """Move keywords of a partial.

        Where its name holds one of several (or ``nn.LayerNorm``), what is built is viewed: the flag is set
        where the layer has one.

        Raises:
          Refused: the name is not just called, or a call would not get the same.
        """
        name = self.uses.bound_to(partial)
        is_sole = name is not None
        if name is None and is_layer:
            name = self._name_of_several(partial, moving)
        if name is None:
            return
        built, calls = self._takers(partial, name)
        if calls and not is_layer:
            return  # a view sets flags of layers alone
        for one in calls:
            self._view(one, name, moving)
        if (calls or not is_sole) and (reason := self.uses.rebound(moving, partial)):
            raise refusal(partial, reason)
        self.moves.partials[id(partial)] = partial
        self.moves.values |= {id(keyword.value) for keyword in moving}
        for one in built:
            self._move_to_calls(one, partial, moving, is_sole=is_sole)

    def _name_of_several(self, partial: ast.Call, moving: Sequence[ast.keyword]) -> str | None:
        """The name of one of several layers, which are given the flags alike, of parameters of the method.

        A local may be bound in the partial's own branch alone.
        """
        name = self.uses.bound_among(partial)
        flags = {str(one.arg): ast.unparse(one.value) for one in moving}
        if name is None or not self.uses.are_parameters(moving):
            return None
        values = self.uses.values_of(name)
        return name if are_layers(self.project, self.scope, values, flags) else None

    def _takers(self, partial: ast.Call, name: str) -> tuple[list[Item], list[Item]]:
        """What is built by a name, and what is handed it."""
        built, calls, visited = [], [], set()
        for item in self.items.values():
            site, function = item.site, item.call.func
            if site is None:
                continue
            if item.is_in_scope and _names(item.call, name):
                raise refusal(
                    item.call,
                    "a function outside the class builds from an argument that depends on the call",
                )
            is_named = is_name(function, name)
            if site.kind is SiteKind.FACTORY and is_named:
                built.append(item)
                visited.add(id(function))
            elif inside := {
                id(one) for part in _arguments(item.call) for one in _names(part, name)
            }:
                calls.append(item)
                visited |= inside
        if any(id(one) not in visited for one in self.uses.loads.get(name, [])):
            reason = "a partial with an argument that depends on the call is not just called"
            raise refusal(partial, reason)
        return built, calls

    def _view(self, item: Item, name: str, moving: Sequence[ast.keyword]) -> None:
        """View what is handed a partial, if no other layer in it has the flags from elsewhere."""
        flags = frozenset(str(one.arg) for one in moving)
        beside = [part for part in _arguments(item.call) if not _names(part, name)]
        keyword_values = [*beside, *self.uses.values_read(beside, name)]
        symbol = item.site.symbol if item.site is not None else None
        is_set = may_set(self.project, symbol, item.call, flags)
        if is_set or are_set_by(self.project, self.scope, self.cls, keyword_values, flags):
            reason = "what it is handed sets a flag that other layers in it may set, too"
            raise refusal(item.call, reason)
        self.moves.view(item.call, moving)

    def _move_to_calls(
        self, item: Item, partial: ast.Call, moving: Sequence[ast.keyword], *, is_sole: bool
    ) -> None:
        own = {keyword.arg for keyword in item.call.keywords}
        if None in own:
            reason = "the arguments that are unpacked here may give what a partial does"
            raise refusal(item.call, reason)
        left = [keyword for keyword in moving if keyword.arg not in own]
        if is_sole:
            self.uses.move(item.call, left, partial, self.moves)
        elif len(left) < len(moving):
            raise refusal(item.call, "the call gives what a partial of one of several does")
        else:
            self.moves.view(item.call, left)


def _arguments(call: ast.Call) -> list[ast.AST]:
    return [*call.args, *call.keywords]


def _names(node: ast.AST, name: str) -> list[ast.Name]:
    return [one for one in each(node, ast.Name) if one.id == name]
