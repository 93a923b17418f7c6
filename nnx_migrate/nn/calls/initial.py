"""Linen's ``init`` for a module that is built: ``variables_of``, ``variables_with``.

flax 0.12.8: linen/module.py (``Module.init``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, KeysView, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax.extend.core import Var

from nnx_migrate.nn.calls.objects import copied
from nnx_migrate.nn.variables.linen_variables import flat_state, nest
from nnx_migrate.nn.variables.ordering import in_order
from nnx_migrate.nn.variables.sharing import as_made, definitions_in, linen_place, nodes_of
from nnx_migrate.nn.variables.sowing import caught
from nnx_migrate.nn.variables.state import initializing
from nnx_migrate.nn.variables.variables import is_moved_by_init
from nnx_migrate.numerics.known_values import known_values
from nnx_migrate.sharding.boxes import boxed

M = TypeVar("M", bound=nnx.Module)
Path = tuple[str, ...]


def variables_of(model: nnx.Module, *args: Any, **kwargs: Any) -> dict[str, Any]:
    """The variables of ``model`` as Linen's ``init`` returns them: collection -> path -> array.

    Arrays with logical axis names are in boxes, as Linen's are
    (:class:`nnx_migrate.sharding.LogicallyPartitioned`). Random streams are left out. Names are the
    module's attributes, in the order in which they were set. With inputs, a copy of the model is
    called on them as ``init`` calls it: submodules stand in the order in which that call reaches them,
    and the variables that only a call makes (caches of decoding attention, ``nnm.lazy_variable``) are
    among the result; those that Linen's ``init`` updates (all made by ``nnm.variable``) are updated;
    values it sows are there, intermediates aside.
    """
    run = called_on("__call__", args, kwargs) if args or kwargs else None
    return variables_with(model, run)


def called_on(method: str, args: Any, kwargs: Any) -> Callable[[Any], Any]:
    """A trial call of a method of a module, which changes no container of its inputs."""
    return lambda model: getattr(model, method)(*copied(args), **copied(kwargs))


def variables_with(
    model: M,
    run: Callable[[M], Any] | None,
    others: Callable[[], Mapping[Path, Any]] = dict,
) -> dict[str, Any]:
    """`variables_of`, where ``run`` stands for the call of the copy.

    Args:
      others: asked after the call: what stands beside the variables of the module, by collection and path.
    """
    found = flat_state(model, nnx.state(model), boxed)
    if run is None:
        return nest(in_order(found, [model]))
    trace = _trace_call(model, run, found.keys())
    found |= others()
    if not trace.changes:
        return nest(in_order(found, [model], trace.uses, trace.transformed_modules))
    copy, sown = _run_init(model, run, trace.sown)
    made = flat_state(copy, nnx.state(copy), boxed)
    changing_paths = flat_state(copy, nnx.state(copy, lambda _, one: is_moved_by_init(one)))
    found |= {path: made[path] for path in made if path not in found or path in changing_paths}
    return nest(in_order(found | sown, [model, copy], trace.uses, trace.transformed_modules))


@dataclass(frozen=True)
class _CallTrace:
    """What the call of ``init`` does, seen without values; paths are Linen's.

    Attributes:
      uses: its variables, in the order of their first uses.
      transformed_modules: modules that it runs inside of transformations, with the groups that come out of these.
      sown: the collections that it sows into.
      changes: whether it makes, updates or sows anything.
    """

    uses: list[Path] = field(default_factory=list)
    transformed_modules: Mapping[Path, Sequence[Any]] = field(default_factory=dict)
    sown: frozenset[str] = frozenset()
    changes: bool = True


def _trace_call(model: M, run: Callable[[M], Any], paths_before: KeysView[Path]) -> _CallTrace:
    """The call, traced; nothing is known of one that asks for values (``if x.sum() > 0``, ``x[: n.max()]``).

    Args:
      paths_before: where the module has variables before it.
    """
    graphdef, arrays, *rest = nnx.split(model, _is_array, ...)
    values, structure = jax.tree.flatten(arrays)
    places = [path for path, _ in definitions_in(model)]
    facts: dict[str, Any] = {}

    def call(values: list[jax.Array], marks: list[jax.Array]) -> None:
        copy = nnx.merge(graphdef, jax.tree.unflatten(structure, values), *rest, copy=True)
        with initializing(copy) as running:
            running.marks.update(zip(places, marks, strict=True))
            run(copy)
        state = nnx.state(copy)
        makes = flat_state(copy, state).keys() != paths_before
        updates = any(map(is_moved_by_init, jax.tree.leaves(state, is_leaf=_is_variable)))
        facts["changes"] = makes or updates or bool(running.sown)
        facts["sown"] = frozenset(running.sown)
        facts["transformed_modules"] = _paths(copy, running.transformed_modules)

    try:
        with known_values():  # all but what hangs on the variables has values
            jaxpr = jax.make_jaxpr(call)(values, [jnp.zeros(())] * len(places)).jaxpr
    except Exception:  # noqa: BLE001 - whatever a trace raises, the call runs next, and raises what it has to
        return _CallTrace()
    place = linen_place(model)
    paths = [
        tuple(map(str, place(path)))
        for path, one in nnx.to_flat_state(arrays)
        for _ in jax.tree.leaves(one)
    ]
    paths += [(*path, "") for path in places]  # which a mark stands for
    paths_by_variable = dict(zip(jaxpr.invars, paths, strict=True))
    read = (one for equation in jaxpr.eqns for one in equation.invars)
    return _CallTrace(
        [
            paths_by_variable[one]
            for one in read
            if isinstance(one, Var) and one in paths_by_variable
        ],
        **facts,
    )


def _paths(
    model: nnx.Module, parts: Iterable[tuple[nnx.Module, Sequence[Any]]]
) -> dict[Path, Sequence[Any]]:
    """Linen's paths of modules of the model, and of all that they hold; the outermost lift counts."""
    place = linen_place(model)
    groups: dict[int, Sequence[Any]] = {}
    for part, its in parts:
        for _, one in nodes_of(part, as_made):
            groups.setdefault(id(one), its)
    nodes = nodes_of(model, as_made)
    return {place(path): groups[id(one)] for path, one in nodes if id(one) in groups}


def _is_array(path: Any, one: Any) -> bool:
    """Whether a leaf is a variable of Linen's with arrays alone."""
    is_state = isinstance(one, nnx.Variable) and not isinstance(one, nnx.RngState)
    return is_state and all(
        isinstance(leaf, jax.Array | np.ndarray) for leaf in jax.tree.leaves(one)
    )


def _is_variable(one: Any) -> bool:
    return isinstance(one, nnx.Variable)


def _run_init(
    model: M, run: Callable[[M], Any], collections: frozenset[str]
) -> tuple[M, dict[Path, Any]]:
    """A copy of ``model`` after the call of Linen's ``init``, and what the call sowed.

    Which collections are sown into only the call tells: it runs again to catch others than these.
    """
    while True:
        copy = nnx.merge(*nnx.split(model), copy=True)
        with initializing(copy) as call:
            _, sown = caught(copy, functools.partial(run, copy), sorted(collections), {})
        if call.sown <= collections:
            return copy, sown
        collections |= call.sown
