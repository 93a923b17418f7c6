"""How XLA compiles what is compared: both sides alike, without what takes most of the time."""

from __future__ import annotations

from jaxlib import version

# Without LLVM's optimisations, which took half of the time. XLA's own passes (partitioning, fusion,
# memory) are what they are.
QUICKLY: dict[str, bool | int] = {
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
}
# The MLIR emitters of fusions take two thirds of what is left. Those of LLVM IR that came before them
# are in jaxlib 0.10; jaxlib 0.12 has no others, and ends a process that asks for them.
if version.__version__.startswith("0.10."):
    QUICKLY["xla_cpu_use_fusion_emitters"] = False


def as_flags(options: dict[str, bool | int]) -> list[str]:
    """Return options of a compilation as words for ``XLA_FLAGS``."""
    return [f"--{name}={str(value).lower()}" for name, value in options.items()]
