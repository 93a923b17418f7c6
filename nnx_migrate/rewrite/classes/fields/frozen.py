"""Fields that a list or a dict may be given to, whatever their annotation says: Linen freezes it there.

Code around explicit classes builds them through ``lazy``, which freezes, too; so only what explicit
classes give one another counts.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from nnx_migrate.rewrite.classes.reading.annotations import is_container, without_quotes
from nnx_migrate.sizes.factories import factory_functions
from nnx_migrate.sizes.fields.constructor_arguments import FieldArgument, field_arguments
from nnx_migrate.sizes.scope_functions import scope_functions
from nnx_migrate.source.classes import ClassInfo, Field
from nnx_migrate.source.names import Assignment
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.walking import each, is_self

_DEPTH = 6  # longest chain of names that stand for a value
_ANY = frozenset({"typing.Any", "typing_extensions.Any", "builtins.object"})
_DTYPES = ("dtype", "param_dtype", "precision")
_UNIONS = frozenset({"typing.Optional", "typing.Union", "typing.Annotated"})
_TUPLES = frozenset({"typing.Tuple", "builtins.tuple"})
_CONTAINERS = ast.List | ast.ListComp | ast.Dict | ast.DictComp
_MAKERS = frozenset({"dict", "list", "sorted"})
_OTHER_MAKERS = _MAKERS | {"copy", "deepcopy", "getattr", "vars", "eval", "next", "reversed", "set"}
_PLAIN = (
    ast.Constant
    | ast.JoinedStr
    | ast.Lambda
    | ast.Compare
    | ast.UnaryOp
    | ast.GeneratorExp
    | ast.Set
)


def may_be_given_container(project: Project, cls: ClassInfo, one: Field) -> bool:
    """Whether what explicit classes give a field is a list or a dict, or may be one.

    The annotation answers for values whose type nobody sees, unless it allows everything, or tuples.
    """
    field_values = field_arguments(project)
    key = one.owner.name
    known = [*_inside(project, field_values.get((key, one.name), ()))]
    if any(_Values(project, scope).is_container(value) for value, scope in known):
        return True
    if not _may_allow(project, one.owner.scope, one.annotation, _DEPTH):
        return False
    if _is_called_by_default(project, one.owner.scope, one.node) or _is_dtype(cls, one.name):
        return False
    known += _inside(project, field_values.get((key, ""), ()))
    return any(_Values(project, scope).may_be(value) for value, scope in known)


def _inside(
    project: Project, arguments: Iterable[FieldArgument]
) -> Iterator[tuple[ast.expr, Scope]]:
    """What stands in Linen classes, and in functions that build submodules for these."""
    for value, scope, around in arguments:
        parents = scope.module.parents
        info = project.by_node.get(id(around))
        if (info is not None and info.linen) or any(
            id(one) in _building(project) for one in parents.functions(value)
        ):
            yield value, scope


@lru_cache(maxsize=2)  # every field asks
def _building(project: Project) -> frozenset[int]:
    functions = [*factory_functions(project).values()]
    return frozenset({id(one.node) for one in functions} | scope_functions(project).keys())


# ---- annotations


def _may_allow(project: Project, scope: Scope, annotation: ast.expr, depth: int) -> bool:
    """Whether an annotation says nothing against a list or a dict: a tuple, anything, or unknown."""
    annotation = without_quotes(annotation)
    match annotation:
        case ast.Constant():
            return annotation.value is not None
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return any(_may_allow(project, scope, part, depth) for part in (left, right))
        case ast.Subscript(value=head, slice=inside):
            symbol = _symbol(project, scope, head)
            if symbol in _UNIONS:
                parts = inside.elts if isinstance(inside, ast.Tuple) else [inside]
                return any(_may_allow(project, scope, part, depth) for part in parts)
            return symbol in _TUPLES
        case ast.Name() | ast.Attribute():
            return _may_allow_named(project, scope, annotation, depth)
    return True


def _may_allow_named(project: Project, scope: Scope, annotation: ast.expr, depth: int) -> bool:
    symbol = _symbol(project, scope, annotation)
    if symbol is None or symbol in _ANY or symbol in _TUPLES:
        return True
    found = project.definition(symbol)
    if found is not None and isinstance(
        found[1], ast.expr
    ):  # an alias: ``Shape = Tuple[int, ...]``
        return depth == 0 or _may_allow(project, Scope(found[0]), found[1], depth - 1)
    return False


def _symbol(project: Project, scope: Scope, node: ast.expr) -> str | None:
    if isinstance(node, ast.Name) and hasattr(builtins, node.id) and not scope.lookup(node.id):
        return f"builtins.{node.id}"
    return project.resolve(node, scope)


def _is_called_by_default(project: Project, scope: Scope, node: ast.AnnAssign) -> bool:
    """Whether the default is a function, a class or a dtype: nobody gives a list in place of one."""
    default = node.value
    if isinstance(default, ast.Lambda):
        return True
    if not isinstance(default, ast.Name | ast.Attribute):
        return False
    symbol = _symbol(project, scope, default)
    if symbol is None:
        return False
    found = project.definition(symbol)
    is_named = found is not None and isinstance(found[1], ast.FunctionDef | ast.ClassDef)
    return is_named or project.split(symbol)[0] is None


def _is_dtype(cls: ClassInfo, name: str) -> bool:
    """Whether methods only hand a field on as what Linen calls a dtype or a precision."""
    methods = cls.every_method
    reads = {
        id(one)
        for method in methods
        for one in each(method, ast.Attribute)
        if is_self(one.value) and one.attr == name
    }
    values = {
        id(one.value)
        for method in methods
        for one in each(method, ast.keyword)
        if one.arg in _DTYPES
    }
    return bool(reads) and reads <= values


# ---- values


@dataclass(frozen=True)
class _Values:
    project: Project
    scope: Scope

    def is_container(self, node: ast.expr) -> bool:
        """Whether a value is, or holds, a list or a dict that is written out."""
        match node:
            case ast.Call(func=ast.Name(id=name)):
                return name in _MAKERS and self.scope.lookup(name) is None
            case ast.Tuple(elts=parts) | ast.BoolOp(values=parts):
                return any(map(self.is_container, parts))
            case ast.IfExp(body=body, orelse=orelse):
                return self.is_container(body) or self.is_container(orelse)
            case ast.BinOp(left=left, op=ast.Add() | ast.Mult() | ast.BitOr(), right=right):
                return self.is_container(left) or self.is_container(right)
        return isinstance(node, _CONTAINERS)

    def may_be(self, node: ast.expr, depth: int = _DEPTH) -> bool:
        """Whether a value may be, or hold, a list or a dict."""
        match node:
            case _ if isinstance(node, _PLAIN):
                return False
            case ast.Tuple(elts=parts) | ast.BoolOp(values=parts):
                return any(self.may_be(part, depth) for part in parts)
            case ast.IfExp(body=body, orelse=orelse):
                return self.may_be(body, depth) or self.may_be(orelse, depth)
            case ast.BinOp(left=left, op=ast.Add() | ast.Mult() | ast.BitOr(), right=right):
                return self.may_be(left, depth) and self.may_be(right, depth)
            case ast.BinOp():
                return False
            case ast.Call(func=called):
                return self._may_make(called)
            case ast.Subscript(value=value):
                return self.may_be(value, depth)
            case ast.Name() | ast.Attribute():
                return depth == 0 or self._may_name(node, depth)
        return True

    def _is_own(self, node: ast.Attribute) -> bool:
        """Whether it is an attribute of the module itself, which has been frozen there."""
        info = self._class_around(node)
        return is_self(node.value) and (info is None or info.find(node.attr) is None)

    def _class_around(self, node: ast.AST) -> ClassInfo | None:
        return self.project.by_node.get(id(self.scope.module.parents.class_of(node)))

    def _may_name(self, node: ast.Name | ast.Attribute, depth: int) -> bool:
        if isinstance(node, ast.Attribute):
            if self._is_own(node):
                return False
            found = self._option(node)
            if found is not None:
                return found
        binding = self.scope.lookup(node.id) if isinstance(node, ast.Name) else None
        if isinstance(binding, Assignment):
            return self.may_be(binding.value, depth - 1)
        symbol = _symbol(self.project, self.scope, node)
        if symbol is None:
            return True
        home = self.project.definition(symbol)
        if home is None:
            return self.project.split(symbol)[0] is not None and symbol not in self.project.modules
        is_value = isinstance(home[1], ast.expr)
        return is_value and _Values(self.project, Scope(home[0])).may_be(home[1], depth - 1)  # type: ignore[arg-type]

    def _option(self, node: ast.Attribute) -> bool | None:
        """The answer for an attribute of a configuration whose class says its type; None for others."""
        owner = node.value
        if isinstance(owner, ast.Name):
            binding = self.scope.lookup(owner.id)
            owner = binding.value if isinstance(binding, Assignment) else owner
        info = self._class_around(node)
        if info is None or not isinstance(owner, ast.Attribute) or not is_self(owner.value):
            return None
        for one in info.fields:
            if one.name == owner.attr:
                symbol = self.project.resolve(without_quotes(one.annotation), one.owner.scope)
                return self._says_annotation(self.project.classes.get(symbol or ""), node.attr)
        return None

    def _says_annotation(self, config: ClassInfo | None, name: str) -> bool | None:
        for owner in config.mro if config is not None else ():
            for one in owner.node.body:
                if isinstance(one, ast.AnnAssign) and ast.unparse(one.target) == name:
                    is_open = is_container(one.annotation) or _may_allow(
                        self.project, owner.scope, one.annotation, _DEPTH
                    )
                    return is_open and not _is_called_by_default(self.project, owner.scope, one)
        return None

    def _may_make(self, callee: ast.expr) -> bool:
        """Whether a call may give a list or a dict: no class does, nor what another package makes."""
        if isinstance(callee, ast.Name) and self.scope.lookup(callee.id) is None:
            return callee.id in _OTHER_MAKERS or not hasattr(builtins, callee.id)
        symbol = self.project.resolve(callee, self.scope)
        if symbol is None:
            return True
        if symbol in self.project.class_statements:
            return False
        return (
            symbol.rpartition(".")[2] in _OTHER_MAKERS or self.project.split(symbol)[0] is not None
        )
