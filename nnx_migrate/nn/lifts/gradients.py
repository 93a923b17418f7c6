"""``linen.vjp``, ``jvp``, ``grad``, ``value_and_grad`` and ``custom_vjp``: derivatives inside a module.

Tangents of variables come and go as Linen has them: collection -> scope path -> array, below the
module that is differentiated. flax 0.12.8: linen/transforms.py, core/lift.py.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax.core.scope import in_filter

from nnx_migrate.nn.lifts.branches import unbound
from nnx_migrate.nn.lifts.pure import PureCall
from nnx_migrate.nn.variables.parts import Parts, Values
from nnx_migrate.nn.variables.variables import collection_of

Tree = dict[str, Any]


def vjp(
    fn: Callable[..., Any],
    module: Any,
    *primals: Any,
    has_aux: bool = False,
    vjp_variables: Any = "params",
) -> Any:
    """``(y, bwd)`` of ``y = fn(module, *primals)``; with ``has_aux``, ``(y, bwd, aux)``.

    ``bwd(y_cotangent)`` gives the cotangents of the variables in ``vjp_variables`` (a collection
    filter), then those of ``primals``. ``bwd`` is a pytree, as that of ``jax.vjp``.
    """
    lifted = PureCall.of(module, primals, {})
    parts = lifted.parts
    values = parts.values() | parts.random_state()
    wanted = _in(parts, vjp_variables)

    def pure(tree: Tree, *args: Any) -> tuple[Any, Any]:
        outputs, changed = lifted.changes(
            unbound(fn), values | _values(parts, wanted, tree), args, {}
        )
        y, aux = outputs if has_aux else (outputs, ())
        return y, (aux, changed)

    tree = _tree(parts, {index: values[index] for index in wanted})
    y, bwd, (aux, changed) = jax.vjp(pure, tree, *lifted.args, has_aux=True)
    parts.put_back(changed)
    return (y, bwd, aux) if has_aux else (y, bwd)


def value_and_grad(
    fn: Callable[..., Any], module: Any, *primals: Any, has_aux: bool = False
) -> tuple[Any, Any]:
    """``(y, gradients of primals)`` of the scalar ``y = fn(module, *primals)``.

    With ``has_aux``, ``((y, aux), gradients)``. The gradients are a tuple, one of each primal; none
    is computed for the module's variables (``linen.value_and_grad``).
    """
    y, bwd, *aux = vjp(fn, module, *primals, has_aux=has_aux, vjp_variables=False)
    _, *gradients = bwd(jnp.ones_like(y))
    return ((y, aux[0]) if has_aux else y), tuple(gradients)


def grad(fn: Callable[..., Any], module: Any, *primals: Any, has_aux: bool = False) -> Any:
    """The gradients of :func:`value_and_grad`; with ``has_aux``, ``(gradients, aux)``."""
    value, gradients = value_and_grad(fn, module, *primals, has_aux=has_aux)
    return (gradients, value[1]) if has_aux else gradients


def jvp(
    fn: Callable[..., Any],
    module: Any,
    primals: Sequence[Any],
    tangents: Sequence[Any],
    variable_tangents: Mapping[str, Any],
) -> tuple[Any, Any]:
    """``(y, tangent of y)`` of ``y = fn(module, *primals)``.

    Args:
      tangents: of ``primals``, like them.
      variable_tangents: collection -> scope path -> tangent of every variable of that collection;
        variables of other collections have none.
    """
    lifted = PureCall.of(module, tuple(primals), {})
    parts = lifted.parts
    values = parts.values() | parts.random_state()
    given = {name: dict(tree) for name, tree in variable_tangents.items() if tree}
    wanted = _in(parts, tuple(given))

    def pure(tree: Tree, args: Any) -> tuple[Any, Values]:
        return lifted.changes(unbound(fn), values | _values(parts, wanted, tree), args, {})

    tree = _tree(parts, {index: values[index] for index in wanted})
    (y, changed), (y_tangent, _) = jax.jvp(pure, (tree, lifted.args), (given, tuple(tangents)))
    parts.put_back(changed)
    return y, y_tangent


def custom_vjp(
    fn: Callable[..., Any],
    forward_fn: Callable[..., Any],
    backward_fn: Callable[..., Any],
    grad_vars: Any = "params",
    nondiff_argnums: Sequence[int] = (),
) -> Callable[..., Any]:
    """``fn(module, *args)`` with a backward pass of its own.

    Args:
      forward_fn: ``(module, *args) -> (output, residuals)``; :func:`vjp` may be among the residuals.
      backward_fn: ``(*nondiff_args, residuals, cotangent) -> (variable cotangents, *those of args)``,
        the first by collection and scope path for every variable in ``grad_vars``.
      nondiff_argnums: positions of arguments without cotangents; 0 is the module.
    """

    @functools.wraps(fn)
    def call(module: Any, *args: Any) -> Any:
        lifted = PureCall.of(module, args, {})
        parts = lifted.parts
        values = parts.values() | parts.random_state()
        wanted = _in(parts, grad_vars)

        def run(function: Callable[..., Any], given: Values, args: Any) -> tuple[Any, Values]:
            return lifted.changes(unbound(function), values | given, args, {})

        def primal(given: Values, *args: Any) -> tuple[Any, Values]:
            return run(fn, given, args)

        def forward(given: Values, *args: Any) -> tuple[Any, Any]:
            (y, residuals), changed = run(forward_fn, given, args)
            return (y, changed), residuals

        def backward(*args: Any) -> tuple[Any, ...]:
            *fixed, residuals, (cotangent, _) = args
            variables, *others = backward_fn(*fixed, residuals, cotangent)
            return (_values(parts, wanted, variables), *others)

        pure = jax.custom_vjp(primal, nondiff_argnums=tuple(nondiff_argnums))
        pure.defvjp(forward, backward)
        outputs, changed = pure({index: values[index] for index in wanted}, *lifted.args)
        parts.put_back(changed)
        return outputs

    return call


def _in(parts: Parts, collections: Any) -> list[int]:
    """Positions of the lifted module's variables in ``collections``."""
    return [
        index
        for index in parts.values()
        if in_filter(collections, collection_of(type(parts.variables[index])))
    ]


def _tree(parts: Parts, values: Values) -> Tree:
    """Values by collection and scope path below the lifted module."""
    found: Tree = {}
    for index, value in values.items():
        inner = found.setdefault(collection_of(type(parts.variables[index])), {})
        _, *path, name = map(str, parts.paths[index])
        for part in path:
            inner = inner.setdefault(part, {})
        inner[name] = value
    return found


def _values(parts: Parts, wanted: Sequence[int], tree: Mapping[str, Any]) -> Values:
    """The inverse of :func:`_tree`.

    Raises:
      ValueError: the tree lacks a variable.
    """
    found: Values = {}
    for index in wanted:
        path = (collection_of(type(parts.variables[index])), *map(str, parts.paths[index][1:]))
        inner: Any = tree
        for part in path:
            if not isinstance(inner, Mapping) or part not in inner:
                raise ValueError(
                    f"expected tangents of every variable, found none of '{'/'.join(path)}'"
                )
            inner = inner[part]
        found[index] = inner
    return found
