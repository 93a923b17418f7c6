"""What this process runs built-in models on, decided before jax is first used."""

from __future__ import annotations

import os

import jax

from nnx_migrate.parity.models.options import ModelOptions
from nnx_migrate.parity.process import device_flags
from nnx_migrate.parity.words import BadWord


def set_up(options: ModelOptions) -> None:
    """Simulate the devices, unless JAX_PLATFORMS names others.

    Types of arrays have no mesh axes of size 1, unless the model's config wants them: a stack whose
    layers such an axis shards could not be scanned over Explicit axes.
    """
    os.environ["XLA_FLAGS"] = device_flags(os.environ.get("XLA_FLAGS", ""), options.devices)
    if "JAX_PLATFORMS" not in os.environ:
        jax.config.update("jax_platforms", "cpu")
    jax.config.update(
        "jax_remove_size_one_mesh_axis_from_type",
        getattr(options.config, "remove_size_one_mesh_axis_from_type", True),
    )


def require_devices(needed: int) -> None:
    """Refuse a mesh that needs more devices than there are. Raises BadWord."""
    found = len(jax.devices())
    if needed > found:
        raise BadWord(
            f"{needed} devices are needed, {found} are there: make the mesh smaller, or start with "
            f"XLA_FLAGS=--xla_force_host_platform_device_count={needed}"
        )
