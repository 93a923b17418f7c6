"""ppo: 84 x 84 x 4 frames of a seeded environment, in processes as the program starts them.

It writes a checkpoint every 500 steps only: the state that it creates is set from one instead.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.programs.session import Session

ACTIONS = 6
AGENTS = 2
LENGTH = 6  # steps of an episode


class Frames:
    """Stands for the Atari environment: random frames, rewarded for the action that they show."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(0)
        self._left = LENGTH

    def reset(self) -> Any:
        """The first frames of an episode: (84, 84, 4), uint8."""
        self._left = LENGTH
        return self._frames()

    def step(self, action: int) -> tuple[Any, float, bool, dict[str, Any]]:
        """Frames, reward, whether the episode ends, and nothing else to know."""
        self._left -= 1
        frames = self._frames()
        return frames, float(frames[0, 0, 0] % ACTIONS == action), self._left == 0, {}

    def _frames(self) -> Any:
        return self._random.integers(0, 256, (84, 84, 4)).astype(np.uint8)


def run(session: Session) -> None:
    """Run `ppo_lib.train`; a step is a loop of an epoch of two minibatches."""
    import env_utils
    import models
    import ppo_lib
    from configs import default

    session.patch(env_utils, "create_env", lambda game, clip_rewards: Frames())
    config = default.get_config()
    config.num_agents, config.actor_steps, config.batch_size, config.num_epochs = AGENTS, 4, 4, 1
    config.total_frames = session.steps * AGENTS * config.actor_steps
    session.patch(ppo_lib, "train_step", session.watched(ppo_lib.train_step, loss=True))
    model = _as_called(models.ActorCritic)(num_outputs=ACTIONS)
    session.keep(ppo_lib.train(model, config, str(session.workdir)))


def _as_called(cls: Any) -> Any:
    """The class as ``ppo_main``, which this stands for, builds it after the rewrite."""
    if hasattr(cls, "init"):
        return cls
    from nnx_migrate.linen import lazy

    return lazy(cls)
