"""The equivalence ``unit_mesh_axes``: a mesh axis of size 1 in a sharding splits nothing.

Linen writes all axes of a logical axis rule into its constraints, also those that the mesh does not
use; ``nnx_migrate.sharding`` leaves them out. The devices hold the same pieces either way, and the
partitioner makes the same program of both.
"""

from __future__ import annotations

import functools
import re

UNIT_MESH_AXES = "unit_mesh_axes"

_MESH = re.compile(r"sdy\.mesh @([\w$.\-]+) = <\[([^\]]*)\]")
_AXIS = re.compile(r'"([^"]+)"=(\d+)')
# A sharding of a known mesh: dimensions in brackets, then replicated axes if there are any.
_SHARDING = r"<@{mesh}, \[[^<>]*>"
# Axes of one dimension; what follows them (``?``, a priority, a part of an axis) is kept.
_AXES = re.compile(r"\{([^{}]*)\}")


def without_unit_axes(text: str) -> str:
    """Return a StableHLO module whose shardings do not name mesh axes of size 1.

    The meshes themselves stay as they are, so that two modules with different meshes differ.
    """
    for mesh, axes in _MESH.findall(text):
        units = {name for name, size in _AXIS.findall(axes) if size == "1"}
        shardings = re.compile(_SHARDING.format(mesh=re.escape(mesh)))
        text = shardings.sub(functools.partial(_without_units, units), text)
    return text


def _without_units(units: set[str], sharding: re.Match[str]) -> str:
    def axes_text(found: re.Match[str]) -> str:
        entries = [entry for entry in found.group(1).split(", ") if entry.strip('"') not in units]
        return f"{{{', '.join(entries)}}}"

    return _AXES.sub(axes_text, sharding.group())
