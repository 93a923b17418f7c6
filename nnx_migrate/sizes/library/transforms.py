"""Functions that return what they are given, changed: partial, jit."""

from __future__ import annotations

from nnx_migrate.abstract.values import (
    Class,
    Factories,
    Library,
    Native,
    Partial,
    Unknown,
    Value,
)
from nnx_migrate.constructs import layer_of
from nnx_migrate.constructs.common.base import PLACEMENT
from nnx_migrate.sizes.library_call import LibraryCall, Summaries
from nnx_migrate.sizes.signatures import reading


def _partial(call: LibraryCall) -> Value:
    target = call.args[0] if call.args else Unknown()
    placed = [name for name in PLACEMENT if name in call.kwargs]
    is_layer = isinstance(target, Library) and layer_of(target.symbol) is not None
    if placed and call.frame.own and (is_layer or isinstance(target, Class | Factories | Partial)):
        reason = (
            f"a partial of a module class has {placed[0]}=, which its constructor does not take"
        )
        call.interpreter.problems.append((call.node, reason))
    return Partial(target, call.args[1:], call.kwargs)


def _merge_param(call: LibraryCall) -> Value:
    return Unknown("decided at the call")


def _first_argument(call: LibraryCall) -> Value:
    return call.args[0] if call.args else Unknown()


def _wrap(call: LibraryCall) -> Value:
    """A function with the results of the given one; without it, what makes such a function."""
    if call.args:
        return call.args[0]
    return Native(lambda args, _: args[0] if args else Unknown("a decorator of nothing"))


# Wrappers that leave arguments and results as they are: of jax 0.10, jaxtyping 0.3, beartype 0.22,
# typeguard 4.4 and functools.
_SAME_FUNCTION = (
    *("jax.jit", "jax.checkpoint", "jax.remat", "jax.custom_vjp", "jax.custom_jvp"),
    *("jax.named_call", "jaxtyping.jaxtyped", "beartype.beartype", "typeguard.typechecked"),
    *("functools.cache", "functools.lru_cache"),
)
_UPDATED = reading(
    "operand update start_indices|start_index axis * allow_negative_indices",
    lambda call: call.array(0, "operand") or Unknown("update"),
)
ARRAYS: Summaries = {
    "dynamic_update_slice": _UPDATED,
    "dynamic_update_slice_in_dim": _UPDATED,
}
SYMBOLS: Summaries = {
    "functools.partial": _partial,
    **dict.fromkeys(_SAME_FUNCTION, _wrap),
    "jax.ad_checkpoint.checkpoint_name": _first_argument,
    "jax.device_put": _first_argument,
    "jax.sharding.reshard": _first_argument,
    "jax.reshard": _first_argument,
    "flax.core.freeze": _first_argument,
    "flax.linen.merge_param": _merge_param,
    "flax.linen.partitioning.with_sharding_constraint": _first_argument,
}
