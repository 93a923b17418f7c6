"""What a module gives to a submodule that refers to the module, or to its call.

Linen builds the submodule in each call, with new arguments: ``Block(lambda x: dense(x))(x)``. An explicit
submodule is built once, and keeps what the first call gave it.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from nnx_migrate.rewrite.classes.items import receiver_of
from nnx_migrate.rewrite.classes.reading.module_reads import ModuleReads, plain_fields
from nnx_migrate.rewrite.outside.class_members import is_module
from nnx_migrate.rewrite.outside.places import Places
from nnx_migrate.source.bindings import bound_names, target_names
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.names import parameter_names
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.walking import each, walk


def reads_module(project: Project, places: Places, value: ast.expr) -> bool:
    """Whether the value, in a method of a Linen module, is a submodule or a function that reads one."""
    method = _method_around(project, places, value)
    return method is not None and _Method(project, *method).gives(value)


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
        for node in walk(self.function):
            match node:
                case ast.FunctionDef(name=name) if node is not self.function:
                    if self.reads.by_function(node, self.receiver, self.local):
                        self.functions.add(name)
                case ast.Assign(targets=targets, value=value) if self._builds(value, scope):
                    self.modules |= {name for one in targets for name in target_names(one)}
                case ast.NamedExpr(target=target, value=value) if self._builds(value, scope):
                    self.modules.add(target.id)

    def gives(self, value: ast.expr) -> bool:
        """Whether a value refers to the module or to one of its submodules."""
        return any(map(self._refers, walk(value)))

    def _refers(self, node: ast.AST) -> bool:
        match node:
            case ast.Lambda():
                return self.reads.by_function(node, self.receiver, self.local)
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == self.receiver:
                return self.reads.by_method(attr) or attr in self._attributes()
            case ast.Name(id=name):
                return name in self.functions | self.modules
        return False

    def _attributes(self) -> set[str]:
        """Attributes in which ``setup`` stores submodules."""
        found = self.cls.find("setup")
        if found is None:
            return set()
        owner, setup = found
        scope = owner.scope.enter(setup)
        built = (one for one in each(setup, ast.Assign) if self._builds(one.value, scope))
        targets = (target for one in built for target in one.targets)
        return {one.attr for one in targets if isinstance(one, ast.Attribute)}

    def _builds(self, value: ast.AST, scope: Scope) -> bool:
        """Whether a value is a submodule or a list of such, not what calling one gives."""
        match value:
            case ast.Call(func=function):
                symbol = self.project.resolve(function, scope)
                return symbol is not None and (symbol in self.project.linen or is_module(symbol))
            case ast.Name(id=name):
                return name in self.modules
            case ast.Subscript(value=inner) | ast.Starred(value=inner):
                return self._builds(inner, scope)
            case ast.IfExp(body=body, orelse=orelse):
                return self._builds(body, scope) or self._builds(orelse, scope)
            case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Dict(values=parts):
                return any(self._builds(one, scope) for one in parts)
            case ast.ListComp(elt=part) | ast.DictComp(value=part):
                return self._builds(part, scope)
        return False
