"""Which submodules may be called through ``nnx.view``: it sets a flag of every layer in them.

``Block(norm)(x)`` with ``norm = partial(nn.BatchNorm, use_running_average=not train)`` becomes
``nnx.view(self.Block_0, use_running_average=not train)(x)``, which is the same where all layers of the block
that have this flag from their constructor have it from the partial.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from nnx_migrate.constructs import layer_of
from nnx_migrate.sizes.candidates import candidates_of
from nnx_migrate.sizes.return_values import arms
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.walking import each, is_self, walk


def may_set(project: Project, symbol: str | None, call: ast.Call, flags: frozenset[str]) -> bool:
    """Whether what ``call`` builds may give a flag to a layer itself.

    Args:
      symbol: the class of it; where that is not known it is any that takes such arguments.
    """
    named = {one.arg for one in call.keywords} - {None, "name", "parent"}
    known = project.linen.get(symbol or "")
    every = [known] if known is not None else project.linen.values()
    search = _Search(project, flags)
    classes = (one for one in every if named <= one.field_names)
    return any(True for one in classes for _ in search.in_class(one))


def are_set_by(
    project: Project,
    scope: Scope,
    cls: ClassInfo,
    values: Iterable[ast.AST],
    flags: frozenset[str],
) -> bool:
    """Whether what a block is given beside may give a flag to a layer: another partial, a field of classes.

    Args:
      cls: the class around, whose fields ``self.norm`` means.
    """
    search = _Search(project, flags)
    fields = {
        part.attr
        for one in values
        for part in each(one, ast.Attribute)
        if is_self(part.value) and part.attr in cls.field_names
    }
    symbols = {one.symbol for name in fields for one in candidates_of(project).factories(cls, name)}
    return (
        any(True for one in values for _ in search.in_expression(one, scope))
        or any(flags & {*layer.at_call} for layer in map(layer_of, symbols) if layer is not None)
        or any(
            True
            for one in symbols & project.linen.keys()
            for _ in search.in_class(project.linen[one])
        )
    )


def are_layers(
    project: Project, scope: Scope, values: Iterable[ast.expr], flags: Mapping[str, str]
) -> bool:
    """Whether values are layers of Linen's, or partials of them, that have no flag or are given it alike.

    Args:
      flags: the text of each flag's value.
    """
    return all(_is_layer(project, scope, arm, flags) for one in values for arm in arms(one))


def _is_layer(project: Project, scope: Scope, value: ast.expr, flags: Mapping[str, str]) -> bool:
    names: Mapping[str | None, str] = {}
    match value:
        case ast.Call(func=function, args=[target], keywords=keywords):
            if project.resolve(function, scope) != "functools.partial":
                return False
            names = {one.arg: ast.unparse(one.value) for one in keywords}
            value = target
    layer = layer_of(project.resolve(value, scope))
    if layer is None or None in names:
        return False
    return all(
        names.get(name) == (flags[name] if name in layer.at_call else None) for name in flags
    )


@dataclass
class _Search:
    """Follows the names in a class to whatever it may build; each class and function is read once."""

    project: Project
    flags: frozenset[str]
    visited: set[int] = field(default_factory=set)

    def in_class(self, cls: ClassInfo) -> Iterator[ast.Call]:
        """The constructor calls with a flag in a class and in what it builds."""
        for one in cls.fields:
            if one.default is not None:
                yield from self.in_expression(one.default, one.owner.scope)
        for owner in cls.mro:
            for method in owner.methods.values():
                yield from self._in_function(method, owner.scope, cls.field_names)

    def _in_function(
        self, node: ast.FunctionDef, around: Scope, fields: frozenset[str]
    ) -> Iterator[ast.Call]:
        if id(node) in self.visited:
            return
        self.visited.add(id(node))
        yield from self._in(node, around.enter(node), fields)

    def in_expression(self, node: ast.AST, scope: Scope) -> Iterator[ast.Call]:
        """The constructor calls with a flag in an expression and in what it names."""
        if id(node) not in self.visited:
            self.visited.add(id(node))
            yield from self._in(node, scope, frozenset())

    def _in(self, node: ast.AST, scope: Scope, fields: frozenset[str]) -> Iterator[ast.Call]:
        yield from (one for one in each(node, ast.Call) if self._sets(one, scope, fields))
        for one in walk(node):
            if not isinstance(one, ast.Name | ast.Attribute):
                continue
            symbol = self.project.resolve(one, scope) or ""
            found = self.project.definition(symbol)
            if symbol in self.project.linen:
                yield from self.in_class(self.project.linen[symbol])
            elif found is not None and isinstance(found[1], ast.FunctionDef):
                yield from self._in_function(found[1], Scope(found[0]), frozenset())
            elif found is not None and isinstance(found[1], ast.expr):
                yield from self.in_expression(found[1], Scope(found[0]))

    def _sets(self, call: ast.Call, scope: Scope, fields: frozenset[str]) -> bool:
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
