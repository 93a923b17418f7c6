"""Variables of a compact method that ``__init__`` cannot make: the call makes them, as in Linen."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping

from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.items import Item, ItemKind
from nnx_migrate.rewrite.classes.reading.evaluation import free_names
from nnx_migrate.rewrite.classes.reading.flow import (
    Branch,
    Build,
    Loop,
    Step,
    Unclear,
    builds,
    flow_of,
)
from nnx_migrate.rewrite.classes.reading.taint import Replaced, Taint, taint_of
from nnx_migrate.rewrite.classes.writing.construct import operands_of
from nnx_migrate.source.bindings import bound_names
from nnx_migrate.source.names import named_parameters
from nnx_migrate.source.walking import each, walk


def call_variables(
    method: ast.FunctionDef, items: Mapping[int, Item], init_texts: Replaced
) -> dict[int, Item]:
    """Variables whose initial value or existence only the call decides, by id of their call.

    With them those behind them: what ``__init__`` makes is listed first.
    """
    variables = {k: one for k, one in items.items() if one.kind is ItemKind.VARIABLE}
    if not variables or method.name != "__call__":
        return variables  # whether the initial call reaches a helper is not known
    steps = flow_of(method.body, items)
    known = {**init_texts, **{key: frozenset[str]() for key in items}}
    taint = taint_of(steps, parameters_of(method), known)
    guarded = _conditional_items(steps, taint)
    found = {}
    for key, item in variables.items():
        tainted = taint.at.get(key)
        unknown = tainted is None or any(
            free_names(one, known) & tainted for one in operands_of(item, ())
        )
        if unknown or key in guarded or item.init is None:
            found[key] = item
    first = min((_place(one) for one in found.values()), default=None)
    if first is not None:
        found |= {key: one for key, one in variables.items() if _place(one) > first}
    return found


def _place(item: Item) -> tuple[int, int]:
    return item.call.lineno, item.call.col_offset


def is_always_made(method: ast.FunctionDef | None, items: Iterable[Item]) -> bool:
    """Whether every call of a method makes one of the variables, and not only under a condition."""
    blocks = (ast.If, ast.For, ast.With, ast.Match, ast.FunctionDef)
    plain = [one for one in (method.body if method else []) if not isinstance(one, blocks)]
    always = {id(node) for statement in plain for node in walk(statement)}
    return any(id(item.call) in always for item in items)


def parameters_of(method: ast.FunctionDef) -> list[str]:
    """Names of everything a method is called with, but the receiver."""
    arguments = method.args
    plain = named_parameters(arguments)
    names = [one.arg for one in plain][1:]
    return names + [one.arg for one in (arguments.vararg, arguments.kwarg) if one is not None]


def _conditional_items(steps: tuple[Step, ...], taint: Taint) -> set[int]:
    """Items under a condition that only the call decides, or in a construct not followed."""
    found: set[int] = set()
    for step in steps:
        match step:
            case Branch(body=body, orelse=orelse):
                if id(step) in taint.steps:
                    found |= {id(item.call) for item in builds((*body, *orelse))}
                found |= _conditional_items(body, taint) | _conditional_items(orelse, taint)
            case Loop(body=body):
                if id(step) in taint.steps:
                    found |= {id(item.call) for item in builds(body)}
                found |= _conditional_items(body, taint)
            case Build() | Unclear():
                continue
    return found


# ---- functions in a constructor's arguments that read a local which is bound again later
# Linen's module calls such a function when it is called itself, and it reads what the local holds then. The constructor
# of NNX is handed the function before, in ``__init__``, where only the first value exists.

RULE = "compact"


def refuse_late_reads(method: ast.FunctionDef, items: Mapping[int, Item]) -> None:
    """Nothing, unless an argument of a construction is such a function.

    Raises:
      Refused: its value in ``__init__`` may not be its value in the call.
    """
    functions = {one.name: one for one in each(method, ast.FunctionDef) if one is not method}
    bound = bound_again(method)
    for item in items.values():
        if item.kind is not ItemKind.SITE:
            continue  # an initialiser runs at once, here and in __init__
        for function in _functions(item.call, functions):
            for name in sorted(free_names(function) & bound.keys()):
                if bound[name] > _place(item):
                    raise ClassRefused(
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


def bound_again(method: ast.FunctionDef) -> dict[str, tuple[int, int]]:
    """Every local name with the last place that binds it; names that are bound once are left out."""
    found: dict[str, list[tuple[int, int]]] = {}
    for node in walk(method):
        parts: list[ast.AST] = [node.target] if isinstance(node, ast.For) else []
        if isinstance(node, ast.stmt) and not hasattr(node, "body"):
            parts.append(node)
        for name in (name for one in parts for name in bound_names(one)):
            found.setdefault(name, []).append((node.lineno, node.col_offset))  # type: ignore[attr-defined]
    parameters = {one.arg for one in each(method.args, ast.arg)}
    return {
        name: max(places) for name, places in found.items() if len(places) > 1 or name in parameters
    }
