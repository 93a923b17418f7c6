"""Cells over a time axis (flax 0.12.8, linen/recurrent.py)."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import jax
from absl import logging
from flax.core import FrozenDict
from flax.core.scope import CollectionFilter, PRNGSequenceFilter
from flax.typing import Array, InOutScanAxis, PRNGKey
from jax import random

from nnx_migrate.linen.layers.cell_base import RNNCellBase
from nnx_migrate.linen.module import Module
from nnx_migrate.linen.transforms import scan as lifted_scan
from nnx_migrate.numerics.sequences import concatenate_features, flip_sequences, last_carry


class RNN(Module):
    """Scan ``cell`` over the time axis of ``(*batch, time, *features)``.

    With ``time_major`` time is the first axis. With ``reverse`` the steps run from the last valid one to the
    first, and outputs come in that order unless ``keep_order``. ``return_carry`` returns ``(last carry,
    outputs)``. ``unroll``, ``variable_axes``, ``variable_broadcast``, ``variable_carry`` and ``split_rngs`` are those of
    ``transforms.scan``.
    """

    cell: RNNCellBase
    time_major: bool = False
    return_carry: bool = False
    reverse: bool = False
    keep_order: bool = False
    unroll: int = 1
    variable_axes: Mapping[CollectionFilter, InOutScanAxis] = FrozenDict()
    variable_broadcast: CollectionFilter = "params"
    variable_carry: CollectionFilter = False
    split_rngs: Mapping[PRNGSequenceFilter, bool] = FrozenDict({"params": False})

    def __call__(
        self,
        inputs: jax.Array,
        *,
        initial_carry: Any | None = None,
        init_key: PRNGKey | None = None,
        seq_lengths: Array | None = None,
        return_carry: bool | None = None,
        time_major: bool | None = None,
        reverse: bool | None = None,
        keep_order: bool | None = None,
    ) -> Any:
        """Outputs for every step, or ``(last carry, outputs)``.

        Args:
          inputs: the sequence.
          initial_carry: None: made by the cell with ``init_key``, of which the default is ``key(0)``.
          seq_lengths: integers ``(*batch,)``: what comes later is padding. The last carry is that of the
            last valid step; outputs of padding are what they are.
          return_carry, time_major, reverse, keep_order: in place of the fields.
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

        def flip(tree: Any) -> Any:
            return jax.tree.map(
                lambda x: flip_sequences(x, seq_lengths, len(batch), bool(time_major)), tree
            )

        if reverse:
            inputs = flip(inputs)
        if initial_carry is None:
            key = random.key(0) if init_key is None else init_key
            step_shape = inputs.shape[:time_axis] + inputs.shape[time_axis + 1 :]
            initial_carry = self.cell.initialize_carry(key, step_shape)

        # With padding the last carry differs per example: keep all carries and select.
        keep_carries = seq_lengths is not None and return_carry

        def step(cell: Any, carry: Any, x: Array) -> Any:
            carry, y = cell(carry, x)
            return carry, ((carry, y) if keep_carries else y)

        scan = lifted_scan(
            step,
            in_axes=time_axis,
            out_axes=(0, time_axis) if keep_carries else time_axis,
            unroll=self.unroll,
            variable_axes=self.variable_axes,
            variable_broadcast=self.variable_broadcast,
            variable_carry=self.variable_carry,
            split_rngs=self.split_rngs,
        )
        carry, outputs = scan(self.cell, initial_carry, inputs)
        if keep_carries:
            carries, outputs = outputs
            carry = last_carry(carries, seq_lengths)
        if reverse and keep_order:
            outputs = flip(outputs)
        return (carry, outputs) if return_carry else outputs


class RNNBase(Protocol):
    """What :class:`Bidirectional` calls: :class:`RNN` or a module like it."""

    def __call__(
        self,
        inputs: jax.Array,
        *,
        initial_carry: Any | None = None,
        init_key: PRNGKey | None = None,
        seq_lengths: Array | None = None,
        return_carry: bool | None = None,
        time_major: bool | None = None,
        reverse: bool | None = None,
        keep_order: bool | None = None,
    ) -> Any:
        """Outputs, or ``(last carry, outputs)``; see :class:`RNN`."""


class Bidirectional(Module):
    """Run two RNNs in opposite directions and merge their outputs, step by step, with ``merge_fn``."""

    forward_rnn: RNNBase
    backward_rnn: RNNBase
    merge_fn: Callable[[Array, Array], Array] = concatenate_features
    time_major: bool = False
    return_carry: bool = False

    def __call__(
        self,
        inputs: jax.Array,
        *,
        initial_carry: Any | None = None,
        init_key: PRNGKey | None = None,
        seq_lengths: Array | None = None,
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
            logging.warning(
                "forward_rnn and backward_rnn is the same object, so they will share parameters."
            )
        common: Any = {"seq_lengths": seq_lengths, "return_carry": True, "time_major": time_major}
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
