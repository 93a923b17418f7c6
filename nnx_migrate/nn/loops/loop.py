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
from nnx_migrate.nn.variables.parts import Made, Parts, hide_captures, take_apart
from nnx_migrate.numerics.axes import from_front, to_front


@dataclass(frozen=True)
class Loop:
    """The options of one lifted scan."""

    stacking: Stacking
    shared: Any
    carried: Any
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
        groups = groups_of(parts, self.stacking, self.shared, self.carried)
        values = parts.values()
        order = {i: self.stacking.group(parts.variables[i]) for i in groups.stacked}
        layers = {(order[i], i): _moved(axis, values[i]) for i, axis in groups.stacked.items()}
        moved = _with_prefix(_moved, self.in_axes, xs)
        length = self._length(layers, moved)
        keys = groups.split_keys(length)
        late: dict[str, Made] = {}  # what the body makes for one layer

        def step(state: Any, slices: Any) -> Any:
            handed, carry = state
            layer, drawn, given = slices
            layer = {i: one for (_, i), one in layer.items()}
            given = _with_prefix(_chosen, self.in_axes, xs, given)
            inner = groups.constants | layer | handed | drawn
            copy = parts.assemble(inner, lambda i, m: without_axis(m) if i in layer else m)
            hide_captures(copy, groups.hidden)
            carry, ys = method(copy, carry, *given)
            made = {name: one for name, one in parts.made(copy).items() if self._stacks(one)}
            late.update(made)
            changed = parts.changed(copy, inner, made)
            groups.note(parts, changed)
            self._check_inputs(parts, layer.keys() & changed.keys())
            handed = handed | {i: changed[i] for i in handed if i in changed}
            layer = {i: changed[i] for i in layer if i in changed}
            new = {name: one.variable.get_value() for name, one in made.items()}
            return (handed, carry), (ys, layer, new)

        start = {i: values[i] for i in groups.carried}
        if groups.tallied and self.stacking.traces > 1:  # Linen runs the body once before
            first = jax.tree.map(lambda x: x[0], (layers, keys, moved))
            jax.eval_shape(step, (start, carry), first)
            groups.skip_traced(parts)
        (handed, carry), (ys, changed, made) = jax.lax.scan(
            step, (start, carry), (layers, keys, moved), length=length, **self.options
        )
        parts.put_back(handed)
        parts.put_back({i: _back(groups.stacked[i], one) for i, one in changed.items()})
        for name, values in made.items():
            late[name].put(module, _back(self.stacking.axis(late[name].variable), values))
        groups.advance(parts)
        return carry, _with_prefix(_back, self.out_axes, ys)

    def _stacks(self, made: Made) -> bool:
        return self.stacking.axis(made.variable) is not None

    def _check_inputs(self, parts: Parts, changed: Iterable[int]) -> None:
        for index in changed:
            if self.stacking.is_input(parts.variables[index]):
                path = "/".join(map(str, parts.paths[index]))
                raise ValueError(
                    f"the body of the loop changed the variable '{path}', whose collection is an "
                    "input (In) of the loop: give its axis as a plain number in variable_axes"
                )

    def _length(self, layers: Any, moved: Any) -> int:
        if self.stacking.length is not None:
            return self.stacking.length
        found = {leaf.shape[0] for leaf in jax.tree.leaves((layers, moved))}
        if len(found) != 1:
            raise ValueError(
                f"expected one length to scan over, found {sorted(found)}: pass length="
            )
        return int(found.pop())


def _with_prefix(function: Callable[..., Any], prefix: Any, *trees: Any) -> Any:
    """``function(axis, *subtrees)`` for every axis of a prefix of the trees."""
    return jax.tree.map(function, prefix, *trees)


def _moved(axis: Any, xs: Any) -> Any:
    """Arrays with the axis to loop over in front; nothing in place of what is passed whole."""
    if axis is broadcast:
        return ()
    return jax.tree.map(lambda x: to_front(jnp.asarray(x), axis % jnp.ndim(x)), xs)


def _chosen(axis: Any, whole: Any, part: Any) -> Any:
    return whole if axis is broadcast else part


def _back(axis: Any, ys: Any) -> Any:
    return jax.tree.map(lambda y: from_front(y, axis % y.ndim), ys)
