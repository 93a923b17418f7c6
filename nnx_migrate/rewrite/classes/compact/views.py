"""Which submodules may be called through ``nnx.view``: it sets a flag of every layer in them.

``Block(norm)(x)`` with ``norm = partial(nn.BatchNorm, use_running_average=not train)`` becomes
``nnx.view(self.Block_0, use_running_average=not train)(x)``, which is the same where all layers of the block
that have this flag from their constructor have it from the partial.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from nnx_migrate.constructs import layer_of
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.other_values import is_self
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.walking import each, walk


def may_set(project: Project, symbol: str | None, call: ast.Call, flags: frozenset[str]) -> bool:
    """Whether what ``call`` builds may give a flag to a layer itself.

    Args:
      symbol: the class of it; where that is not known it is any that takes such arguments.
    """
    named = {one.arg for one in call.keywords} - {None, "name", "parent"}
    known = project.linen.get(symbol or "")
    every = [known] if known is not None else project.linen.values()
    search = _Search(project, flags)
    classes = (one for one in every if named <= {field.name for field in one.fields})
    return any(True for one in classes for _ in search.in_class(one))


@dataclass
class _Search:
    """Follows the names in a class to whatever it may build; each class and function is read once."""

    project: Project
    flags: frozenset[str]
    seen: set[int] = field(default_factory=set)

    def in_class(self, cls: ClassInfo) -> Iterator[ast.Call]:
        """The constructor calls with a flag in a class and in what it builds."""
        for owner in cls.mro:
            for method in owner.methods.values():
                yield from self._in_function(method, owner.scope, {one.name for one in cls.fields})

    def _in_function(
        self, node: ast.FunctionDef, around: Scope, fields: set[str]
    ) -> Iterator[ast.Call]:
        if id(node) in self.seen:
            return
        self.seen.add(id(node))
        scope = around.enter(node)
        yield from (one for one in each(node, ast.Call) if self._sets(one, scope, fields))
        for one in walk(node):
            if not isinstance(one, ast.Name | ast.Attribute):
                continue
            symbol = self.project.resolve(one, scope) or ""
            found = self.project.definition(symbol)
            if symbol in self.project.linen:
                yield from self.in_class(self.project.linen[symbol])
            elif found is not None and isinstance(found[1], ast.FunctionDef):
                yield from self._in_function(found[1], Scope(found[0]), set())

    def _sets(self, call: ast.Call, scope: Scope, fields: set[str]) -> bool:
        """Whether a call gives a flag, and may be a constructor: of a layer, a partial, a field, a local."""
        layer = layer_of(self.project.resolve(call.func, scope))
        if layer is not None and any(
            layer.fields.index(one) < len(call.args) for one in self.flags & {*layer.at_call}
        ):
            return True
        if not self.flags & {one.arg for one in call.keywords}:
            return False
        match call.func:
            case ast.Attribute(value=value, attr=name) if is_self(value):
                return name in fields
            case ast.Call():
                return False  # what is built right here is called
        return True
