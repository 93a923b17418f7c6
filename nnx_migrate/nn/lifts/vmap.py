"""``linen.vmap``: members of an ensemble, or one module over a batch axis."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import jax
from flax import nnx

from nnx_migrate.nn.lifts.layer_stacks import require_one_layer, stacked_class
from nnx_migrate.nn.loops.groups import groups_of
from nnx_migrate.nn.loops.stack_axis import without_axis
from nnx_migrate.nn.loops.stacking import Stacking, options_of
from nnx_migrate.nn.streams.linen_streams import lifted_streams
from nnx_migrate.nn.variables.parts import NewVariable, hide_captures, take_apart

T = TypeVar("T")


def vmap(
    target: T,
    *,
    variable_axes: Mapping[Any, int | None] | None = None,
    split_rngs: Mapping[Any, bool] | None = None,
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_size: int | None = None,
    axis_name: Any = None,
    spmd_axis_name: Any = None,
    metadata_params: Mapping[Any, Any] | None = None,
) -> T:
    """A subclass of ``target`` whose ``__call__(*args)`` is one ``jax.vmap``.

    Of a function ``target(module, *args)``: a function with the same parameters that maps over
    ``args``, with a module that exists already, whose variables it does not stack.

    Parameters, their paths and (under :func:`nnx_migrate.nn.build`) their initial values are those
    of ``linen.vmap`` (flax 0.12.8, linen/transforms.py and core/lift.py). The class is called
    ``Vmap<target>``, which is what automatic submodule names count.

    Args:
      target: an ``nnx.Module`` class, a ``functools.partial`` of one, or a function.
      variable_axes: collection (or several) -> axis of its stacked variables; None where all
        lanes share the variables.
      split_rngs: per stream, whether every lane draws its own keys.
      in_axes, out_axes, axis_name, spmd_axis_name: as in ``jax.vmap``.
      axis_size: number of lanes; needed where variables are stacked.
      metadata_params: ``{nnx.PARTITION_NAME: name}`` names the axis in the variables' metadata.

    Raises:
      TypeError: ``target`` is neither, or a function gets no module.
      ValueError: a variable is in no group, a shared one was changed, the size is missing, or a
        function has variables to stack.
    """
    if isinstance(target, functools.partial):
        options = {name: value for name, value in locals().items() if name != "target"}
        inner = vmap(target.func, **options)
        return cast(T, functools.partial(inner, *target.args, **target.keywords))
    if (isinstance(target, type) and not issubclass(target, nnx.Module)) or not callable(target):
        raise TypeError(f"expected vmap to get an nnx.Module class or function, found {target!r}")
    lanes = _lanes(**{name: value for name, value in locals().items() if name in _OPTIONS})
    if isinstance(target, type):
        groups = tuple(variable_axes or ())
        return cast(T, stacked_class(target, "Vmap", lanes.stacking, lanes.run, groups))
    require_one_layer("vmap", lanes.stacking)
    function: Callable[..., Any] = target

    @functools.wraps(function)
    def run_lanes(module: Any, *args: Any) -> Any:
        if not isinstance(module, nnx.Module):
            raise TypeError(f"expected a mapped function to get an nnx.Module, found {module!r}")
        return lanes.run(module, function, *args)

    return cast(T, run_lanes)


_OPTIONS = tuple(name for name in inspect.signature(vmap).parameters if name != "target")


def _lanes(
    *,
    variable_axes: Mapping[Any, int | None] | None = None,
    split_rngs: Mapping[Any, bool] | None = None,
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_size: int | None = None,
    metadata_params: Mapping[Any, Any] | None = None,
    **named: Any,
) -> Lanes:
    """The map that the options of :func:`vmap` describe."""
    axes = options_of(variable_axes, lambda axis: axis)
    stacking = Stacking(
        tuple((names, axis) for names, axis in axes if axis is not None),
        options_of(split_rngs, bool),
        axis_size,
        options_of(metadata_params, lambda name: name),
        parallel=True,
    )
    broadcast_names = tuple(names for names, axis in axes if axis is None)
    return Lanes(stacking, broadcast_names, in_axes, out_axes, {"axis_name": None, **named})


@dataclass(frozen=True)
class Lanes:
    """The options of one lifted vmap."""

    stacking: Stacking
    broadcast: tuple[Any, ...]
    in_axes: Any
    out_axes: Any
    options: Mapping[str, Any]

    def run(self, module: nnx.Module, method: Callable[..., Any], *args: Any) -> Any:
        """``method(copy, *args)`` in every lane; see :func:`vmap`."""
        with lifted_streams(module, self.stacking.hands_on):
            return self._run(module, method, *args)

    def _run(self, module: nnx.Module, method: Callable[..., Any], *args: Any) -> Any:
        parts = take_apart(module)
        broadcast_names = tuple(one for names in self.broadcast for one in _flat(names))
        groups = groups_of(
            parts, self.stacking, True if True in broadcast_names else broadcast_names
        )
        values = parts.values()
        axes = sorted(set(groups.stack_axes.values()))
        lanes = {
            axis: {i: values[i] for i, its in groups.stack_axes.items() if its == axis}
            for axis in axes
        }
        prefix = {axis: axis for axis in axes}
        keys = groups.split_keys(self._size(lanes, args))
        new_variables: dict[str, NewVariable] = {}  # what the method makes in one lane

        def lane(lanes: Any, draws: Any, args: Any) -> Any:
            layer = {i: one for group in lanes.values() for i, one in group.items()}
            inner = groups.constants | layer | draws
            copy = parts.assemble(inner, lambda i, m: without_axis(m) if i in layer else m)
            hide_captures(copy, groups.hidden_types)
            outputs = method(copy, *args)
            made = self._new_variables(parts.new_variables(copy))
            every = {name: one for group in made.values() for name, one in group.items()}
            new_variables.update(every)
            changes = parts.changes(copy, inner, every)
            groups.note(parts, changes)
            back = {
                axis: {i: changes[i] for i in group if i in changes}
                for axis, group in lanes.items()
            }
            return outputs, back, jax.tree.map(_value, made, is_leaf=_is_new_variable)

        run_all = jax.vmap(
            lane,
            in_axes=(prefix, 0, self.in_axes),
            out_axes=(self.out_axes, prefix, {axis: axis for axis in self._new_variables({})}),
            axis_size=self.stacking.length,
            **self.options,
        )
        outputs, changes, made = run_all(lanes, keys, args)
        for group in changes.values():
            parts.put_back(group)
        for group in made.values():
            for name, value in group.items():
                new_variables[name].put(module, value)
        groups.advance(parts)
        return outputs

    def _new_variables(self, every: Mapping[str, NewVariable]) -> dict[int, dict[str, NewVariable]]:
        """What the method made in a lane, by the axis along which it is stacked: caches."""
        axes = {axis for _, axis in self.stacking.axes}
        return {
            axis: {k: one for k, one in every.items() if self.stacking.axis(one.variable) == axis}
            for axis in sorted(axes)
        }

    def _size(self, lanes: Any, args: Any) -> int:
        if self.stacking.length is not None:
            return self.stacking.length
        prefix = {axis: axis for axis in lanes}

        def size(axis: int | None, tree: Any) -> set[int]:
            return set() if axis is None else {x.shape[axis] for x in jax.tree.leaves(tree)}

        found = jax.tree.map(
            size, (prefix, self.in_axes), (lanes, args), is_leaf=lambda axis: axis is None
        )
        sizes = set().union(*jax.tree.leaves(found, is_leaf=lambda one: isinstance(one, set)))
        if len(sizes) != 1:
            raise ValueError(
                f"expected one size to map over, found {sorted(sizes)}: pass axis_size="
            )
        return int(sizes.pop())


def _flat(names: Any) -> tuple[Any, ...]:
    return names if isinstance(names, tuple) else (names,)


def _is_new_variable(one: Any) -> bool:
    return isinstance(one, NewVariable)


def _value(one: NewVariable) -> Any:
    return one.variable.get_value()
