"""Calls of the project's own functions: what they are given of a flow, and give back."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from nnx_migrate.rewrite.loops.frame import Frame
from nnx_migrate.rewrite.loops.kinds import (
    PLAIN,
    ApplyFn,
    Definition,
    Flow,
    Function,
    Grads,
    Kind,
    Many,
    Params,
    Recipe,
    State,
    Unsure,
    Updates,
    Variables,
    flows_of,
    is_special,
    join,
    outside,
    with_flow,
)
from nnx_migrate.rewrite.loops.modules import call_recipe
from nnx_migrate.rewrite.loops.plan import Arguments
from nnx_migrate.rewrite.loops.program import Summary
from nnx_migrate.source.names import positional_names
from nnx_migrate.source.walking import walk

_TAKEN_APART = (State, Params, Variables)  # what stands for a parameter that is given one


def pass_to(
    frame: Frame,
    node: ast.Call,
    function: Function,
    args: Sequence[ast.expr],
    keywords: Sequence[ast.keyword],
) -> Kind:
    """What a call of a function of the project gives."""
    definition, _ = frame.program.nodes[function.node]
    summary = frame.program.summary(function.node)
    inside = any(one is definition for one in frame.inner)
    flows: dict[str, Flow] = {}
    recipes: dict[Recipe, Recipe] = {}
    made: dict[int, tuple[tuple[str | None, str], ...]] = {}
    bound = [
        (name, value, keyword, frame.value(frame, _without_star(value)))
        for name, value, keyword in _bound(definition, args, keywords)
    ]
    beside = {
        name: kind.flow for name, _, _, kind in bound if name and isinstance(kind, _TAKEN_APART)
    }
    for name, value, keyword, kind in bound:
        if name is None:
            if is_special(kind):
                frame.problem(value, f"which parameter of {definition.name} this is is not known")
            continue
        parameter_kind = _parameter_kind(frame, kind, name, function.node, beside)
        _give(frame, value, parameter_kind, name, function.node)
        if isinstance(kind, Definition):
            assert isinstance(parameter_kind, Definition)
            recipes[parameter_kind.recipe] = kind.recipe
            frame.program.recipes.setdefault(parameter_kind.recipe, set()).add(kind.recipe)
        if not is_special(kind):
            continue
        frame.link(function.node)
        if isinstance(kind, ApplyFn):
            made[id(value)] = ()  # the module is what stands beside it
        if isinstance(kind, _TAKEN_APART):
            if any(one == kind.flow for one in flows.values()):
                frame.problem(value, "the state is handed on twice in one call")
            if kind.flow.key in frame.owed:
                frame.problem(value, "the state is handed on before it keeps running statistics")
            flows[name] = kind.flow
            summary.origins.setdefault(name, set()).add(kind.flow.key if inside else "")
            made[id(value)] = tuple(_names(frame, value, kind, name, summary, keyword))
    if made:
        frame.change(node, Arguments(made))
    if inside:
        _check_inside(frame, node, definition)
    for name in sorted(summary.updates & flows.keys()):
        _age(frame, node, flows[name])
    if is_special(summary.result or PLAIN):
        frame.link(function.node)
    recipe = partial(_recipe_of_call, frame, node, recipes)
    result = _given_back(summary.result or frame.program.rest, flows, recipe)
    frame.owe(flow.key for flow in flows_of(_updates(result)))
    return result


def _recipe_of_call(
    frame: Frame, node: ast.Call, recipes: Mapping[Recipe, Recipe], recipe: Recipe
) -> Recipe:
    """Of what a function builds a module in this call: the one it is given, or by these arguments."""
    return recipes[recipe] if recipe in recipes else call_recipe(frame, recipe, node)


def _updates(kind: Kind) -> Kind:
    """What of a value is updates that the state has to keep."""
    if isinstance(kind, Many):
        return Many(tuple(map(_updates, kind.items)))
    return kind if isinstance(kind, Updates) else PLAIN


def _bound(
    definition: ast.FunctionDef, args: Sequence[ast.expr], keywords: Sequence[ast.keyword]
) -> Iterator[tuple[str | None, ast.expr, str | None]]:
    """Each argument: its parameter (None: not known), its value, and its keyword."""
    spec = definition.args
    names = positional_names(spec)
    known = {*names, *(one.arg for one in spec.kwonlyargs)}
    starred = False
    for index, one in enumerate(args):
        starred = starred or isinstance(one, ast.Starred)
        yield (names[index] if index < len(names) and not starred else None), one, None
    for keyword in keywords:
        yield (keyword.arg if keyword.arg in known else None), keyword.value, keyword.arg


def _without_star(node: ast.expr) -> ast.expr:
    return node.value if isinstance(node, ast.Starred) else node


def _parameter_kind(
    frame: Frame, kind: Kind, name: str, function: int, beside: Mapping[str, Flow]
) -> Kind | None:
    """What a parameter is that is given a value; None: part of a flow that no function takes.

    ``beside`` are the flows that other parameters of the call are given.
    """
    if isinstance(kind, _TAKEN_APART):
        return with_flow(kind, outside(kind.flow, name))
    if isinstance(kind, ApplyFn):
        own = [one for one, flow in beside.items() if fits(frame, kind, flow)]
        return ApplyFn(None, outside(beside[own[0]], own[0])) if own else None
    if isinstance(kind, Definition):  # whichever module it is
        return Definition((f"given as {name} to", str(function)))
    return kind if isinstance(kind, Grads) or not is_special(kind) else None


def fits(frame: Frame, function: ApplyFn, flow: Flow) -> bool:
    """Whether it is the module of a flow that is applied."""
    if function.flow is not None and frame.is_same(flow, function.flow):
        return True
    # A module that all callers of the function around build alike is that one.
    recipes = frame.program.recipes.get(function.recipe, {function.recipe})
    return flow.recipe is not None and (function.recipe == flow.recipe or recipes == {flow.recipe})


def _give(frame: Frame, node: ast.expr, kind: Kind | None, name: str, function: int) -> None:
    summary = frame.program.summary(function)
    if kind is None:
        frame.problem(node, "this part of the state is handed to a function")
        return
    before = join(summary.next_params.get(name), frame.program.bounds.get((function, name)))
    after = join(before, kind) or PLAIN
    if isinstance(after, Unsure):
        frame.problem(node, f"{name} is given different things in different calls")
    for one in (before, kind):
        if one is not None and one != after:
            frame.escape(node, one)
    summary.next_params[name] = after


def _names(
    frame: Frame, node: ast.expr, kind: Kind, name: str, summary: Summary, keyword: str | None
) -> Iterator[tuple[str | None, str]]:
    assert isinstance(kind, State | Params | Variables)
    flow = kind.flow
    model, optimizer = summary.names.get(name, ("model", "optimizer"))
    yield (model if keyword else None), frame.named(node, flow)
    if isinstance(kind, State) and name in summary.optimizers:
        yield (optimizer if keyword else None), frame.need_optimizer(flow)
    needed = summary.fields.get(name, set()) if isinstance(kind, State) else set()
    for field, variable in summary.values.get(name, {}).items():
        if field in needed:
            yield (variable if keyword else None), frame.need_field(node, flow, field)


def _check_inside(frame: Frame, node: ast.Call, definition: ast.FunctionDef) -> None:
    """A function inside this one sees the names of this one as they are when it is called."""
    for one in walk(definition):
        if isinstance(one, ast.Name) and one.id in frame.stale and is_special(frame.names[one.id]):
            frame.problem(
                node, f"{definition.name} reads {one.id}, of which there is a later state"
            )


def _age(frame: Frame, node: ast.Call, flow: Flow) -> None:
    if frame.top is not node:
        frame.problem(node, "the new state is used in the same statement")
    if flow.owner != frame.key:
        frame.problem(node, "a state of the function around is updated")
    frame.age(flow)


def _given_back(kind: Kind, flows: Mapping[str, Flow], recipe: Callable[[Recipe], Recipe]) -> Kind:
    """What a call gives, its flows and modules those of the caller; flows that it makes have no key."""
    if isinstance(kind, Many):
        return Many(tuple(_given_back(one, flows, recipe) for one in kind.items))
    if isinstance(kind, Definition):
        return Definition(recipe(kind.recipe))
    for flow in flows_of(kind):
        if flow.is_parameter:
            return with_flow(kind, flows.get(flow.key, flow))
        return with_flow(kind, replace(flow, recipe=recipe(flow.recipe)))
    return kind
