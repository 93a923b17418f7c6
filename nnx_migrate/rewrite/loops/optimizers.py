"""Optimizers of optax that compute the same of NNX's tree of parameters as of Linen's dict.

optax 0.2: all of these treat one parameter like another. What is told which parameters it means (masks,
labels) reads the tree itself, whose leaves have other paths and containers in NNX.
"""

from __future__ import annotations

import ast

from nnx_migrate.source.walking import has_starred

_PLAIN = frozenset(
    "adabelief adadelta adafactor adagrad adam adamax adamaxw adamw add_decayed_weights amsgrad "  # noqa: SIM905
    "centralize clip clip_by_block_rms ema fromage identity lamb lars lion nadam nadamw "
    "novograd radam rmsprop rprop scale scale_by_adam scale_by_amsgrad scale_by_learning_rate "
    "scale_by_lion scale_by_rms scale_by_schedule scale_by_trust_ratio set_to_zero sgd sm3 trace yogi "
    "zero_nans".split()
)
_ORDERED = frozenset({"clip_by_global_norm"})  # a sum over all parameters, in their order
CHAIN = "optax.chain"


def is_ordered(symbol: str) -> bool | None:
    """Whether the order of parameters is part of an optimizer's numbers; None: not known at all."""
    home, _, name = symbol.rpartition(".")
    if home != "optax" or name not in _PLAIN | _ORDERED:
        return None
    return name in _ORDERED


def is_told_which(symbol: str, call: ast.Call) -> bool:
    """Whether the arguments of an optimizer say, or may say, which parameters it means."""
    known = 1 if symbol.endswith("add_decayed_weights") else 2  # a mask comes later
    if len(call.args) > known or has_starred(call.args):
        return True
    return any(
        one.arg is None
        or ("mask" in one.arg and not (isinstance(one.value, ast.Constant) and not one.value.value))
        for one in call.keywords
    )
