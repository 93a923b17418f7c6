"""Every node of a syntax tree, as `ast.walk` gives them; of what holds statements, found once.

Trees are not changed once they are walked: what stands for other code is a tree of its own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from types import UnionType
from typing import Any, TypeGuard, TypeVar, overload

N = TypeVar("N", bound=ast.AST)
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp

# What holds no nodes: names, flags, numbers.
_LEAVES = frozenset({ast.Constant, ast.Global, ast.Nonlocal})
# Fields that never hold a node worth a visit: names, flags, and whether a name is read or written.
_PLAIN = frozenset(
    {"arg", "asname", "attr", "conversion", "ctx", "id", "is_async", "kind", "kwd_attrs", "level"}
    | {"lineno", "module", "rest", "simple", "tag", "type_comment"}
)


class _Fields(dict[type, tuple[str, ...]]):
    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        names = () if kind in _LEAVES else kind._fields
        self[kind] = tuple(name for name in names if name not in _PLAIN)
        return self[kind]


_FIELDS = _Fields()


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes directly below one, in the order of its fields."""
    found: list[ast.AST] = []
    for name in _FIELDS[node.__class__]:
        value = getattr(node, name, None)
        if value.__class__ is list:
            found += value if None not in value else [one for one in value if one is not None]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def walk(tree: ast.AST) -> Sequence[ast.AST]:
    """The node and all nodes below it, level by level; without ``Load``, ``Store`` and ``Del``."""
    return _walked_once(tree) if tree.__class__ in _HOLDERS else _nodes(tree)


# A hundred rules ask about the nodes of the same classes, methods and blocks.
_HOLDERS = frozenset(
    {ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef}
    | {ast.If, ast.For, ast.While, ast.With, ast.Try}
)


def _nodes(tree: ast.AST) -> Sequence[ast.AST]:
    found = [tree]
    for node in found:
        found += children(node)
    return found


_walked_once = lru_cache(maxsize=1 << 14)(_nodes)


@overload
def each(tree: ast.AST, kind: type[N]) -> Sequence[N]: ...
@overload
def each(tree: ast.AST, kind: UnionType | tuple[type[ast.AST], ...]) -> Sequence[Any]: ...
def each(tree: ast.AST, kind: Any) -> Sequence[Any]:
    """The nodes of a kind, or of one of several, in the same order."""
    return _each_once(tree, kind) if tree.__class__ in _HOLDERS else _each(tree, kind)


def _each(tree: ast.AST, kind: Any) -> Sequence[Any]:
    return [one for one in walk(tree) if isinstance(one, kind)]


_each_once = lru_cache(maxsize=1 << 16)(_each)


def runtime_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The node and all below it that runs with it: not annotations."""
    yield node
    types = (getattr(node, "annotation", None), getattr(node, "returns", None))
    for child in children(node):
        if not any(child is one for one in types):
            yield from runtime_nodes(child)


def is_name(node: ast.AST | None, name: str | None) -> TypeGuard[ast.Name]:
    """Whether an expression is a name, and that one."""
    return isinstance(node, ast.Name) and node.id == name


def is_self(node: ast.AST | None) -> TypeGuard[ast.Name]:
    """Whether an expression is ``self``."""
    return is_name(node, "self")


def names_in(tree: ast.AST) -> set[str]:
    """Every name that stands below a node, read or bound."""
    return {one.id for one in each(tree, ast.Name)}


def names_read(tree: ast.AST) -> set[str]:
    """Every name that is read below a node."""
    return {one.id for one in each(tree, ast.Name) if isinstance(one.ctx, ast.Load)}


def given_values(call: ast.Call) -> list[ast.expr]:
    """What a call gives, by position and then by keyword."""
    return [*call.args, *(one.value for one in call.keywords)]


def has_starred(values: Iterable[ast.AST]) -> bool:
    """Whether one of the expressions unpacks others: then nobody knows which place each has."""
    return any(isinstance(one, ast.Starred) for one in values)


def callee_of(decorator: ast.expr) -> ast.expr:
    """What a decorator names: ``nn.remat`` of ``@nn.remat`` and of ``@nn.remat(policy=...)``."""
    return decorator.func if isinstance(decorator, ast.Call) else decorator


def is_none_literal(node: ast.AST | None) -> bool:
    """Whether an expression is ``None`` as it stands in the text."""
    return isinstance(node, ast.Constant) and node.value is None
