"""A place that is not proven, and names of Linen's that need no proof."""

from __future__ import annotations

from dataclasses import dataclass

# What of Linen handles modules or their classes; all else in lower case handles arrays.
_OF_MODULES = ("flax.linen.transforms", "flax.linen.module", "flax.linen.summary")
_TAKING_MODULES = frozenset(
    [
        "add_metadata_axis",
        "apply",
        "bind",
        "checkpoint",
        "compact",
        "compact_name_scope",
        "cond",
        "custom_vjp",
        "fold_rngs",
        "grad",
        "init",
        "init_with_output",
        "intercept_methods",
        "jit",
        "jvp",
        "map_variables",
        "merge_param",
        "module",
        "named_call",
        "nowrap",
        "param_with_axes",
        "partitioning",
        "remat",
        "remat_scan",
        "scan",
        "scan_with_axes",
        "share_scope",
        "summary",
        "switch",
        "tabulate",
        "transforms",
        "value_and_grad",
        "variable_with_axes",
        "vjp",
        "vmap",
        "vmap_with_axes",
        "while_loop",
    ]
)
# What makes boxes of Linen's, which Variables are not made of.
_BOXING = frozenset({"with_logical_partitioning", "with_partitioning"})
_INITIALIZERS = "flax.linen.initializers"  # functions and their type


@dataclass(frozen=True)
class Doubt:
    """A place that is not proven.

    Attributes:
      field: a class and its field that builds submodules, of which it is not known what it is given there.
    """

    path: str
    line: int
    reason: str
    field: tuple[str, str] | None = None

    @property
    def text(self) -> str:
        """The place and why, in one line."""
        return f"{self.path}:{self.line}: {self.reason}"


def is_of_arrays(symbol: str) -> bool:
    """Whether a name of Linen's is a function of arrays or a constant: its import alone changes.

    >>> is_of_arrays("flax.linen.linear._conv_dimension_numbers"), is_of_arrays("flax.linen.scan")
    (True, False)
    >>> is_of_arrays("flax.linen.initializers.Initializer"), is_of_arrays("flax.linen.Module")
    (True, False)
    >>> is_of_arrays("flax.linen.with_partitioning")
    False
    """
    home, _, name = symbol.rpartition(".")
    if not symbol.startswith("flax.linen.") or home in _OF_MODULES:
        return False
    if name in _TAKING_MODULES | _BOXING:
        return False
    return name.lstrip("_")[:1].islower() or home == _INITIALIZERS
