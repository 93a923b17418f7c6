"""Chains of layers: the public names of ``flax.linen.combinators``.

Also those that flax's module imports itself, since code is found that takes them from there.
"""

from collections.abc import Callable, Sequence
from typing import Any

from nnx_migrate.linen.layers.sequential import Sequential
from nnx_migrate.linen.module import Module, compact

__all__ = ["Any", "Callable", "Module", "Sequence", "Sequential", "compact"]
