"""Random names, rules and meshes, and how many of them to try."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from jax.sharding import AbstractMesh, AxisType, PartitionSpec

# HYPOTHESIS_PROFILE=deep tries each property of this directory 100,000 times.
DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"


def examples(fast: int = 300) -> settings:
    """How many examples a property gets; the deep profile overrides ``fast``."""
    return settings(
        max_examples=100_000 if DEEP else fast,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow] if DEEP else [],
    )


# Few names and few axes, so that most rules apply to the names and many conflict.
LOGICAL = st.sampled_from("abcde")
AXES = ("u", "v", "w", "x")
AXIS = st.sampled_from(AXES)
FREE = st.just(PartitionSpec.UNCONSTRAINED)
SEVERAL = st.lists(AXIS, max_size=3, unique=True)


def entries() -> st.SearchStrategy[Any]:
    """What a dimension is called: mostly a logical name."""
    return st.one_of(LOGICAL, LOGICAL, LOGICAL, st.none(), FREE, SEVERAL.filter(bool).map(tuple))


def names(*, unique: bool = False) -> st.SearchStrategy[Any]:
    """Names of up to five dimensions as a tuple, list or PartitionSpec; with ``unique`` no doubles."""
    lists = st.lists(entries(), max_size=5, unique_by=_identity if unique else None)
    return st.one_of(lists.map(tuple), lists, lists.map(lambda parts: PartitionSpec(*parts)))


def rules() -> st.SearchStrategy[Any]:
    """Up to ten rules, with every kind of value."""
    axes = st.one_of(st.none(), FREE, AXIS, AXIS, SEVERAL, SEVERAL.map(tuple))
    pairs = st.lists(st.tuples(LOGICAL, axes), max_size=10)
    return st.one_of(pairs, pairs.map(tuple), pairs.map(lambda all_: [list(one) for one in all_]))


def meshes() -> st.SearchStrategy[AbstractMesh]:
    """Meshes with some of the axes, of sizes 1 to 3, Auto: jax's default is not the same for all."""
    sizes = st.dictionaries(AXIS, st.integers(1, 3), min_size=1, max_size=4)
    return sizes.map(
        lambda chosen: AbstractMesh(
            tuple(chosen.values()), tuple(chosen), axis_types=(AxisType.Auto,) * len(chosen)
        )
    )


def _identity(entry: Any) -> Any:
    """Only logical names must differ, and a PartitionSpec turns a tuple of one into a name."""
    if isinstance(entry, tuple) and len(entry) == 1:
        return entry[0]
    return entry if isinstance(entry, str) else object()
