"""The training state of an NNX loop, a module and its `nnx.Optimizer`, as the one that Linen's loop has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import jax
from flax import nnx
from flax.training.train_state import TrainState


def state_of(values: Iterable[Any]) -> Any:
    """The first training state among values: a `TrainState`, or made of a module and its optimizer."""
    model = None
    for one in values:
        if hasattr(one, "opt_state") and not isinstance(one, nnx.Optimizer):
            return one
        if isinstance(one, nnx.Optimizer):
            return _train_state(model, one)
        model = one
    return None


def _train_state(model: Any, optimizer: nnx.Optimizer[Any]) -> TrainState:
    from nnx_migrate import nn as nnm

    collections = nnm.variables_of(model)
    params = collections.pop("params")
    if collections:
        raise NotImplementedError(f"state beside the parameters: {', '.join(collections)}")

    def linen(part: Any) -> Any:
        """What the optimizer holds of all parameters, at the paths that Linen gives them."""
        if not isinstance(part, nnx.State):
            return part[...]
        copy = nnx.clone(model)
        state = nnx.state(copy, nnx.Param)
        nnx.replace_by_pure_dict(state, nnx.to_pure_dict(part))
        nnx.update(copy, state)
        return nnm.variables_of(copy)["params"]

    opt_state = jax.tree.map(
        linen, optimizer.opt_state, is_leaf=lambda one: isinstance(one, nnx.State | nnx.Variable)
    )
    step = optimizer.step[...]
    return TrainState(
        step=step, apply_fn=model, params=params, tx=optimizer.tx, opt_state=opt_state
    )
