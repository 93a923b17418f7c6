"""Sizes that the variables show with which a method is called, and those that make no difference."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from nnx_migrate.linen.core.sizes.declaration import Path, Size, UnknownSize
from nnx_migrate.linen.core.sizes.sums import sizes_in_sums
from nnx_migrate.linen.core.sizes.trial_shapes import (
    PRIMES,
    Shapes,
    are_alike,
    built_shapes,
    shapes_of,
)
from nnx_migrate.linen.core.sizes.trials import class_of, some_value
from nnx_migrate.linen.core.sizes.whole import fitting_shape, trial_shape


def of_variables(
    make: Callable[..., Any],
    sizes: Mapping[str, Size],
    known_sizes: dict[str, Any],
    variables: Any,
    input_shapes: Collection[tuple[int, ...]],
    measure: Callable[[Mapping[str, Size], dict[str, Any]], dict[str, Any]],
) -> dict[str, Any]:
    """Sizes that the variables held show, or that make no difference.

    Args:
      input_shapes: the shapes of the inputs of the call.
      measure: finds those of submodules that the call reaches.
    """
    if not variables:
        raise UnknownSize(
            f"{class_of(make).__qualname__}: this method does not show the sizes {', '.join(sizes)}:"
            " give it variables that `__call__` made"
        )
    found = sizes_and_shapes(make, sizes, known_sizes, variables, input_shapes)
    guess = {**known_sizes, **{name: _guess(size) for name, size in sizes.items()}, **found}
    missing = [name for name in sizes if name not in found]
    open_sizes = {name: sizes[name] for name in missing if not _is_idle(make, guess, name)}
    if not all(one.is_of_part for one in open_sizes.values()):
        raise _unknown(make, open_sizes)
    if open_sizes:
        rest = {name: one for name, one in guess.items() if name not in open_sizes}
        try:
            # A part that has no variables and is not called makes no difference, either.
            guess |= measure(open_sizes, rest)
        except Exception as error:
            raise _unknown(make, open_sizes) from error
    return {name: guess[name] for name in sizes}


def _guess(size: Size) -> Any:
    return some_value(size) if size.shows_nowhere else PRIMES[0]


def _unknown(make: Callable[..., Any], sizes: Iterable[str]) -> UnknownSize:
    kind = class_of(make).__qualname__
    return UnknownSize(f"{kind}: neither the call nor the variables show the size {min(sizes)}")


def _is_idle(make: Callable[..., Any], guess: dict[str, Any], name: str) -> bool:
    """Whether a size makes no difference, as that of a layer which a field leaves out."""
    if not isinstance(guess[name], int):
        return False
    return are_alike(make, *({**guess, name: size} for size in PRIMES))


def sizes_and_shapes(
    make: Callable[..., Any],
    sizes: Mapping[str, Size],
    known_sizes: dict[str, Any],
    variables: Any,
    input_shapes: Collection[tuple[int, ...]],
) -> dict[str, Any]:
    """`sizes_of`, with whole shapes that fit, or make a difference to layers alone (`trial_shape`)."""
    guess = {**known_sizes, **{name: _guess(size) for name, size in sizes.items()}}
    whole = {name: trial_shape(make, guess, name) for name, one in sizes.items() if one.is_whole}
    whole = {name: shape for name, shape in whole.items() if shape is not None}
    numbers = {name: size for name, size in sizes.items() if name not in whole}
    found = sizes_of(make, numbers, {**known_sizes, **whole}, variables)
    guess |= whole | found
    for name, shape in whole.items():
        found[name] = fitting_shape(make, guess, name, input_shapes, shapes_of(variables)) or shape
    return found


def sizes_of(
    make: Callable[..., Any], sizes: Mapping[str, Size], known_sizes: dict[str, Any], variables: Any
) -> dict[str, Any]:
    """The sizes that an axis of a variable has, and the facts of the call that made the variables."""
    shapes = shapes_of(variables)
    if not shapes:
        return {}
    numbers = [name for name, one in sizes.items() if one.fact is None and not one.shows_nowhere]
    guess = {
        **known_sizes,
        **{name: _guess(one) for name, one in sizes.items() if one.fact is None},
    }
    facts = [name for name, one in sizes.items() if one.fact in ("given", "truth")]
    found = _facts_of(make, facts, guess, shapes)
    guess |= found
    first = built_shapes(make, guess)
    others = {name: built_shapes(make, {**guess, name: PRIMES[1]}) for name in numbers}
    axes = {name: _axis(first, other, shapes) for name, other in others.items()}
    found |= {name: size for name, size in axes.items() if size is not None}
    rest = [name for name in numbers if name not in found]
    found |= sizes_in_sums(make, {**guess, **found}, rest, shapes)
    return found


def _axis(first: Shapes, other: Shapes, shapes: Shapes) -> int | None:
    """The size of which an axis is a multiple, or a part, in modules built with either of two primes."""
    for path, shape in other.items():
        axes = [i for i, (a, b) in enumerate(zip(first[path], shape, strict=True)) if a != b]
        one = axes[0] if len(axes) == 1 and path in shapes else None
        if one is None or first[path][one] * PRIMES[1] != shape[one] * PRIMES[0]:
            continue
        size, rest = divmod(shapes[path][one] * PRIMES[0], first[path][one])
        if not rest:
            return size
    return None


def _facts_of(
    make: Callable[..., Any],
    names: list[str],
    known_sizes: dict[str, Any],
    shapes: Mapping[Path, Any],
) -> dict[str, Any]:
    """The facts with which a module is built that has the variables held, as far as they show it."""
    found: dict[str, Any] = dict.fromkeys(names, False)
    for name in names:
        without, paths_with = (
            built_shapes(make, {**known_sizes, **found, name: one}).keys() for one in (False, True)
        )
        found[name] = bool(shapes.keys() & (paths_with - without)) or (
            bool(without - paths_with) and shapes.keys().isdisjoint(without - paths_with)
        )
    return found
