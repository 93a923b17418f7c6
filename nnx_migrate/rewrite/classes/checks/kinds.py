"""Questions of what kind of object a submodule is: ``type(self.proj) is nn.Dense``, ``hasattr(layer, "features")``.

NNX's layers are of other classes, with other attributes. Only ``isinstance`` of classes that its own text names
is asked of NNX's in their place.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from nnx_migrate.constructs import is_linen
from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.items import Item, receiver_of, submodule_keys
from nnx_migrate.rewrite.classes.reading.annotations import alternatives
from nnx_migrate.rewrite.classes.reading.holders import Holders
from nnx_migrate.sizes.fields.constructor_arguments import fields_with_modules
from nnx_migrate.source.bindings import bindings_below, target_names
from nnx_migrate.source.classes import ClassInfo, Field, is_linen_class
from nnx_migrate.source.modules import FUNCTIONS
from nnx_migrate.source.names import FunctionNode
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.walking import each, given_values, walk

_CHOICES = ("Annotated", "Optional", "Union")
_OPEN = frozenset({"typing.Any", "typing.Callable", "collections.abc.Callable"})
_ASKS = frozenset({"dir", "getattr", "hasattr", "type", "vars"})


def check_kinds(project: Project, cls: ClassInfo, items: Mapping[int, Item]) -> None:
    """Refuse such questions, also of a function that is given the submodule.

    Raises:
      Refused: NNX's layer may answer otherwise.
    """
    sites = submodule_keys(items)
    asking = _Asking(project, cls, Holders(cls, sites), _module_fields(project, cls))
    for method in cls.every_method:
        for node in asking.questions(method):
            raise ClassRefused(
                node,
                "it asks what kind of object a submodule is, and NNX's is another",
                "ask isinstance of classes by their names",
                "module-api",
            )


def _module_fields(project: Project, cls: ClassInfo) -> frozenset[str]:
    """Fields that hold a module: by their annotation, or because a constructor call gives one.

    What kind of container it is may be asked of a ``Sequence[nn.Module]``.
    """
    fields = fields_with_modules(project)
    found = ((one, symbol) for one in cls.fields for symbol in _symbols(project, one))
    return frozenset(
        one.name
        for one, symbol in found
        if is_linen_class(symbol)
        or symbol in project.linen
        or (symbol in _OPEN and (one.owner.name, one.name) in fields)
    )


def _symbols(project: Project, one: Field) -> Iterator[str | None]:
    for node in alternatives(one.annotation, _CHOICES):
        if not isinstance(node, ast.Subscript):
            yield project.resolve(node, one.owner.scope)


@dataclass(frozen=True)
class _Asking:
    """What the methods of one class ask.

    Attributes:
      holders: what may be a submodule that the class builds.
      fields: those that hold modules.
    """

    project: Project
    cls: ClassInfo
    holders: Holders
    fields: frozenset[str]

    def questions(self, method: ast.FunctionDef) -> Iterator[ast.AST]:
        """The questions of a method, and the calls of functions that ask them."""
        scope = self.cls.scope.enter(method)
        for node in walk(method):
            match node:
                case ast.Attribute(value=owner, attr="__class__") if self._is_part(owner, method):
                    yield node
                case ast.Call(func=ast.Name(id=name), args=[argument, *_]) if name in _ASKS:
                    if self._is_part(argument, method):
                        yield node
                case ast.Call(func=ast.Name(id="isinstance"), args=[argument, kinds]):
                    is_named = _are_named(self.project, scope, kinds)
                    if not is_named and self._is_part(argument, method):
                        yield node
                case ast.Call():
                    arguments = given_values(node)
                    if any(self._is_part(one, method) for one in arguments):
                        yield from _asked_by(self.project, self.cls, method, node)

    def _is_part(self, node: ast.AST, method: ast.FunctionDef) -> bool:
        """Whether it may be a submodule, or what is read of one: ``self.block.proj``."""
        if self.holders.has(node, method):
            return True
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == receiver_of(method):
                return attr in self.fields
            case ast.Attribute(value=inner) | ast.Subscript(value=inner) | ast.Starred(value=inner):
                return self._is_part(inner, method)
        return False


def _are_named(project: Project, scope: Scope, kinds: ast.expr) -> bool:
    """Whether classes are named where they are asked for: ``(nn.Dense, Block)``, ``nn.Dense | Block``."""
    match kinds:
        case ast.Tuple(elts=parts):
            return all(_are_named(project, scope, one) for one in parts)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _are_named(project, scope, left) and _are_named(project, scope, right)
        case ast.Name() | ast.Attribute():
            symbol = project.resolve(kinds, scope)
            if symbol is None:
                return isinstance(kinds, ast.Name) and scope.lookup(kinds.id) is None  # a builtin
            is_class = is_linen(symbol) or symbol in project.linen or symbol in project.classes
            return is_class or project.split(symbol)[0] is None
    return False


def _asked_by(
    project: Project, cls: ClassInfo, method: ast.FunctionDef, call: ast.Call
) -> Iterator[ast.AST]:
    """The questions of the function or method that a call in a method runs."""
    match call.func:
        case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == receiver_of(method):
            found = cls.find(attr)
            if found is not None:
                yield from _own_questions(found[1], is_method=True)
            return
        case ast.Name(id=name) if inner := [
            one for one in each(method, ast.FunctionDef) if one.name == name
        ]:
            for one in inner:
                yield from _own_questions(one, is_method=True)
        case ast.Name() | ast.Attribute():
            symbol = project.resolve(call.func, cls.scope.enter(method))
            definition = project.definition(symbol) if symbol is not None else None
            if definition is not None and isinstance(definition[1], FUNCTIONS):
                yield from (call for _ in _own_questions(definition[1]))


def _own_questions(function: FunctionNode, *, is_method: bool = False) -> Iterator[ast.AST]:
    """The questions that a function asks of what it is given; a method's ``isinstance`` is NNX's."""
    words = _ASKS if is_method else _ASKS | {"isinstance"}
    own = {receiver_of(function)} if is_method and isinstance(function, ast.FunctionDef) else set()
    parameters = {one.arg for one in each(function.args, ast.arg)} - own
    while more := _bound_to(function, parameters) - parameters:
        parameters |= more
    for node in walk(function):
        match node:
            case ast.Call(func=ast.Name(id=name), args=[argument, *_]) if name in words:
                if any(one.id in parameters for one in each(argument, ast.Name)):
                    yield node
            case ast.Attribute(value=ast.Name(id=name), attr="__class__") if name in parameters:
                yield node


def _bound_to(function: FunctionNode, names: Collection[str]) -> set[str]:
    """What a function binds to what it reads of these names: the items of a list of layers."""
    return {
        name
        for target, value in bindings_below(function)
        if any(one.id in names for one in each(value, ast.Name))
        for name in target_names(target)
    }
