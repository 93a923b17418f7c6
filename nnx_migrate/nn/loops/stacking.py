"""Modules whose variables are stacked: one instance holds what a lifted loop over layers needs.

``linen.scan`` and ``linen.vmap`` with ``variable_axes={"params": 0}`` keep one array per parameter
with the layers along an axis. Here the constructor of the lifted class builds one layer for the
structure and maps the constructor over the layers for the values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from flax import nnx
from flax.core.scope import in_filter

from nnx_migrate.nn.loops.stack_axis import NAME_KEY, has_names, with_axis
from nnx_migrate.nn.variables.variables import collection_of
from nnx_migrate.numerics.axes import from_front

M = TypeVar("M", bound=nnx.Module)


@dataclass(frozen=True)
class Stacking:
    """What the options of a lifted class say about the variables of its instances.

    Attributes:
      axes: (collections, axis) in the order given; other collections are not stacked.
      splits: (stream names, whether every layer draws keys of its own).
      length: number of layers; None when only the call's inputs show it.
      metadata: ``metadata_params``: the name of the axis under ``nnx.PARTITION_NAME``.
      parallel: layers are built by ``jax.vmap``, not one after the other.
      inputs: collections that the body reads and must not change (``In`` of an axis).
      traces: how often Linen's ``init`` runs the body: every run counts the keys it draws.
    """

    axes: tuple[tuple[Any, int], ...] = ()
    splits: tuple[tuple[Any, bool], ...] = ()
    length: int | None = None
    metadata: tuple[tuple[Any, Any], ...] = ()
    parallel: bool = False
    inputs: tuple[Any, ...] = ()
    traces: int = 1

    def axis(self, variable: nnx.Variable[Any]) -> int | None:
        """The axis along which a variable is stacked; None when it is not."""
        if isinstance(variable, nnx.RngState):
            return None
        collection = collection_of(type(variable))
        return next((axis for names, axis in self.axes if in_filter(names, collection)), None)

    def group(self, variable: nnx.Variable[Any]) -> int:
        """The position of the variable's collection among those of ``axes``."""
        collection = collection_of(type(variable))
        return [in_filter(names, collection) for names, _ in self.axes].index(True)

    def is_input(self, variable: nnx.Variable[Any]) -> bool:
        """Whether the body must not change a stacked variable."""
        collection = collection_of(type(variable))
        return any(in_filter(names, collection) for names in self.inputs)

    def takes(self, stream: str) -> bool:
        """Whether layers have the stream: one that is not named stays outside, and params stand for it."""
        return self._rule(stream) is not None or self._rule("params") is None

    def hands_on(self, stream: str) -> bool:
        """Whether the call of a layer has the keys of a stream."""
        return self._rule(stream) is not None

    def is_split(self, stream: str) -> bool:
        """Whether every layer draws its own keys; a stream that is not named goes with params."""
        own = self._rule(stream)
        return bool(self._rule("params") if own is None else own)

    def _rule(self, stream: str) -> bool | None:
        """What the options say of a stream; None where they do not name it."""
        return next((split for names, split in self.splits if in_filter(names, stream)), None)

    @property
    def stacks_params(self) -> bool:
        """Whether parameters are stacked."""
        return any(in_filter(names, "params") for names, _ in self.axes)


def construct_stacked(
    module: M, target: type[M], stacking: Stacking, args: Any, kwargs: dict[str, Any]
) -> None:
    """Run ``target.__init__`` on ``module``, and give it the values of all layers that ``target`` builds.

    Raises:
      TypeError: a module is handed in, whose variables are not the layers' own, or ``rngs`` by
        position.
      ValueError: variables are to be stacked and the number of layers is not known.
    """
    name = type(module).__name__
    others = {name: value for name, value in kwargs.items() if name != "rngs"}
    modules_passed = [
        one for one in jax.tree.leaves((args, others), is_leaf=_is_node) if _is_node(one)
    ]
    if modules_passed:
        raise TypeError(
            f"{name} got a {type(modules_passed[0]).__name__}: expected a lifted class to "
            "build all its submodules, and rngs= by keyword; pass a module to the call"
        )
    rngs = kwargs.get("rngs")
    layers = _LayerRngs.of(rngs, stacking)
    target.__init__(module, *args, **{**kwargs, **layers.first()})
    streams_to_split = [
        (path, one)
        for path, one in nnx.to_flat_state(nnx.state(module))
        if stacking.axis(one) is not None
    ]
    if not streams_to_split:
        return
    length = stacking.length
    if length is None:
        raise ValueError(
            f"{name} stacks variables: expected the number of layers as length= "
            "(axis_size= of vmap), found none"
        )
    if layers.only_structure:  # the first one's values have the shape of all
        for _, one in streams_to_split:
            _store(one, _repeat(one.get_value(), length), stacking)
        return

    def layer(index: Any) -> dict[int, Any]:
        built = target(*args, **{**kwargs, **layers.at(index)})
        values = dict(nnx.to_flat_state(nnx.state(built)))
        # A module that ``target`` hands in has its variables already, and every layer has the same.
        own = [
            number for number, (path, one) in enumerate(streams_to_split) if values[path] is not one
        ]
        return {number: values[streams_to_split[number][0]].get_value() for number in own}

    run = jax.vmap(layer) if stacking.parallel else lambda xs: jax.lax.map(layer, xs)
    if layers.alike:
        made = run(jnp.arange(1))  # computed as the others would be, to the bit
        values = _repeat(jax.tree.map(lambda x: x[0], made), length)
    else:
        values = run(jnp.arange(length))
    for number, value in values.items():
        _store(streams_to_split[number][1], value, stacking)


def _repeat(value: Any, length: int) -> Any:
    return jax.tree.map(lambda x: jnp.broadcast_to(x, (length, *jnp.shape(x))), value)


def _is_node(value: Any) -> bool:
    return isinstance(value, nnx.Module | nnx.Rngs | nnx.RngStream)


def _store(variable: nnx.Variable[Any], value: Any, stacking: Stacking) -> None:
    """Set the stacked value, and record the axis on the variable."""
    axis = stacking.axis(variable)
    assert axis is not None
    rank = max((leaf.ndim for leaf in jax.tree.leaves(value)), default=1)
    index = axis % rank
    variable.set_value(jax.tree.map(lambda leaf: from_front(leaf, index), value))
    metadata, names = variable.get_metadata(), dict(stacking.metadata)
    if has_names(metadata) and NAME_KEY not in names:
        raise ValueError(
            f"a variable with axis names is stacked: expected the name of the new axis in "
            f"metadata_params={{nnx.PARTITION_NAME: ...}}, found {names}"
        )
    for key, names_entry in with_axis(metadata, index, names.get(NAME_KEY)).items():
        variable.set_metadata(key, names_entry)


@dataclass(frozen=True)
class _LayerRngs:
    """Random streams for the constructor of each layer."""

    rngs: Any
    bases: Mapping[str, Any]  # name -> key of the plain streams
    sources: Mapping[str, Any]  # name -> stream that hands out keys by layer itself
    marks: Mapping[str, Any]
    stacking: Stacking

    @classmethod
    def of(cls, rngs: Any, stacking: Stacking) -> _LayerRngs:
        streams = {} if rngs is None else {"default": rngs}
        if isinstance(rngs, nnx.Rngs):
            streams = {name: rngs[name] for name in rngs}
        linen_streams = {name: one for name, one in streams.items() if hasattr(one, "for_layer")}
        plain = streams.keys() - linen_streams.keys()
        sources = {
            name: one for name, one in linen_streams.items() if stacking.takes(_linen_name(name))
        }
        bases = {name: streams[name]() for name in sorted(plain)} if stacking.axes else {}
        marks = {name: one.mark() for name, one in sources.items()}
        return cls(rngs, bases, sources, marks, stacking)

    @property
    def only_structure(self) -> bool:
        return any(one.only_structure for one in self.sources.values())

    @property
    def alike(self) -> bool:
        """Whether every layer draws the same keys, so that one is like the other."""
        names = {*self.bases, *self.sources}
        return bool(names) and not any(self.stacking.is_split(_linen_name(name)) for name in names)

    def first(self) -> dict[str, Any]:
        """Streams for the layer that gives the structure: its own streams stay the module's."""
        if not self.sources or not self.stacking.axes:
            return {} if self.rngs is None else {"rngs": self.rngs}
        streams = nnx.Rngs()
        for name in (*self.sources, *self.bases):
            found = self._layer(name, 0) if name in self.sources else self.rngs[name]
            setattr(streams, name, found)
        return {"rngs": streams}

    def at(self, index: Any) -> dict[str, Any]:
        """Streams for one layer."""
        if self.rngs is None:
            return {}
        for name, one in self.sources.items():
            one.rewind(self.marks[name])
        if not isinstance(self.rngs, nnx.Rngs):
            return {"rngs": nnx.RngStream(self._key("default", index), tag=self.rngs.tag)}
        streams = nnx.Rngs()
        for name in self.sources:
            setattr(streams, name, self._layer(name, index))
        for name in self.bases:
            setattr(streams, name, nnx.RngStream(self._key(name, index), tag=name))
        return {"rngs": streams}

    def _layer(self, name: str, index: Any) -> Any:
        split = self.stacking.is_split(_linen_name(name))
        return self.sources[name].for_layer(index, self.stacking.length, split)

    def _key(self, name: str, index: Any) -> Any:
        base = self.bases[name]
        length = self.stacking.length
        if length is None or not self.stacking.is_split(_linen_name(name)):
            return base
        return jax.random.split(base, length)[index]


def _linen_name(stream: str) -> str:
    """NNX's fallback stream is the one that initialisers draw from."""
    return "params" if stream == "default" else stream


def options_of(values: Mapping[Any, Any] | None, convert: Callable[[Any], Any]) -> tuple[Any, ...]:
    """A mapping by filter as a tuple, filters hashable."""
    found = (values or {}).items()
    return tuple(
        (tuple(key) if isinstance(key, (list, set)) else key, convert(value))
        for key, value in found
    )
