"""What a program does while it runs: the scalars and texts it logs, and its last training state."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np

from benchmarks.programs.loops import state_of

TIMES = re.compile(r"per.sec|uptime|timing|time")  # what differs from run to run


@dataclass
class Session:
    """One run of a program.

    Attributes:
      workdir: where the program writes, and finds its own checkpoint.
      steps: training steps (or epochs, where the program counts these) when it ends.
      restored: a checkpoint to start from, for programs that have none of their own.
      scalars: what it logged: step, name, bits.
      texts: what it predicted.
      state: the last training state, with numpy arrays.
    """

    workdir: Path
    steps: int
    restored: Path | None = None
    scalars: list[tuple[int, str, str]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    state: Any = None
    _undo: list[Callable[[], None]] = field(default_factory=list)

    def patch(self, owner: Any, name: str, value: Any) -> None:
        """Set ``owner.name`` until this run ends."""
        old = vars(owner)[name]  # as it is stored: a classmethod stays one
        self._undo.append(lambda: setattr(owner, name, old))
        setattr(owner, name, value)

    def end(self) -> None:
        """Take back all patches, the last one first."""
        while self._undo:
            self._undo.pop()()

    def scalar(self, step: int, name: str, value: Any) -> None:
        """Keep a logged number, bit for bit."""
        if TIMES.search(name):
            return
        array = np.asarray(value)
        self.scalars.append((int(step), name, f"{array.dtype}:{array.tobytes().hex()}:{array}"))

    def keep(self, state: Any) -> None:
        """Keep a training state (its parts, in an NNX loop); the program may donate its arrays."""
        parts = state if isinstance(state, tuple) and not hasattr(state, "opt_state") else (state,)
        self.state = jax.tree.map(_numpy, state_of(parts))

    def saving(self, save: Callable[..., Any]) -> Callable[..., Any]:
        """``save(folder, state, ...)``, which writes a checkpoint, with the state kept."""

        def saved(folder: Any, state: Any, *args: Any, **kwargs: Any) -> Any:
            self.keep(state)
            return save(folder, state, *args, **kwargs)

        return saved

    def watched(self, function: Callable[..., Any], loss: bool = False) -> Callable[..., Any]:
        """``function``, a training step, with each state it gives kept (and, asked, its loss).

        A step of Linen's returns the state first; one of NNX's updates what it is given.
        """

        def step(*args: Any, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            parts = result if type(result) is tuple else (result,)
            state = state_of(parts[:1])
            if state is None:
                state, parts = state_of(args), (None, *parts)
            if state is not None:
                self.keep(state)
                if loss:
                    self.scalar(int(state.step), "loss", parts[1])
            return result

        return step


def _numpy(leaf: Any) -> Any:
    if not hasattr(leaf, "dtype"):
        return leaf
    if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    return np.array(leaf)
