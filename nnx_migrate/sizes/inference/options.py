"""Sizes of a submodule whose class is one of several: a class-valued field, a local choice."""

from __future__ import annotations

from collections.abc import Iterable

from nnx_migrate.abstract.values import Instance, Submodule, Use
from nnx_migrate.constructs import layer_of
from nnx_migrate.sizes.inference.class_analysis import ClassAnalysis

IN_FEATURES = "in_features"
Option = Submodule | Instance


def taken_by(analysis: ClassAnalysis, option: Option) -> frozenset[str]:
    """The size arguments that a class takes; the factory of every layer takes ``in_features``."""
    if isinstance(option, Submodule):
        return frozenset({IN_FEATURES})
    return frozenset(one.name for one in analysis.sizes_of(option.info.name).new_arguments)


def takes_different_sizes(analysis: ClassAnalysis, options: Iterable[Option]) -> bool:
    """Whether some class lacks a size argument that another one has."""
    return len({taken_by(analysis, one) for one in options}) > 1


def needs_width(analysis: ClassAnalysis, options: Iterable[Option]) -> bool:
    """Whether some class makes use of the width of its first input."""
    return any(
        IN_FEATURES in taken_by(analysis, one)
        and not (isinstance(one, Submodule) and _is_sizeless(one))
        for one in options
    )


def _is_sizeless(option: Submodule) -> bool:
    layer = layer_of(option.symbol)
    return layer is not None and not layer.sizes


def own_uses(option: Instance) -> list[Use]:
    """The calls of one of the classes."""
    if option.owner is None or option.call is None:
        return []
    return [use for use in option.owner.records.get(id(option.call), []) if use.module is option]


def field_among(
    analysis: ClassAnalysis, options: Iterable[Option], sizes: dict[str, str]
) -> str | None:
    """A size argument of one class that is an ordinary field of another, which would take it."""
    for option in options:
        fields = (
            option.info.field_names
            if isinstance(option, Instance)
            else set(layer.fields if (layer := layer_of(option.symbol)) else ())
        )
        for name in sorted(fields & (sizes.keys() - taken_by(analysis, option))):
            return name
    return None
