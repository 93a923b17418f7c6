"""Linen's own methods on ``self`` or a submodule: what each becomes in calls and in ``__init__``."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from nnx_migrate.edit.calls import Argument, call
from nnx_migrate.edit.expressions import Expression
from nnx_migrate.edit.rendering import Renderer, Replacement
from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.items import receiver_of
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import each, walk

RULE = "module-api"
_REPEATS = (
    *(ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
    *(ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef),
)


def carried_call(name: str, node: ast.Call, *more: Argument) -> Replacement:
    """``self.sow("losses", "l2", x)`` as ``nnm.sow(self, "losses", "l2", x)``; ``more`` comes last."""
    assert isinstance(node.func, ast.Attribute)
    owner = node.func.value

    def make(renderer: Renderer) -> Expression:
        arguments = [*map(renderer.argument, node.args), *map(renderer.keyword, node.keywords)]
        return call(f"nnm.{name}", renderer.render(owner), *arguments, *more, unit=renderer.unit)

    return make


def mutable_in_init(node: ast.Call) -> str:
    """What ``self.is_mutable_collection(...)`` is in Linen's ``init``, as ``__init__`` may ask it.

    Raises:
      Refused: what it is depends on more than the class' fields.
    """
    match node.args:
        case [ast.Constant(value=collection)]:
            return str(collection != "intermediates")
        case [ast.Attribute(value=ast.Name(id="self")) as field]:
            return f"({ast.unparse(field)} != 'intermediates')"
    raise ClassRefused(
        node,
        "the collection is neither a string nor a field",
        "write it as a string",
        RULE,
    )


# ---- calls of a base class' methods: ``super().__call__(x)`` and ``Base.__call__(self, x)``


def base_calls(
    project: Project, cls: ClassInfo, method: ast.FunctionDef
) -> Iterator[tuple[ast.Call, str, ClassInfo | None]]:
    """Every call in ``method`` of a method that a base of ``cls`` has.

    Yields the call, the name of the method, and the base that was named; None for ``super()``.
    """
    bases = {one.name: one for one in cls.mro[1:]}
    scope = cls.scope.enter(method)
    receiver = receiver_of(method)
    for node in walk(method):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr=attr)):
                yield node, attr, None
            case ast.Call(
                func=ast.Attribute(value=ast.Name() | ast.Attribute() as owner, attr=attr),
                args=[ast.Name(id=first), *_],
            ) if first == receiver:
                base = bases.get(project.resolve(owner, scope) or "")
                if base is not None:
                    yield node, attr, base


def calls_base(project: Project, cls: ClassInfo, name: str, base: ClassInfo) -> bool:
    """Whether a method of ``cls`` calls the method ``name`` that ``base`` has."""
    return any(
        attr == name and (named is None or base in named.mro)
        for method in cls.methods.values()
        for _, attr, named in base_calls(project, cls, method)
    )


# ---- methods of one object that name each other, over all of its classes


@dataclass(frozen=True, eq=False)
class Method:
    """A method that objects of a class have, and the class that defines it."""

    owner: ClassInfo
    node: ast.FunctionDef


@dataclass(frozen=True, eq=False)
class Mention:
    """Where a method names another one: ``self.encode``, ``super().encode``, ``Base.encode``.

    ``times``: how often it may call it there; 2 stands for any number above 1, and for where it is handed on.
    """

    node: ast.Attribute
    method: Method
    times: int


class Methods:
    """The methods that an object of a class has, those that only ``super()`` reaches included."""

    def __init__(self, project: Project, cls: ClassInfo) -> None:
        """Find them."""
        self._project = project
        self._cls = cls
        self._bases = {one.name: one for one in cls.mro}
        self.mentions: dict[int, list[Mention]] = {}  # by id of the method that has them
        self.live: dict[int, Method] = {}
        self._names = dict.fromkeys(name for one in cls.mro for name in one.methods)
        todo = [Method(*found) for name in self._names if (found := cls.find(name)) is not None]
        while todo:
            one = todo.pop(0)
            if id(one.node) not in self.live:
                self.live[id(one.node)] = one
                self.mentions[id(one.node)] = [*self._mentions_in(one)]
                todo += [mention.method for mention in self.mentions[id(one.node)]]

    def runs(self, method: Method, target: Method, visited: frozenset[int] = frozenset()) -> int:
        """How often a call of ``method`` may run ``target``; 2 stands for any number above."""
        if method.node is target.node:
            return 1
        if id(method.node) in visited:
            return 0
        inner = visited | {id(method.node)}
        found = (
            one.times * self.runs(one.method, target, inner)
            for one in self.mentions[id(method.node)]
        )
        return min(2, sum(found))

    def _mentions_in(self, method: Method) -> Iterator[Mention]:
        receiver = receiver_of(method.node)
        called = {id(one.func) for one in each(method.node, ast.Call)}
        todo: list[tuple[ast.AST, int]] = [(one, 1) for one in method.node.body]
        while todo:
            node, times = todo.pop()
            if isinstance(node, ast.Attribute) and node.attr in self._names:
                found = self._named(node, method, receiver)
                if found is not None:
                    yield Mention(node, found, times if id(node) in called else 2)
            inside = 2 if isinstance(node, _REPEATS) else times
            todo += [(one, inside) for one in ast.iter_child_nodes(node)]

    def _named(self, node: ast.Attribute, method: Method, receiver: str) -> Method | None:
        order = self._cls.mro
        match node.value:
            case ast.Name(id=name) if name == receiver:
                pass
            case ast.Call(func=ast.Name(id="super")):
                order = order[order.index(method.owner) + 1 :]
            case ast.Name() | ast.Attribute():
                scope = method.owner.scope.enter(method.node)
                named = self._bases.get(self._project.resolve(node.value, scope) or "")
                order = () if named is None else named.mro
            case _:
                return None
        owner = next((one for one in order if node.attr in one.methods), None)
        return None if owner is None else Method(owner, owner.methods[node.attr])
