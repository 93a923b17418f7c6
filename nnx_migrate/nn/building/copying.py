"""A module built once more: Linen's ``module.copy(name=...)``, a second set of variables.

Linen's modules are their fields, so a copy of one that is called makes variables of its own (flax 0.12.8,
linen/module.py). An NNX module that may be copied remembers what it was built with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import jax
from flax import nnx

M = TypeVar("M", bound=nnx.Module)
_MADE = "_built_with"
_STATE = "a module or an array, which is not kept"  # compared by identity


@dataclass(frozen=True)
class _Made:
    """The constructor that ran, and its arguments."""

    kind: type
    arguments: tuple[tuple[str, Any], ...]

    def __hash__(self) -> int:
        return hash((self.kind, tuple(name for name, _ in self.arguments)))


def remember(module: nnx.Module, kind: type, /, **arguments: Any) -> None:
    """First in the ``__init__`` of ``kind``: what a copy is built with. The one of a base counts less."""
    if _MADE not in vars(module):
        plain = {k: _STATE if _holds_state(v) else v for k, v in arguments.items()}
        setattr(module, _MADE, _Made(kind, tuple(plain.items())))


def copy_of(module: M, *, rngs: nnx.Rngs) -> M:
    """A module built as ``module`` was, with variables of its own.

    Raises:
      ValueError: ``module`` is of a class that does not remember it, or was given modules or arrays.
    """
    kind: Any = type(module)
    made = vars(module).get(_MADE)
    if made is None or kind.__init__ is not made.kind.__init__:
        raise ValueError(
            f"expected a module of a class that calls nnm.remember first in its own __init__, found "
            f"{kind.__name__}: build the second module by hand and pass it in"
        )
    for name, value in made.arguments:
        if value is _STATE:
            raise ValueError(
                f"{kind.__name__} was built with a module or an array as '{name}', which its copy "
                "would share: build the second module by hand and pass it in"
            )
    built: M = kind(**dict(made.arguments), rngs=rngs)
    return built


def _holds_state(value: Any) -> bool:
    return any(_is_state(one) for one in jax.tree.leaves(value, is_leaf=_is_state))


def _is_state(value: Any) -> bool:
    return isinstance(value, (nnx.Pytree, nnx.Variable, jax.Array))
