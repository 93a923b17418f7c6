"""Linen's functional calls for a migrated module: ``bind``, ``apply``.

``model.init(key, x)`` becomes ``variables_of(build(Model, ..., rngs=key), x)`` (:mod:`nnx_migrate.nn.calls.initial`) and ``model.apply(v, x)``
becomes ``apply(model, v, x)``, with Linen's layout of variables (collection -> scope path -> array),
its arguments and its return convention. ``apply`` never changes ``model``: it merges a copy of it, so
it works under ``jax.jit``, ``jax.grad`` and ``jax.vmap`` like Linen's.

flax 0.12.8: linen/module.py (``Module.init``, ``Module.apply``), core/scope.py (keys of streams).
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from flax import nnx
from flax.core.scope import in_filter

from nnx_migrate.nn.calls.bridging import give_variables, has_variables
from nnx_migrate.nn.calls.cache_values import attach, trees_by_owner
from nnx_migrate.nn.calls.objects import tracer_holders
from nnx_migrate.nn.streams.linen_streams import keys_of, set_streams
from nnx_migrate.nn.variables import errors
from nnx_migrate.nn.variables.deferred_init import is_uninitialized
from nnx_migrate.nn.variables.linen_variables import flat_state, leaves, nest
from nnx_migrate.nn.variables.missing import Missing, is_missing
from nnx_migrate.nn.variables.sharing import linen_place, modules_in
from nnx_migrate.nn.variables.sowing import caught
from nnx_migrate.nn.variables.state import Running, running
from nnx_migrate.nn.variables.variables import collection_of, is_moved_by_init
from nnx_migrate.numerics.known_values import known_values
from nnx_migrate.sharding.boxes import is_axis_metadata, unbox

M = TypeVar("M", bound=nnx.Module)
Path = tuple[str, ...]


def abstract(build: Callable[..., M], *args: Any, **options: Any) -> M:
    """``build(*args, **options, rngs=...)`` without values: all that :func:`apply` needs.

    Stands for a Linen module that is only ever applied to variables made elsewhere. Arrays that are no
    variables have their values, and so have those that other objects hold: a table of angles.
    """

    def make(key: jax.Array) -> M:
        return build(*args, **options, rngs=nnx.Rngs(key))

    # In a trace around this call nothing is computed unless the module keeps it.
    for context in (known_values, jax.ensure_compile_time_eval):
        with context():  # all but what hangs on the key
            model, has_tracer = _without_values(make)
        if not has_tracer:
            return model
    # What it keeps is computed from values of the call around it, which only the trace of that has.
    graphdef, variables, *others = nnx.split(make(jax.random.key(0)), nnx.Variable, ...)
    return nnx.merge(graphdef, jax.eval_shape(lambda: variables), *others)


def _without_values(make: Callable[[jax.Array], M]) -> tuple[M, bool]:
    """The module with variables that have no values, and whether anything else is of the trace."""
    parts: list[Any] = []

    def run(key: jax.Array) -> Any:
        model = make(key)
        graphdef, variables, *others = nnx.split(model, nnx.Variable, ...)
        parts[:] = graphdef, others, any(tracer_holders(model))
        return variables

    # Of a key, too, only the kind: a trace around this call has no operation of it then.
    variables = jax.eval_shape(run, jax.eval_shape(jax.random.key, 0))
    graphdef, others, has_tracer = parts
    return nnx.merge(graphdef, variables, *others), has_tracer


def bind(model: M, values: Mapping[str, Any], rngs: Any = None) -> M:
    """A copy of ``model`` that holds ``values`` and draws from ``rngs`` (Linen's ``model.bind``).

    Raises:
      ValueError: as :func:`apply`.
    """
    bound = _merge(model, values, mutable=True)
    set_streams(bound, rngs)
    return bound


def apply(
    model: nnx.Module,
    values: Mapping[str, Any],
    /,
    *args: Any,
    rngs: Any = None,
    method: Callable[..., Any] | str | None = None,
    mutable: Any = False,
    scope_path: Path = (),
    draws: dict[Any, int] | None = None,
    is_init: bool = False,
    is_again: bool = False,
    new_paths: Collection[Path] = (),
    **kwargs: Any,
) -> Any:
    """``model.apply(values, *args, ...)`` of Linen.

    Args:
      model: the module; it is not changed.
      values: collection -> path -> array. A box is opened: under a mesh its array is constrained by
        its names, as Linen's ``apply`` does, and what the call changes comes back in it. Variables the model does not have are ignored. A variable
        other than a parameter may be missing in a mutable collection: it starts as in ``model``.
      rngs: a key, or keys by stream. Streams of dropout and the like draw Linen's own keys, so
        that masks are Linen's, inside ``nnm.scan`` too; in other loops over
        layers they are others.
      method: a method by name, the bound method of any instance, or a function of the module.
      mutable: which collections the call may change: bool, name, names or ``DenyList``.
      scope_path: where the model stands in the Linen model whose call this is part of.
      draws: how many keys it drew in that call before, by path and stream; updated.
      is_init: whether that call is Linen's ``init``, where layers start caches and average nothing,
        and what is changed is only what ``init`` updates or sows.
      is_again: whether an earlier call of that ``init`` made the variables.
      new_paths: those of ``values`` that this call makes.

    Returns:
      The output; with ``mutable`` other than False, ``(output, changes)`` where ``changes`` holds
      every mutable collection, values sown among them.

    Raises:
      ValueError: a variable that the call uses is missing or has another shape, or the call changed a
        collection that is not mutable; each is Linen's error, too (`nnx_migrate.nn.variables.errors`).
      flax.errors.InvalidRngError: a stream is drawn from that ``rngs`` lacks.
    """
    collections = _sown_into(mutable)
    while True:
        copy = _merge(model, values, mutable, is_part=bool(scope_path))
        draw_counts = {**(_keys_of_params(copy, scope_path) if is_init else {}), **(draws or {})}
        tallies = set_streams(copy, rngs, scope_path, draw_counts)
        before = _flat_variables(copy)
        here = Running(
            mutable,
            frozenset(values),
            keys_of(rngs),
            is_init,
            is_again,
            {*new_paths, *(one for one in before if mutable and not _look_up(values, one)[0])},
            module=copy,
            places={id(one): path for path, one in modules_in(copy)} if mutable else {},
            trees=trees_by_owner(copy, values),
        )
        call = functools.partial(_call, here, _method(copy, method), args, kwargs)
        start = _sown_before({*here.places.values()}, values, collections)
        outputs, sown = caught(copy, call, sorted(collections), start)
        if here.sown <= collections:
            break
        collections |= here.sown  # only the call tells: it runs again to catch them
    if draws is not None:
        draws.update(tallies.below(()))
    after = flat_state(copy, nnx.state(copy, lambda _, one: not is_init or is_moved_by_init(one)))
    after |= {path: one for path, one in sown.items() if one is not start.get(path)}
    _check_unchanged(before, after, mutable, values)
    if mutable is False:
        return outputs
    return outputs, _changes(after, values, here)


def _call(here: Running, method: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    with running(here):
        return method(*args, **kwargs)


def _changes(after: Mapping[Path, Any], values: Mapping[str, Any], call: Running) -> dict[str, Any]:
    """Every mutable collection after the call, in the boxes in which it was given."""
    extra = {name: values[name] for name in values if in_filter(call.mutable, name)}
    changes = {
        key: _rebox(values, key, value)
        for key, value in after.items()
        if in_filter(call.mutable, key[0]) and not is_missing(value)
    }
    return {
        **{name: dict(value) for name, value in extra.items()},
        **nest(_in_order(changes, extra, call)),
    }


# ---- variables


def _flat_variables(model: nnx.Module) -> dict[Path, Any]:
    return flat_state(model, nnx.state(model))


def _look_up(values: Mapping[str, Any], path: Path) -> tuple[bool, Any]:
    found: Any = values
    for name in path:
        if not isinstance(found, Mapping) or name not in found:
            return False, None
        found = found[name]
    return True, found.get_value() if isinstance(found, nnx.Variable) else found


def _rebox(values: Mapping[str, Any], path: Path, value: Any) -> Any:
    """A value that the call changed, in the box in which it was given."""
    _, old_value = _look_up(values, path)
    if isinstance(old_value, dict) and _is_same(value, old_value):
        return old_value  # a copy of a module has the keys of dicts in another order
    return old_value.replace_boxed(value) if is_axis_metadata(old_value) else value


def _merge(model: M, values: Mapping[str, Any], mutable: Any, *, is_part: bool = False) -> M:
    """A copy of ``model`` with the given variables; of a part, those of its scope."""
    value_for = functools.partial(_value_for, model, values, mutable=mutable, is_part=is_part)
    graphdef, state = nnx.split(model)
    place = linen_place(model)
    entries = []
    for path, one in nnx.to_flat_state(state):
        if isinstance(one, nnx.RngState):
            one = _concrete(one)
        elif isinstance(one, nnx.Variable):
            one = one.replace(value_for(one, tuple(map(str, place(path)))))
        entries.append((path, one))
    copy = nnx.merge(graphdef, nnx.from_flat_state(entries), copy=True)
    _fill_bridges(copy, values)
    attach(copy, values)
    return copy


def _keys_of_params(model: nnx.Module, above: Path) -> dict[tuple[Path, str], int]:
    """How many keys Linen's ``init`` drew for the parameters of each module: calls draw the next ones."""
    place = linen_place(model)
    owners = ((path, one) for path, one in nnx.iter_graph(model) if isinstance(one, nnx.Module))
    return {
        ((*above, *map(str, place(path))), "params"): sum(
            type(one) is nnx.Param for one in vars(owner).values()
        )
        for path, owner in owners
    }


def _fill_bridges(model: nnx.Module, values: Mapping[str, Any]) -> None:
    """Give bridges without variables those that are given for their paths."""
    place = linen_place(model)
    for path, one in list(nnx.iter_graph(model)):
        if isinstance(one, nnx.bridge.ToNNX) and not has_variables(one):
            names = tuple(map(str, place(path)))
            trees = {name: _look_up(values, (name, *names)) for name in values}
            give_variables(one, {name: tree for name, (found, tree) in trees.items() if found})


def _concrete(one: Any) -> Any:
    """Random state of an abstract model needs a value to be merged; the streams are set below."""
    value = one.get_value()
    if not isinstance(value, jax.ShapeDtypeStruct):
        return one
    if jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        key = jax.random.key(0)
        return one.replace(jax.random.split(key, value.shape) if value.shape else key)
    return one.replace(jnp.zeros(value.shape, value.dtype))


def _value_for(
    model: nnx.Module,
    values: Mapping[str, Any],
    one: nnx.Variable[Any],
    path: Path,
    *,
    mutable: Any,
    is_part: bool,
) -> Any:
    collection, name = collection_of(type(one)), "/".join(path)
    own = one.get_value()
    found, value = _look_up(values, (collection, *path))
    if not found:
        is_abstract = any(isinstance(x, jax.ShapeDtypeStruct) for x in jax.tree.leaves(own))
        if collection == "params" or is_abstract or not in_filter(mutable, collection):
            return Missing(
                f"{type(model).__name__} has the variable '{name}' in collection '{collection}', "
                f"which the given variables lack: found collections {sorted(values)}",
                _not_found(values, collection, is_part=is_part),
            )
        return own
    value = unbox(value)
    expected, shape = _shapes(own), _shapes(value)
    # As in Linen, where only `param` compares shapes: a running mean may grow axes, a cache its batch.
    if collection == "params" and expected != shape and not is_uninitialized(one):
        return Missing(
            f"expected '{collection}' variable '{name}' of {type(model).__name__} to have the shape "
            f"{expected}, found {shape}",
            errors.ScopeParamShapeError,
        )
    return value


def _not_found(values: Mapping[str, Any], collection: str, *, is_part: bool) -> type[ValueError]:
    """The error that Linen has for a variable that was not given: it looks whether the whole model has any."""
    if collection not in values or not (values[collection] or is_part):
        return errors.ScopeCollectionNotFound
    return (
        errors.ScopeParamNotFoundError
        if collection == "params"
        else errors.ScopeVariableNotFoundError
    )


def _shapes(value: Any) -> Any:
    shapes = [tuple(jnp.shape(leaf)) for leaf in jax.tree.leaves(value)]
    return shapes[0] if len(shapes) == 1 else shapes


def _check_unchanged(
    before: Mapping[Path, Any], after: Mapping[Path, Any], mutable: Any, values: Mapping[str, Any]
) -> None:
    for path, value in after.items():
        if in_filter(mutable, path[0]):
            continue
        # A dict that was given is a variable once the call asks for it.
        old_value = before[path] if path in before else _look_up(values, path)[1]
        if not _is_same(value, old_value):
            raise errors.ModifyScopeVariableError(
                f"the call changed '{'/'.join(path[1:])}' in collection '{path[0]}', which is not "
                f"mutable: pass mutable=['{path[0]}'] and keep what apply returns"
            )


def _is_same(value: Any, before: Any) -> bool:
    """Whether nothing was assigned: sown values are tuples, which NNX makes anew."""
    one, other = jax.tree.leaves(value), jax.tree.leaves(before)
    return len(one) == len(other) and all(map(operator.is_, one, other))


# ---- the call


def _method(module: nnx.Module, method: Callable[..., Any] | str | None) -> Callable[..., Any]:
    if method is None:
        return module
    if isinstance(method, str):
        return getattr(module, method)  # type: ignore[no-any-return]
    function = getattr(method, "__func__", method)
    return lambda *args, **kwargs: function(module, *args, **kwargs)


def _sown_into(mutable: Any) -> frozenset[str]:
    """The collections that the call may fill by sowing, as far as ``mutable`` names them."""
    if isinstance(mutable, str):
        names = {mutable}
    elif isinstance(mutable, (list, tuple, set, frozenset)):
        names = set(mutable)
    else:
        names = {"intermediates"} if in_filter(mutable, "intermediates") else set()
    return frozenset(names - {"params"})


def _in_order(
    changes: Mapping[Path, Any], values: Mapping[str, Any], call: Running
) -> dict[Path, Any]:
    """What changed as Linen lists it: as it was given, then in the order in which the call made it."""
    places: dict[Path, int] = {}
    for collection, tree in values.items():
        for path, _ in leaves(tree, (collection,)) if isinstance(tree, Mapping) else ():
            for end in range(2, len(path) + 1):  # a variable may hold a dict
                places.setdefault(path[:end], len(places))

    def position(path: Path) -> tuple[bool, tuple[float, Path]]:
        return path not in places, (places[path], ()) if path in places else call.position(path)

    return {path: changes[path] for path in sorted(changes, key=position)}


def _sown_before(
    modules: Collection[Path], values: Mapping[str, Any], collections: Collection[str]
) -> dict[Path, Any]:
    """What earlier calls sowed into these: the given values at paths of the module's modules."""
    return {
        (name, *path): value
        for name in collections
        for path, value in leaves(values.get(name, {}))
        if path[:-1] in modules
    }
