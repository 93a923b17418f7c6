"""Which input sizes ``__init__`` reads."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nnx_migrate.sizes.inference.class_analysis import INPUT, ClassAnalysis
from nnx_migrate.sizes.result import Site
from nnx_migrate.source.walking import each, given_values, is_self, walk


def needed_inputs(
    analysis: ClassAnalysis,
    sites: dict[int, Site],
    carries: dict[int, tuple[tuple[str, str, str], ...]],
) -> set[str]:
    """Input sizes that ``__init__`` reads."""
    texts = [text for site in sites.values() for text in site.sizes.values()]
    texts += [site.condition for site in sites.values() if site.condition is not None]
    texts += [text for entries in carries.values() for entry in entries for text in entry[1:]]
    calls = {id(site.call) for site in sites.values()}
    for node in analysis.nodes:
        texts.extend(_construction_texts(analysis, node, calls))
    for method in analysis.root.info.every_method:
        texts.extend(_texts_behind(analysis, method, calls))
    return {name for text in texts for name in INPUT.findall(text)}


def _construction_texts(
    analysis: ClassAnalysis, node: ast.ClassDef, calls: set[int]
) -> Iterator[str]:
    """Static texts inside constructor calls and the headers of statements that hold them."""
    for statement in walk(node):
        header: list[ast.expr] = []
        if isinstance(statement, ast.Call) and (id(statement) in calls or _makes_param(statement)):
            header = given_values(statement)
        elif isinstance(statement, ast.If | ast.IfExp | ast.For) and _holds(statement, calls):
            header = [statement.iter if isinstance(statement, ast.For) else statement.test]
        for one in header:
            yield from _outermost(analysis, one)


def _texts_behind(
    analysis: ClassAnalysis, method: ast.FunctionDef, calls: set[int]
) -> Iterator[str]:
    """Static texts in the statements that locals which constructor calls read come from.

    ``shape = (k, x.shape[3]); w = make(shape); self.param("w", lambda *_: w)``: what such a
    statement reads besides sizes decides whether ``__init__`` can run it.
    """
    parameters = {one.arg for one in each(method.args, ast.arg)}
    values: dict[str, list[ast.expr]] = {}
    for node in walk(method):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                for one in walk(target):
                    if isinstance(one, ast.Name):
                        values.setdefault(one.id, []).append(node.value)
    made = [one for one in walk(method) if id(one) in calls or _is_param(one)]
    pending = [
        name
        for call in made
        if isinstance(call, ast.Call)
        for part in given_values(call)
        for name in _open_names(analysis, part)
    ]
    visited: set[str] = set()
    while pending:
        name = pending.pop()
        if name in visited or name in parameters:
            continue
        visited.add(name)
        for value in values.get(name, ()):
            read = set(_open_names(analysis, value))
            if not read & parameters:
                yield from _outermost(analysis, value)
                pending += read


def _open_names(analysis: ClassAnalysis, node: ast.AST) -> Iterator[str]:
    """Names that are read outside of static expressions."""
    if analysis.interpreter.statics.get(id(node)) is not None:
        return
    if isinstance(node, ast.Name):
        yield node.id
    for child in ast.iter_child_nodes(node):
        yield from _open_names(analysis, child)


def _outermost(analysis: ClassAnalysis, node: ast.AST) -> Iterator[str]:
    text = analysis.interpreter.statics.get(id(node))
    if text is not None:
        yield text
        return
    for child in ast.iter_child_nodes(node):
        yield from _outermost(analysis, child)


def _makes_param(call: ast.Call) -> bool:
    function = call.func
    return (
        isinstance(function, ast.Attribute) and is_self(function.value) and function.attr == "param"
    )


def _holds(statement: ast.AST, calls: set[int]) -> bool:
    return any(id(node) in calls or _is_param(node) for node in walk(statement))


def _is_param(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and _makes_param(node)
