"""``nnx.bridge.ToNNX`` whose Linen module may change its state, and draws Linen's keys.

``nnx.bridge.ToNNX`` (flax 0.12.8, nnx/bridge/wrappers.py) applies its module with nothing mutable, so a
module that writes a variable (running statistics, a cache) raises, and gives it keys that know
nothing of the module's path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import jax
from flax import nnx
from flax.core.scope import DenyList, LazyRng, in_filter
from flax.nnx.bridge.variables import linen_vars_to_nnx_attrs, nnx_attrs_to_linen_vars

from .lifted import CAPTURES
from .state import Running, running_call
from .variables import collection_of

Attributes = dict[str, Any]
Path = tuple[str, ...]
# What a plain call of a bridged module leaves alone: an NNX module has no place for it.
_NOT_STATE = ("params", "intermediates", "perturbations")


class ToNNX(nnx.bridge.ToNNX):
    """A Linen module as an NNX module; its collections are the state of the NNX module.

    Variables come from :func:`nnx_migrate.nn.lazy_init`, with Linen's metadata (axis names). A plain
    call may change every collection but the parameters and what is only sown; inside
    :func:`nnx_migrate.nn.apply` it may change what ``mutable=`` says, and draws Linen's keys. Values that
    change are stored in the variables that hold them. What the module sows is kept under
    ``nnx.capture`` of the collection's variable type.
    """

    def __call__(
        self, *args: Any, rngs: Any = None, method: Any = None, mutable: Any = None, **kwargs: Any
    ) -> Any:
        """Call the Linen module; ``mutable=`` says which collections it may change."""
        call = running_call()
        rngs = self._keys(call) if rngs is None else rngs
        options = {"rngs": rngs, "method": method, **kwargs}
        if self._pytree__state.initializing or (call is not None and call.is_init):
            with _initializing(self):
                return super().__call__(*args, mutable=mutable, **options)
        if mutable is None:
            mutable = _mutable(call, self._captured())
        variables = {**nnx_attrs_to_linen_vars(_held(self)), **self._captured()}
        outputs = self.to_nnx__module.apply(variables, *args, mutable=mutable, **options)
        if mutable is False:
            return outputs
        self._store(outputs[1])
        return outputs[0]

    def _keys(self, call: Running | None) -> dict[str, Any]:
        """The keys of a call, by stream: in ``nnm.apply``, those of Linen at the module's path."""
        if call is not None and id(self) in call.bridges:
            path = call.bridges[id(self)]
            return {name: LazyRng.create(key, *path) for name, key in call.rngs.items()}
        streams = self.to_nnx__rngs
        keys = {} if streams is None else {name: stream() for name, stream in streams.items()}
        if "params" not in keys and "default" in keys:
            keys["params"] = keys.pop("default")
        return keys

    def _captured(self) -> dict[str, Any]:
        """What was sown so far, by collection, under ``nnx.capture``."""
        return {collection_of(type(one)): one.get_value() for one in self._captures()}

    def _captures(self) -> tuple[nnx.Variable[Any], ...]:
        return tuple(getattr(self, CAPTURES, ()))

    def _store(self, updates: Mapping[str, Any]) -> None:
        for one in self._captures():
            collection = collection_of(type(one))
            if collection in updates:
                one.set_value(dict(updates[collection]))
        captured = self._captured()
        state = {name: tree for name, tree in updates.items() if name not in captured}
        held = dict(_leaves(_held(self)))
        for path, new in _leaves(linen_vars_to_nnx_attrs(state)):
            old = held.get(path)
            if old is None:
                held[path] = new
                _place(self, path, new)
            elif not _is_same(old.get_value(), new.get_value()):
                old.set_value(new.get_value())


def give_variables(bridge: nnx.bridge.ToNNX, values: Mapping[str, Any]) -> None:
    """Store Linen's variables of the module, by collection, in a bridge that has none yet."""
    for name, one in linen_vars_to_nnx_attrs(dict(values)).items():
        setattr(bridge, name, nnx.data(one))


def has_variables(bridge: nnx.bridge.ToNNX) -> bool:
    """Whether a bridge has been given its variables."""
    return bool(_held(bridge))


def _mutable(call: Running | None, captured: Mapping[str, Any]) -> Any:
    """The ``mutable=`` of a call that names none."""
    if call is not None:
        return call.mutable
    return DenyList(tuple(name for name in _NOT_STATE if name not in captured))


class _initializing:  # noqa: N801 - read as a statement
    """While Linen's ``init`` runs for a module."""

    def __init__(self, module: nnx.Module) -> None:
        self.state = module._pytree__state
        self.before = self.state.initializing

    def __enter__(self) -> None:
        self.state._initializing = True

    def __exit__(self, *_: object) -> None:
        self.state._initializing = self.before


def _held(module: nnx.Module) -> Attributes:
    """The attributes of a bridge that hold variables."""
    return {
        name: one
        for name, one in vars(module).items()
        if not name.startswith(("to_nnx__", "_pytree__")) and name != CAPTURES
    }


def _leaves(tree: Mapping[str, Any], prefix: Path = ()) -> Iterator[tuple[Path, Any]]:
    for name, one in tree.items():
        if isinstance(one, Mapping):
            yield from _leaves(one, (*prefix, name))
        else:
            yield (*prefix, name), one


def _place(module: nnx.Module, path: Path, variable: Any) -> None:
    """Store a variable that is new at a path of nested dicts below a bridge."""
    if len(path) == 1:
        setattr(module, path[0], nnx.data(variable))
        return
    nested = dict(getattr(module, path[0], {}))
    inner = nested
    for name in path[1:-1]:
        inner[name] = dict(inner.get(name, {}))
        inner = inner[name]
    inner[path[-1]] = variable
    setattr(module, path[0], nnx.data(nested))


def _is_same(one: Any, other: Any) -> bool:
    leaves = jax.tree.leaves(one), jax.tree.leaves(other)
    return len(leaves[0]) == len(leaves[1]) and all(map(lambda a, b: a is b, *leaves))
