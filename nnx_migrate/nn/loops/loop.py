"""One ``jax.lax.scan`` over the steps of a module."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from flax.core.axes_scan import broadcast  # Linen's own: Linen classes may get it

from nnx_migrate.nn.loops.groups import groups_of
from nnx_migrate.nn.loops.stack_axis import without_axis
from nnx_migrate.nn.loops.stacking import Stacking
from nnx_migrate.nn.streams.linen_streams import lifted_streams
from nnx_migrate.nn.variables.parts import NewVariable, Parts, hide_captures, take_apart
from nnx_migrate.numerics.axes import from_front, to_front


@dataclass(frozen=True)
class Loop:
    """The options of one lifted scan."""

    stacking: Stacking
    broadcast: Any
    carry: Any
    in_axes: Any
    out_axes: Any
    options: Mapping[str, Any]

    def run(
        self, module: nnx.Module, method: Callable[..., Any], carry: Any, *xs: Any
    ) -> tuple[Any, Any]:
        """``method(copy, carry, *slices) -> (carry, ys)`` for every step; see :func:`scan`."""
        with lifted_streams(module, self.stacking.hands_on):
            return self._run(module, method, carry, *xs)

    def _run(
        self, module: nnx.Module, method: Callable[..., Any], carry: Any, *xs: Any
    ) -> tuple[Any, Any]:
        parts = take_apart(module)
        groups = groups_of(parts, self.stacking, self.broadcast, self.carry)
        values = parts.values()
        order = {i: self.stacking.group(parts.variables[i]) for i in groups.stack_axes}
        layers = {
            (order[i], i): _to_front(axis, values[i]) for i, axis in groups.stack_axes.items()
        }
        xs_in_front = _with_prefix(_to_front, self.in_axes, xs)
        length = self._length(layers, xs_in_front)
        keys = groups.split_keys(length)
        new_variables: dict[str, NewVariable] = {}  # what the body makes for one layer

        def step(state: Any, slices: Any) -> Any:
            carry_values, carry = state
            layer, draws, step_inputs = slices
            layer = {i: one for (_, i), one in layer.items()}
            step_inputs = _with_prefix(_step_part, self.in_axes, xs, step_inputs)
            inner = groups.constants | layer | carry_values | draws
            copy = parts.assemble(inner, lambda i, m: without_axis(m) if i in layer else m)
            hide_captures(copy, groups.hidden_types)
            carry, ys = method(copy, carry, *step_inputs)
            made = {
                name: one for name, one in parts.new_variables(copy).items() if self._stacks(one)
            }
            new_variables.update(made)
            changes = parts.changes(copy, inner, made)
            groups.note(parts, changes)
            self._check_inputs(parts, layer.keys() & changes.keys())
            carry_values = carry_values | {i: changes[i] for i in carry_values if i in changes}
            layer = {i: changes[i] for i in layer if i in changes}
            new = {name: one.variable.get_value() for name, one in made.items()}
            return (carry_values, carry), (ys, layer, new)

        start = {i: values[i] for i in groups.carry}
        if groups.tally_streams and self.stacking.traces > 1:  # Linen runs the body once before
            first = jax.tree.map(lambda x: x[0], (layers, keys, xs_in_front))
            jax.eval_shape(step, (start, carry), first)
            groups.skip_draws(parts)
        (carry_values, carry), (ys, changes, made) = jax.lax.scan(
            step, (start, carry), (layers, keys, xs_in_front), length=length, **self.options
        )
        parts.put_back(carry_values)
        parts.put_back({i: _back(groups.stack_axes[i], one) for i, one in changes.items()})
        for name, values in made.items():
            new_variables[name].put(
                module, _back(self.stacking.axis(new_variables[name].variable), values)
            )
        groups.advance(parts)
        return carry, _with_prefix(_back, self.out_axes, ys)

    def _stacks(self, variable: NewVariable) -> bool:
        return self.stacking.axis(variable.variable) is not None

    def _check_inputs(self, parts: Parts, changes: Iterable[int]) -> None:
        for index in changes:
            if self.stacking.is_input(parts.variables[index]):
                path = "/".join(map(str, parts.paths[index]))
                raise ValueError(
                    f"the body of the loop changed the variable '{path}', whose collection is an "
                    "input (In) of the loop: give its axis as a plain number in variable_axes"
                )

    def _length(self, layers: Any, xs_in_front: Any) -> int:
        if self.stacking.length is not None:
            return self.stacking.length
        found = {leaf.shape[0] for leaf in jax.tree.leaves((layers, xs_in_front))}
        if len(found) != 1:
            raise ValueError(
                f"expected one length to scan over, found {sorted(found)}: pass length="
            )
        return int(found.pop())


def _with_prefix(function: Callable[..., Any], prefix: Any, *trees: Any) -> Any:
    """``function(axis, *subtrees)`` for every axis of a prefix of the trees."""
    return jax.tree.map(function, prefix, *trees)


def _to_front(axis: Any, xs: Any) -> Any:
    """Arrays with the axis to loop over in front; nothing in place of what is passed whole."""
    if axis is broadcast:
        return ()
    return jax.tree.map(lambda x: to_front(jnp.asarray(x), axis % jnp.ndim(x)), xs)


def _step_part(axis: Any, whole: Any, part: Any) -> Any:
    return whole if axis is broadcast else part


def _back(axis: Any, ys: Any) -> Any:
    return jax.tree.map(lambda y: from_front(y, axis % y.ndim), ys)
