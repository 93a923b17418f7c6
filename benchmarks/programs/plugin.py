"""A pytest plugin: the programs' own tests read synthetic data; seeds are set before each test."""

from __future__ import annotations

import random

import numpy as np

try:
    from benchmarks.programs import datasets
except ImportError:  # a program whose tests need no tensorflow
    pass
else:
    datasets.install(size=8)


def pytest_runtest_setup() -> None:
    """Tests that draw numbers draw the same ones on both sides."""
    random.seed(0)
    np.random.seed(0)
