"""``nn.grad``, ``nn.value_and_grad``, ``nn.vjp`` and ``nn.jvp``: derivatives inside a module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from flax import traceback_util

from .pack import Groups, Pack
from .targets import lift_direct_transform

traceback_util.register_exclusion(__file__)


def grad(
    fn: Callable[..., Any],
    mdl: Any,
    *primals: Any,
    has_aux: bool = False,
    reduce_axes: Any = (),
    variables: Any = True,
    rngs: Any = True,
) -> Any:
    """Gradients of ``fn(module, *primals)`` with respect to the primals.

    As ``flax.linen.grad`` (flax 0.12.8).

    Args:
      fn: gives a scalar, or with ``has_aux`` a scalar and something else.
      mdl: the module.
      *primals: arguments to differentiate by.
      has_aux: whether ``fn`` gives a pair.
      reduce_axes: no longer possible.
      variables: collections ``fn`` may see.
      rngs: names of the keys it may see.

    Returns:
      A tuple of gradients; with ``has_aux`` a pair of them and what else ``fn`` gave.

    Raises:
      ValueError: what is differentiated is no scalar.
      NotImplementedError: ``reduce_axes`` is set.
    """
    _refuse("grad", reduce_axes)
    value, gradients = value_and_grad(
        fn, mdl, *primals, has_aux=has_aux, variables=variables, rngs=rngs
    )
    return (gradients, value[1]) if has_aux else gradients


def value_and_grad(
    fn: Callable[..., Any],
    mdl: Any,
    *primals: Any,
    has_aux: bool = False,
    reduce_axes: Any = (),
    variables: Any = True,
    rngs: Any = True,
) -> Any:
    """What ``grad`` gives, after the value of ``fn`` (with ``has_aux`` the pair it gave).

    As ``flax.linen.value_and_grad`` (flax 0.12.8).
    """
    _refuse("value_and_grad", reduce_axes)
    value, gradients = lift_direct_transform(
        _value_and_grad,
        (fn,),
        mdl,
        *primals,
        has_aux=has_aux,
        variables=variables,
        rngs=rngs,
    )
    out = value[0] if has_aux else value
    if out.shape != ():
        raise ValueError(
            f"grad can only work on functions with scalar-valued outputs. out shape={out.shape}"
        )
    return value, gradients


def _value_and_grad(
    fn: Callable[..., Any], scopes: Any, *primals: Any, has_aux: bool, variables: Any, rngs: Any
) -> Any:
    pack = Pack(scopes, (variables,), (variables,), (rngs,), "value_and_grad")

    def pure(*primals: Any) -> Any:
        return _value_and_rest(pack.run(fn, pack.variables, pack.rngs, *primals), has_aux)

    y, backward, (aux, out) = jax.vjp(pure, *primals, has_aux=True)
    gradients = backward(jnp.ones_like(y))
    pack.publish(out)
    return ((y, aux) if has_aux else y), gradients


def vjp(
    fn: Callable[..., Any],
    mdl: Any,
    *primals: Any,
    has_aux: bool = False,
    reduce_axes: Any = (),
    vjp_variables: Any = "params",
    variables: Any = True,
    rngs: Any = True,
    multi_scope: bool = False,
) -> Any:
    """``jax.vjp`` of ``fn(module, *primals)`` with respect to variables and primals.

    As ``flax.linen.vjp`` (flax 0.12.8).

    Args:
      fn: gives the value, or with ``has_aux`` the value and something else.
      mdl: the module.
      *primals: arguments to differentiate by.
      has_aux: whether ``fn`` gives a pair.
      reduce_axes: no longer possible.
      vjp_variables: collections to differentiate by.
      variables: other collections ``fn`` may see.
      rngs: names of the keys it may see.
      multi_scope: whether the module may hold other modules that are not its children; the
        gradients of variables are then a list, one for each.

    Returns:
      The value and a function from its cotangent to ``(gradients of variables, *of primals)``;
      with ``has_aux`` what else ``fn`` gave as well.

    Raises:
      NotImplementedError: several scopes without ``multi_scope``, or ``reduce_axes``.
    """
    _refuse("vjp", reduce_axes)
    return lift_direct_transform(
        _vjp,
        (fn,),
        mdl,
        *primals,
        multi_scope=multi_scope,
        has_aux=has_aux,
        vjp_variables=vjp_variables,
        variables=variables,
        rngs=rngs,
    )


def _vjp(
    fn: Callable[..., Any],
    scopes: Any,
    *primals: Any,
    has_aux: bool,
    vjp_variables: Any,
    variables: Any,
    rngs: Any,
) -> Any:
    leaves: list[Any]
    tree: Any
    leaves, tree = jax.tree.flatten(scopes, is_leaf=lambda x: not isinstance(x, list))
    pack = Pack(leaves, (vjp_variables, variables), (variables,), (rngs,), "vjp")
    by, others = pack.variables

    def pure(by: Any, *primals: Any) -> Any:
        def of_scopes(inner: list[Any], *primals: Any) -> Any:
            return fn(tree.unflatten(inner), *primals)

        return _value_and_rest(pack.run(of_scopes, (by, others), pack.rngs, *primals), has_aux)

    y, backward, (aux, out) = jax.vjp(pure, by, *primals, has_aux=True)
    pack.publish(out)
    vjp_function = jax.tree_util.Partial(_Backward(tree), backward)
    return (y, vjp_function, aux) if has_aux else (y, vjp_function)


class _Backward:
    """The backward function, with gradients of variables as the scopes were given."""

    def __init__(self, tree: Any) -> None:
        self.tree = tree

    def __call__(self, backward: Callable[..., Any], cotangent: Any) -> tuple[Any, ...]:
        of_variables, *of_primals = backward(cotangent)
        return (self.tree.unflatten(of_variables), *of_primals)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Backward) and self.tree == other.tree

    def __hash__(self) -> int:
        return hash(self.tree)


def jvp(
    fn: Callable[..., Any],
    mdl: Any,
    primals: Any,
    tangents: Any,
    variable_tangents: Any,
    variables: Any = True,
    rngs: Any = True,
) -> Any:
    """``jax.jvp`` of ``fn(module, *primals)``.

    As ``flax.linen.jvp`` (flax 0.12.8).

    Args:
      fn: the function.
      mdl: the module.
      primals: a tuple of arguments.
      tangents: a tuple of their tangents.
      variable_tangents: tangents of the variables, by collection.
      variables: collections ``fn`` may see.
      rngs: names of the keys it may see.

    Returns:
      The value and its tangent.
    """
    return lift_direct_transform(
        _jvp,
        (fn,),
        mdl,
        primals,
        tangents,
        variable_tangents,
        multi_scope=False,
        variables=variables,
        rngs=rngs,
    )


def _jvp(
    fn: Callable[..., Any],
    scope: Any,
    primals: Any,
    tangents: Any,
    variable_tangents: Any,
    variables: Any,
    rngs: Any,
) -> Any:
    # jax wants the same structure of values and tangents: no empty collections.
    tangents_by_collection = {name: tree for name, tree in variable_tangents.items() if tree}
    pack = Pack([scope], (tuple(tangents_by_collection), variables), (variables,), (rngs,), "jvp")
    by, others = pack.variables

    def pure(by: Any, primals: Any) -> tuple[Any, Groups]:
        def of_scope(inner: list[Any]) -> Any:
            return fn(inner[0], *primals)

        return pack.run(of_scope, (by, others), pack.rngs)

    (y, out), (tangent, _) = jax.jvp(pure, (by, primals), ((tangents_by_collection,), tangents))
    pack.publish(out)
    return y, tangent


def _value_and_rest(result: tuple[Any, Groups], has_aux: bool) -> tuple[Any, Any]:
    y, out = result
    y, aux = y if has_aux else (y, ())
    return y, (aux, out)


def _refuse(name: str, reduce_axes: Any) -> None:
    if reduce_axes:
        raise NotImplementedError(f"reduce_axes argument to {name} is deprecated")


_value_and_grad.__name__ = "value_and_grad"
_vjp.__name__ = "vjp"
_jvp.__name__ = "jvp"
