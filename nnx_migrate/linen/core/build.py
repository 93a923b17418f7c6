"""`build`: from a definition to an NNX module with its children and Variables as attributes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

import jax
from flax import nnx

from nnx_migrate import nn as nnm
from nnx_migrate.linen.core.boxes import contents_of, from_variable, to_variable
from nnx_migrate.linen.core.calls import STREAMS, attach, gather
from nnx_migrate.linen.core.context import context
from nnx_migrate.linen.core.filters import CollectionFilter, LazyRng
from nnx_migrate.linen.core.functional import NOT_INTERMEDIATES
from nnx_migrate.linen.core.graph import begin_built
from nnx_migrate.linen.core.tree import is_module, modules_in
from nnx_migrate.linen.core.twins import built_class
from nnx_migrate.nn.variables.sharing import definitions_in


class Node(nnx.Module):
    """A place in the tree whose class is not known: its variables and what is below."""


def build(
    module: Any,
    *args: Any,
    rngs: Any,
    method: Any = None,
    mutable: CollectionFilter = NOT_INTERMEDIATES,
    keep_sown: Collection[str] = (),
    **kwargs: Any,
) -> Any:
    """Make the variables of ``module`` and hang them on it, with one call on ``args``.

    The values are those of ``module.init(rngs, *args, **kwargs)``. Afterwards ``module`` is an NNX
    module: call it, or hand it to `nnx.split`, `nnx.jit`, `nnx.grad` and so on. Of an explicit NNX
    module the lazy modules inside are built, by the call and with the keys of their paths.

    ``rngs``: a key for ``params``, keys by stream, or `nnx.Rngs`. All streams but ``params`` stay
    with the module: each call draws a new key of each. ``keep_sown``: collections of which values sown
    by this first call become variables, as they do in Linen's `init`; later calls add to them.

    Returns:
        ``module``.

    Raises:
        TypeError: ``module`` is no module.
        ValueError: it is built already, or it is part of another module's call.
    """
    kind = type(module).__name__
    if isinstance(module, nnx.Module) and not is_module(module):
        return _build_inside(module, rngs, method, mutable, args, kwargs)
    if not is_module(module) or not hasattr(module, "_nnm_is_built"):
        raise TypeError(f"expected a module of nnx_migrate.linen to build, found {kind}")
    if module._nnm_is_built:
        raise ValueError(f"{kind} is built already: use it, or build a new {kind}(...)")
    if module.scope is not None:
        raise ValueError(f"{kind} is bound: build it outside of init, apply and bind")
    keys, streams = _streams(rngs)
    with context.recording() as recorder:
        variables = module.init(keys, *args, method=method, mutable=mutable, **kwargs)
    sown = recorder.sown
    definitions = {path: _definition(one) for path, one in recorder.modules.items() if path}
    _become_built(module)
    paths = {path[:i] for path in definitions for i in range(1, len(path) + 1)}
    made: dict[tuple[str, ...], Any] = {(): module}
    for path in sorted(paths, key=len):
        parent = made[path[:-1]]
        made[path] = definitions.get(path) or Node()
        if is_module(made[path]):
            made[path]._nnm_become_part()
        attach(parent, None, path[-1], made[path])
    for collection, part in variables.items():
        for path, value in _leaves(part, (), paths.__contains__):
            if (collection, *path) not in sown or collection in keep_sown:
                attach(made[path[:-1]], collection, path[-1], to_variable(collection, value))
    _keep_streams(module, streams)
    return module


def _build_inside(
    explicit: nnx.Module,
    rngs: Any,
    method: Any,
    mutable: CollectionFilter,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Build the lazy modules that an explicit module holds, each where its call first needs it."""
    keys, streams = _streams(rngs)
    paths = {id(node): path for path, node in definitions_in(explicit)}

    def builder(module: Any, name: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> bool:
        if id(module) not in paths:
            return False
        path = paths[id(module)]
        own = {stream: LazyRng.create(key, *path) for stream, key in keys.items()}
        build(module, *inputs, rngs=own, method=name, mutable=mutable, **options)
        _keep_streams(
            module, {name: key.as_jax_rng() for name, key in own.items() if name in streams}
        )
        every = (one for _, one in nnx.iter_graph(module) if isinstance(one, nnx.Variable))
        made.extend((one, one.get_value()) for one in every if not isinstance(one, nnx.RngState))
        return True

    made: list[tuple[nnx.Variable[Any], Any]] = []
    with context.building(builder):
        nnm.lazy_init(explicit if method is None else getattr(explicit, method), *args, **kwargs)
    for variable, value in made:  # a second call of what was built is none of an initial call
        variable.set_value(value)
    return explicit


def _keep_streams(module: Any, streams: dict[str, Any]) -> None:
    """Give a built module streams of its own for later calls."""
    if streams:
        module._nnm_hold(STREAMS, None, STREAMS)
        object.__setattr__(module, STREAMS, nnx.Rngs(**streams))


def variables(module: Any) -> dict[str, Any]:
    """The variables of a built module as Linen's tree: ``{"params": {"Dense_0": {...}}, ...}``."""
    return gather(module, {}, from_variable)


def update(module: Any, variables: Any) -> None:
    """Set variables of a built module from a tree of Linen's, as `variables` gives.

    Raises:
        KeyError: the tree has a variable that the module lacks.
        ValueError: a value of another shape.
    """
    entries: dict[tuple[str, ...], tuple[Any, Any]] = {}
    gather(module, entries, from_variable)
    for collection, part in variables.items():
        for path, value in _leaves(part, (collection,), lambda path: path not in entries):
            if path not in entries:
                raise KeyError(f"{'/'.join(path)}: no such variable in {type(module).__name__}")
            old, new = entries[path][0].get_value(), contents_of(value)
            shapes = jax.tree.map(jax.numpy.shape, (old, new))
            if shapes[0] != shapes[1]:
                raise ValueError(f"{'/'.join(path)}: expected {shapes[0]}, found {shapes[1]}")
            entries[path][0].set_value(new)


def _streams(rngs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Keys to initialise with, by stream, and the streams to keep."""
    if isinstance(rngs, nnx.Rngs):
        keys = {name: stream() for name, stream in rngs.items()}
        if "default" in keys:
            keys.setdefault("params", keys.pop("default"))
        stream_keys = {name: stream() for name, stream in rngs.items() if name != "params"}
        stream_keys.pop("default", None)
        return keys, stream_keys
    if isinstance(rngs, int):
        rngs = jax.random.key(rngs)
    if not isinstance(rngs, dict):
        return {"params": rngs}, {}
    stream_keys = {k: v for k, v in rngs.items() if k != "params" and not isinstance(v, LazyRng)}
    return dict(rngs), stream_keys


def _become_built(module: Any) -> None:
    cls: Any = type(module)
    object.__setattr__(module, "__class__", built_class(cls))
    begin_built(module, {})


def _definition(module: Any) -> Any:
    """A built module, still without variables, of the class and fields of a bound one.

    None where they cannot be kept: a Linen module, or one with traced arrays in its fields.
    """
    if not hasattr(module, "_nnm_is_built"):
        return None
    values = [getattr(module, field) for field in module._nnm_fields]
    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(values)):
        return None
    if any(not hasattr(one, "_nnm_is_built") for value in values for _, one in modules_in(value)):
        return None
    definition = module.clone(_deep_clone=True)
    _become_built(definition)
    return definition


def _leaves(
    part: Any, path: tuple[str, ...], is_inner: Callable[[tuple[str, ...]], bool]
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Paths and values of a tree; a dict is a value itself where its path is no inner one."""
    for name, value in part.items():
        where = (*path, name)
        if is_inner(where) and hasattr(value, "items"):
            yield from _leaves(value, where, is_inner)
        else:
            yield where, value
