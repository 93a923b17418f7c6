"""What a class may do with submodules that are lazy: call them, and little else.

A lazy module finds its place by the module whose call runs. So its class must not hand it on, nor run it
where jax or NNX run a copy: below ``jax.checkpoint``, inside a function of its own.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from nnx_migrate.rewrite.classes.checks.variable_paths import path_above
from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.items import receiver_of
from nnx_migrate.rewrite.classes.reading.evaluation import held_parts
from nnx_migrate.rewrite.classes.reading.holders import Holders
from nnx_migrate.source.bindings import CHANGES
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import each, given_values, walk

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


def beyond_calls(node: ast.AST, reason: str) -> ClassRefused:
    """Why a class that does more with a lazy submodule than to call it is lazy itself."""
    return ClassRefused(node, reason, "call the submodule in a method of the class", RULE)


def check_methods(project: Project, cls: ClassInfo) -> None:
    """Refuse methods that something else than a call of the module may run: ``jax.checkpoint(self.run)``.

    Raises:
      Refused: a method is a value, or is decorated.
    """
    for owner in cls.mro:
        for method in owner.methods.values():
            decorators = project.decorators(owner, method)
            if not _PLAIN.issuperset(decorators):
                reason = f"{method.name} is decorated, and lazy submodules are called in it"
                raise beyond_calls(method, reason)
            _check_reads(project, cls, method)


def _check_reads(project: Project, cls: ClassInfo, method: ast.FunctionDef) -> None:
    called = {id(one.func) for one in each(method, ast.Call)}
    receiver = receiver_of(method)
    for node in walk(method):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if (
                name == receiver and attr in cls.method_names and id(node) not in called
            ):
                if "property" not in _decorators(project, cls, attr):
                    reason = f"{attr} is a value here, and lazy submodules are called in it"
                    raise beyond_calls(node, reason)
            case ast.Call(func=ast.Name(id="getattr"), args=[ast.Name(id=name), *_]) if (
                name == receiver
            ):
                raise beyond_calls(node, "which submodule it gets is not known, and some are lazy")


def _decorators(project: Project, cls: ClassInfo, name: str) -> Collection[str]:
    found = cls.find(name)
    return project.decorators(found[0], found[1]) if found is not None else ()


@dataclass
class LazyUses:
    """What one method does with lazy submodules.

    Attributes:
      lazy: those of them that are lazy or hold lazy ones.
      modules: all submodules.
      classes: the classes that one of them may be of.
      may_read: whether the variables of one may be read at some steps, ``self.model.variables[...][...]``.
      takes: whether what a call builds takes a lazy one, and does no more with it.
    """

    project: Project
    cls: ClassInfo
    method: ast.FunctionDef
    lazy: Holders
    modules: Holders
    classes: Sequence[ClassInfo]
    may_read: Callable[[ast.AST, ast.FunctionDef, tuple[str, ...]], bool] = lambda *_: True
    takes: Callable[[ast.Call, ast.AST], bool] = lambda call, value: False

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
                raise beyond_calls(node, "a lazy submodule is used in a function inside the method")
            if not self._is_fine(node, above):
                raise beyond_calls(node, "a lazy submodule is more than called here")

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
            case ast.Call() if self.takes(outer, node):
                return True
            case ast.keyword() if isinstance(call := above[id(outer)], ast.Call):
                return self.takes(call, node)
            case ast.Attribute(attr=name) if name in CHANGES:
                return True
            case ast.Attribute(attr="variables"):
                return self.may_read(node, self.method, path_above(outer, above))
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

    def _is_called_by_itself(self) -> bool:
        """Whether a method of the class reads this one."""
        nodes = (node for owner in self.cls.mro for node in each(owner.node, ast.Attribute))
        return any(node.attr == self.method.name for node in nodes)

    def _is_method(self, name: str) -> bool:
        """Whether a class of the project that is built here defines a method of that name."""
        return any(one.find(name) is not None for one in self.classes)

    def _is_bound_for(self, name: str) -> bool:
        """Whether calls of that method bind the module: those of ``nn.nowrap`` run with what it is alone."""
        return not any(
            {*_decorators(self.project, one, name)} & {"flax.linen.nowrap", "property"}
            for one in self.classes
        )

    def _gives_arrays(self, call: ast.AST) -> bool:
        """Whether no argument of a call is a submodule."""
        assert isinstance(call, ast.Call)
        functions = [one.func for one in each(call, ast.Call)]
        called = {id(one) for one in functions}
        called |= {id(one.value) for one in functions if isinstance(one, ast.Attribute)}
        values = given_values(call)
        return not any(
            self.modules.has(node, self.method)
            for value in values
            for node in walk(value)
            if id(node) not in called and isinstance(node, ast.Name | ast.Attribute | ast.Call)
        )
