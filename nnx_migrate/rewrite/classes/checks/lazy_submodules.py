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
from dataclasses import dataclass, replace

from nnx_migrate.rewrite.class_values import class_values
from nnx_migrate.rewrite.classes.checks.lazy_arguments import LazyArguments
from nnx_migrate.rewrite.classes.checks.variable_paths import leads_past_lazy, path_above
from nnx_migrate.rewrite.classes.data import ConversionContext, Refused
from nnx_migrate.rewrite.classes.items import Item, receiver_of, submodule_keys
from nnx_migrate.rewrite.classes.reading.evaluation import held_parts
from nnx_migrate.rewrite.classes.reading.holders import Holders, methods_of
from nnx_migrate.rewrite.links import links_of
from nnx_migrate.sizes.factories import built_classes, factory_functions
from nnx_migrate.sizes.result import ClassSizes, SiteKind
from nnx_migrate.source.bindings import CHANGES
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.names import names_in_text
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import each, walk

RULE = "lazy_submodule"
_PLAIN = frozenset(
    {
        "flax.linen.compact",
        "flax.linen.nowrap",
        "staticmethod",
        "property",
        "abc.abstractmethod",
        "typing.final",
        "typing.override",
        "typing_extensions.override",
    }
)


def check_lazy_submodules(
    project: Project,
    cls: ClassInfo,
    items: Mapping[int, Item],
    sizes: ClassSizes,
    context: ConversionContext,
    given: Collection[int],
) -> bool:
    """Whether a class holds lazy submodules, itself or in its explicit ones.

    Args:
      given: ids of the names of classes that lazy submodules get as fields.

    Raises:
      Refused: it does more with one than to call it.
    """
    bases = [one.name for one in cls.mro[1:] if one.name in project.linen]
    if any(map(context.holds_lazy, bases)):
        raise _refused(cls.node, "its base holds submodules that are lazy")
    lazy = {key for key, one in sizes.sites.items() if context.is_lazy(one)}
    inside = {key for key, one in sizes.sites.items() if context.is_lazy_inside(one)}
    for name in sorted(_held_classes(project, cls, sizes)):
        if context.holds_lazy(name) and name not in context.lifted:
            raise _refused(cls.node, f"it has {name}, which holds lazy submodules, as a value")
    partials = [*_lazy_partials(project, cls, sizes, context, given)]
    if not inside:
        return False
    if _is_told(cls, sizes, inside):
        reason = (
            "what the initial call is given decides which submodules there are, and some are lazy"
        )
        raise _refused(cls.node, reason)
    for key in inside:
        site = sizes.sites[key]
        known = site.kind is SiteKind.CLASS or key in lazy
        if key not in items or not known or site.out_variable is not None:
            raise _refused(
                site.call, f"{site.symbol} is lazy, and is built by more than a call of it"
            )
        built = built_classes(project, site.symbol)
        if cls in built:
            raise _refused(site.call, "it builds itself, and holds lazy submodules")
        for one in built if site.symbol in context.lazy else ():
            _check_class(one, site.call)
    sites = (key for key in submodule_keys(items) if not items[key].is_in_scope)  # gives an array
    modules = Holders(cls, frozenset(sites))
    arguments = LazyArguments(project, cls, items, modules, given)
    for key in sorted(lazy, key=lambda key: items[key].call.lineno):
        is_explicit = context.is_lazy_form(sizes.sites[key])
        replace(arguments, takes_classes=is_explicit).check(items[key].call)
    for partial in partials:
        arguments.check_partial(partial)
    _check_methods(project, cls)
    every, holding = Holders(cls, inside), Holders(cls, inside - lazy)
    for method in methods_of(cls):
        _Uses(project, cls, sizes, context, method, every, holding, modules).check()
    return True


def _is_told(cls: ClassInfo, sizes: ClassSizes, inside: Collection[int]) -> bool:
    """Whether facts of the initial call decide about lazy modules, whose variables do not show them."""
    facts = {one.name for one in sizes.new_arguments if one.fact is not None}
    reached = (sizes.sites[key].reached or "" for key in inside)
    if any(facts & names_in_text(text) for text in reached if text):
        return True
    tests = [
        one
        for method in methods_of(cls)
        for one in each(method, ast.If | ast.IfExp | ast.BoolOp)
        if any(id(node) in sizes.facts for node in walk(getattr(one, "test", one)))
    ]
    return any(_ends(one) or any(id(node) in inside for node in walk(one)) for one in tests)


def _ends(test: ast.AST) -> bool:
    """Whether what follows a test hangs on it, too."""
    return any(isinstance(one, ast.Return | ast.Continue | ast.Break) for one in walk(test))


def _held_classes(project: Project, cls: ClassInfo, sizes: ClassSizes) -> set[str]:
    """Classes that a class has as values, also those that factory functions give it sizes for."""
    keys = {key for key, one in sizes.sites.items() if one.kind is SiteKind.FACTORY}
    functions = factory_functions(project).values() if keys else ()
    used = (one for one in functions if not keys.isdisjoint(one.uses))
    return {
        *links_of(project).holds.get(cls.name, ()),
        *(name for one in used for _, name in one.calls),
    }


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


def _lazy_partials(
    project: Project,
    cls: ClassInfo,
    sizes: ClassSizes,
    context: ConversionContext,
    given: Collection[int],
) -> Iterator[ast.Call]:
    """The partials of lazy classes.

    Raises:
      Refused: a lazy class goes elsewhere as a value, or a call of it may build something else.
    """
    for node, symbol, value in class_values(project, cls):
        if not context.is_lazy_value(symbol) or id(node) in given:
            continue
        calls = value.calls if value is not None else ()
        sites = [sizes.sites.get(id(call)) for call in calls]
        if value is None or any(one is None or not context.is_lazy(one) for one in sites):
            raise _refused(cls.node, f"it has {symbol}, which is lazy, as a value")
        yield from value.partials


def _check_methods(project: Project, cls: ClassInfo) -> None:
    """Refuse methods that something else than a call of the module may run: ``jax.checkpoint(self.run)``.

    Raises:
      Refused: a method is a value, or is decorated.
    """
    for owner in cls.mro:
        for method in owner.methods.values():
            decorators = project.decorators(owner, method)
            if not _PLAIN.issuperset(decorators):
                reason = f"{method.name} is decorated, and lazy submodules are called in it"
                raise _refused(method, reason)
            _check_reads(project, cls, method)


def _check_reads(project: Project, cls: ClassInfo, method: ast.FunctionDef) -> None:
    own = {name for one in cls.mro for name in one.methods}
    called = {id(one.func) for one in each(method, ast.Call)}
    receiver = receiver_of(method)
    for node in walk(method):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if (
                name == receiver and attr in own and id(node) not in called
            ):
                if "property" not in _decorators(project, cls, attr):
                    reason = f"{attr} is a value here, and lazy submodules are called in it"
                    raise _refused(node, reason)
            case ast.Call(func=ast.Name(id="getattr"), args=[ast.Name(id=name), *_]) if (
                name == receiver
            ):
                raise _refused(node, "which submodule it gets is not known, and some are lazy")


def _decorators(project: Project, cls: ClassInfo, name: str) -> Collection[str]:
    found = cls.find(name)
    return project.decorators(found[0], found[1]) if found is not None else ()


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
    sizes: ClassSizes
    context: ConversionContext
    method: ast.FunctionDef
    lazy: Holders
    holding: Holders
    modules: Holders

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
                return self._is_bound_for("__call__") and self._gives_arrays(outer)
            case ast.Call(func=ast.Attribute(attr=name)) if name in CHANGES:
                return True  # layers.append(Block())
            case ast.Call(func=ast.Name(id="len")):
                return True
            case ast.Attribute(attr=name) if name in CHANGES:
                return True
            case ast.Attribute(attr="variables"):
                return not self.holding.has(node, self.method) or self._leads_past(outer, above)
            case ast.Attribute(attr=name):
                call = above[id(outer)]
                is_call = isinstance(call, ast.Call) and call.func is outer
                is_method = self._is_method(name) and self._is_bound_for(name)
                return is_call and is_method and self._gives_arrays(call)
            case ast.Compare(ops=[ast.Is() | ast.IsNot()], comparators=[ast.Constant(value=None)]):
                return True
            case ast.Assign() | ast.AnnAssign() | ast.AugAssign() | ast.For() | ast.comprehension():
                return True
            case ast.Return():  # to code around, which finds it inside of the module
                return self.method.name != "__call__" and not self._is_called_by_itself()
        return False

    def _leads_past(self, node: ast.Attribute, above: Mapping[int, ast.AST]) -> bool:
        """Whether ``self.model.variables[...][...]`` reads a variable of no lazy submodule."""
        steps = path_above(node, above)
        return leads_past_lazy(self.project, self.cls, self.sizes, self.context, steps)

    def _is_called_by_itself(self) -> bool:
        """Whether a method of the class reads this one."""
        nodes = (node for owner in self.cls.mro for node in each(owner.node, ast.Attribute))
        return any(node.attr == self.method.name for node in nodes)

    def _is_method(self, name: str) -> bool:
        """Whether a class of the project that is built here defines a method of that name."""
        return any(one.find(name) is not None for one in self._built())

    def _is_bound_for(self, name: str) -> bool:
        """Whether calls of that method bind the module: those of ``nn.nowrap`` run with what it is alone."""
        return not any(
            {*_decorators(self.project, one, name)} & {"flax.linen.nowrap", "property"}
            for one in self._built()
        )

    def _built(self) -> list[ClassInfo]:
        return [self.project.linen[one] for one in links_of(self.project).builds[self.cls.name]]

    def _gives_arrays(self, call: ast.AST) -> bool:
        """Whether no argument of a call is a submodule."""
        assert isinstance(call, ast.Call)
        functions = [one.func for one in each(call, ast.Call)]
        called = {id(one) for one in functions}
        called |= {id(one.value) for one in functions if isinstance(one, ast.Attribute)}
        values = [*call.args, *(one.value for one in call.keywords)]
        return not any(
            self.modules.has(node, self.method)
            for value in values
            for node in walk(value)
            if id(node) not in called and isinstance(node, ast.Name | ast.Attribute | ast.Call)
        )
