"""Comprehensions that build something, which become loops in ``__init__``.

A loop's variable lives on after it: where the method reads a name of the variable's elsewhere, it would
read what the loop left. A generator runs when something reads it, a loop where it stands.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.reading.evaluation import COMPREHENSIONS, contains
from nnx_migrate.source.bindings import pairs_of, target_names
from nnx_migrate.source.walking import each, walk

# Functions of Python that read all of a generator at once.
_READING_ALL = frozenset(
    {"list", "tuple", "set", "frozenset", "dict", "sum", "max", "min", "sorted"}
)


def refuse_lazy(method: ast.FunctionDef, items: Mapping[int, object], rule: str) -> None:
    """Nothing, unless a generator builds something and is not read where it stands.

    Raises:
      Refused: Linen numbers what it builds when it is read.
    """
    read = {
        id(call.args[0])
        for call in each(method, ast.Call)
        if isinstance(call.func, ast.Name) and call.func.id in _READING_ALL and call.args
    }
    read |= {id(one.value) for one in each(method, ast.Starred)}
    # ``q, k, v = (nn.Dense(3, name=one)(x) for one in "qkv")``
    read |= {
        id(one.value)
        for one in each(method, ast.Assign)
        if any(isinstance(target, ast.Tuple | ast.List) for target in one.targets)
    }
    for node in walk(method):
        if isinstance(node, ast.GeneratorExp) and contains(node, items) and id(node) not in read:
            raise ClassRefused(
                node,
                "something is built in a generator, which runs when it is read",
                "write a list",
                rule,
            )


def refuse_equal_keys(method: ast.FunctionDef, items: Mapping[int, object], rule: str) -> None:
    """Nothing, unless a dict of what a comprehension builds may lose an item to a later one of its key.

    Raises:
      Refused: Linen's ``init`` makes no parameters for what nothing calls.
    """
    for node in each(method, ast.DictComp):
        if contains(node.value, items) and not _has_keys_apart(node):
            raise ClassRefused(
                node.key,
                "two items may have this key, and the first of them is never called",
                "make the keys of the variable of the loop alone",
                rule,
            )


def _has_keys_apart(node: ast.DictComp) -> bool:
    """Whether each key is made of what differs from round to round, as far as the text says it."""
    if len(node.generators) != 1:
        return False
    words: list[ast.expr] = [node.key]
    if isinstance(node.key, ast.JoinedStr):
        words = [one.value for one in node.key.values if isinstance(one, ast.FormattedValue)]
    target, iterable = node.generators[0].target, node.generators[0].iter
    own = {*target_names(target)}
    keys = [one for one in words if isinstance(one, ast.Name) and one.id in own]
    if not keys:
        return False
    if not isinstance(iterable, ast.Tuple | ast.List):
        return True
    rounds = [dict(_values(target, one)) for one in iterable.elts]
    found = [tuple(ast.dump(one[key.id]) for key in keys if key.id in one) for one in rounds]
    constant = all(isinstance(one.get(key.id), ast.Constant) for one in rounds for key in keys)
    return constant and len({*found}) == len(found)


def _values(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    for one, other in pairs_of(target, value):
        if isinstance(one, ast.Name):
            yield one.id, other


def refuse_leaks(method: ast.FunctionDef, items: Mapping[int, object], rule: str) -> None:
    """Nothing, unless a comprehension around an item cannot become a loop.

    Raises:
      Refused: one of its variables is read outside it.
    """
    for node in walk(method):
        if isinstance(node, COMPREHENSIONS) and contains(node, items):
            variables = _variables(node)
            for read in _outside(method, node, variables):
                raise ClassRefused(
                    read,
                    f"'{read.id}' is also a variable of the comprehension in line {node.lineno}, which "
                    "becomes a loop that would change it",
                    "rename the comprehension's variable",
                    rule,
                )


def _variables(node: ast.AST) -> frozenset[str]:
    generators = getattr(node, "generators", ())
    return frozenset(name for one in generators for name in target_names(one.target))


def _outside(node: ast.AST, loop: ast.AST, names: frozenset[str]) -> Iterator[ast.Name]:
    """Where something outside ``loop`` reads one of the names and nothing nearer binds it."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names:
        yield node
    if node is loop:
        yield from _outside(loop.generators[0].iter, loop, names)  # type: ignore[attr-defined]
        return
    around = any(one is loop for one in walk(node))
    first, rest = _scopes(node)
    for one in first:
        yield from _outside(one, loop, names)
    for one in rest:
        yield from _outside(one, loop, names if around else names - _bound_by(node))


def _scopes(node: ast.AST) -> tuple[list[ast.AST], list[ast.AST]]:
    """Children of a node that do not see the variables which it binds, and those that do."""
    children = list(ast.iter_child_nodes(node))
    if isinstance(node, COMPREHENSIONS):
        first = node.generators[0]
        return [first.iter], [one for one in children if one is not first] + [*first.ifs]
    if isinstance(node, ast.For):
        return [node.iter, *node.orelse], list(node.body)
    if isinstance(node, ast.Lambda):
        return [node.args], [node.body]
    return children, []


def _bound_by(node: ast.AST) -> frozenset[str]:
    match node:
        case ast.For(target=target):
            return frozenset(target_names(target))
        case ast.Lambda(args=arguments):
            return frozenset(one.arg for one in each(arguments, ast.arg))
    return _variables(node)
