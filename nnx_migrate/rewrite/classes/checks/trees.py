"""Parameters that are trees of arrays or plain numbers, which ``nnx.Param`` reads as one array; state that is dicts."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from nnx_migrate.rewrite.classes.data import Refused
from nnx_migrate.rewrite.classes.items import Item, ItemKind, is_variable
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.names import FunctionNode
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import each, walk

RULE = "module-api"
_PLAIN = ast.Constant | ast.Dict | ast.DictComp | ast.List | ast.ListComp | ast.Tuple
_MAKERS = frozenset({"dict", "list", "tuple"})
_METHODS = frozenset({"init", "tree_map"})  # of a module, and of jax
_MAPS = frozenset({"jax.tree.map", "jax.tree_util.tree_map"})
_DEPTH = 4  # longest chain of functions and names that stand for what another one does


def check_trees(project: Project, cls: ClassInfo, items: Iterable[Item]) -> None:
    """Refuse parameters whose initialiser plainly gives a dict, a list, a tuple or a number.

    Raises:
      Refused: one does.
    """
    for item in items:
        if item.kind is not ItemKind.PARAM or item.init is None:
            continue
        if _Initialisers(project, cls).gives_tree(item.init, _DEPTH):
            reason = "the initialiser of this parameter gives something else than one array"
            raise Refused(item.call, reason, "make a parameter of each array", RULE)


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
                raise Refused(node, reason, "assign all that it holds", RULE)


def _keys(node: ast.expr | None) -> frozenset[str] | None:
    """The keys of a dict that is written out."""
    match node:
        case ast.Dict(keys=keys):
            texts = [one.value for one in keys if isinstance(one, ast.Constant)]
            return frozenset(map(repr, texts)) if len(texts) == len(keys) else None
        case ast.Call(func=ast.Name(id="dict"), args=[], keywords=given):
            names = [one.arg for one in given if one.arg is not None]
            return frozenset(map(repr, names)) if len(names) == len(given) else None
    return None


def _returned(function: FunctionNode) -> list[ast.expr]:
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

    def gives_tree(self, called: ast.expr, depth: int) -> bool:
        """Whether a call of what an expression names returns a tree, or a number."""
        if isinstance(called, ast.Call):
            return depth > 0 and self._made_gives_tree(called, depth - 1)
        fields = {f"self.{one.name}" for one in self.cls.fields}
        if isinstance(called, ast.Attribute) and called.attr in _METHODS:
            return ast.unparse(called) not in fields
        symbol = self.project.resolve(called, self.cls.scope)
        if symbol in _MAPS or (isinstance(called, ast.Name) and called.id in _MAKERS):
            return True
        function = self._function(called) or self.project.function(symbol)
        return function is not None and self._returns_tree(function, depth)

    def _returns_tree(self, function: FunctionNode, depth: int) -> bool:
        """Whether a function gives one, or one inside it, which it may call."""
        every = [one.value for one in each(function, ast.Return)]
        every += [function.body] if isinstance(function, ast.Lambda) else []
        return any(self._is_tree(one, function, depth) for one in every if one is not None)

    def _made_gives_tree(self, made: ast.Call, depth: int) -> bool:
        """The same of what a call gives: ``partial(pair, n)``, a function that another one returns."""
        symbol = self.project.resolve(made.func, self.cls.scope)
        if symbol == "functools.partial":
            return bool(made.args) and self.gives_tree(made.args[0], depth)
        maker = self._function(made.func) or self.project.function(symbol)
        inside = [*each(maker, ast.FunctionDef)] if maker is not None else []
        for one in _returned(maker) if maker is not None else ():
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
        match node:
            case _ if isinstance(node, _PLAIN):
                return True
            case ast.IfExp(body=one, orelse=other):
                return any(self._is_tree(part, function, depth) for part in (one, other))
            case ast.Name(id=name) if depth:
                bound = (one for one in walk(function) if isinstance(one, ast.Assign))
                return any(
                    self._is_tree(one.value, function, depth - 1)
                    for one in bound
                    if any(isinstance(to, ast.Name) and to.id == name for to in one.targets)
                )
            case ast.Subscript(value=ast.Call(func=ast.Attribute(attr="init"))):
                return True
            case ast.Call(func=called) if depth:
                return self.gives_tree(called, depth - 1)
        return False
