"""Keys of calls that Linen compiles on their own: they start anew, wherever the module stands.

``linen.jit`` draws a key of every stream in the module's scope and lets what runs inside fold paths
below the module into that key (flax 0.12.8, linen/transforms.py, ``fork_rngs``), so that one compiled
call serves modules at other paths.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from flax import nnx

from nnx_migrate.nn.lifts.methods import PASSES_ON
from nnx_migrate.nn.lifts.stacking import Stacking

Path = tuple[Any, ...]
MARK = "_forks_keys"


@dataclass(frozen=True)
class Route:
    """What Linen does to a stream's key on its way to a module.

    Attributes:
      steps: in order; None splits the key for the layers of the next stack, a tuple is folded in.
      folded: how many parts of the path the last fork has used up.
      forks: how many keys the module itself has drawn for its own calls.
      repeated: how many of them the body around the module draws again.
      times: how often the body around the module runs.
    """

    steps: tuple[Path | None, ...]
    folded: int
    forks: int
    repeated: int
    times: int


def route_of(path: Path, modules: Mapping[Path, nnx.Module], params: Mapping[Path, int]) -> Route:
    """The route to the module at ``path``.

    Args:
      params: how many parameters the module at each path makes itself.
    """
    steps: list[Path | None] = []
    folded, forks, repeated, times = 0, 0, 0, 1
    for end in range(len(path) + 1):
        module = modules.get(path[:end])
        forks = repeated = 0
        for lift in _lifts(module):
            if isinstance(lift, Stacking):
                steps += [None] if lift.axes else []
                times, repeated = times * (lift.traces if lift.stacks_params else 1), 0
                continue
            drawn = 1 + params.get(path[:end], 0)
            forks, repeated = forks + 1, repeated + 1
            count = forks + (times - 1) * drawn
            steps.append((*map(str, path[folded:end]), count))
            folded = end
    return Route(tuple(steps), folded, forks, repeated, times)


def _lifts(module: Any) -> Iterator[Any]:
    """The stackings and forks around a module's call, the outermost first."""
    for kind in type(module).__mro__:
        own = vars(kind)
        if isinstance(own.get("_stacking"), Stacking):
            yield own["_stacking"]
        elif own.get(PASSES_ON):
            yield from [MARK] * bool(own.get(MARK))
        elif "__call__" in own:
            yield from [MARK] * getattr(own["__call__"], MARK, 0)
            return
