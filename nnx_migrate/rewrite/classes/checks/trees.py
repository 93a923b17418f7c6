"""Parameters that are trees of arrays or plain numbers, which ``nnx.Param`` reads as one array; state that is dicts."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.items import Item, ItemKind, is_variable
from nnx_migrate.rewrite.classes.reading.annotations import is_array
from nnx_migrate.sizes.fields.constructor_arguments import values_of_field
from nnx_migrate.source.bindings import bindings_below, changed_names
from nnx_migrate.source.classes import ClassInfo, Field
from nnx_migrate.source.names import Assignment, FunctionNode, parameter_names
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import each, is_self, walk

RULE = "module-api"
_PLAIN = ast.Constant | ast.Dict | ast.DictComp | ast.List | ast.ListComp | ast.Tuple
_METHODS = frozenset({"init", "tree_map"})  # of a module, and of jax
_MAPS = frozenset({"jax.tree.map", "jax.tree_util.tree_map"})
_DEPTH = 4  # longest chain of functions and names that stand for what another one does


def check_trees(project: Project, cls: ClassInfo, items: Iterable[Item]) -> None:
    """Refuse parameters whose initialiser may give a dict, a list, a tuple or a number, and variables that start
    as a field that may be one.

    Raises:
      Refused: one does.
    """
    initialisers = _Initialisers(project, cls)
    for item in items:
        match item:
            case Item(kind=ItemKind.PARAM, init=ast.expr() as init):
                is_tree = initialisers.gives_tree(init, _DEPTH)
            case Item(
                kind=ItemKind.VARIABLE,
                init=ast.Lambda(body=ast.Attribute(value=ast.Name(id="self"))) as init,
            ):
                is_tree = initialisers.gives_tree(init, _DEPTH)
            case _:
                continue
        if is_tree:
            reason = "the initialiser of this parameter gives something else than one array"
            raise ClassRefused(item.call, reason, "make a parameter of each array", RULE)


def check_dicts(cls: ClassInfo, items: Mapping[int, Item]) -> None:
    """Refuse ``state.value = {"n": n}`` where the variable may have other keys: Linen keeps those.

    Raises:
      Refused: the keys are not those that it starts with.
    """
    starts: dict[str, frozenset[str] | None] = {}
    nodes = [one for method in cls.methods.values() for one in each(method, ast.Assign)]
    for node in nodes:
        if is_variable(node.value, items):
            init = items[id(node.value)].init
            first = init.body if isinstance(init, ast.Lambda) else None
            starts |= {ast.unparse(one): _keys(first) for one in node.targets}
    for node in nodes:
        for target in node.targets:
            if not isinstance(target, ast.Attribute) or target.attr != "value":
                continue
            owner = ast.unparse(target.value)
            keys = _keys(node.value)
            is_dict = isinstance(node.value, ast.Dict | ast.DictComp) or keys is not None
            if is_dict and owner in starts and (keys is None or keys != starts[owner]):
                reason = f"Linen keeps what {owner} holds under keys that are not assigned here"
                raise ClassRefused(node, reason, "assign all that it holds", RULE)


def _keys(node: ast.expr | None) -> frozenset[str] | None:
    """The keys of a dict that is written out."""
    match node:
        case ast.Dict(keys=keys):
            texts = [one.value for one in keys if isinstance(one, ast.Constant)]
            return frozenset(map(repr, texts)) if len(texts) == len(keys) else None
        case ast.Call(func=ast.Name(id="dict"), args=[], keywords=keywords):
            names = [one.arg for one in keywords if one.arg is not None]
            return frozenset(map(repr, names)) if len(names) == len(keywords) else None
    return None


def _results(function: FunctionNode) -> list[ast.expr]:
    """What a function gives, without what those inside it give."""
    if isinstance(function, ast.Lambda):
        return [function.body]
    inner = {
        id(one)
        for other in each(function, ast.FunctionDef)
        if other is not function
        for one in walk(other)
    }
    own = [one.value for one in each(function, ast.Return) if id(one) not in inner]
    return [one for one in own if one is not None]


@dataclass(frozen=True)
class _Initialisers:
    project: Project
    cls: ClassInfo

    def gives_tree(self, callee: ast.expr, depth: int) -> bool:
        """Whether a call of what an expression names returns a tree, or a number."""
        if isinstance(callee, ast.Call):
            return depth > 0 and self._call_gives_tree(callee, depth - 1)
        match callee:
            case ast.Attribute(value=ast.Name(id="self"), attr=name) if self._field(name):
                values = values_of_field(self.project, (self.cls.name, name))
                return depth > 0 and any(self.gives_tree(one, depth - 1) for one in values)
            case ast.Attribute(attr=name) if name in _METHODS:
                return True
            case ast.Attribute() if (made := self._property(callee)) is not None:
                return depth > 0 and self.gives_tree(made, depth - 1)
        symbol = self.project.resolve(callee, self.cls.scope)
        if symbol in _MAPS:
            return True
        function = self._function(callee) or self.project.function(symbol)
        if function is not None:
            return self._returns_tree(function, depth)
        is_builtin = isinstance(callee, ast.Name) and hasattr(builtins, callee.id)
        return is_builtin or (symbol or "").startswith("math.")  # a number, a container

    def _returns_tree(self, function: FunctionNode, depth: int) -> bool:
        """Whether a function gives one, or one inside it, which it may call."""
        every = [one.value for one in each(function, ast.Return)]
        every += [function.body] if isinstance(function, ast.Lambda) else []
        return any(self._is_tree(one, function, depth) for one in every if one is not None)

    def _call_gives_tree(self, call: ast.Call, depth: int) -> bool:
        """The same of what a call gives: ``partial(pair, n)``, a function that another one returns."""
        symbol = self.project.resolve(call.func, self.cls.scope)
        if symbol == "functools.partial":
            return bool(call.args) and self.gives_tree(call.args[0], depth)
        maker = self._function(call.func) or self.project.function(symbol)
        inside = [*each(maker, ast.FunctionDef)] if maker is not None else []
        for one in _results(maker) if maker is not None else ():
            local: list[FunctionNode] = [
                two for two in inside if isinstance(one, ast.Name) and two.name == one.id
            ]
            if isinstance(one, ast.Lambda):
                local = [one]
            if any(self._returns_tree(two, depth) for two in local):
                return True
            if not local and isinstance(one, ast.Call | ast.Name) and self.gives_tree(one, depth):
                return True
        return False

    def _property(self, node: ast.Attribute) -> ast.expr | None:
        """The initializer that a property of the class returns."""
        found = self.cls.find(node.attr) if is_self(node.value) else None
        if found is None or "property" not in self.project.decorators(*found):
            return None
        return next(iter(_results(found[1])), None)

    def _function(self, node: ast.expr) -> FunctionNode | None:
        """The function itself, a method, or one inside a method."""
        match node:
            case ast.Lambda():
                return node
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                found = self.cls.find(name)
                return found[1] if found is not None else None
            case ast.Name(id=name):
                inside = (one for method in self.cls.methods.values() for one in walk(method))
                functions = (one for one in inside if isinstance(one, ast.FunctionDef))
                return next((one for one in functions if one.name == name), None)
        return None

    def _is_tree(self, node: ast.expr, function: FunctionNode, depth: int) -> bool:
        """Whether a value may be something else than an array."""
        match node:
            case _ if isinstance(node, _PLAIN):
                return True
            case ast.IfExp(body=one, orelse=other):
                return any(self._is_tree(part, function, depth) for part in (one, other))
            case ast.BinOp(left=one, right=other):  # an array as soon as one of them is
                return all(self._is_tree(part, function, depth) for part in (one, other))
            case ast.Name(id=name):
                if self._function(node) is not None or name in parameter_names(function):
                    return False
                values = self._values(name, function)
                return not values or any(
                    self._is_item_tree(target, name, value, function, depth - 1)
                    for target, value in values
                )
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                found = self._field(name)
                return found is None or not is_array(found.annotation)
            case ast.Subscript(value=ast.Call(func=ast.Attribute(attr="init"))):
                return True
            case ast.Call(func=called) if depth > 0:
                return self.gives_tree(called, depth - 1)
        return False

    def _values(self, name: str, function: FunctionNode) -> list[tuple[ast.AST, ast.expr]]:
        """What a name may hold, with the target that binds it: of the function, or of what is around it."""
        for owner in (function, *self.cls.module.parents.functions(function)):
            pairs = [*bindings_below(owner)] if isinstance(owner, ast.FunctionDef) else []
            found = [
                (target, value)
                for target, value in pairs
                if name in {*changed_names(target)} and isinstance(value, ast.expr)
            ]
            if found:
                return found
        binding = self.cls.scope.lookup(name)
        return [(ast.Name(name), binding.value)] if isinstance(binding, Assignment) else []

    def _is_item_tree(
        self, target: ast.AST, name: str, value: ast.expr, function: FunctionNode, depth: int
    ) -> bool:
        """Whether what a name gets of a value may be something else than an array; an item of one that is not
        known is one."""
        called = value.func if isinstance(value, ast.Call) else None
        symbol = self.project.resolve(called, self.cls.scope) if called is not None else None
        maker = self.project.function(symbol)
        returned = [] if maker is None else _results(maker)
        match target:
            case ast.Name() if maker is None:
                return depth > 0 and self._is_tree(value, function, depth)
            case ast.Tuple(elts=names):
                index = next(i for i, one in enumerate(names) if name in {*changed_names(one)})
                tuples = [one.elts for one in returned if isinstance(one, ast.Tuple)]
                returned = [one[index] for one in tuples if len(one) == len(names)]
        # One that gives now a tree and now an array is asked for the array here.
        return (
            maker is not None
            and depth > 0
            and bool(returned)
            and all(self._is_tree(one, maker, depth) for one in returned)
        )

    def _field(self, name: str) -> Field | None:
        return self.cls.field(name)
