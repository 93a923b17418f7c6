"""The stacks of layers around a module: Linen splits a stream's key for each of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from flax import nnx

from nnx_migrate.nn.lifts.remat import PASSES_ON
from nnx_migrate.nn.loops.stacking import Stacking

Path = tuple[Any, ...]


@dataclass(frozen=True)
class Stacks:
    """What is around a module.

    Attributes:
      axes: how many stacks split a stream's key for their layers.
      times: how often the body around the module runs.
    """

    axes: int
    times: int


def stacks_around(path: Path, modules: Mapping[Path, nnx.Module]) -> Stacks:
    """The stacks around the module at ``path``, its own included."""
    axes, times = 0, 1
    for end in range(len(path) + 1):
        for one in _stackings(modules.get(path[:end])):
            axes += bool(one.axes)
            times *= one.traces if one.stacks_params else 1
    return Stacks(axes, times)


def _stackings(module: Any) -> Iterator[Stacking]:
    """The stackings around a module's call, the outermost first."""
    for kind in type(module).__mro__:
        own = vars(kind)
        if isinstance(own.get("_stacking"), Stacking):
            yield own["_stacking"]
        elif "__call__" in own and not own.get(PASSES_ON):
            return
