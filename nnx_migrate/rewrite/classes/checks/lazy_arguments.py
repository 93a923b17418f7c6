"""What submodules that stay lazy are given as fields: what is the same in both forms, and no modules."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from nnx_migrate.rewrite.class_values import CLASS_LIFTS
from nnx_migrate.rewrite.classes.data import Refused
from nnx_migrate.rewrite.classes.items import Item, receiver_of
from nnx_migrate.rewrite.classes.reading.holders import Holders, methods_of
from nnx_migrate.source.bindings import bindings_below, changed_names
from nnx_migrate.source.classes import ClassInfo, is_linen_class
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.walking import walk

_LIFTS = CLASS_LIFTS | {"flax.linen.jit"}


@dataclass
class LazyArguments:
    """What lazy submodules are given as fields.

    Attributes:
      modules: the submodules that the class builds.
    """

    project: Project
    cls: ClassInfo
    items: Mapping[int, Item]
    modules: Holders

    def check(self, call: ast.Call) -> None:
        """Refuse arguments that are not the same in both forms.

        Raises:
          Refused: one may hold a module, or build one.
        """
        self._check(call, [*call.args, *(one.value for one in call.keywords)])

    def check_partial(self, call: ast.Call) -> None:
        """Refuse what a partial of a lazy class gives it, as `check` does.

        Raises:
          Refused: one may hold a module, or build one.
        """
        self._check(call, [*call.args[1:], *(one.value for one in call.keywords)])

    def _check(self, call: ast.Call, values: list[ast.expr]) -> None:
        for value in values:
            if self._may_hold(value, self._method_of(call), set()):
                raise Refused(
                    value,
                    "a lazy submodule may be given a module here",
                    "give it what the module is made of",
                    "lazy_submodule",
                )

    def _method_of(self, call: ast.Call) -> ast.FunctionDef:
        return next(
            one for one in self.cls.methods.values() if any(node is call for node in walk(one))
        )

    def _may_hold(self, value: ast.AST, method: ast.FunctionDef, seen: set[int]) -> bool:
        """Whether a value may be, hold or build a module; what a submodule returns is an array."""
        if id(value) in seen:
            return False
        seen.add(id(value))
        scope = self.cls.scope.enter(method)
        match value:
            case ast.Call() if id(value) in self.items:
                return True
            case ast.Call(func=function) if self.modules.has(function, method):
                return False
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == receiver_of(method):
                return self._is_module_in(attr, seen)
            case ast.Name(id=name):
                pairs = [
                    pair for pair in bindings_below(method) if name in {*changed_names(pair[0])}
                ]
                if pairs:
                    return any(self._may_hold(one, method, seen) for _, one in pairs)
                return self._names_module(value, scope, seen)
            case ast.Attribute() if self._names_module(value, scope, seen):
                return True
        return any(self._may_hold(one, method, seen) for one in ast.iter_child_nodes(value))

    def _is_module_in(self, attribute: str, seen: set[int]) -> bool:
        """Whether an attribute of the module may be one: a method, a default, or computed in ``setup``."""
        if any(attribute in one.methods for one in self.cls.mro):
            return True
        for one in self.cls.fields:
            if one.name == attribute:  # the judge knows what fields are given
                return one.default is not None and any(
                    self._names_module(node, one.owner.scope, seen)
                    for node in walk(one.default)
                    if isinstance(node, ast.Name | ast.Attribute)
                )
        values = [
            (method, value)
            for method in methods_of(self.cls)
            for target, value in bindings_below(method)
            if isinstance(target, ast.Attribute) and target.attr == attribute
        ]
        return not values or any(self._may_hold(value, method, seen) for method, value in values)

    def _names_module(self, node: ast.expr, scope: Scope, seen: set[int]) -> bool:
        symbol = self.project.resolve(node, scope)
        if symbol is None:
            return False
        if symbol in self.project.linen or is_linen_class(symbol) or symbol in _LIFTS:
            return True
        definition = self.project.definition(symbol)
        if definition is None or isinstance(definition[1], ast.ClassDef):
            return False
        module, target = definition
        if id(target) in seen:
            return False
        seen.add(id(target))
        inner = Scope(module)
        return any(
            self._names_module(one, inner, seen)
            for one in walk(target)
            if isinstance(one, ast.Name | ast.Attribute)
        )
