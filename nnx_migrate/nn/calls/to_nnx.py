"""``nnx.bridge.ToNNX`` whose Linen module may change its state, and draws Linen's keys.

``nnx.bridge.ToNNX`` (flax 0.12.8, nnx/bridge/wrappers.py) applies its module with nothing mutable, so a
module that writes a variable (running statistics, a cache) raises, and gives it keys that know
nothing of the module's path.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import jax
from flax import nnx
from flax.core.scope import DenyList, LazyRng

from nnx_migrate.nn.variables.linen_variables import (
    attributes_of,
    leaves,
    nested,
    variables_of_attributes,
)
from nnx_migrate.nn.variables.parts import CAPTURES
from nnx_migrate.nn.variables.state import Running, running_call
from nnx_migrate.nn.variables.variables import collection_of

Path = tuple[str, ...]
# What a plain call of a bridged module leaves alone: an NNX module has no place for it.
_NOT_STATE = ("params", "intermediates", "perturbations")


class ToNNX(nnx.bridge.ToNNX):
    """A Linen module as an NNX module; its collections are the state of the NNX module.

    Variables come from :func:`nnx_migrate.nn.lazy_init`, with Linen's metadata (axis names). A plain
    call may change every collection but the parameters; inside
    :func:`nnx_migrate.nn.apply` it may change what ``mutable=`` says, and draws Linen's keys. Values that
    change are stored in the variables that hold them. What the module sows is kept only under
    ``nnx.capture`` of the collection's variable type: a new tuple is taken for sown.
    """

    to_nnx__sown: frozenset[Path] = frozenset()  # paths of what the initial call sowed

    def __call__(
        self, *args: Any, rngs: Any = None, method: Any = None, mutable: Any = None, **kwargs: Any
    ) -> Any:
        """Call the Linen module; ``mutable=`` says which collections it may change."""
        call = running_call()
        rngs = self._keys(call) if rngs is None else rngs
        if self._pytree__state.initializing or (call is not None and call.is_init):
            return self._init(rngs, *args, method=method, **kwargs)
        captured = self._captured()
        if mutable is None:
            mutable = _mutable(call, self._captures())
        variables = nested({**captured, **dict(leaves(variables_of_attributes(_held(self))))})
        outputs = self.to_nnx__module.apply(
            variables, *args, rngs=rngs, method=method, mutable=mutable, **kwargs
        )
        if mutable is False:
            return outputs
        self._store(outputs[1])
        return outputs[0]

    def _init(self, rngs: Any, *args: Any, **kwargs: Any) -> Any:
        """Take the variables that Linen's ``init`` makes, without what is sown."""
        with _sown(type(self.to_nnx__module)) as sown:
            outputs, made = self.to_nnx__module.init_with_output(rngs, *args, **kwargs)
        self.to_nnx__sown = frozenset(sown)
        kept = {path: one for path, one in leaves(made) if path[1:] not in sown}
        give_variables(self, nested(kept))
        return outputs

    def _keys(self, call: Running | None) -> dict[str, Any]:
        """The keys of a call, by stream: in ``nnm.apply``, those of Linen at the module's path."""
        if call is not None and id(self) in call.bridges:
            path = call.bridges[id(self)]
            return {name: LazyRng.create(key, *path) for name, key in call.rngs.items()}
        streams: Any = self.to_nnx__rngs
        keys = {} if streams is None else {name: stream() for name, stream in streams.items()}
        if "params" not in keys and "default" in keys:
            keys["params"] = keys.pop("default")
        return keys

    def _captures(self) -> dict[str, nnx.Variable[Any]]:
        """Where ``nnx.capture`` keeps what is sown, by collection."""
        return {collection_of(type(one)): one for one in getattr(self, CAPTURES, ())}

    def _captured(self) -> dict[Path, Any]:
        """What was sown so far, by path."""
        return {
            (collection, *path): value
            for collection, one in self._captures().items()
            for path, value in leaves(one.get_value())
        }

    def _store(self, updates: Mapping[str, Any]) -> None:
        """Put what changed where it is held; what is new is captured, or becomes state."""
        held, captures = dict(leaves(_held(self))), self._captures()
        sown: dict[str, dict[Path, Any]] = {name: {} for name in captures}
        new: dict[Path, Any] = {}
        for path, one in leaves(attributes_of(updates)):
            collection = collection_of(type(one))
            if path in held:
                if not _is_same(held[path].get_value(), one.get_value()):
                    held[path].set_value(one.get_value())
            elif collection in captures:
                sown[collection][path] = one.get_value()
            elif path not in self.to_nnx__sown and not isinstance(one.get_value(), tuple):
                new[path] = one
        for collection, values in sown.items():
            captures[collection].set_value(nested(values))
        if new:
            _set(self, nested({**held, **new}))


def give_variables(bridge: nnx.bridge.ToNNX, values: Mapping[str, Any]) -> None:
    """Store Linen's variables of the module, by collection, in a bridge that has none yet."""
    _set(bridge, attributes_of(values))


def _set(bridge: nnx.Module, attributes: Mapping[str, Any]) -> None:
    for name, one in attributes.items():
        setattr(bridge, name, nnx.data(one))


def has_variables(bridge: nnx.bridge.ToNNX) -> bool:
    """Whether a bridge has been given its variables."""
    return bool(_held(bridge))


def _mutable(call: Running | None, captured: Collection[str]) -> Any:
    """The ``mutable=`` of a call that names none."""
    if call is not None:
        return call.mutable
    return DenyList(tuple(name for name in _NOT_STATE if name not in captured))


@contextmanager
def _sown(kind: type[Any]) -> Iterator[set[Path]]:
    """The paths that Linen modules sow into meanwhile; ``kind`` is a class of one."""
    base: Any = next(one for one in reversed(kind.__mro__) if "sow" in vars(one))
    sow = base.sow
    found: set[Path] = set()

    def noted(self: Any, col: str, name: str, *args: Any, **kwargs: Any) -> Any:
        found.add((*self.path, name))
        return sow(self, col, name, *args, **kwargs)

    base.sow = noted
    try:
        yield found
    finally:
        base.sow = sow


def _held(module: nnx.Module) -> dict[str, Any]:
    """The attributes of a bridge that hold variables."""
    return {
        name: one
        for name, one in vars(module).items()
        if not name.startswith(("to_nnx__", "_pytree__")) and name != CAPTURES
    }


def _is_same(one: Any, other: Any) -> bool:
    leaves = jax.tree.leaves(one), jax.tree.leaves(other)
    return len(leaves[0]) == len(leaves[1]) and all(map(lambda a, b: a is b, *leaves))
