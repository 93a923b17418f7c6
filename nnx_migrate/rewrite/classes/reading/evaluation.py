"""Python's own order of evaluation, and which names an expression reads.

Linen numbers submodules in the order their constructors run, so the order matters.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from nnx_migrate.source.bindings import bindings_below, bound_names, target_names
from nnx_migrate.source.names import named_parameters
from nnx_migrate.source.walking import walk

COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
CONTAINERS = frozenset(
    {"list", "tuple", "dict", "reversed", "zip", "enumerate", "sorted", "filter", "iter", "next"}
)  # builtins that hold what they are given


def held_parts(node: ast.AST) -> Sequence[ast.AST]:
    """What an expression may be, be a part of, or hold: ``a`` and ``b`` of ``[a[0], *b]``."""
    match node:
        case (
            ast.Subscript(value=inner)
            | ast.Starred(value=inner)
            | ast.Call(func=ast.Attribute(value=inner, attr="items" | "values"))
            | ast.DictComp(value=inner)
            | ast.ListComp(elt=inner)
            | ast.SetComp(elt=inner)
            | ast.GeneratorExp(elt=inner)
        ):
            return (inner,)
        case ast.IfExp(body=left, orelse=right) | ast.BinOp(left=left, right=right):
            return left, right
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.BoolOp(values=parts):
            return parts
        case ast.Dict(values=parts):
            return parts
        case ast.Call(func=ast.Name(id=name), args=parts) if name in CONTAINERS:
            return parts
    return ()


def operands(node: ast.AST) -> list[ast.AST]:
    """Child expressions of ``node`` in the order Python evaluates them (not inside functions)."""
    match node:
        case ast.Dict(keys=keys, values=values):
            pairs = [part for pair in zip(keys, values, strict=True) for part in pair]
            return [part for part in pairs if part is not None]
        case ast.Assign(targets=targets, value=value):
            return [value, *targets]
        case ast.AnnAssign(target=target, value=value):
            return [value, target] if value is not None else []
        case ast.NamedExpr(target=target, value=value):
            return [value, target]
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return [test, body, orelse]
        case ast.comprehension(target=target, iter=iterable, ifs=conditions):
            return [iterable, target, *conditions]
        case ast.DictComp(key=key, value=value, generators=generators):
            return [*generators, key, value]
        case ast.ListComp(elt=element, generators=generators):
            return [*generators, element]
        case ast.SetComp(elt=element, generators=generators):
            return [*generators, element]
        case ast.GeneratorExp(elt=element, generators=generators):
            return [*generators, element]
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda() | ast.ClassDef():
            return []
        case _:
            return list(ast.iter_child_nodes(node))


def free_names(
    node: ast.AST, reads_of_texts: Mapping[int, frozenset[str]] | None = None
) -> frozenset[str]:
    """Names that evaluating ``node`` reads from around it.

    Args:
      reads_of_texts: nodes (by id) whose text is replaced, with the names the new text reads.
    """
    return frozenset(_free(node, reads_of_texts or {}))


def _free(node: ast.AST, reads_of_texts: Mapping[int, frozenset[str]]) -> Iterator[str]:
    if id(node) in reads_of_texts:
        yield from reads_of_texts[id(node)]
        return
    match node:
        case ast.Name(id=name, ctx=ast.Load()):
            yield name
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            bound = {name for gen in node.generators for name in target_names(gen.target)}
            around = node.generators[0].iter
            yield from _free(around, reads_of_texts)
            parts = [*ast.iter_child_nodes(node), *node.generators[0].ifs]
            inside = [one for one in parts if one is not node.generators[0]]
            for child in inside:
                yield from (name for name in _free(child, reads_of_texts) if name not in bound)
        case ast.Lambda(args=arguments, body=body):
            yield from _defaults(arguments, reads_of_texts)
            bound = set(_parameters(arguments))
            yield from (name for name in _free(body, reads_of_texts) if name not in bound)
        case (
            ast.FunctionDef(args=arguments, body=body)
            | ast.AsyncFunctionDef(args=arguments, body=body)
        ):
            yield from _defaults(arguments, reads_of_texts)
            for decorator in node.decorator_list:
                yield from _free(decorator, reads_of_texts)
            bound = set(_parameters(arguments)) | {
                name for statement in body for name in bound_names(statement)
            }
            for statement in body:
                yield from (name for name in _free(statement, reads_of_texts) if name not in bound)
        case ast.AugAssign(target=ast.Name(id=name)):
            yield name
            yield from _free(node.value, reads_of_texts)
        case ast.AnnAssign():
            if node.value is not None:
                yield from _free(node.value, reads_of_texts)
            yield from _free(node.target, reads_of_texts)
        case _:
            for child in ast.iter_child_nodes(node):
                yield from _free(child, reads_of_texts)


def closures_of(method: ast.FunctionDef) -> Mapping[str, frozenset[str]]:
    """The names around it that each local function reads when it is called, and those that it calls read."""
    found: dict[str, frozenset[str]] = {}
    for target, value in bindings_below(method):
        if isinstance(value, ast.Lambda | ast.FunctionDef):
            for name in target_names(target):
                found[name] = found.get(name, frozenset()) | free_names(value)
    for _ in found:
        found = {
            one: names.union(*(found.get(name, ()) for name in names))
            for one, names in found.items()
        }
    return found


def _defaults(
    arguments: ast.arguments, reads_of_texts: Mapping[int, frozenset[str]]
) -> Iterator[str]:
    for default in (*arguments.defaults, *arguments.kw_defaults):
        if default is not None:
            yield from _free(default, reads_of_texts)


def _parameters(arguments: ast.arguments) -> Iterator[str]:
    plain = named_parameters(arguments)
    for one in (*plain, arguments.vararg, arguments.kwarg):
        if one is not None:
            yield one.arg


def parameter_names(function: ast.FunctionDef) -> tuple[str, ...]:
    """Every parameter of ``function`` but its first."""
    return tuple(_parameters(function.args))[1:]


def contains(node: ast.AST, ids: Mapping[int, object]) -> bool:
    """Whether any node of the subtree (functions inside included) is keyed in ``ids``."""
    return any(id(one) in ids for one in walk(node))
