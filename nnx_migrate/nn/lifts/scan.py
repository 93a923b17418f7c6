"""``linen.scan``: layers stacked along an axis, or one module run over time."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import jax
import jax.numpy as jnp
from flax import nnx
from flax.core.axes_scan import broadcast  # Linen's own: Linen classes may get it
from flax.typing import In

from nnx_migrate.nn.building.factory import Factory
from nnx_migrate.nn.layers.recurrent import _from_front, _to_front
from nnx_migrate.nn.lifts.groups import groups_of
from nnx_migrate.nn.lifts.methods import Methods, options_by_method
from nnx_migrate.nn.lifts.stack_axis import without_axis
from nnx_migrate.nn.lifts.stacked import check_stacked, stacked_class, stacked_factory
from nnx_migrate.nn.lifts.stacking import Stacking, options_of, stacking_of
from nnx_migrate.nn.variables.parts import Parts, hide_captures, take_apart

__all__ = ["Loop", "broadcast", "scan"]

T = TypeVar("T")


def scan(
    target: T,
    *,
    variable_axes: Mapping[Any, int | In[int]] | None = None,
    variable_broadcast: Any = False,
    variable_carry: Any = False,
    split_rngs: Mapping[Any, bool] | None = None,
    in_axes: Any = 0,
    out_axes: Any = 0,
    length: int | None = None,
    reverse: bool = False,
    unroll: int = 1,
    metadata_params: Mapping[Any, Any] | None = None,
    check_constancy_invariants: bool = True,
    _split_transpose: bool = False,
    methods: Methods = None,
) -> T:
    """``target`` in a loop over layers or steps.

    Of a class: a subclass whose ``__call__(carry, *xs)`` is the loop. Of a function ``target(module,
    carry, *xs) -> (carry, ys)``: a function with the same parameters that loops over the steps of
    ``xs``, with a module that exists already; one with ``variable_axes`` is built by
    :func:`nnx_migrate.nn.lifts.stacked`.

    Parameters, their paths and (under :func:`nnx_migrate.nn.build`) their initial values are those
    of ``linen.scan`` (flax 0.12.8, linen/transforms.py and core/lift.py): a collection named in
    ``variable_axes`` holds one array per variable with the steps along that axis, which the body
    sees without it. The loop is one ``jax.lax.scan``; it returns only variables that the body
    changed. The class is called ``Scan<target>``, which is what automatic submodule names count.

    Args:
      target: an ``nnx.Module`` class, a ``functools.partial`` of one, a factory of built-in layers, or
        a function.
      variable_axes: collection (or several) -> axis of its stacked variables; ``flax.typing.In`` of
        an axis (Linen's ``ScanIn``) says that the body must not change them.
      variable_broadcast: collections that all steps share and none changes.
      variable_carry: collections handed from step to step.
      split_rngs: per stream, whether every step draws its own keys.
      in_axes: axis to loop over, for all of ``xs`` or for each; ``broadcast`` passes it whole.
      out_axes: axis along which each output is stacked.
      length: number of steps; needed where variables are stacked.
      metadata_params: ``{nnx.PARTITION_NAME: name}`` names the axis in the variables' metadata.
      check_constancy_invariants: Linen's option; it decides which keys initial values come from.
      methods: of a class, the methods to lift in place of ``__call__``: their names, or a dict that
        gives each its own options.

    Raises:
      TypeError: ``target`` is neither, a function gets no module, or ``methods`` of no class.
      ValueError: a variable is in none of the three groups, a shared one or an input was changed,
        or the number of layers is missing.
    """
    if isinstance(target, functools.partial) and isinstance(target.func, type | Factory):
        options = {name: value for name, value in locals().items() if name != "target"}
        inner = scan(target.func, **options)
        return cast(T, functools.partial(inner, *target.args, **target.keywords))
    if (isinstance(target, type) and not issubclass(target, nnx.Module)) or not callable(target):
        raise TypeError(f"expected scan to get an nnx.Module class or function, found {target!r}")
    given = {name: value for name, value in locals().items() if name in _OPTIONS}
    loops = {name: _loop(**options) for name, options in options_by_method(methods, given).items()}
    stacking = stacking_of(one.stacking for one in loops.values())
    runs = {name: one.run for name, one in loops.items()}
    if isinstance(target, type):
        return cast(T, stacked_class(target, "Scan", stacking, runs))
    if methods is not None:
        raise TypeError(f"expected scan with methods= to get an nnx.Module class, found {target!r}")
    loop = loops["__call__"]
    if isinstance(target, Factory):
        return cast(T, stacked_factory(target, "Scan", stacking, loop.run))
    return cast(T, _of_function(target, loop))


_OPTIONS = tuple(
    name for name in inspect.signature(scan).parameters if name not in ("target", "methods")
)


def _loop(
    *,
    variable_axes: Mapping[Any, int | In[int]] | None = None,
    variable_broadcast: Any = False,
    variable_carry: Any = False,
    split_rngs: Mapping[Any, bool] | None = None,
    in_axes: Any = 0,
    out_axes: Any = 0,
    length: int | None = None,
    metadata_params: Mapping[Any, Any] | None = None,
    check_constancy_invariants: bool = True,
    **options: Any,
) -> Loop:
    """The loop that the options of :func:`scan` describe."""
    stacking = Stacking(
        options_of(variable_axes, _axis_number),
        options_of(split_rngs, bool),
        length,
        options_of(metadata_params, lambda name: name),
        inputs=tuple(
            names for names, axis in (variable_axes or {}).items() if isinstance(axis, In)
        ),
        traces=2 if check_constancy_invariants else 1,
    )
    how = {"reverse": False, "unroll": 1, "_split_transpose": False, **options}
    return Loop(stacking, variable_broadcast, variable_carry, in_axes, out_axes, how)


def _of_function(target: Callable[..., Any], loop: Loop) -> Callable[..., Any]:
    """The loop of a function that gets its module."""

    @functools.wraps(target)
    def looped(module: Any, carry: Any, *xs: Any) -> tuple[Any, Any]:
        if not isinstance(module, nnx.Module):
            raise TypeError(f"expected a scanned function to get an nnx.Module, found {module!r}")
        check_stacked(module, loop.stacking)
        return loop.run(module, target, carry, *xs)

    return looped


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
        parts = take_apart(module)
        groups = groups_of(parts, self.stacking, self.shared, self.carried)
        values = parts.values()
        order = {i: self.stacking.group(parts.variables[i]) for i in groups.stacked}
        layers = {(order[i], i): _moved(axis, values[i]) for i, axis in groups.stacked.items()}
        moved = _with_prefix(_moved, self.in_axes, xs)
        length = self._length(layers, moved)
        keys = groups.split_keys(length)

        def step(state: Any, slices: Any) -> Any:
            handed, carry = state
            layer, drawn, given = slices
            layer = {i: one for (_, i), one in layer.items()}
            given = _with_prefix(_chosen, self.in_axes, xs, given)
            inner = groups.constants | layer | handed | drawn
            copy = parts.assemble(inner, lambda i, m: without_axis(m) if i in layer else m)
            hide_captures(copy, groups.hidden)
            carry, ys = method(copy, carry, *given)
            changed = parts.changed(copy, inner)
            groups.note(parts, changed)
            self._check_inputs(parts, layer.keys() & changed.keys())
            handed = handed | {i: changed[i] for i in handed if i in changed}
            return (handed, carry), (ys, {i: changed[i] for i in layer if i in changed})

        start = {i: values[i] for i in groups.carried}
        if groups.tallied and self.stacking.traces > 1:  # Linen runs the body once before
            first = jax.tree.map(lambda x: x[0], (layers, keys, moved))
            jax.eval_shape(step, (start, carry), first)
            groups.skip_traced(parts)
        (handed, carry), (ys, changed) = jax.lax.scan(
            step, (start, carry), (layers, keys, moved), length=length, **self.options
        )
        parts.put_back(handed)
        parts.put_back({i: _back(groups.stacked[i], one) for i, one in changed.items()})
        groups.advance(parts)
        return carry, _with_prefix(_back, self.out_axes, ys)

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


def _axis_number(axis: int | In[int]) -> int:
    return int(axis.axis if isinstance(axis, In) else axis)


def _with_prefix(function: Callable[..., Any], prefix: Any, *trees: Any) -> Any:
    """``function(axis, *subtrees)`` for every axis of a prefix of the trees."""
    return jax.tree.map(function, prefix, *trees)


def _moved(axis: Any, xs: Any) -> Any:
    """Arrays with the axis to loop over in front; nothing in place of what is passed whole."""
    if axis is broadcast:
        return ()
    return jax.tree.map(lambda x: _to_front(jnp.asarray(x), axis % jnp.ndim(x)), xs)


def _chosen(axis: Any, whole: Any, part: Any) -> Any:
    return whole if axis is broadcast else part


def _back(axis: int, ys: Any) -> Any:
    return jax.tree.map(lambda y: _from_front(y, axis % y.ndim), ys)
