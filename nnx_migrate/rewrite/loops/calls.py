"""What a call is, and what it does to a flow."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import replace

from nnx_migrate.rewrite.loops import gradients, optimizers
from nnx_migrate.rewrite.loops.compiling import JIT, PARTIAL, initialises, read_jit, read_partial
from nnx_migrate.rewrite.loops.foreign import read_unknown
from nnx_migrate.rewrite.loops.frame import Frame
from nnx_migrate.rewrite.loops.gradients import read_gradients
from nnx_migrate.rewrite.loops.kinds import (
    PLAIN,
    UNKNOWN,
    ApplyFn,
    Definition,
    Flow,
    Function,
    Gradient,
    Grads,
    Kind,
    Many,
    Params,
    State,
    Stats,
    Step,
    Transformation,
    Updates,
    Variables,
    flows_of,
    is_special,
)
from nnx_migrate.rewrite.loops.modules import definition_of, is_state, state_fields
from nnx_migrate.rewrite.loops.passing import fits, pass_to
from nnx_migrate.rewrite.loops.plan import (
    Construction,
    Counter,
    ModelCall,
    NewValues,
    OptimizerUpdate,
)
from nnx_migrate.rewrite.loops.snapshots import snapshot
from nnx_migrate.source.walking import given_values, is_name, is_none_literal


def read_call(frame: Frame, node: ast.Call) -> Kind:
    """What a call gives."""
    if isinstance(node.func, ast.Attribute) and node.func.attr in ("apply_gradients", "replace"):
        inner = node.func.value
        if frame.top is node and isinstance(inner, ast.Call):
            frame.top = inner
        owner = frame.value(frame, inner)
        frame.top = node if frame.top is inner else frame.top
        if isinstance(owner, State):
            return _update(frame, node, owner, node.func.attr)
    if isinstance(node.func, ast.Attribute) and node.func.attr in ("init", "apply"):
        owner = frame.value(frame, node.func.value)
        if isinstance(owner, Definition):
            return _of_definition(frame, node, owner, node.func.attr)
    method = initialises(frame, node.func)
    if method is not None:
        owner = frame.value(frame, method.value)
        if isinstance(owner, Definition):
            return _of_definition(frame, node, owner, "init", is_compiled=True)
    kind = frame.value(frame, node.func)
    match kind:
        case Function():
            return pass_to(frame, node, kind, node.args, node.keywords)
        case Gradient():
            return read_gradients(frame, node, kind)
        case ApplyFn():
            return _apply(frame, node, kind)
    if kind == UNKNOWN:
        read_unknown(frame, node, "")
        return UNKNOWN
    if is_special(kind):
        return frame.problem(node, "it is called")
    recipe = definition_of(frame, node)
    if recipe is not None:
        read_unknown(frame, node, "")
        return Definition(recipe)
    symbol = frame.resolve(node.func)
    if is_name(node.func, "int") and not symbol:
        return _counting(frame, node)
    reader = _READERS.get(symbol)
    if reader is not None:
        return reader(frame, node)
    state = symbol.removesuffix(".create")
    if state != symbol and is_state(frame, state):
        return _create(frame, node, state_fields(frame, state))
    if symbol.startswith("optax."):
        return _transformation(frame, node, symbol)
    return read_unknown(frame, node, symbol)


# ---- modules


def _of_definition(
    frame: Frame, node: ast.Call, owner: Definition, method: str, *, is_compiled: bool = False
) -> Kind:
    if method == "apply":
        return _apply(frame, node, ApplyFn(owner.recipe))
    read_unknown(frame, node, "init")
    names = {one.arg for one in node.keywords}
    is_plain = not names & {None, "method", "mutable", "capture_intermediates"}
    if not is_plain or not (node.args or "rngs" in names) or owner.recipe is None:
        return PLAIN
    if "rngs" not in names and isinstance(node.args[0], ast.Starred):
        return PLAIN  # the key may be in it
    frame.change(node, Construction(is_compiled))
    return Variables(Flow("", False, node, recipe=owner.recipe))


def _apply(frame: Frame, node: ast.Call, function: ApplyFn) -> Kind:
    """``apply(variables, ...)``."""
    if not node.args or isinstance(node.args[0], ast.Starred):
        return read_unknown(frame, node, "apply")
    value_kind = frame.value(frame, node.args[0])
    rest = [*node.args[1:], *(one.value for one in node.keywords)]
    for one in rest:
        value = one.value if isinstance(one, ast.Starred) else one
        kind = frame.value(frame, value)
        frame.escape(value, kind)
        if is_special(kind):
            frame.problem(one, "part of the state is an input of the model")
    if not isinstance(value_kind, Variables):
        if is_special(value_kind):
            return frame.problem(node.args[0], "apply is given something unknown")
        if function.flow is None:
            return PLAIN  # values, for a module that is built by the call: it stays as it is
        return frame.problem(node, "apply is given variables that are not the state's")
    if not fits(frame, function, value_kind.flow):
        # Another module, for all that is known: it is applied to what the state's holds.
        if function.flow is not None or not snapshot(frame, node.args[0], value_kind):
            frame.problem(node, "the module that is applied may not be the state's")
        return PLAIN
    return _model_call(frame, node, value_kind)


def _model_call(frame: Frame, node: ast.Call, variables: Variables) -> Kind:
    flow = variables.flow
    keywords = {one.arg: one.value for one in node.keywords}
    if None in keywords:
        return frame.problem(node, "what **kwargs hold is not known")
    mutable = _collections(keywords.get("mutable"))
    if mutable is None or mutable - {"batch_stats"}:
        return frame.problem(node, "apply with this mutable= is not rewritten")
    if "capture_intermediates" in keywords:
        return frame.problem(node, "capture_intermediates is not rewritten")
    method = keywords.get("method")
    name = method.value if isinstance(method, ast.Constant) else None
    if isinstance(method, ast.Attribute):
        name = method.attr
    if method is not None and not isinstance(name, str):
        return frame.problem(node, "which method is called is not known")
    if flow.key in frame.owed:
        return frame.problem(node, "the model is called before its running statistics are kept")
    rngs = keywords.get("rngs")
    if rngs is not None and method is not None and not isinstance(method, ast.Constant):
        return frame.problem(node, "a method that is named without quotes gets keys")
    with_keys = rngs is not None and not is_none_literal(rngs)
    without = {"mutable", *(() if with_keys else ("rngs",)), *(() if with_keys else ("method",))}
    called = name if isinstance(name, str) else None
    call = ModelCall(frame.named(node, flow), frozenset(without), called, with_keys)
    frame.change(node, call)
    if not mutable:
        return PLAIN
    if flow.owner != frame.key:
        return frame.problem(node, "running statistics of a model of the function around change")
    frame.owe((flow.key,))
    return Many((PLAIN, Updates(flow)))


def _collections(node: ast.expr | None) -> frozenset[str] | None:
    match node:
        case None | ast.Constant(value=False):
            return frozenset()
        case ast.Constant(value=str(name)):
            return frozenset({name})
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            names = [one.value if isinstance(one, ast.Constant) else None for one in elements]
            return None if None in names else frozenset(map(str, names))
    return None


# ---- states


def _create(frame: Frame, node: ast.Call, fields: frozenset[str] | None) -> Kind:
    keywords = {one.arg: one.value for one in node.keywords}
    frame.program.creates.setdefault(frame.key, []).append((frame.scope.module.path, node))
    if fields is None:
        return _plain_state(frame, node, "the class of the state adds more than annotated fields")
    if node.args or set(keywords) != {"apply_fn", "params", "tx", *fields}:
        return _plain_state(frame, node, "TrainState.create has other arguments than are known")
    kinds = {name: frame.value(frame, one) for name, one in keywords.items()}
    params, function = kinds["params"], kinds["apply_fn"]
    is_whole = isinstance(params, Variables) and params.collections is None
    if not isinstance(params, Params) and not is_whole:
        return _plain_state(frame, keywords["params"], "how these parameters are made is not known")
    assert isinstance(params, Params | Variables)
    flow = params.flow
    if flow.is_parameter:
        return _plain_state(frame, keywords["params"], "the parameters come from a caller")
    applies = isinstance(function, ApplyFn) and fits(frame, function, flow)
    if not isinstance(function, ApplyFn) and (is_special(function) or _calls(keywords["apply_fn"])):
        return _plain_state(
            frame, keywords["apply_fn"], "which module's apply this is is not known"
        )
    stats = {name for name in fields if is_special(kinds[name]) or kinds[name] == UNKNOWN}
    for name in sorted(fields):
        kind = kinds[name]
        frame.escape(keywords[name], kind)
        known = isinstance(kind, Stats) and not kind.is_updated and bool(kind.flow.key)
        if name in stats and (not known or flows_of(kind)[0].key != flow.key):
            return _plain_state(frame, keywords[name], f"the field {name} is no running statistics")
    tx = kinds["tx"]
    if not isinstance(tx, Transformation):
        unknown = (
            "which optimizer of optax this is is not known, or it is told by masks what it means"
        )
        return _plain_state(frame, keywords["tx"], unknown)
    if tx.depends_on_order:
        frame.program.order_dependence[frame.key] = (frame.scope.module.path, keywords["tx"])
    if flow.optimizer:
        return _plain_state(frame, keywords["params"], "two states are made of the same parameters")
    model = flow.model or keywords["params"]  # a call that gives the module
    others = tuple((name, "") for name in sorted(fields - stats))
    made = replace(flow, stats=frozenset(stats), fields=others, applies=applies, model=model)
    if is_whole:
        frame.program.whole[frame.key] = (frame.scope.module.path, keywords["params"])
    return State(replace(made, whole=is_whole))


def _plain_state(frame: Frame, node: ast.expr, reason: str) -> Kind:
    """A state that is none for the loop: any value, which functions hand each other as it is."""
    frame.problem(node, reason)
    return PLAIN


def _calls(node: ast.expr) -> bool:
    return any(isinstance(one, ast.Call) for one in ast.walk(node))


def _update(frame: Frame, node: ast.Call, owner: State, name: str) -> Kind:
    """``state.apply_gradients(...)`` and ``state.replace(batch_stats=...)``."""
    assert isinstance(node.func, ast.Attribute)
    flow = owner.flow
    if frame.top is not node:
        return frame.problem(node, "the new state is used in the same statement")
    if flow.owner != frame.key:
        return frame.problem(node, "a state of the function around is updated")
    keywords = {str(one.arg): one.value for one in node.keywords}
    inner = node.func.value
    values = {one: value for one, value in keywords.items() if one in dict(flow.fields)}
    plain_fields = keywords.keys() - values.keys() - {"grads"}
    if (
        node.args
        or plain_fields - flow.stats
        or ("grads" in keywords) != (name == "apply_gradients")
    ):
        return frame.problem(node, f"{name} has other arguments than are known")
    _note_overrides(frame, node, flow, values)
    for field in sorted(plain_fields):
        kind = frame.value(frame, keywords[field])
        if not isinstance(kind, Stats) or not kind.is_updated or kind.flow.key != flow.key:
            return frame.problem(
                keywords[field], f"{field} is not what apply returned for this state"
            )
        frame.owed.discard(flow.key)
    if name == "apply_gradients":
        if not isinstance(frame.value(frame, keywords["grads"]), Grads):
            return frame.problem(keywords["grads"], "how these gradients are made is not known")
        if isinstance(inner, ast.Call):
            return frame.problem(node, "several updates in one expression")
        model, optimizer = frame.named(node, flow), frame.need_optimizer(flow)
        frame.updates.append(OptimizerUpdate(optimizer, model, keywords["grads"]))
        if values and not isinstance(keywords["grads"], ast.Name):
            return frame.problem(
                keywords["grads"], "gradients are computed where fields are replaced"
            )
    frame.age(flow)
    return owner


def _note_overrides(
    frame: Frame, node: ast.Call, flow: Flow, values: Mapping[str, ast.expr]
) -> None:
    """Fields that get other values: what those are, the state shows as it was before."""
    for one in values.values():
        kind = frame.value(frame, one)
        frame.escape(one, kind)
        if is_special(kind) and not snapshot(frame, one, kind):
            frame.problem(one, "part of the state becomes a field of it")
    if values:
        names = frame.replace(node, flow, values)
        frame.updates.append(NewValues(names, tuple(values.values())))


# ---- others


def _transformation(frame: Frame, node: ast.Call, symbol: str) -> Kind:
    kinds = [frame.value(frame, one) for one in node.args if not isinstance(one, ast.Starred)]
    if symbol == optimizers.CHAIN and len(kinds) == len(node.args) and not node.keywords:
        known = [one for one in kinds if isinstance(one, Transformation)]
        if len(known) == len(kinds):
            return Transformation(any(one.depends_on_order for one in known))
        return read_unknown(frame, node, symbol)
    read_unknown(frame, node, symbol)
    ordered = optimizers.is_ordered(symbol)
    if ordered is None or optimizers.is_told_which(symbol, node):
        return PLAIN
    return Transformation(ordered)


def _counting(frame: Frame, node: ast.Call) -> Kind:
    """``int(state.step)`` and ``jax.random.fold_in(key, state.step)``: any integer does."""
    for one in given_values(node):
        kind = frame.value(frame, one)
        if isinstance(kind, Step):
            frame.change(one, Counter(frame.need_optimizer(kind.flow)))
        elif is_special(kind):
            frame.problem(one, "part of the state is used in a way that is not known")
    return PLAIN


_READERS: dict[str, Callable[[Frame, ast.Call], Kind]] = {
    **gradients.READERS,
    "jax.random.fold_in": _counting,
    JIT: read_jit,
    PARTIAL: read_partial,
}
