"""What this process runs built-in models on, decided before jax is first used."""

from __future__ import annotations

import os

import jax

from nnx_migrate.parity.files.process import MOST_SIMULATED, simulate
from nnx_migrate.parity.models.options import ModelOptions
from nnx_migrate.parity.programs.compiler_options import QUICKLY, as_flags
from nnx_migrate.parity.words import BadWord


def set_up(options: ModelOptions) -> None:
    """Simulate the devices, unless JAX_PLATFORMS names others; a cluster's are what they are.

    Types of arrays have no mesh axes of size 1, unless the model's config wants them: a stack whose
    layers such an axis shards could not be scanned over Explicit axes.
    """
    if not options.distributed:
        # Full size has a mesh without devices, unless it is compiled: see `require_devices`.
        used = options.devices if options.size == "tiny" or options.compile else 1
        simulate(os.environ, min(used, MOST_SIMULATED))
        if os.environ.get("JAX_PLATFORMS", "cpu") == "cpu":
            # Of two the last one counts.
            os.environ["XLA_FLAGS"] = " ".join([*as_flags(QUICKLY), os.environ["XLA_FLAGS"]])
        if "JAX_PLATFORMS" not in os.environ:
            jax.config.update("jax_platforms", "cpu")
    jax.config.update(
        "jax_remove_size_one_mesh_axis_from_type",
        getattr(options.config, "remove_size_one_mesh_axis_from_type", True),
    )


def require_devices(options: ModelOptions) -> None:
    """Refuse a mesh that needs more devices than there are, and one that leaves some out.

    Of several processes each has to have its devices in the mesh. Raises BadWord.
    """
    device_count = options.devices
    if not options.distributed and device_count > MOST_SIMULATED:
        raise BadWord(
            f"{device_count} devices are needed, {MOST_SIMULATED} can be simulated: make the mesh smaller"
        )
    found = len(jax.devices())
    if options.distributed and device_count != found:
        raise BadWord(
            f"distributed=true: the mesh has {device_count} devices, the {jax.process_count()} processes "
            f"have {found}: pass mesh= with all of them"
        )
    if device_count > found:
        raise BadWord(
            f"{device_count} devices are needed, {found} are there: make the mesh smaller, or start with "
            f"XLA_FLAGS=--xla_force_host_platform_device_count={device_count}"
        )
