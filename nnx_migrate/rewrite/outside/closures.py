"""What a module gives to a submodule that refers to the module, or to its call.

Linen builds the submodule in each call, with new arguments: ``Block(lambda x: dense(x))(x)``. An explicit
submodule is built once, and keeps what the first call gave it.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from nnx_migrate.rewrite.classes.items import receiver_of
from nnx_migrate.rewrite.classes.reading.evaluation import held_parts
from nnx_migrate.rewrite.classes.reading.module_reads import ModuleReads, plain_fields
from nnx_migrate.rewrite.outside.class_members import is_module
from nnx_migrate.rewrite.outside.places import Places
from nnx_migrate.source.bindings import bindings_below, bound_names, target_names
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.names import parameter_names
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.walking import each, walk


def reads_module(project: Project, places: Places, value: ast.expr) -> bool:
    """Whether the value, in a method of a Linen module, is a submodule or a function that reads one."""
    method = _method_around(project, places, value)
    return method is not None and _method(project, *method).gives(value)


@lru_cache(maxsize=256)  # each argument of each submodule asks
def _method(project: Project, cls: ClassInfo, function: ast.FunctionDef) -> _Method:
    return _Method(project, cls, function)


def _method_around(
    project: Project, places: Places, node: ast.AST
) -> tuple[ClassInfo, ast.FunctionDef] | None:
    """The outermost method of a Linen class that the node stands in."""
    while node in places:
        above = places.parent(node)
        cls = project.by_node.get(id(above))
        if cls is not None and cls.linen and isinstance(node, ast.FunctionDef):
            return cls, node
        if above is None:
            break
        node = above
    return None


@dataclass
class _Method:
    """One method and what its names refer to.

    Attributes:
      local: names that it binds.
      functions: local functions that read the module or a local name.
      modules: local names of submodules, or of lists of such.
    """

    project: Project
    cls: ClassInfo
    function: ast.FunctionDef
    local: set[str] = field(default_factory=set)
    functions: set[str] = field(default_factory=set)
    modules: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.receiver = receiver_of(self.function)
        self.reads = ModuleReads(self.cls, plain_fields(self.project, self.cls))
        names = {name for one in self.function.body for name in bound_names(one)}
        self.local |= (names | {*parameter_names(self.function)}) - {self.receiver}
        scope = self.cls.scope.enter(self.function)
        for one in each(self.function, ast.FunctionDef):
            if one is not self.function and self.reads.by_function(one, self.receiver, self.local):
                self.functions.add(one.name)
        for target, value in bindings_below(self.function):
            if self._builds(value, scope):
                self.modules |= {*target_names(target)}

    def gives(self, value: ast.expr) -> bool:
        """Whether a value refers to the module or to one of its submodules."""
        return any(map(self._refers, walk(value)))

    def _refers(self, node: ast.AST) -> bool:
        match node:
            case ast.Lambda():
                return self.reads.by_function(node, self.receiver, self.local)
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == self.receiver:
                return self.reads.by_method(attr) or attr in self._attributes
            case ast.Name(id=name):
                return name in self.functions | self.modules
        return False

    @cached_property
    def _attributes(self) -> frozenset[str]:
        """Attributes in which ``setup`` stores submodules."""
        found = self.cls.find("setup")
        if found is None:
            return frozenset()
        owner, setup = found
        scope = owner.scope.enter(setup)
        built = (one for one in each(setup, ast.Assign) if self._builds(one.value, scope))
        targets = (target for one in built for target in one.targets)
        return frozenset(one.attr for one in targets if isinstance(one, ast.Attribute))

    def _builds(self, value: ast.AST, scope: Scope) -> bool:
        """Whether a value is a submodule or a list of such, not what calling one gives."""
        match value:
            case ast.Call(func=function):
                symbol = self.project.resolve(function, scope)
                if symbol is not None and (symbol in self.project.linen or is_module(symbol)):
                    return True
            case ast.Name(id=name):
                return name in self.modules
        return any(self._builds(one, scope) for one in held_parts(value))
