"""What submodules that stay lazy are given as fields: what is the same in both forms, and no modules."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache

from nnx_migrate.constructs import layer_of
from nnx_migrate.rewrite.class_values import CLASS_LIFTS
from nnx_migrate.rewrite.classes.data import ClassRefused, ConversionContext
from nnx_migrate.rewrite.classes.fields.types import holds_modules
from nnx_migrate.rewrite.classes.items import Item, receiver_of
from nnx_migrate.rewrite.classes.reading.holders import Holders
from nnx_migrate.sizes.result import ClassSizes
from nnx_migrate.source.bindings import bindings_below, changed_names
from nnx_migrate.source.classes import ClassInfo, is_linen_class
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.walking import each, given_values, walk

# What these methods of a module return is no module, nor holds one.
_OF_ARRAYS = frozenset(
    {"has_variable", "is_initializing", "make_rng", "param", "perturb", "variable"}
)
_BOXES = ("with_logical_partitioning", "with_partitioning")
_LIFTS = CLASS_LIFTS | {"flax.linen.jit"}


def given_classes(
    project: Project, cls: ClassInfo, sizes: ClassSizes, context: ConversionContext
) -> dict[int, tuple[ast.expr, str]]:
    """The names of classes that lazy submodules are given as fields, and the classes, by id of the name.

    ``Attention(make=partial(Heads, 4))``, with ``Attention`` lazy: it gets ``partial(lazy(Heads), 4)``.
    """
    found = {}
    for site in sizes.sites.values():
        if context.is_lazy(site) and not context.is_lazy_form(site):
            method = _method_around(cls, site.call)
            scope = cls.scope if method is None else cls.scope.enter(method)
            for value in given_values(site.call):
                name = _class_name(project, scope, value)
                if name is not None:
                    found[id(name[0])] = name
    return found


@lru_cache(maxsize=4)  # every lazy submodule asks
def _names_axes(project: Project) -> bool:
    return any(word in one.text for one in project.modules.values() for word in _BOXES)


def _method_around(cls: ClassInfo, call: ast.Call) -> ast.FunctionDef | None:
    return next((one for one in cls.above(call) if isinstance(one, ast.FunctionDef)), None)


def _class_name(project: Project, scope: Scope, value: ast.expr) -> tuple[ast.expr, str] | None:
    """The name of the class that an expression is, or is a partial of."""
    match value:
        case ast.Name() | ast.Attribute():
            symbol = project.resolve(value, scope)
            is_class = symbol in project.linen or layer_of(symbol) is not None
            return (value, symbol) if symbol is not None and is_class else None
        case ast.Call(func=function, args=[first, *_]) if (
            project.resolve(function, scope) == "functools.partial"
        ):
            return _class_name(project, scope, first)
    return None


@dataclass
class LazyArguments:
    """What lazy submodules are given as fields.

    Attributes:
      modules: the submodules that the class builds.
      class_names: ids of names of classes, which lazy submodules get in their lazy form.
      takes_classes: whether what gets them is explicit code, which takes explicit classes.
    """

    project: Project
    cls: ClassInfo
    items: Mapping[int, Item]
    modules: Holders
    class_names: Collection[int]
    takes_classes: bool = False

    def check(self, call: ast.Call) -> None:
        """Refuse arguments that are not the same in both forms.

        Raises:
          Refused: one may hold a module, or build one.
        """
        self._check(call, given_values(call))
        if not self.takes_classes:
            self._check_axes(call)

    def _check_axes(self, call: ast.Call) -> None:
        """Refuse initializers where some name axes: lazy code takes Linen's boxes, explicit code makes none."""
        keywords = [one for one in call.keywords if one.arg is None or one.arg.endswith("init")]
        if keywords and _names_axes(self.project):
            raise ClassRefused(
                keywords[0].value,
                "a lazy submodule may be given an initializer that names axes",
                "name the axes where the submodule is defined",
                "lazy_submodule",
            )

    def check_partial(self, call: ast.Call) -> None:
        """Refuse what a partial of a lazy class gives it, as `check` does.

        Raises:
          Refused: one may hold a module, or build one.
        """
        self._check(call, given_values(call)[1:])

    def _check(self, call: ast.Call, values: list[ast.expr]) -> None:
        method = _method_around(self.cls, call)
        assert method is not None
        for value in values:
            if self._may_hold(value, method, set()):
                raise ClassRefused(
                    value,
                    "a lazy submodule may be given a module here",
                    "give it what the module is made of",
                    "lazy_submodule",
                )

    def _may_hold(self, value: ast.AST, method: ast.FunctionDef, visited: set[int]) -> bool:
        """Whether a value may be, hold or build a module; what a submodule returns is an array."""
        if id(value) in visited:
            return False
        visited.add(id(value))
        if id(value) in self.class_names:
            return False
        scope = self.cls.scope.enter(method)
        match value:
            case ast.Call() if id(value) in self.items:
                return True
            case ast.Call(func=function) if self.modules.has(function, method):
                return False
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr)) if (
                name == receiver_of(method) and attr in _OF_ARRAYS
            ):
                return False
            case ast.Attribute(attr="dtype" | "ndim" | "shape" | "size"):
                return False
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == receiver_of(method):
                return self._is_module_in(attr, visited)
            case ast.Name(id=name):
                pairs = [
                    pair for pair in bindings_below(method) if name in {*changed_names(pair[0])}
                ]
                if pairs:
                    return any(self._may_hold(one, method, visited) for _, one in pairs)
                return self._names_module(value, scope, visited)
            case ast.Attribute() if self._names_module(value, scope, visited):
                return True
        return any(self._may_hold(one, method, visited) for one in ast.iter_child_nodes(value))

    def _is_module_in(self, attribute: str, visited: set[int]) -> bool:
        """Whether an attribute of the module may be one: a method, a default, or computed in ``setup``."""
        method = self.cls.methods.get(attribute)
        if method is not None and self.project.decorators(self.cls, method) == ("property",):
            returned = (one.value for one in each(method, ast.Return) if one.value is not None)
            return any(self._may_hold(one, method, visited) for one in returned)
        if any(attribute in one.methods for one in self.cls.mro):
            return True
        for one in self.cls.fields:
            if one.name == attribute:  # the judge knows what fields are given, not where items go
                return holds_modules(self.project, one) or (
                    one.default is not None
                    and any(
                        self._names_module(node, one.owner.scope, visited)
                        for node in walk(one.default)
                        if isinstance(node, ast.Name | ast.Attribute)
                    )
                )
        values = [
            (method, value)
            for method in self.cls.every_method
            for target, value in bindings_below(method)
            if isinstance(target, ast.Attribute) and target.attr == attribute
        ]
        return not values or any(self._may_hold(value, method, visited) for method, value in values)

    def _names_module(self, node: ast.expr, scope: Scope, visited: set[int]) -> bool:
        symbol = self.project.resolve(node, scope)
        if symbol is None:
            return False
        if symbol in self.project.linen or is_linen_class(symbol) or symbol in _LIFTS:
            return not self.takes_classes
        definition = self.project.definition(symbol)
        if definition is None or isinstance(definition[1], ast.ClassDef):
            return False
        module, target = definition
        if id(target) in visited:
            return False
        visited.add(id(target))
        inner = Scope(module)
        return any(
            self._names_module(one, inner, visited)
            for one in walk(target)
            if isinstance(one, ast.Name | ast.Attribute)
        )
