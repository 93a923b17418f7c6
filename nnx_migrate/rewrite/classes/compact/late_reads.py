"""Functions in a constructor's arguments that read a local which is bound again later.

Linen's module calls such a function when it is called itself, and it reads what the local holds then. The constructor
of NNX is handed the function before, in ``__init__``, where only the first value exists.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from nnx_migrate.rewrite.classes.data import Refused
from nnx_migrate.rewrite.classes.items import Item, ItemKind
from nnx_migrate.rewrite.classes.reading.evaluation import free_names
from nnx_migrate.source.bindings import bound_names
from nnx_migrate.source.walking import each, walk

RULE = "compact"


def refuse_late_reads(method: ast.FunctionDef, items: Mapping[int, Item]) -> None:
    """Nothing, unless an argument of a construction is such a function.

    Raises:
      Refused: its value in ``__init__`` may not be its value in the call.
    """
    functions = {one.name: one for one in each(method, ast.FunctionDef) if one is not method}
    bound = dict(_bound(method))
    for item in items.values():
        if item.kind is not ItemKind.SITE:
            continue  # an initialiser runs at once, here and in __init__
        for function in _functions(item.call, functions):
            for name in sorted(free_names(function) & bound.keys()):
                if bound[name] > item.call.lineno:
                    raise Refused(
                        item.call,
                        f"a function among its arguments reads {name!r}, which is bound again later",
                        "hand in a value that stays, or give the later one another name",
                        RULE,
                    )


def _functions(
    call: ast.Call, functions: Mapping[str, ast.FunctionDef]
) -> Iterator[ast.Lambda | ast.FunctionDef]:
    """Lambdas and local functions in the arguments of a constructor call."""
    for argument in (*call.args, *call.keywords):
        for node in walk(argument):
            if isinstance(node, ast.Lambda):
                yield node
            elif isinstance(node, ast.Name) and node.id in functions:
                yield functions[node.id]


def _bound(method: ast.FunctionDef) -> Iterator[tuple[str, int]]:
    """Every local name with the last line that binds it; names that are bound once are left out."""
    lines: dict[str, list[int]] = {}
    for node in walk(method):
        parts: list[ast.AST] = [node.target] if isinstance(node, ast.For) else []
        if isinstance(node, ast.stmt) and not hasattr(node, "body"):
            parts.append(node)
        for name in (name for one in parts for name in bound_names(one)):
            lines.setdefault(name, []).append(node.lineno)  # type: ignore[attr-defined]
    parameters = {one.arg for one in each(method.args, ast.arg)}
    for name, places in lines.items():
        if len(places) > 1 or name in parameters:
            yield name, max(places)
