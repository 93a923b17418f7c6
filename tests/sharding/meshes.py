"""Meshes over the simulated devices that ``tests/conftest.py`` asks for."""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np
from jax.sharding import AbstractMesh, AxisType, Mesh

AUTO, EXPLICIT = AxisType.Auto, AxisType.Explicit


def mesh(kind: AxisType = AUTO, **sizes: int) -> Mesh:
    """A mesh of the first devices: ``mesh(data=4, model=2)``."""
    devices = np.array(jax.devices()[: math.prod(sizes.values())])
    return Mesh(
        devices.reshape(tuple(sizes.values())), tuple(sizes), axis_types=(kind,) * len(sizes)
    )


def abstract_mesh(kind: AxisType = AUTO, **sizes: int) -> AbstractMesh:
    return AbstractMesh(tuple(sizes.values()), tuple(sizes), axis_types=(kind,) * len(sizes))


def specs(tree: Any) -> Any:
    """The spec of every sharding or array of a tree, in its containers."""
    return jax.tree.map(lambda leaf: getattr(leaf, "sharding", leaf).spec, tree)
