"""Which input sizes ``__init__`` reads."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nnx_migrate.sizes.result import Site
from nnx_migrate.sizes.study.study import INPUT, Study


def needed_inputs(
    study: Study, sites: dict[int, Site], carried: dict[int, tuple[tuple[str, str, str], ...]]
) -> set[str]:
    """Input sizes that ``__init__`` reads."""
    texts = [text for site in sites.values() for text in site.sizes.values()]
    texts += [text for entries in carried.values() for entry in entries for text in entry[1:]]
    calls = {id(site.call) for site in sites.values()}
    for node in study.nodes:
        texts.extend(_construction_texts(study, node, calls))
    return {name for text in texts for name in INPUT.findall(text)}


def _construction_texts(study: Study, node: ast.ClassDef, calls: set[int]) -> Iterator[str]:
    """Static texts inside constructor calls and the headers of statements that hold them."""
    for statement in ast.walk(node):
        header: list[ast.AST] = []
        if isinstance(statement, ast.Call) and (id(statement) in calls or _makes_param(statement)):
            header = [*statement.args, *(k.value for k in statement.keywords)]
        elif isinstance(statement, ast.If | ast.IfExp | ast.For) and _holds(statement, calls):
            header = [statement.iter if isinstance(statement, ast.For) else statement.test]
        for one in header:
            yield from _outermost(study, one)


def _outermost(study: Study, node: ast.AST) -> Iterator[str]:
    text = study.interpreter.statics.get(id(node))
    if text is not None:
        yield text
        return
    for child in ast.iter_child_nodes(node):
        yield from _outermost(study, child)


def _makes_param(call: ast.Call) -> bool:
    function = call.func
    return (
        isinstance(function, ast.Attribute)
        and isinstance(function.value, ast.Name)
        and function.value.id == "self"
        and function.attr == "param"
    )


def _holds(statement: ast.AST, calls: set[int]) -> bool:
    return any(id(node) in calls or _is_param(node) for node in ast.walk(statement))


def _is_param(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and _makes_param(node)
