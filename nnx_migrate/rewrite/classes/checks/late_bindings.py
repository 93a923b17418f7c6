"""Functions that a loop stores, and that read what its rounds bind: ``[lambda y: d(y) for d in self.layers]``.

Python looks such a name up when the function is called, so after the loop all of them call the last
layer; the others may have no parameters in Linen. What is computed here takes each for its own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.source.bindings import (
    CHANGES,
    bound_names,
    names_bound_below,
    target_names,
    variables_of,
)
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.walking import names_in, walk


def check_late_bindings(cls: ClassInfo) -> None:
    """Refuse functions that are stored in a loop and read a name that its rounds bind.

    Raises:
      Refused: a method has one.
    """
    for method in cls.methods.values():
        for node in walk(method):
            names, body = _rounds(node)
            for function in _stored_functions(body) if names else ():
                read = names_in(function) - names_bound_below(function)
                if read & names:
                    raise ClassRefused(
                        function,
                        f"a function that a loop stores reads {min(read & names)}, which each round binds anew",
                        "bind it as a default: lambda x, layer=layer: layer(x)",
                        "class",
                    )


def _rounds(node: ast.AST) -> tuple[set[str], list[ast.AST]]:
    """Names that the rounds of a loop bind, and what runs in each."""
    match node:
        case ast.For(target=target, body=body):
            names = {*target_names(target), *(name for one in body for name in bound_names(one))}
            return names, list(body)
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
            return variables_of(node), [ast.List([node.elt], ast.Load())]
        case ast.DictComp():
            return variables_of(node), [ast.List([node.value], ast.Load())]
    return set(), []


def _stored_functions(body: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """Functions that some code puts into a container."""
    nodes = [node for part in body for node in walk(part)]
    named: dict[str, ast.AST] = {one.name: one for one in nodes if isinstance(one, ast.FunctionDef)}
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Lambda() as value):
                named[name] = value
    for node in nodes:
        for part in _parts(node):
            for one in walk(part):
                if isinstance(one, ast.Lambda):
                    yield one
                elif isinstance(one, ast.Name) and one.id in named:
                    yield named[one.id]


def _parts(node: ast.AST) -> list[ast.expr]:
    match node:
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
            return parts
        case ast.Dict(values=parts):
            return parts
        case ast.Call(func=ast.Attribute(attr=name), args=parts) if name in CHANGES:
            return parts
        case ast.Assign(targets=targets, value=value):
            return [value] if any(isinstance(one, ast.Subscript) for one in targets) else []
    return []
