"""Random numbers of Python and numpy in calls on trial: ``random.uniform(0, 1) < self.layerdrop``."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator

import numpy as np


@contextlib.contextmanager
def kept_random_numbers() -> Iterator[None]:
    """Both go on after the block as if it had drawn none: the call that counts draws them again."""
    of_python, of_numpy = random.getstate(), np.random.get_state()
    try:
        yield
    finally:
        random.setstate(of_python)
        np.random.set_state(of_numpy)
