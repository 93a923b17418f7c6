"""The new text of what a plan says, as LibCST nodes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any, assert_never

from nnx_migrate.edit.calls import Argument, call, named
from nnx_migrate.edit.expressions import (
    Expression,
    as_node,
    attribute,
    contents,
    display,
    dotted_node,
    integer,
    item,
    string,
)
from nnx_migrate.edit.rendering import Renderer, Replacement
from nnx_migrate.edit.statements import GONE, assign, result, run
from nnx_migrate.edit.syntax import cst
from nnx_migrate.rewrite.loops.plan import (
    Arguments,
    Change,
    Construction,
    Counter,
    DottedName,
    IndexChange,
    Line,
    ModelCall,
    NewModel,
    NewOptimizer,
    NewValues,
    OptimizerUpdate,
    Places,
    Result,
    Signature,
    Snapshot,
    Statement,
    Tree,
    Without,
)
from nnx_migrate.source.walking import given_values

Make = Callable[[Renderer], Any]


def replacement(node: ast.AST, change: Change) -> Replacement:
    """The replacement of a node that a change asks for."""
    match change:
        case DottedName(name=name):
            return dotted_node(name)
        case Counter(optimizer=optimizer):
            return contents(attribute(optimizer, "step"))
        case Snapshot(model=model, collection=collection):
            made = call("nnm.variables_of", model)
            return item(made, string(collection, '"')) if collection else made
        case Construction(is_compiled=compiled):
            return lambda renderer: _construct(_inner(renderer, node), is_compiled=compiled)
        case Places(numbers=numbers, is_tuple=is_tuple):
            found = [integer(one) for one in numbers]
            return display(found) if is_tuple else found[0]
        case IndexChange(index=index):
            return lambda renderer: _index(_inner(renderer, node), index)
        case ModelCall():
            return lambda renderer: _model_call(_inner(renderer, node), change)
        case Arguments(replacements=made):
            assert isinstance(node, ast.Call)
            return lambda renderer: _with_arguments(_inner(renderer, node), _order(node), made)
        case Without(keywords=keywords):
            return lambda renderer: _without(_inner(renderer, node), keywords)
        case Signature() if isinstance(node, ast.Lambda):
            return lambda renderer: _with_parameters(_inner(renderer, node), change)
        case Signature():
            return lambda renderer: [_with_signature(_inner(renderer, node), change)]
        case Statement():
            return lambda renderer: _statement(renderer, change)
        case Result():
            return lambda renderer: _result(renderer, change)
    assert_never(change)


def _inner(renderer: Renderer, node: ast.AST) -> Any:
    return renderer.without(node).inner(node)


# ---- expressions


def _index(node: cst.Subscript, index: int | None) -> Expression:
    return node.value if index is None else item(node.value, integer(index))


def _model_call(node: cst.Call, change: ModelCall) -> Expression:
    model = as_node(change.model)  # type: ignore[arg-type]
    node = _without(node, change.without)
    args = list(node.args)
    if change.with_keys:
        first = args[0].with_changes(value=model)
        return node.with_changes(func=dotted_node("nnm.call"), args=[first, *args[1:]])
    function = model if change.method is None else attribute(model, change.method)
    rest = args[1:]
    made = node.with_changes(func=function, args=rest)
    return made if rest else made.with_changes(whitespace_before_args=cst.SimpleWhitespace(""))


def _construct(node: cst.Call, *, is_compiled: bool) -> Expression:
    """``explicit(definition, ..., rngs=key)``; the key is the first argument, or has a name."""
    function: Any = node.func
    method = function.args[0].value if is_compiled else function
    assert isinstance(method, cst.Attribute)
    first = next((one for one in node.args if one.keyword and one.keyword.value == "rngs"), None)
    args = [one for one in node.args if one is not first]
    key = args.pop(0) if first is None else first
    start = call("f", method.value).args[0]
    end = call("f", named("rngs", key.value)).args[0]
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    if args:
        last = node.args[-1]
        args[-1] = args[-1].with_changes(whitespace_after_arg=cst.SimpleWhitespace(""))
        opens = isinstance(node.whitespace_before_args, cst.ParenthesizedWhitespace)
        between = cst.Comma(whitespace_after=node.whitespace_before_args) if opens else comma
        args = [*args[:-1], args[-1].with_changes(comma=between)]
        start = start.with_changes(comma=between)
        end = end.with_changes(comma=last.comma, whitespace_after_arg=last.whitespace_after_arg)
    else:
        start = start.with_changes(comma=comma)
    if is_compiled:
        made = call("functools.partial", "explicit", method.value)
        return node.with_changes(func=call("nnx.jit", made), args=[*args, end])
    return node.with_changes(func=dotted_node("explicit"), args=[start, *args, end])


def _without(node: cst.Call, keywords: frozenset[str]) -> cst.Call:
    arguments = [one for one in node.args if not (one.keyword and one.keyword.value in keywords)]
    return node.with_changes(args=_with_end(arguments, node.args))


def _with_end(args: list[cst.Arg], before: Sequence[cst.Arg]) -> list[cst.Arg]:
    """Arguments that end as those of the old call did, where its last one is gone."""
    if not args or args[-1] is before[-1]:
        return args
    last = before[-1]
    end = {"comma": last.comma, "whitespace_after_arg": last.whitespace_after_arg}
    return [*args[:-1], args[-1].with_changes(**end)]


def _order(node: ast.Call) -> list[int]:
    """Ids of the values of a call's arguments as they are written."""
    values = given_values(node)
    return [id(one) for one in sorted(values, key=lambda one: (one.lineno, one.col_offset))]


def _with_arguments(
    node: cst.Call,
    order: Sequence[int],
    replacements: Mapping[int, tuple[tuple[str | None, str], ...]],
) -> cst.Call:
    found: list[cst.Arg] = []
    for key, arg in zip(order, node.args, strict=True):
        if key not in replacements:
            found.append(arg)
            continue
        more = [
            call("f", Argument(dotted_node(name), keyword)).args[0]
            for keyword, name in replacements[key]
        ]
        comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
        end = {"comma": arg.comma, "whitespace_after_arg": arg.whitespace_after_arg}
        found += [one.with_changes(comma=comma) for one in more[:-1]]
        found += [one.with_changes(**end) for one in more[-1:]]
    return node.with_changes(args=_with_end(found, node.args))


# ---- functions


def _with_signature(node: cst.FunctionDef, change: Signature) -> cst.FunctionDef:
    node = _with_parameters(node, change)
    return node.with_changes(returns=None) if change.drops_result else node


def _with_parameters(node: Any, change: Signature) -> Any:
    fields = {
        name: [new for one in getattr(node.params, name) for new in _parameter(one, change)]
        for name in ("posonly_params", "params", "kwonly_params")
    }
    return node.with_changes(params=node.params.with_changes(**fields))


def _parameter(one: cst.Param, change: Signature) -> list[cst.Param]:
    made = change.parameters.get(one.name.value)
    if made is None:
        return [one]
    more = [
        one.with_changes(
            name=cst.Name(name),
            annotation=_annotation(one.annotation, kind) if one.annotation and kind else None,
        )
        for name, kind in made
    ]
    space = one.comma.whitespace_after if isinstance(one.comma, cst.Comma) else None
    opens = isinstance(space, cst.ParenthesizedWhitespace) and space.last_line.value
    comma = one.comma if opens else cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    return [*(each.with_changes(comma=comma) for each in more[:-1]), *more[-1:]]


def _annotation(old: cst.Annotation, kind: str) -> cst.Annotation:
    return old.with_changes(annotation=dotted_node(kind))


# ---- statements


def _lines(renderer: Renderer, lines: Sequence[Line]) -> list[Any]:
    return [_line(renderer, one) for one in lines]


def _line(renderer: Renderer, line: Line) -> Any:
    match line:
        case NewModel(name=name, value=value):
            return assign(name, renderer.render(value))
        case NewValues(names=names, values=values):
            value = _tree(renderer, values if len(values) > 1 else values[0])
            target = _tree(renderer, names if len(names) > 1 else names[0]) if names else None
            return run(value) if target is None else assign(target, value)
        case NewOptimizer(name=name, model=model, tx=tx):
            made = call("nnx.Optimizer", model, renderer.argument(tx), named("wrt", "nnx.Param"))
            return assign(name, made)
        case OptimizerUpdate(optimizer=optimizer, model=model, grads=grads):
            return run(call(f"{optimizer}.update", model, renderer.argument(grads)))
    assert_never(line)


def _statement(renderer: Renderer, change: Statement) -> list[Any]:
    lines = _lines(renderer, change.before)
    if change.value is not None:
        value = _tree(renderer, change.value)
        target = change.target
        lines.append(run(value) if target is None else assign(_tree(renderer, target), value))
    return lines or list(GONE)


def _result(renderer: Renderer, change: Result) -> list[Any]:
    lines = _lines(renderer, change.before)
    if change.value is not None:
        lines.append(result(_tree(renderer, change.value)))
    elif not change.is_last:
        lines.append(result())
    return lines


def _tree(renderer: Renderer, tree: Tree, *, is_outer: bool = True) -> Any:
    if isinstance(tree, str):
        return dotted_node(tree)
    if isinstance(tree, ast.expr):
        return renderer.render(tree)
    made = display([_tree(renderer, one, is_outer=False) for one in tree])
    return made.with_changes(lpar=[], rpar=[]) if is_outer else made
