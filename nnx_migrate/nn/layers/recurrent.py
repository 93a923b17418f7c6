"""Wrappers without variables of their own: RNN, Bidirectional, Sequential, BatchApply.

``RNN`` scans a cell with ``jax.lax.scan`` as ``nn.RNN`` does (flax 0.12.8, linen/recurrent.py and
core/axes_scan.py). A wrapper holds what it is given, so it can also be built inline, around
attributes of the caller: ``RNN(self.GRUCell_0)(x)``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax import random

from nnx_migrate.nn.variables.parts import CAPTURES, hide_captures
from nnx_migrate.numerics.batch_apply import BatchApply
from nnx_migrate.numerics.sequences import concatenate_features, flip_sequences, last_carry

log = logging.getLogger(__name__)

__all__ = [
    "RNN",
    "BatchApply",
    "Bidirectional",
    "Sequential",
    "concatenate_features",
    "flip_sequences",
]


def _to_front(x: jax.Array, axis: int) -> jax.Array:
    if axis == 0:
        return x
    return jnp.transpose(x, (axis, *(i for i in range(x.ndim) if i != axis)))


def _from_front(x: jax.Array, axis: int) -> jax.Array:
    if axis == 0:
        return x
    return jnp.transpose(x, (*range(1, axis + 1), 0, *range(axis + 1, x.ndim)))


def _matches(collections: Any, name: str) -> bool:
    """Whether a Linen collection filter (bool, name, names, DenyList) includes ``name``."""
    if isinstance(collections, bool):
        return collections
    if isinstance(collections, str):
        return collections == name
    if hasattr(collections, "deny"):
        return not _matches(collections.deny, name)
    return name in collections


class RNN(nnx.Module):
    """``linen.RNN``: run ``cell`` over the time axis of ``(*batch, time, *features)``.

    Args:
      cell: has ``__call__(carry, x)``, ``initialize_carry(rng, input_shape)`` and
        ``num_feature_axes``.
      variable_broadcast, variable_carry: which collections of the cell are read-only in the loop
        and which are updated from step to step; every variable must be in one of them.
      split_rngs: per stream, whether every step draws its own key (else all steps the same one).

    Raises:
      NotImplementedError: ``variable_axes`` is not empty.
      ValueError: the cell holds a variable that the loop would not see.
    """

    def __init__(
        self,
        cell: Any,
        time_major: bool = False,
        return_carry: bool = False,
        reverse: bool = False,
        keep_order: bool = False,
        unroll: int = 1,
        variable_axes: Mapping[Any, Any] | None = None,
        variable_broadcast: Any = "params",
        variable_carry: Any = False,
        split_rngs: Mapping[Any, bool] | None = None,
    ) -> None:
        """Take Linen's fields in Linen's order; see the class."""
        if variable_axes:
            raise NotImplementedError(
                f"RNN supports no variable_axes, found {dict(variable_axes)}: "
                "stack the cell's variables with nnx.vmap and scan it by hand"
            )
        self.cell = cell
        self.time_major = time_major
        self.return_carry = return_carry
        self.reverse = reverse
        self.keep_order = keep_order
        self.unroll = unroll
        self.variable_broadcast = _hashable(variable_broadcast)
        self.variable_carry = _hashable(variable_carry)
        self.split_rngs = tuple((split_rngs or {}).items())

    def __call__(
        self,
        inputs: jax.Array,
        *,
        initial_carry: Any = None,
        init_key: Any = None,
        seq_lengths: jax.Array | None = None,
        return_carry: bool | None = None,
        time_major: bool | None = None,
        reverse: bool | None = None,
        keep_order: bool | None = None,
    ) -> Any:
        """Outputs for every step, or ``(last carry, outputs)`` with ``return_carry``.

        Arguments other than None override the constructor's. ``initial_carry`` defaults to the
        cell's, made with ``init_key`` (default ``jax.random.key(0)``).
        """
        return_carry = self.return_carry if return_carry is None else return_carry
        time_major = self.time_major if time_major is None else time_major
        reverse = self.reverse if reverse is None else reverse
        keep_order = self.keep_order if keep_order is None else keep_order

        feature_axes = self.cell.num_feature_axes
        time_axis = 0 if time_major else inputs.ndim - (feature_axes + 1)
        if time_axis < 0:
            time_axis += inputs.ndim
        batch = inputs.shape[1:-feature_axes] if time_major else inputs.shape[:time_axis]

        def flip(x: jax.Array) -> jax.Array:
            return flip_sequences(x, seq_lengths, len(batch), time_major)

        if reverse:
            inputs = flip(inputs)
        if initial_carry is None:
            key = random.key(0) if init_key is None else init_key
            step_shape = inputs.shape[:time_axis] + inputs.shape[time_axis + 1 :]
            initial_carry = self.cell.initialize_carry(key, step_shape)

        # With padding the last carry differs per example: keep all carries and select.
        keep_carries = seq_lengths is not None and return_carry
        carry, ys = self._scan(initial_carry, _to_front(inputs, time_axis), keep_carries)
        carries, ys = ys if keep_carries else (None, ys)
        outputs = jax.tree.map(lambda y: _from_front(y, time_axis), ys)
        if keep_carries:
            carry = last_carry(carries, seq_lengths)
        if reverse and keep_order:
            outputs = jax.tree.map(flip, outputs)
        return (carry, outputs) if return_carry else outputs

    def _scan(self, carry: Any, xs: jax.Array, keep_carries: bool) -> tuple[Any, Any]:
        """Last carry and stacked outputs of the cell over the leading axis of ``xs``."""
        graphdef, changing, fixed = nnx.split(self.cell, self._is_carried, ...)  # type: ignore[misc]
        hidden = {type(one) for path, one in nnx.to_flat_state(fixed) if CAPTURES in path}

        def step(state: Any, x: jax.Array) -> tuple[Any, Any]:
            changing, carry = state
            # A copy belongs to this trace, so that its variables may change in it.
            cell = nnx.merge(graphdef, changing, fixed, copy=True)
            hide_captures(cell, hidden)
            carry, y = cell(carry, x)
            changing = nnx.state(cell, self._is_carried)
            return (changing, carry), ((carry, y) if keep_carries else y)

        (changing, carry), ys = jax.lax.scan(step, (changing, carry), xs, unroll=self.unroll)
        nnx.update(self.cell, changing)
        for _, stream in nnx.iter_graph(self.cell):
            if isinstance(stream, nnx.RngStream) and not self._splits(stream.tag):
                stream.count.set_value(stream.count[...] + 1)  # the next loop draws other keys
        return carry, ys

    def _is_carried(self, path: Any, value: Any) -> bool:
        """Whether the loop hands this variable of the cell from step to step."""
        kind = getattr(value, "type", type(value))
        if issubclass(kind, nnx.RngState):
            return self._splits(value.tag)
        collection = nnx.variable_name_from_type(kind, allow_register=True)
        if _matches(self.variable_carry, collection):
            return True
        if _matches(self.variable_broadcast, collection) or CAPTURES in path:
            return False  # a loop collects what is sown into the collections it lifts, no other
        where = "/".join(map(str, path))
        raise ValueError(
            f"the cell's variable '{where}' is of collection '{collection}', which is neither in "
            f"variable_broadcast={self.variable_broadcast!r} nor in "
            f"variable_carry={self.variable_carry!r}: name it in one of them"
        )

    def _splits(self, stream: str) -> bool:
        if stream == "default":
            # NNX's fallback stream stands for any name but params; native layers keep its tag.
            answers = {split for names, split in self.split_rngs if names != "params"}
            if len(answers) > 1:
                raise ValueError(
                    f"split_rngs={dict(self.split_rngs)} does not tell what the cell's 'default' "
                    "stream does: construct it with nnx.Rngs(name=...) for each stream"
                )
            return answers == {True}
        for names, split in self.split_rngs:
            if _matches(names, stream):
                return split
        return False


def _hashable(collections: Any) -> Any:
    return tuple(collections) if isinstance(collections, (list, set, frozenset)) else collections


class Bidirectional(nnx.Module):
    """``linen.Bidirectional``: run two RNNs in opposite directions and merge their outputs."""

    def __init__(
        self,
        forward_rnn: Any,
        backward_rnn: Any,
        merge_fn: Callable[[jax.Array, jax.Array], jax.Array] = concatenate_features,
        time_major: bool = False,
        return_carry: bool = False,
    ) -> None:
        """Take Linen's fields in Linen's order; see the class."""
        self.forward_rnn = forward_rnn
        self.backward_rnn = backward_rnn
        self.merge_fn = merge_fn
        self.time_major = time_major
        self.return_carry = return_carry

    def __call__(
        self,
        inputs: jax.Array,
        *,
        initial_carry: Any = None,
        init_key: Any = None,
        seq_lengths: jax.Array | None = None,
        return_carry: bool | None = None,
        time_major: bool | None = None,
        reverse: bool | None = None,
        keep_order: bool | None = None,
    ) -> Any:
        """Merged outputs, or ``((forward carry, backward carry), outputs)``.

        ``reverse`` and ``keep_order`` are accepted and ignored, as in Linen.
        """
        time_major = self.time_major if time_major is None else time_major
        return_carry = self.return_carry if return_carry is None else return_carry
        keys = (None, None) if init_key is None else tuple(random.split(init_key))
        carries = (None, None) if initial_carry is None else initial_carry
        if self.forward_rnn is self.backward_rnn:
            log.warning("forward_rnn and backward_rnn are one object and share their parameters")
        common = {"seq_lengths": seq_lengths, "return_carry": True, "time_major": time_major}
        forward_carry, forward = self.forward_rnn(
            inputs, initial_carry=carries[0], init_key=keys[0], reverse=False, **common
        )
        backward_carry, backward = self.backward_rnn(
            inputs,
            initial_carry=carries[1],
            init_key=keys[1],
            reverse=True,
            keep_order=True,
            **common,
        )
        outputs = jax.tree.map(self.merge_fn, forward, backward)
        return ((forward_carry, backward_carry), outputs) if return_carry else outputs


class Sequential(nnx.Module):
    """``linen.Sequential``: call ``layers`` one after the other; modules become ``layers_<index>``.

    A tuple is passed on as positional arguments, a dict as keyword arguments.

    Raises:
      TypeError: ``layers`` is not a sequence.
      ValueError: ``layers`` is empty when called.
    """

    def __init__(self, layers: Sequence[Callable[..., Any]]) -> None:
        """Hold modules as ``layers_<index>``, functions as they are."""
        if not isinstance(layers, Sequence):
            raise TypeError(f"expected layers to be a sequence, found {type(layers).__name__}")
        self._functions = tuple(
            None if isinstance(layer, nnx.Module) else layer for layer in layers
        )
        for index, layer in enumerate(layers):
            if isinstance(layer, nnx.Module):
                setattr(self, f"layers_{index}", layer)

    @property
    def layers(self) -> tuple[Callable[..., Any], ...]:
        """The layers in order."""
        return tuple(
            getattr(self, f"layers_{index}") if function is None else function
            for index, function in enumerate(self._functions)
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Pass the arguments through all layers."""
        layers = self.layers
        if not layers:
            raise ValueError("expected Sequential to have layers, found none")
        outputs = layers[0](*args, **kwargs)
        for layer in layers[1:]:
            if isinstance(outputs, tuple):
                outputs = layer(*outputs)
            elif isinstance(outputs, dict):
                outputs = layer(**outputs)
            else:
                outputs = layer(outputs)
        return outputs
