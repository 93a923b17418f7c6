"""The Linen side in training: shardings by Linen's own resolution of the boxed variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import optax
from flax import linen
from flax.core import meta
from flax.linen import spmd
from jax.sharding import NamedSharding

from nnx_migrate.parity.case import Arguments, ParityCase
from nnx_migrate.parity.evaluation.measure import Apply, Variables
from nnx_migrate.parity.evaluation.outputs import loss_of
from nnx_migrate.parity.evaluation.shardings import (
    ArrayLayout,
    Layouts,
    bytes_on,
    layout_of,
    layout_on,
    logical_names,
    placement_of,
)
from nnx_migrate.parity.training.steps import (
    Training,
    abstract_arrays,
    for_calls,
    is_laid_out,
    microbatches,
    optimizer_of,
    storage_shardings,
)
from nnx_migrate.parity.values import named_leaves
from nnx_migrate.sharding.placing import AnyMesh

_PREFIX = (
    "variables/"  # of the model's variables in a state; parameters are "params/..." on both sides
)


def begin_linen(
    case: ParityCase,
    shapes: Callable[[], Any],
    apply: Apply,
    variables: Variables | None,
    arguments: Arguments,
    mesh: AnyMesh | None,
) -> Training:
    """Lay the training state of a Linen module out as ``linen.logical_to_mesh_sharding`` says.

    ``shapes()`` gives the abstract variables in their boxes, ``variables`` their values by path. The state is
    ``{"variables": ..., "opt_state": ...}``, unboxed: the boxes only say how to shard it. Without
    ``variables`` it is abstract, for which an abstract mesh will do.
    """
    optimizer = optimizer_of(case)
    boxed_variables = shapes()
    abstract = {
        "variables": boxed_variables,
        "opt_state": jax.eval_shape(optimizer.init, boxed_variables["params"]),
    }
    abstract = _without_empty_boxes(abstract)
    named_shardings = _shardings(case, abstract, mesh)
    shardings = (
        None
        if named_shardings is None
        else storage_shardings(case, named_shardings, unbox_tree(abstract))
    )
    if variables is None:
        state = abstract_arrays(unbox_tree(abstract), shardings)
    else:
        values = jax.tree.unflatten(
            jax.tree.structure(unbox_tree(boxed_variables)), list(variables.values())
        )
        state = _state(optimizer, values, shardings)

    def layouts(state: Mapping[str, Any]) -> Layouts:
        return _layouts(abstract, named_shardings, shardings, state)

    call_shardings = (
        named_shardings["variables"]["params"]
        if named_shardings is not None and case.zero1
        else None
    )
    step = _step(case, apply, optimizer, arguments, call_shardings)
    return Training(
        state,
        layouts,
        lambda state: named_leaves(state["variables"])[0],
        step,
        _named,
        _with_values,
    )


def _named(state: Mapping[str, Any]) -> Variables:
    return {path.removeprefix(_PREFIX): leaf for path, leaf in named_leaves(state)[0].items()}


def _with_values(state: Mapping[str, Any], named: Variables) -> Any:
    paths, treedef = named_leaves(state)
    return jax.tree.unflatten(treedef, [named[path.removeprefix(_PREFIX)] for path in paths])


def _state(optimizer: Any, values: Any, shardings: Any) -> dict[str, Any]:
    if shardings is None:
        return {"variables": values, "opt_state": optimizer.init(values["params"])}
    variables = jax.tree.map(jax.device_put, values, shardings["variables"])
    initial = jax.jit(optimizer.init, out_shardings=shardings["opt_state"])
    return {"variables": variables, "opt_state": initial(variables["params"])}


def _shardings(case: ParityCase, abstract: Any, mesh: AnyMesh | None) -> Any:
    if mesh is None or not is_laid_out(case, mesh):
        return None
    return jax.tree.map(
        lambda leaf: NamedSharding(mesh, _spec(leaf, case.axis_rules)), abstract, is_leaf=_is_box
    )


def _spec(leaf: Any, rules: Any) -> Any:
    """The spec of a box or array: a plain ``Partitioned`` names mesh axes, which no rule changes."""
    names: Any = linen.get_partition_spec(leaf)
    is_logical = isinstance(leaf, spmd.LogicallyPartitioned) or not _is_box(leaf)
    return spmd.logical_to_mesh_axes(names, rules) if is_logical else names


def _layouts(
    abstract: Any, named_shardings: Any, storage: Any, state: Mapping[str, Any]
) -> Layouts:
    boxes = jax.tree.leaves(abstract, is_leaf=_is_box)
    found, _ = named_leaves(state)
    leaves = (found.items(), boxes, jax.tree.leaves(named_shardings), jax.tree.leaves(storage))
    return {
        path.removeprefix(_PREFIX): ArrayLayout(
            rank=array.ndim,
            names=logical_names(box.names) if _is_box(box) else None,
            spec=layout_of(named_sharding.spec),
            sharding=layout_on(sharding),
            placed=placement_of(array, layout_on(sharding)),
            bytes=bytes_on(array, sharding),
        )
        for (path, array), box, named_sharding, sharding in zip(*leaves, strict=True)
    }


def names_of(variables: Any) -> dict[str, tuple[str | None, ...]]:
    """The axis names of the variables that have any, by path; logical ones or a mesh's."""
    paths = named_leaves(unbox_tree(variables))[0]
    boxes = jax.tree.leaves(variables, is_leaf=_is_box)
    found = {path: box for path, box in zip(paths, boxes, strict=True) if _is_box(box)}
    return {path: logical_names(box.names) or () for path, box in found.items()}


def _without_empty_boxes(tree: Any) -> Any:
    """An optimizer that leaves a parameter out keeps its box, with no array in it."""
    return jax.tree.map(
        lambda leaf: leaf if jax.tree.leaves(leaf) else unbox_tree(leaf), tree, is_leaf=_is_box
    )


def _is_box(leaf: Any) -> bool:
    return isinstance(leaf, meta.Partitioned)


def unbox_tree(tree: Any) -> Any:
    """The variables without their boxes, and without the constraints that ``meta.unbox`` adds.

    Under a mesh these would have XLA split the initialisers, which on some versions moves single
    elements by a unit in the last place; abstract arrays do not take them at all.
    """
    return jax.tree.map(
        lambda leaf: leaf.value if _is_box(leaf) else meta.unbox(leaf), tree, is_leaf=_is_box
    )


def _step(
    case: ParityCase, apply: Apply, optimizer: Any, arguments: Arguments, call_shardings: Any
) -> Any:
    """A step; ``call_shardings`` are the shardings in which calls have the parameters, None for as stored."""

    def step(state: Mapping[str, Any], arrays: Sequence[Any]) -> tuple[Any, Any]:
        params = state["variables"]["params"]
        leaves, treedef = named_leaves(state["variables"])

        def value_and_gradients(
            leaves: Variables, arrays: Sequence[Any]
        ) -> tuple[Any, Variables, Any]:
            args, kwargs = arguments.rebuild(arrays)

            def loss(params: Any) -> tuple[Any, Variables]:
                if call_shardings is not None:
                    params = for_calls(case, params, call_shardings)
                params_leaves, _ = named_leaves({"params": params})
                outputs, new_variables = apply({**leaves, **params_leaves}, args, kwargs)
                return loss_of(case, outputs, args), new_variables

            (value, new_variables), gradients = jax.value_and_grad(loss, has_aux=True)(params)
            collections = {path: value for path, value in new_variables.items() if path in leaves}
            return value, {**leaves, **collections}, gradients

        count = case.gradient_accumulation_steps
        if count == 1:
            value, leaves, gradients = value_and_gradients(leaves, arrays)
        else:
            parts = microbatches(arrays, count)
            value, leaves, gradients = _accumulate(value_and_gradients, leaves, params, parts)
        updates, opt_state = optimizer.update(
            gradients, state["opt_state"], params, value=value, grad=gradients
        )
        params_leaves, _ = named_leaves({"params": optax.apply_updates(params, updates)})
        variables = jax.tree.unflatten(treedef, list({**leaves, **params_leaves}.values()))
        return value, {"variables": variables, "opt_state": opt_state}

    return step


def _accumulate(
    value_and_gradients: Callable[..., Any], leaves: Variables, params: Any, parts: list[Any]
) -> tuple[Any, Variables, Any]:
    """The means of the loss and the gradients over micro-batches, and the variables after the last."""

    def one(carry: Any, arrays: list[Any]) -> tuple[Any, Any]:
        leaves, gradient_sums = carry
        value, leaves, gradients = value_and_gradients(leaves, arrays)
        return (leaves, jax.tree.map(jnp.add, gradient_sums, gradients)), value

    zeros = jax.tree.map(jnp.zeros_like, params)
    (leaves, gradient_sums), losses = jax.lax.scan(one, (leaves, zeros), parts)
    count = losses.shape[0]
    return jnp.sum(losses) / count, leaves, jax.tree.map(lambda total: total / count, gradient_sums)
