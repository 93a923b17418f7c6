"""What ``__init__`` would store that reads the module itself: ``self.act = lambda x: self.scale * x``.

Why that matters: `rewrite.classes.reading.module_reads`.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from nnx_migrate.constructs import layer_of
from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.items import Item, ItemKind, receiver_of
from nnx_migrate.rewrite.classes.reading.attributes import MODULES, Attribute, Kind, statements
from nnx_migrate.rewrite.classes.reading.evaluation import COMPREHENSIONS, CONTAINERS
from nnx_migrate.rewrite.classes.reading.module_reads import ModuleReads, plain_fields
from nnx_migrate.rewrite.classes.setup.dependence import dependence_in
from nnx_migrate.source.bindings import target_names
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.names import FunctionNode
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import each, given_values, names_in, walk

RULE = "class"
_STORED = (Kind.SUBMODULE, Kind.STRUCTURE, Kind.PLAIN)
_DATA = frozenset({"len", "isinstance", "type", "str", "int", "float", "bool", "sum", "max", "min"})
_MAKING = (ast.Call, ast.List, ast.Dict, *COMPREHENSIONS)
_KEPT = "it refers to the module that is built: a copy of the module would still read that one"


def check_captures(
    project: Project, cls: ClassInfo, attributes: Iterable[Attribute], items: Mapping[int, Item]
) -> None:
    """Refuse such a value of an attribute, or of an argument of a submodule.

    Raises:
      Refused: the copy of a module would call the module that it is a copy of.
    """
    own = list(attributes)
    submodule_names = {one.name for one in own if one.kind in MODULES} | _built_by_bases(cls)
    data = {one.name for one in own if one.kind is Kind.PLAIN} - submodule_names
    plain = plain_fields(project, cls) | data
    reads = ModuleReads(cls, plain)
    values = {id(one.value): one for one in own if one.kind in _STORED}
    for name, method in cls.methods.items():
        in_setup = name == "setup"
        captures = _Captures(
            reads, receiver_of(method), items, submodule_names, _members(project), in_setup=in_setup
        )
        for statement in statements(method.body):
            stored = _stored_values(statement, values, items, in_setup=in_setup)
            for found in (one for value in stored for one in captures.of(value)):
                raise ClassRefused(found, _KEPT, "pass it where it is called", RULE)
            captures.note(statement)
    for name in _stored_by_bases(cls):
        if reads.by_method(name):
            raise ClassRefused(cls.node, f"self.{name} of a base: {_KEPT}", "call it instead", RULE)


def _built_by_bases(cls: ClassInfo) -> frozenset[str]:
    """Attributes of bases that may hold submodules: which items a base has is not known here."""
    methods = (base.methods.get("setup") for base in cls.mro[1:])
    return frozenset(name for one in methods if one is not None for name in _built_attributes(one))


def _stored_by_bases(cls: ClassInfo) -> Iterator[str]:
    """Methods that the class overrides and that the ``setup`` of a base refers to: ``self.f = self.hook``."""
    for base in cls.mro[1:]:
        setup = base.methods.get("setup")
        nodes = walk(setup) if setup is not None else ()
        called = {id(one.func) for one in nodes if isinstance(one, ast.Call)}
        for one in nodes:
            if isinstance(one, ast.Attribute) and id(one) not in called:
                found, known = cls.find(one.attr), base.find(one.attr)
                if found is not None and known is not None and found != known:
                    yield one.attr


def _stored_values(
    statement: ast.stmt,
    values: Mapping[int, Attribute],
    items: Mapping[int, Item],
    *,
    in_setup: bool,
) -> Iterator[ast.expr]:
    """What ``__init__`` stores of a statement: values of attributes, arguments of submodules."""
    for node in _own_nodes(statement):
        item = items.get(id(node))
        if item is None and id(node) in values and isinstance(node, ast.expr):
            yield node
        if item is not None and _keeps_arguments(item, in_setup=in_setup):
            yield from given_values(item.call)


def _own_nodes(statement: ast.stmt) -> Iterator[ast.AST]:
    """The nodes of a statement without those of the statements in its blocks."""
    if isinstance(statement, FunctionNode):
        yield from walk(statement)
        return
    for child in ast.iter_child_nodes(statement):
        if not isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield from walk(child)


def _keeps_arguments(item: Item, *, in_setup: bool) -> bool:
    """Whether ``__init__`` is given the arguments, not the call (functions, a compact `Sequential`)."""
    if item.kind is not ItemKind.SITE or item.site is None:
        return False
    layer = layer_of(item.site.symbol)
    runs_them = layer is not None and layer.holds_modules and not in_setup
    return not item.is_in_scope and not runs_them


@dataclass
class _Captures:
    """Finds what refers to the module in the expressions of one method.

    Attributes:
      submodule_names: attributes that hold submodules.
      members: attributes of submodules that are methods or submodules, or follow variables.
      in_setup: whether it is ``setup``, where what submodules compute would be kept for later calls.
      functions: local names of what refers to the module.
      modules: local names of submodules and variables.
    """

    reads: ModuleReads
    receiver: str
    items: Mapping[int, Item]
    submodule_names: Collection[str]
    members: Collection[str]
    in_setup: bool
    functions: set[str] = field(default_factory=set)
    modules: set[str] = field(default_factory=set)

    def note(self, statement: ast.stmt) -> None:
        """Follow the local names that a statement binds."""
        match statement:
            case ast.FunctionDef(name=name):
                if self._reads_module(statement):
                    self.functions.add(name)
            case ast.Assign(targets=targets, value=value):
                names = {name for one in targets for name in target_names(one)}
                if any(True for _ in self.of(value)):
                    self.functions |= names
                elif self._is_module(value):
                    self.modules |= names

    def of(self, value: ast.AST) -> Iterator[ast.AST]:
        """What refers to the module in what ``value`` evaluates to."""
        match value:
            case ast.Lambda():
                yield from [value] if self._reads_module(value) else []
            case ast.Name(id=name):
                yield from [value] if name in (self.receiver, *self.functions) else []
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == self.receiver:
                yield from [value] if self.reads.by_method(attr) else []
            case ast.Attribute(value=inner, attr=attr) if self._is_module(inner):
                yield from [value] if attr in self.members else []
            case ast.Call() if id(value) in self.items:
                return  # its arguments are asked by themselves
            case ast.Call(func=ast.Name(id=name)) if name in _DATA:
                return
            case ast.Call(func=function) if self.in_setup and self._computes(function):
                yield value
            case ast.Call(func=function, args=args, keywords=keywords):
                if self.in_setup and not self._is_own_method(function):
                    yield from self.of(getattr(function, "value", function))
                holds = isinstance(function, ast.Name) and function.id in CONTAINERS
                for one in (*args, *(keyword.value for keyword in keywords)):
                    found = not holds and self._is_module(one)
                    yield from [one] if found else self.of(one)
            case _:
                for child in ast.iter_child_nodes(value):
                    yield from self.of(child)

    def _reads_module(self, function: FunctionNode) -> bool:
        return self.reads.by_function(function, self.receiver, self.functions | self.modules)

    def _is_own_method(self, function: ast.AST) -> bool:
        match function:
            case ast.Attribute(value=ast.Name(id=name)):
                return name == self.receiver
        return False

    def _computes(self, function: ast.AST) -> bool:
        """Whether calling it computes with what the module holds: ``self.enc(x)``, ``self.encode(x)``."""
        match function:
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == self.receiver:
                return attr in self.submodule_names or self.reads.by_method(attr)
            case ast.Attribute(value=inner, attr=attr) if attr not in self.members:
                return False
            case ast.Attribute(value=inner):
                return self._is_module(inner)
        return self._is_module(function)

    def _is_module(self, node: ast.AST) -> bool:
        """Whether it may be a submodule or variable that the module holds, or a list of such."""
        item = self.items.get(id(node))
        if item is not None:
            return item.kind is not ItemKind.STREAM
        match node:
            case ast.Name(id=name):
                return name in self.modules
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == self.receiver:
                return attr in self.submodule_names
            case ast.Attribute(value=inner) | ast.Subscript(value=inner) | ast.Starred(value=inner):
                return self._is_module(inner)
        return False


@lru_cache(maxsize=8)
def _members(project: Project) -> frozenset[str]:
    """Methods, submodules and variables of the project's modules, and those of Linen's that matter here."""
    found = {"__call__", "apply", "attend", "bind", "cell", "embedding", "init", "layers"}
    for cls in project.linen.values():
        found |= cls.methods.keys()
        setup = cls.methods.get("setup")
        if setup is not None:
            found |= {*_built_attributes(setup), *dependence_in(cls, setup).attributes}
    return frozenset(found)


def _built_attributes(setup: ast.FunctionDef) -> Iterator[str]:
    """Attributes that may hold submodules: a call, a list or a dict gives them their value."""
    assignments = each(setup, ast.Assign)
    local = {
        name
        for one in assignments
        if any(each(one.value, _MAKING))
        for target in one.targets
        for name in target_names(target)
    }
    for one in assignments:
        names = names_in(one.value) & local
        if names or any(each(one.value, _MAKING)):
            yield from (node.attr for node in one.targets if isinstance(node, ast.Attribute))
