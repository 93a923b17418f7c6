"""``nn.remat_scan``: nested loops of one module, each rematerialized."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flax import traceback_util
from flax.core import FrozenDict

from .remat import remat_scopes
from .scan import scan_scopes
from .targets import lift_transform

traceback_util.register_exclusion(__file__)


def remat_scan(
    target: Any,
    lengths: Sequence[int] | None = (),
    policy: Callable[..., bool] | None = None,
    variable_broadcast: Any = False,
    variable_carry: Any = False,
    variable_axes: Mapping[Any, Any] = FrozenDict({True: 0}),
    split_rngs: Mapping[Any, bool] = FrozenDict({True: True}),
) -> Any:
    """``remat`` and ``scan`` for many equal layers in little memory.

    As ``flax.linen.remat_scan`` (flax 0.12.8).

    Args:
      target: a module class, or a function of a module, that maps a carry to one of its shape.
      lengths: steps of each of the nested loops; their product is the number of layers.
      policy: what ``jax.checkpoint`` may keep.
      variable_broadcast: see ``scan``; so are the other arguments.
    """
    return lift_transform(
        _remat_scan,
        target,
        lengths=lengths,
        policy=policy,
        variable_broadcast=variable_broadcast,
        variable_carry=variable_carry,
        variable_axes=variable_axes,
        split_rngs=split_rngs,
    )


def _remat_scan(
    fn: Callable[..., Any],
    lengths: Sequence[int],
    policy: Callable[..., bool] | None = None,
    **options: Any,
) -> Callable[..., Any]:
    length, *inner = lengths
    layers = _remat_scan(fn, inner, policy, **options) if inner else fn

    def step(scopes: Any, carry: Any) -> tuple[Any, tuple[()]]:
        return layers(scopes, carry), ()

    body = remat_scopes(step, policy=policy, prevent_cse=False) if inner else step
    scan_all = scan_scopes(body, length=length, **options)

    def run_loop(scopes: Any, carry: Any) -> Any:
        return scan_all(scopes, carry)[0]

    return run_loop


_remat_scan.__name__ = "remat_scan"
