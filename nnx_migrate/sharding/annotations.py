"""What a variable's metadata says about its sharding: names, rules of its own, stacking axes.

Names stand under one of several keys, depending on who wrote them: ``out_sharding`` (flax 0.12),
``sharding_names`` and ``sharding`` (earlier flax, and hand-written metadata), ``logical_axes``
(:func:`nnx_migrate.nn.with_logical_partitioning`). The first that says something is taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sized
from dataclasses import dataclass
from typing import Any

from jax.sharding import NamedSharding, PartitionSpec

from nnx_migrate.sharding.scan_axis import ScanAxis, require_scan_index, scan_axes_of, stacked_names

NAME_KEYS = ("out_sharding", "sharding_names", "sharding", "logical_axes")
RULE_KEYS = ("sharding_rules", "logical_axis_rules")

# Logical names, one per dimension, or a sharding that is resolved already.
Names = tuple[Any, ...] | PartitionSpec | NamedSharding


@dataclass(frozen=True, slots=True)
class Annotation:
    """Names (None: the variable has none), rules tried before the context's, stacking axes."""

    names: Names | None
    rules: tuple[tuple[str, Any], ...] = ()
    scan_axes: tuple[ScanAxis, ...] = ()

    def names_of(self, rank: int) -> Names | None:
        """The names of a value of ``rank`` dimensions, stacking axes inserted where absent."""
        if self.names is None or isinstance(self.names, PartitionSpec | NamedSharding):
            return self.names
        return stacked_names(self.names, self.scan_axes, rank)


def annotation(metadata: Mapping[str, Any]) -> Annotation:
    """Read the metadata of one variable.

    Raises:
      ValueError: names of an unknown kind, or an incomplete record of stacking axes.
    """
    key, raw_names = _first_names(metadata)
    names = _canonical(key, raw_names)
    require_scan_index(metadata, names)
    rules = tuple(rule for key in RULE_KEYS for rule in frozen_rules(metadata.get(key) or ()))
    return Annotation(names, rules, scan_axes_of(metadata))


def _first_names(metadata: Mapping[str, Any]) -> tuple[str, Any]:
    """The first key that has names; empty names only count when no key has more to say."""
    found = [(key, metadata[key]) for key in NAME_KEYS if metadata.get(key) is not None]
    says = [(key, names) for key, names in found if not (isinstance(names, Sized) and not names)]
    return [*says, *found, ("", None)][0]


def _canonical(key: str, names: Any) -> Names | None:
    if names is None or isinstance(names, PartitionSpec | NamedSharding):
        return names
    if isinstance(names, str):
        return (names,)
    if isinstance(names, tuple | list):
        return tuple(tuple(one) if isinstance(one, list) else one for one in names)
    raise ValueError(
        f"metadata {key!r}: expected logical axis names, a PartitionSpec or a NamedSharding, found "
        f"{type(names).__name__}"
    )


def frozen_rules(rules: Any) -> tuple[Any, ...]:
    """Rules as nested tuples, so that they can be a key. What is no pair is left for the resolver."""
    if not isinstance(rules, tuple | list):
        raise ValueError(  # noqa: TRY004 - as the resolver
            f"expected logical axis rules as a list or tuple of pairs, found {type(rules).__name__}"
        )
    return tuple(
        tuple(tuple(part) if isinstance(part, list) else part for part in rule)
        if isinstance(rule, tuple | list)
        else rule
        for rule in rules
    )
