"""``jax.grad`` and ``jax.value_and_grad``, and what is done to gradients before the update."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from nnx_migrate.rewrite.loops.captures import GRADIENTS, runs_at_once
from nnx_migrate.rewrite.loops.foreign import read_unknown
from nnx_migrate.rewrite.loops.frame import Frame
from nnx_migrate.rewrite.loops.kinds import (
    PLAIN,
    UNKNOWN,
    Function,
    Gradient,
    Grads,
    Kind,
    Many,
    Params,
    Variables,
    is_special,
)
from nnx_migrate.rewrite.loops.passing import pass_to
from nnx_migrate.rewrite.loops.plan import DottedName, Signature, Without
from nnx_migrate.rewrite.loops.shapes import width

_SUMS = ("optax.global_norm", "optax.tree.norm")
_MAPS = ("jax.tree.map", "jax.tree_map", "jax.tree_util.tree_map")


def _gradient_of(frame: Frame, node: ast.Call) -> Kind:
    symbol = frame.resolve(node.func)
    options = {one.arg: one.value for one in node.keywords}
    has_aux = options.get("has_aux", ast.Constant(False))
    function = _loss_function(frame, node)
    argnums = options.get("argnums", ast.Constant(0))
    is_plain = isinstance(has_aux, ast.Constant) and isinstance(argnums, ast.Constant)
    if function is None or not is_plain:
        return read_unknown(frame, node, symbol)
    if set(options) - {"has_aux", "argnums"} or argnums.value != 0:  # type: ignore[attr-defined]
        return read_unknown(frame, node, symbol)
    with_value = symbol == "jax.value_and_grad"
    aux = bool(has_aux.value)  # type: ignore[attr-defined]
    frame.makers[id(node)] = node
    return Gradient(function, id(node), with_value, aux)


def _loss_function(frame: Frame, node: ast.Call) -> Function | ast.Lambda | None:
    match node.args:
        case [ast.Lambda() as function] if runs_at_once(frame, function):
            return function
        case [one]:
            kind = frame.value(frame, one)
            return kind if isinstance(kind, Function) and not kind.is_compiled else None
    return None


def read_gradients(frame: Frame, node: ast.Call, gradient: Gradient) -> Kind:
    """What a call of a gradient's function gives: value and gradients, the module's own."""
    first = frame.value(frame, node.args[0]) if node.args else PLAIN
    if isinstance(gradient.function, ast.Lambda):
        result = _of_lambda(frame, node, gradient.function, first)
    else:
        result = pass_to(frame, node, gradient.function, node.args, node.keywords)
    is_whole = isinstance(first, Variables) and first.flow.whole
    if not isinstance(first, Params) and not is_whole:
        if is_special(first):
            frame.problem(node.args[0], "the gradient is not of the parameters alone")
        return first if first == UNKNOWN else PLAIN
    maker = frame.maker(gradient.place)
    if maker is None:
        return frame.problem(node, "the gradient is made in another function")
    symbol = "jax.value_and_grad" if gradient.with_value else "jax.grad"
    frame.change(maker.func, DottedName(GRADIENTS[symbol]))
    value: Kind = result
    if gradient.has_aux:
        if not isinstance(result, Many) or len(result.items) != 2:
            is_soft = not is_special(result)
            value = result if is_soft else frame.problem(node, "the loss returns no pair")
            aux: Kind = result if is_soft else PLAIN
        else:
            value, aux = result, result.items[1]
            if not width(aux):
                frame.change(maker, Without(frozenset({"has_aux"})))
    elif is_special(result):
        return frame.problem(node, "the loss returns part of the state")
    else:
        aux = PLAIN
    if gradient.with_value:
        return Many((value, Grads()))
    return Many((Grads(), aux)) if gradient.has_aux else Grads()


def _of_lambda(frame: Frame, node: ast.Call, function: ast.Lambda, first: Kind) -> Kind:
    """What a lambda gives whose first argument are parameters; it is read where it stands."""
    branch = frame.copy()
    frame.shadow(function)
    if isinstance(first, Params | Variables) and function.args.args:
        name = function.args.args[0].arg
        frame.names[name] = first
        model = frame.named(node, first.flow)
        frame.change(node.args[0], DottedName(model))
        frame.change(function, Signature({name: ((model, ""),)}, drops_result=False))
    spec = function.args
    defaults = [*spec.defaults, *(one for one in spec.kw_defaults if one is not None)]
    for one in (*defaults, *node.args[1:], *(keyword.value for keyword in node.keywords)):
        kind = frame.value(frame, one.value if isinstance(one, ast.Starred) else one)
        frame.escape(one, kind)
        if is_special(kind):
            frame.problem(one, "part of the state is handed to a lambda")
    result = frame.value(frame, function.body)
    frame.escape(function.body, result)
    frame.leave(function.body, branch, result)
    return result


def _sum(frame: Frame, node: ast.Call) -> Kind:
    """A sum over all gradients: of the same arrays, in the same order."""
    kind = frame.value(frame, node.args[0]) if len(node.args) == 1 else PLAIN
    if isinstance(kind, Grads) and not node.keywords:
        frame.program.order_dependence[frame.key] = (frame.scope.module.path, node)
        return PLAIN
    return read_unknown(frame, node, frame.resolve(node.func))


def _map(frame: Frame, node: ast.Call) -> Kind:
    """``jax.tree.map(function, grads, ...)``: gradients of the same arrays, one by one."""
    trees = [frame.value(frame, one) for one in node.args[1:]]
    if node.keywords or not trees or any(not isinstance(one, Grads) for one in trees):
        return read_unknown(frame, node, frame.resolve(node.func))
    function = frame.value(frame, node.args[0])
    frame.escape(node.args[0], function)
    if is_special(function):
        frame.problem(node.args[0], "part of the state is called")
    return Grads()


READERS: Mapping[str, Callable[[Frame, ast.Call], Kind]] = {
    **dict.fromkeys(GRADIENTS, _gradient_of),
    **dict.fromkeys(_SUMS, _sum),
    **dict.fromkeys(_MAPS, _map),
}
