"""Code that asks whether an object is an NNX module: rewritten Linen modules are.

::

    if isinstance(model, nnx.Module):  # true of a rewritten Linen module, too
        graphdef, state = nnx.split(model)
    else:
        variables = model.init(key, x)
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from nnx_migrate.model import Finding, Outcome
from nnx_migrate.rewrite.lazy.foreign import parse
from nnx_migrate.source.names import FunctionNode, imported_names
from nnx_migrate.source.walking import each, walk

_CHECKS = frozenset({"isinstance", "issubclass"})
_MESSAGE = (
    "{check}(..., nnx.Module) holds of rewritten Linen modules, which are NNX modules;"
    " ask before it for Linen's own: {check}(..., nnx_migrate.linen.Module)"
)


def instance_checks(texts: Iterable[tuple[str, str]]) -> Iterator[Finding]:
    """What to say of such calls, where the same function has not asked for Linen's modules before.

    Args:
      texts: paths and texts of the files of a project.
    """
    for path, text in texts:
        may_ask = "nnx" in text and any(f"{one}(" in text for one in _CHECKS)
        tree = parse(text) if may_ask else None
        for node in _unguarded(tree) if tree is not None else ():
            message = _MESSAGE.format(check=ast.unparse(node.func))
            at = (node.lineno, node.col_offset + 1)
            yield Finding("reference", path, *at, Outcome.REFUSED, message)


def _unguarded(tree: ast.Module) -> Iterator[ast.Call]:
    imports = each(tree, ast.Import | ast.ImportFrom)
    names = dict(one for node in imports for one in imported_names(node, ""))
    asked: set[tuple[int, str]] = set()  # function, and expression asked for a Linen module
    homes = {id(one): id(home) for home in each(tree, FunctionNode) for one in walk(home)}
    for node in sorted(each(tree, ast.Call), key=lambda one: (one.lineno, one.col_offset)):
        match node:
            case ast.Call(func=ast.Name(id=name), args=[subject, kinds]) if name in _CHECKS:
                key = (homes.get(id(node), 0), ast.dump(subject))
                symbols = {_symbol(one, names) for one in _each_kind(kinds)}
                if "flax.linen.Module" in symbols:
                    asked.add(key)
                elif "flax.nnx.Module" in symbols and key not in asked:
                    yield node


def _each_kind(kinds: ast.expr) -> Iterator[ast.expr]:
    match kinds:
        case ast.Tuple(elts=several):
            yield from several
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            yield from (*_each_kind(left), *_each_kind(right))
        case _:
            yield kinds


def _symbol(kind: ast.expr, names: dict[str, str]) -> str:
    head, dot, rest = ast.unparse(kind).partition(".")
    return f"{names.get(head, head)}{dot}{rest}"
