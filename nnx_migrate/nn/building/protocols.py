"""Modules that inherit from protocols, as Linen's may."""

from __future__ import annotations

from typing import Protocol

from flax.nnx import module as nnx_module


class ProtocolMeta(nnx_module.ModuleMeta, type(Protocol)):  # type: ignore[misc]
    """The metaclass of an NNX module that inherits from a `typing.Protocol`.

    >>> from flax import nnx
    >>> class Block(Protocol):
    ...     def __call__(self, x): ...
    >>> class Net(nnx.Module, Block, metaclass=ProtocolMeta):
    ...     def __call__(self, x):
    ...         return 2 * x
    >>> Block in Net.__mro__, Net()(3)
    (True, 6)

    NNX's modules and protocols have metaclasses that know nothing of each other, and Python wants one that goes
    with both. ``flax.linen.Module`` has such a one (flax 0.12.8, linen/module.py).
    """
