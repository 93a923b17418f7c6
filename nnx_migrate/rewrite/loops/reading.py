"""Reads each function of a project once, with what is known of the others."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace

from nnx_migrate.rewrite.loops.captures import check_captures
from nnx_migrate.rewrite.loops.expressions import value
from nnx_migrate.rewrite.loops.frame import Frame
from nnx_migrate.rewrite.loops.kinds import (
    PLAIN,
    ApplyFn,
    Flow,
    Kind,
    Many,
    Params,
    State,
    Stats,
    Unsure,
    Updates,
    Variables,
    flows_of,
    is_special,
    join,
    outside,
    with_flow,
)
from nnx_migrate.rewrite.loops.names import identifiers, passing_names
from nnx_migrate.rewrite.loops.plan import Signature
from nnx_migrate.rewrite.loops.program import RESULT, Program, Summary
from nnx_migrate.rewrite.loops.shapes import is_changed
from nnx_migrate.rewrite.loops.statements import read_block
from nnx_migrate.source.names import function_table, parameter_names
from nnx_migrate.source.project import Module, Scope


def collect(program: Program, node: ast.AST, scope: Scope) -> None:
    """Note the functions of a module."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef):
            program.nodes[id(child)] = child, scope.enter(child)
            collect(program, child, scope.enter(child))
        elif not isinstance(child, ast.Lambda):
            collect(program, child, scope)


def read_module(program: Program, module: Module) -> None:
    """Read the statements of a module, and its functions."""
    frame = Frame(program, module.tree, Scope(module), None, value)
    frame.own = frozenset(module.table)
    frame.identifiers = identifiers(module.tree) - passing_names(module.tree)
    read_block(frame, module.tree.body)
    check_captures(frame)
    if frame.owed:
        frame.problem(module.tree.body[-1], "running statistics are not kept in the state")
    _inside(program, frame, module.tree, module)


def _inside(program: Program, frame: Frame, node: ast.AST, module: Module) -> None:
    """Read the functions right inside, and the methods of classes."""
    inner = {id(one) for one in frame.inner}
    for one in frame.inner:
        _read_function(program, one, frame, module)
    for child in _definitions(node):
        if id(child) not in inner:
            _read_function(program, child, frame, module, is_method=True)


def _definitions(node: ast.AST) -> Iterable[ast.FunctionDef]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef):
            yield child
        elif not isinstance(child, ast.Lambda | ast.expr):
            yield from _definitions(child)


def _read_function(
    program: Program,
    node: ast.FunctionDef,
    outer: Frame,
    module: Module,
    *,
    is_method: bool = False,
) -> None:
    _, scope = program.nodes[id(node)]
    frame = Frame(program, node, scope, outer, value, is_method=is_method)
    frame.own = frozenset(function_table(node, module.package))
    is_top = isinstance(outer.node, ast.Module)
    frame.identifiers = identifiers(node) - passing_names(node) if is_top else outer.identifiers
    frame.is_compiled = id(node) in program.compiled_functions
    summary = frame.summary
    made = dict(_parameters(frame, summary))
    spec = node.args
    for one in (*spec.args[len(spec.args) - len(spec.defaults) :], *spec.kwonlyargs):
        if one.arg in made and one not in spec.kwonlyargs[: 0 if any(spec.kw_defaults) else None]:
            frame.problem(one, f"{one.arg} has a default")
    summary.updates, summary.optimizers, summary.fields = set(), set(), {}
    read_block(frame, node.body)
    check_captures(frame)
    _settle(frame, node, summary)
    _inside(program, frame, node, module)  # they may need more of what this one is given
    drops = summary.result is not None and is_changed(summary.result)
    if made or drops:
        shown = {name: tuple(_replacements(summary, name, pair)) for name, pair in made.items()}
        frame.change(node, Signature(shown, drops))


def _replacements(
    summary: Summary, name: str, pair: tuple[tuple[str, str], ...]
) -> Iterable[tuple[str, str]]:
    """What stands for a parameter in the new text: of a state the parts that are needed."""
    if not isinstance(summary.params[name], State):
        yield from pair
        return
    yield from pair[: 1 + (name in summary.optimizers)]
    needed = summary.fields.get(name, set())
    yield from (
        (variable, "") for field, variable in summary.values[name].items() if field in needed
    )


def _parameters(
    frame: Frame, summary: Summary
) -> Iterable[tuple[str, tuple[tuple[str, str], ...]]]:
    """Bind the parameters; of those that are part of a flow, what stands for each."""
    for name in parameter_names(frame.node):  # type: ignore[arg-type]
        kind = summary.params.get(name, frame.program.rest)
        match kind:
            case State(flow=flow) | Params(flow=flow) | Variables(flow=flow):
                model, optimizer = frame.flow_names(name)
                summary.names[name] = model, optimizer
                flow = frame.with_values(name, flow)
                summary.values[name] = dict(flow.fields)
                named = replace(flow, model=model, optimizer=optimizer, owner=frame.key)
                frame.bind(name, with_flow(kind, named))
                yield (
                    name,
                    ((model, "nnx.Module"), (optimizer, "nnx.Optimizer"))[
                        : 2 if isinstance(kind, State) else 1
                    ],
                )
            case ApplyFn(flow=Flow() as flow):
                model, optimizer = frame.flow_names(flow.key)
                named = replace(flow, model=model, optimizer=optimizer, owner=frame.key)
                frame.bind(name, replace(kind, flow=named))
                yield name, ()
            case _:
                frame.bind(name, kind)


def _settle(frame: Frame, node: ast.FunctionDef, summary: Summary) -> None:
    """What a function returns, and whether its callers get what it updates."""
    result = frame.program.bounds.get((frame.key, RESULT))
    for _, one in frame.results:
        result = join(result, _outside(one))
    for place, one in frame.results:
        if frame.is_method or _outside(one) != result:
            frame.escape(place, one)
    falls = _falls_through(node.body)
    if result is not None and is_special(result) and falls:
        frame.problem(node, f"{node.name} returns part of the state in some cases only")
    if isinstance(result, Unsure):
        frame.problem(node, f"{node.name} returns different things")
        result = PLAIN
    if frame.is_method and is_special(result or PLAIN):
        # Of whichever object it is taken, as a property, an operator or a class' own call: by its name
        # alone nobody can tell.
        frame.problem(node, f"{node.name} is a method, and who calls it is not followed")
        result = PLAIN
    if falls and frame.owed:
        frame.problem(node, "running statistics that apply returned are not kept in the state")
    summary.result = result
    remaining = {
        flow.key for one in _states(result or PLAIN) for flow in flows_of(one) if flow.is_parameter
    }
    for name in summary.updates - remaining:
        if name in summary.params:
            frame.problem(node, f"{node.name} updates {name} and does not return it")
    for _, one in frame.results:
        flow_keys = {f.key for k in _states(one) for f in flows_of(k)}
        if remaining - flow_keys:
            frame.problem(node, f"{node.name} returns the state in some cases only")


def _states(kind: Kind) -> Iterable[Kind]:
    if isinstance(kind, Many):
        for one in kind.items:
            yield from _states(one)
    elif isinstance(kind, State):
        yield kind


def _outside(kind: Kind) -> Kind:
    """A result as callers see it: what is made here has no name yet."""
    match kind:
        case Many(items=items):
            return Many(tuple(map(_outside, items)))
        case (
            State(flow=flow)
            | Params(flow=flow)
            | Variables(flow=flow)
            | Stats(flow=flow)
            | Updates(flow=flow)
        ):
            return with_flow(kind, outside(flow, flow.key if flow.is_parameter else ""))
    return kind


def _falls_through(body: list[ast.stmt]) -> bool:
    """Whether a function may end without a return."""
    match body[-1]:
        case ast.Return() | ast.Raise():
            return False
        case ast.If(body=inner, orelse=orelse):
            return not orelse or _falls_through(inner) or _falls_through(orelse)
        case ast.With(body=inner):
            return _falls_through(inner)
    return True
