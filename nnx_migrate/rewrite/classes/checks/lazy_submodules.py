"""Submodules that stay lazy inside of an explicit class: where these are no more than called.

::

    def setup(self):
        self.encoder = Encoder(self.width)  # lazy: built by its first call, in Linen's scope of that path

A lazy module finds its place by the module whose call runs. So its class must not hand it on, nor run it
where jax or NNX run a copy: below ``jax.checkpoint``, inside a function of its own. What it is given
has to be the same in both forms: numbers, functions of arrays, no modules.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from nnx_migrate.rewrite.classes.data import ConversionContext, Refused
from nnx_migrate.rewrite.classes.items import Item, ItemKind, receiver_of
from nnx_migrate.rewrite.classes.reading.evaluation import held_parts
from nnx_migrate.rewrite.links import links_of
from nnx_migrate.sizes.result import ClassSizes, SiteKind
from nnx_migrate.source.bindings import CHANGES, bindings_below, changed_names
from nnx_migrate.source.classes import ClassInfo, is_linen_class
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.walking import each, walk

RULE = "lazy_submodule"
_PLAIN = frozenset({"flax.linen.compact", "flax.linen.nowrap", "staticmethod", "property"})
_LIFTS = frozenset(f"flax.linen.{one}" for one in ("remat", "checkpoint", "scan", "vmap", "jit"))


def check_lazy_submodules(
    project: Project,
    cls: ClassInfo,
    items: Mapping[int, Item],
    sizes: ClassSizes,
    context: ConversionContext,
) -> bool:
    """Whether a class holds lazy submodules, itself or in its explicit ones.

    Raises:
      Refused: it does more with one than to call it.
    """
    bases = [one.name for one in cls.mro[1:] if one.name in project.linen]
    if any(map(context.holds_lazy, bases)):
        raise _refused(cls.node, "its base holds submodules that are lazy")
    lazy = {key for key, one in sizes.sites.items() if (one.symbol or "") in context.lazy}
    inside = {key for key, one in sizes.sites.items() if context.is_lazy_inside(one.symbol)}
    for name in sorted(links_of(project).holds.get(cls.name, ())):
        if context.holds_lazy(name):
            raise _refused(cls.node, f"it has {name}, which holds lazy submodules, as a value")
    if not inside:
        return False
    for key in inside:
        site = sizes.sites[key]
        if key not in items or site.kind is not SiteKind.CLASS or site.out_variable is not None:
            raise _refused(
                site.call, f"{site.symbol} is lazy, and is built by more than a call of it"
            )
        if site.symbol == cls.name:
            raise _refused(site.call, "it builds itself, and holds lazy submodules")
        if key in lazy:
            _check_class(project.linen[str(site.symbol)], site.call)
    every = {key for key, one in items.items() if one.kind is ItemKind.SITE}
    modules = _Holders(cls, every)
    given = _Given(project, cls, items, modules)
    for key in sorted(lazy, key=lambda key: items[key].call.lineno):
        given.check(items[key].call)
    _check_methods(project, cls)
    holding = _Holders(cls, inside - lazy)
    for method in cls.methods.values():
        _Uses(project, cls, method, _Holders(cls, inside), holding, modules).check()
    return True


def _refused(node: ast.AST, reason: str) -> Refused:
    return Refused(node, reason, "call the submodule in a method of the class", RULE)


def _check_class(cls: ClassInfo, call: ast.Call) -> None:
    """Refuse lazy classes that are not what their name says, or that look at the module around them.

    Raises:
      Refused: a decorator may give another class, which Linen names otherwise, or it reads its parent.
    """
    decorated = any(one.node.decorator_list for one in cls.mro)
    if decorated or any(
        one.attr == "parent" for owner in cls.mro for one in each(owner.node, ast.Attribute)
    ):
        what = "is decorated" if decorated else "reads its parent"
        raise _refused(call, f"{cls.node.name} is lazy, and {what}")


def _check_methods(project: Project, cls: ClassInfo) -> None:
    """Refuse methods that something else than a call of the module may run: ``jax.checkpoint(self.run)``.

    Raises:
      Refused: a method is a value, or is decorated.
    """
    own = {name for one in cls.mro for name in one.methods}
    for method in cls.methods.values():
        decorators = set(project.decorators(cls, method)) - _PLAIN
        if len(method.decorator_list) != len(project.decorators(cls, method)) or decorators:
            raise _refused(
                method, f"{method.name} is decorated, and lazy submodules are called in it"
            )
        called = {id(one.func) for one in walk(method) if isinstance(one, ast.Call)}
        receiver = receiver_of(method)
        for node in walk(method):
            match node:
                case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == receiver:
                    is_property = attr in own and "property" in _decorators(project, cls, attr)
                    if attr in own and id(node) not in called and not is_property:
                        raise _refused(
                            node, f"{attr} is a value here, and lazy submodules are called in it"
                        )
                case ast.Call(func=ast.Name(id="getattr"), args=[ast.Name(id=name), *_]):
                    if name == receiver:
                        raise _refused(
                            node, "which submodule it gets is not known, and some are lazy"
                        )


def _decorators(project: Project, cls: ClassInfo, name: str) -> Collection[str]:
    found = cls.find(name)
    return project.decorators(found[0], found[1]) if found is not None else ()


@dataclass
class _Given:
    """What lazy submodules are given as fields.

    Attributes:
      modules: the submodules that the class builds.
    """

    project: Project
    cls: ClassInfo
    items: Mapping[int, Item]
    modules: _Holders

    def check(self, call: ast.Call) -> None:
        """Refuse arguments that are not the same in both forms.

        Raises:
          Refused: one may hold a module, or build one.
        """
        for value in (*call.args, *(one.value for one in call.keywords)):
            if self._may_hold(value, self._method_of(call), set()):
                raise _refused(value, "a lazy submodule may be given a module here")

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
            for owner in self.cls.mro
            for method in owner.methods.values()
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


class _Holders:
    """Expressions that may be one of some submodules, or hold some."""

    def __init__(self, cls: ClassInfo, calls: Collection[int]) -> None:
        self._cls = cls
        self._calls = calls
        self._attributes: frozenset[str] = frozenset()
        self._names: dict[int, frozenset[str]] = {}
        while (wider := self._attributes | {*self._held_attributes()}) != self._attributes:
            self._attributes = frozenset(wider)
            self._names = {}

    def _held_attributes(self) -> Iterator[str]:
        for method in self._cls.methods.values():
            receiver = receiver_of(method)
            for target, value in bindings_below(method):
                for node in walk(target):
                    match node:
                        case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == receiver:
                            if self.has(value, method):
                                yield attr

    def has(self, node: ast.AST, method: ast.FunctionDef) -> bool:
        """Whether a value is a submodule, or holds one."""
        return self._has(node, receiver_of(method), self._local(method))

    def _local(self, method: ast.FunctionDef) -> frozenset[str]:
        if id(method) not in self._names:
            receiver, names = receiver_of(method), frozenset[str]()
            pairs = [*bindings_below(method)]
            while True:
                found = names.union(
                    name
                    for target, value in pairs
                    if self._has(value, receiver, names)
                    for name in changed_names(target)
                )
                if found == names:
                    break
                names = found
            self._names[id(method)] = names - {receiver}
        return self._names[id(method)]

    def _has(self, node: ast.AST, receiver: str, names: Collection[str]) -> bool:
        match node:
            case ast.Name(id=name):
                return name in names
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == receiver:
                return attr in self._attributes
            case ast.Call() if id(node) in self._calls:
                return True
        return any(self._has(one, receiver, names) for one in held_parts(node))


@dataclass
class _Uses:
    """What one method does with lazy submodules.

    Attributes:
      lazy: those of them that are lazy or hold lazy ones.
      holding: the explicit ones among these.
      modules: all of them.
    """

    project: Project
    cls: ClassInfo
    method: ast.FunctionDef
    lazy: _Holders
    holding: _Holders
    modules: _Holders

    def check(self) -> None:
        """Refuse all but calls.

        Raises:
          Refused: a lazy submodule is handed on, read, or called in a function inside the method.
        """
        above = {
            id(child): node for node in walk(self.method) for child in ast.iter_child_nodes(node)
        }
        inner = {
            id(one)
            for node in walk(self.method)
            if isinstance(node, ast.FunctionDef | ast.Lambda) and node is not self.method
            for one in walk(node)
        }
        for node in walk(self.method):
            is_load = isinstance(getattr(node, "ctx", None), ast.Load) or isinstance(node, ast.Call)
            if not is_load or not isinstance(node, ast.Name | ast.Attribute | ast.Call):
                continue
            if not self.lazy.has(node, self.method):
                continue
            if id(node) in inner:
                raise _refused(node, "a lazy submodule is used in a function inside the method")
            if not self._is_fine(node, above):
                raise _refused(node, "a lazy submodule is more than called here")

    def _is_fine(self, node: ast.AST, above: Mapping[int, ast.AST]) -> bool:
        outer = above[id(node)]
        while any(one is node for one in held_parts(outer)):
            node, outer = outer, above[id(outer)]
        match outer:
            case ast.Call(func=called) if called is node:
                return self._gives_arrays(outer)
            case ast.Call(func=ast.Attribute(attr=name)) if name in CHANGES:
                return True  # layers.append(Block())
            case ast.Attribute(attr=name) if name in CHANGES:
                return True
            case ast.Attribute(attr="variables"):
                return not self.holding.has(node, self.method)
            case ast.Attribute(attr=name):
                call = above[id(outer)]
                is_call = isinstance(call, ast.Call) and call.func is outer
                return is_call and self._is_method(name) and self._gives_arrays(call)
            case ast.Compare(ops=[ast.Is() | ast.IsNot()], comparators=[ast.Constant(value=None)]):
                return True
            case ast.Assign() | ast.AnnAssign() | ast.For() | ast.comprehension():
                return True
            case ast.Return():  # to code around, which finds it inside of the module
                return self.method.name != "__call__" and not self._is_called_by_itself()
        return False

    def _is_called_by_itself(self) -> bool:
        """Whether a method of the class reads this one."""
        nodes = (node for owner in self.cls.mro for node in each(owner.node, ast.Attribute))
        return any(node.attr == self.method.name for node in nodes)

    def _is_method(self, name: str) -> bool:
        """Whether a class of the project that is built here defines a method of that name."""
        built = (self.project.linen[one] for one in links_of(self.project).builds[self.cls.name])
        return any(one.find(name) is not None for one in built)

    def _gives_arrays(self, call: ast.AST) -> bool:
        """Whether no argument of a call is a submodule."""
        assert isinstance(call, ast.Call)
        called = {id(one.func) for one in walk(call) if isinstance(one, ast.Call)}
        values = [*call.args, *(one.value for one in call.keywords)]
        return not any(
            self.modules.has(node, self.method)
            for value in values
            for node in walk(value)
            if id(node) not in called and isinstance(node, ast.Name | ast.Attribute | ast.Call)
        )
