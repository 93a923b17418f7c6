"""The NNX side in training: shardings from the metadata of its Variables."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec

from nnx_migrate.parity.case import Arguments, ParityCase, call_target
from nnx_migrate.parity.evaluation.linen_names import LinenNames, bare, path_of_attribute
from nnx_migrate.parity.evaluation.measure import Variables
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
from nnx_migrate.sharding import construct_named_sharding, resolve_spec
from nnx_migrate.sharding.annotations import Annotation, annotation
from nnx_migrate.sharding.placing import AnyMesh

MODEL, OPTIMIZER = 0, 1  # places in the pair that is split into graph and state


def begin_nnx(
    case: ParityCase,
    module: nnx.Module,
    names: LinenNames,
    variables: Variables | None,
    arguments: Arguments,
    mesh: AnyMesh | None,
) -> Training:
    """Lay the training state of an NNX module out as ``construct_named_sharding`` says.

    The state is the ``nnx.State`` of ``(module, nnx.Optimizer)`` with the values of ``variables``
    (by Linen path), Variables and their metadata included. Without ``variables`` it is abstract,
    as ``module`` and, if need be, the mesh are.
    """
    graph, parameters = nnx.split(module)
    graphdefs: list[Any] = []

    def create(parameters: Any) -> Any:
        copy = nnx.merge(graph, parameters, copy=True)
        pair: Any = (copy, nnx.Optimizer(copy, optimizer_of(case), wrt=nnx.Param))
        graphdef, state = nnx.split(pair)
        graphdefs.append(graphdef)
        return state

    if variables is None:
        state = jax.eval_shape(create, parameters)
    else:
        state = create(names.with_values(parameters, variables))
    graphdef = graphdefs[-1]
    if mesh is not None and is_laid_out(case, mesh):
        shardings = storage_shardings(
            case, construct_named_sharding(state, mesh, case.axis_rules), state
        )
        if variables is None:
            state = abstract_arrays(state, shardings)
        else:
            state = jax.tree.map(jax.device_put, state, shardings)

    def layouts(state: Any) -> Layouts:
        assert mesh is not None
        return _Reader(case, names, mesh).layouts(state)

    def variables_of(state: Any) -> Variables:
        flat = nnx.to_flat_state(state)
        model = [(path[1:], variable) for path, variable in flat if path[0] == MODEL]
        return names.variables(nnx.from_flat_state(model))[0]

    return Training(
        state,
        layouts,
        variables_of,
        _step(case, graphdef, arguments, mesh),
        functools.partial(_named, names),
        functools.partial(_with_named_values, names),
    )


def names_of(names: LinenNames, state: Any) -> dict[str, tuple[str | None, ...]]:
    """The axis names of a model's variables that have any, by Linen's path."""
    found: dict[str, tuple[str | None, ...]] = {}
    for path, variable in nnx.to_flat_state(state):
        prefix = names.path(path, variable)
        if prefix is None:
            continue
        notes = annotation(variable.get_metadata())
        for name, array in named_leaves(variable.get_value())[0].items():
            one = logical_names(_names_of(notes, np.ndim(array)))
            if one is not None:
                found[_join_path(prefix, name)] = one
    return found


def _names_of(notes: Annotation, rank: int) -> tuple[Any, ...] | PartitionSpec | None:
    """The names of axes of one array; those of a mesh where it has a sharding."""
    names = notes.names_of(rank)
    return names.spec if isinstance(names, NamedSharding) else names


def _named(names: LinenNames, state: Any) -> Variables:
    return {
        _join_path(prefix, name): array
        for prefix, _, variable in _entries(names, state)
        if prefix is not None
        for name, array in named_leaves(variable.get_value())[0].items()
    }


def _with_named_values(names: LinenNames, state: Any, named: Variables) -> Any:
    """The state with the arrays of ``named``; abstract ones without a counterpart become zeros."""

    def values(prefix: str | None, variable: Any) -> Any:
        if prefix is None:
            return jax.tree.map(_concrete, variable.get_value())
        paths, treedef = named_leaves(variable.get_value())
        return jax.tree.unflatten(treedef, [named[_join_path(prefix, name)] for name in paths])

    return nnx.from_flat_state(
        (path, variable.replace(values(prefix, variable)))
        for prefix, path, variable in _entries(names, state)
    )


def _concrete(array: Any) -> Any:
    is_abstract = isinstance(array, jax.ShapeDtypeStruct)
    return jnp.zeros(array.shape, array.dtype) if is_abstract else array


def _join_path(prefix: str, name: str) -> str:
    return f"{prefix}/{name}" if name else prefix


def _entries(names: LinenNames, state: Any) -> list[tuple[str | None, tuple[Any, ...], Any]]:
    """Linen's path, the own path and the variable; the first is None without a counterpart there."""
    flat = list(nnx.to_flat_state(state))
    parameters = {path[1:] for path, _ in flat if path[0] == MODEL}
    return [(_linen_path(names, path, one, parameters), path, one) for path, one in flat]


def _linen_path(
    names: LinenNames, path: tuple[Any, ...], variable: Any, parameters: set[tuple[Any, ...]]
) -> str | None:
    if path[0] == MODEL:
        return names.path(path[1:], variable)
    kind, *rest = path[1:]
    if kind != "opt_state":
        return None  # the count of steps, which in Linen is not the optimizer's
    places = [place for place in range(len(rest)) if tuple(rest[place:]) in parameters]
    if not places:
        return path_of_attribute((kind, *rest))
    attribute = path_of_attribute(tuple(rest[places[0] :]))
    own = (kind, *rest[: places[0]], names.linen_module_path(attribute))
    return path_of_attribute(own)


class _Reader:
    """Reads layouts off a state: by the metadata it has now, not by what it once had."""

    def __init__(self, case: ParityCase, names: LinenNames, mesh: AnyMesh) -> None:
        self._case = case
        self._rules = tuple(case.axis_rules or ())
        self._names = names
        self._mesh = mesh

    def layouts(self, state: Any) -> Layouts:
        shardings = dict(
            nnx.to_flat_state(
                storage_shardings(
                    self._case,
                    construct_named_sharding(state, self._mesh, self._rules),
                    state,
                )
            )
        )
        found: Layouts = {}
        for prefix, path, variable in _entries(self._names, state):
            if prefix is not None:
                found |= self._leaves(prefix, variable, shardings[path])
        return found

    def _leaves(self, prefix: str, variable: Any, named_shardings: Any) -> Layouts:
        notes = annotation(variable.get_metadata())
        arrays, _ = named_leaves(variable.get_value())
        shardings, _ = named_leaves(named_shardings.get_value())
        found: Layouts = {}
        for name, array in arrays.items():
            names = _names_of(notes, np.ndim(array))
            # Axes of size 1 included; a PartitionSpec is resolved already.
            is_resolved = isinstance(names, PartitionSpec)
            spec = names if is_resolved else resolve_spec(names, (*notes.rules, *self._rules))
            found[_join_path(prefix, name)] = ArrayLayout(
                rank=np.ndim(array),
                names=logical_names(names),
                spec=layout_of(spec or ()),
                sharding=layout_on(shardings[name]),
                placed=placement_of(array, layout_on(shardings[name])),
                bytes=bytes_on(array, shardings[name]),
            )
        return found


def _step(
    case: ParityCase, graphdef: Any, arguments: Arguments, mesh: AnyMesh | None
) -> Callable[..., Any]:
    def step(state: Any, arrays: Sequence[Any]) -> tuple[Any, Any]:
        # copy=True: variables must not be shared between trace levels.
        pair: Any = nnx.merge(graphdef, state, copy=True)
        model, optimizer = pair
        parts: Any = nnx.split(model)
        graph, before = parts
        paths = {path for path, _ in nnx.to_flat_state(before)}

        gathered = case.zero1 and mesh is not None and is_laid_out(case, mesh)

        def value_and_gradients(old_state: Any, arrays: Sequence[Any]) -> tuple[Any, Any, Any]:
            args, kwargs = arguments.rebuild(arrays)
            params, rest = nnx.split_state(old_state, nnx.Param, ...)

            def loss(params: Any) -> tuple[Any, Any]:
                if gathered and mesh is not None:
                    wanted = construct_named_sharding(params, mesh, case.axis_rules)
                    params = for_calls(case, params, wanted)
                copy = nnx.merge(graph, params, rest, copy=True)
                outputs = bare(call_target(case, copy)(*args, **kwargs))
                # All of the state, parameters too: a call that spoils their metadata shows.
                return loss_of(case, outputs, args), _without_new_variables(nnx.state(copy), paths)

            (value, after), gradients = jax.value_and_grad(loss, has_aux=True)(params)
            return value, _with_values(after, params) if gathered else after, gradients

        count = case.gradient_accumulation_steps
        if count == 1:
            value, after, gradients = value_and_gradients(before, arrays)
        else:
            parts = microbatches(arrays, count)
            value, after, gradients = _accumulate(value_and_gradients, before, parts)
        model = nnx.merge(graph, after, copy=True)
        optimizer.update(model, gradients, value=value, grad=gradients)
        return value, nnx.state((model, optimizer))

    return step


def _accumulate(
    value_and_gradients: Callable[..., Any], state: Any, parts: list[Any]
) -> tuple[Any, Any, Any]:
    """The loss and the gradients, each its mean over micro-batches, and the state that the last left.

    All of it is carried, parameters too: a call that spoils their metadata ends the scan.
    """

    def body(carry: tuple[Any, Any], part: list[Any]) -> tuple[tuple[Any, Any], Any]:
        state, total = carry
        value, after, gradients = value_and_gradients(state, part)
        return (after, jax.tree.map(jnp.add, total, gradients)), value

    nothing = jax.tree.map(jnp.zeros_like, nnx.filter_state(state, nnx.Param))
    (after, total), values = jax.lax.scan(body, (state, nothing), parts)
    number = len(values)
    return jnp.sum(values) / number, after, jax.tree.map(lambda one: one / number, total)


def _with_values(state: Any, params: Any) -> Any:
    """The state with parameters as they were stored: those of the call are whole over ``data``."""
    values = {path: variable.get_value() for path, variable in nnx.to_flat_state(params)}
    return nnx.from_flat_state(
        (path, variable.replace(values[path]) if path in values else variable)
        for path, variable in nnx.to_flat_state(state)
    )


def _without_new_variables(state: Any, paths: set[tuple[Any, ...]]) -> Any:
    """The state without what the call has added: sown values are no part of training."""
    entries = [(path, variable) for path, variable in nnx.to_flat_state(state) if path in paths]
    return nnx.from_flat_state(entries)
