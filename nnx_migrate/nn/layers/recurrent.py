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
from flax import nnx
from jax import random

from nnx_migrate.nn.loops.loop import Loop
from nnx_migrate.nn.loops.stacking import Stacking
from nnx_migrate.nn.variables.state import note_lift
from nnx_migrate.numerics.axes import from_front, to_front
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

    @note_lift(lambda one: (one.variable_broadcast, one.variable_carry))
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
        carry, ys = self._scan(initial_carry, to_front(inputs, time_axis), keep_carries)
        carries, ys = ys if keep_carries else (None, ys)
        outputs = jax.tree.map(lambda y: from_front(y, time_axis), ys)
        if keep_carries:
            carry = last_carry(carries, seq_lengths)
        if reverse and keep_order:
            outputs = jax.tree.map(flip, outputs)
        return (carry, outputs) if return_carry else outputs

    def _scan(self, carry: Any, xs: jax.Array, keep_carries: bool) -> tuple[Any, Any]:
        """Last carry and stacked outputs of the cell over the leading axis of ``xs``."""

        def step(cell: Any, carry: Any, x: jax.Array) -> tuple[Any, Any]:
            carry, y = cell(carry, x)
            return carry, ((carry, y) if keep_carries else y)

        stacking = Stacking(splits=self._splits(), traces=2)
        options = {"unroll": self.unroll}
        loop = Loop(stacking, self.variable_broadcast, self.variable_carry, 0, 0, options)
        return loop.run(self.cell, step, carry, xs)

    def _splits(self) -> tuple[tuple[Any, bool], ...]:
        """The rules for the cell's streams; NNX's fallback stream stands for any name but params."""
        answers = {split for names, split in self.split_rngs if names != "params"}
        streams = (one for _, one in nnx.iter_graph(self.cell) if isinstance(one, nnx.RngStream))
        if len(answers) > 1 and any(one.tag == "default" for one in streams):
            raise ValueError(
                f"split_rngs={dict(self.split_rngs)} does not tell what the cell's 'default' "
                "stream does: construct it with nnx.Rngs(name=...) for each stream"
            )
        return (*self.split_rngs, *(("default", one) for one in answers))


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
