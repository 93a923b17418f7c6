"""Names in a piece of code, for those of modules and optimizers that come to it."""

from __future__ import annotations

import ast
from collections import Counter

from nnx_migrate.source.walking import walk


def prefix_of(key: str) -> str:
    """What tells the names of one model from those of others."""
    prefix = key.removesuffix("state").removesuffix("params").removesuffix("variables").rstrip("_")
    return "" if prefix in ("", "train", "ts", "s", "new", "init", "initial") else f"{prefix}_"


def passing_names(node: ast.AST) -> frozenset[str]:
    """Names of definitions that nothing reads once the module is built: it may have their name.

    model = lazy(Net)(4)
    params = model.init(key, x)["params"]  # model = explicit(model, x, rngs=key)
    state = TrainState.create(apply_fn=model.apply, params=params, tx=tx)  # the optimizer
    """
    nodes = walk(node)
    loads = Counter(one.id for one in nodes if isinstance(one, ast.Name))
    found: Counter[str] = Counter()
    for one in nodes:
        match one:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Call())):
                found[name] += 1
            case ast.Attribute(value=ast.Name(id=name), attr="init"):
                found[name] += 1
            case ast.keyword(
                arg="apply_fn", value=ast.Attribute(value=ast.Name(id=name), attr="apply")
            ):
                found[name] += 1
    return frozenset(name for name, number in found.items() if number == loads[name] == 3)


def identifiers(node: ast.AST) -> frozenset[str]:
    """Every name in a piece of code."""
    found: set[str] = set()
    for one in walk(node):
        match one:
            case ast.Name(id=name) | ast.arg(arg=name) | ast.FunctionDef(name=name):
                found.add(name)
            case ast.alias(name=name, asname=asname):
                found.add(asname or name.partition(".")[0])
    return frozenset(found)
