"""Names of collections and streams: flax.core's filters, in one place for all that use them."""

from flax.core.scope import (
    CollectionFilter,
    DenyList,
    LazyRng,
    PRNGSequenceFilter,
    filter_to_set,
    group_collections,
    in_filter,
    intersect_filters,
    is_filter_empty,
    subtract_filters,
    union_filters,
)

__all__ = [
    "CollectionFilter",
    "DenyList",
    "LazyRng",
    "PRNGSequenceFilter",
    "filter_to_set",
    "group_collections",
    "in_filter",
    "intersect_filters",
    "is_filter_empty",
    "subtract_filters",
    "union_filters",
]
