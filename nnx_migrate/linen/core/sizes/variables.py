"""Sizes that the variables show with which a method is called, and those that make no difference."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from flax import nnx

from nnx_migrate import nn as nnm
from nnx_migrate.linen.core.sizes.built import (
    Shapes,
    built_shapes,
    modules_of,
    options_of,
    shapes_of,
)
from nnx_migrate.linen.core.sizes.declaration import Path, Size, UnknownSize
from nnx_migrate.linen.core.sizes.dicts import SizeDict
from nnx_migrate.linen.core.sizes.trials import class_of, some_value
from nnx_migrate.linen.core.sizes.whole import fitting_shape, trial_shape

# Two widths that no other dimension has, and that can be split into groups.
_PRIMES = (61 * 64 * 15, 67 * 64 * 15)


def of_variables(
    make: Callable[..., Any],
    sizes: Mapping[str, Size],
    known: dict[str, Any],
    held: Any,
    given: Collection[tuple[int, ...]],
    measure: Callable[[Mapping[str, Size], dict[str, Any]], dict[str, Any]],
) -> dict[str, Any]:
    """Sizes that the variables held show, or that make no difference.

    Args:
      given: the shapes of the inputs of the call.
      measure: finds those of submodules that the call reaches.
    """
    if not held:
        raise UnknownSize(
            f"{class_of(make).__qualname__}: this method does not show the sizes {', '.join(sizes)}:"
            " give it variables that `__call__` made"
        )
    found = shown_with_shapes(make, sizes, known, held, given)
    guess = {**known, **{name: _guess(size) for name, size in sizes.items()}, **found}
    missing = [name for name in sizes if name not in found]
    hidden = {name: sizes[name] for name in missing if not _is_idle(make, guess, name)}
    if not all(one.is_of_part for one in hidden.values()):
        raise _unknown(make, hidden)
    if hidden:
        rest = {name: one for name, one in guess.items() if name not in hidden}
        try:
            # A part that has no variables and is not called makes no difference, either.
            guess |= measure(hidden, rest)
        except Exception as error:
            raise _unknown(make, hidden) from error
    return {name: guess[name] for name in sizes}


def _guess(size: Size) -> Any:
    return some_value(size) if size.shows_nowhere else _PRIMES[0]


def _unknown(make: Callable[..., Any], sizes: Iterable[str]) -> UnknownSize:
    kind = class_of(make).__qualname__
    return UnknownSize(f"{kind}: neither the call nor the variables show the size {min(sizes)}")


def _is_idle(make: Callable[..., Any], guess: dict[str, Any], name: str) -> bool:
    """Whether a size makes no difference, as that of a layer which a field leaves out."""
    if not isinstance(guess[name], int):
        return False
    return _are_alike(make, *({**guess, name: size} for size in _PRIMES))


def _are_alike(make: Callable[..., Any], *sizes: dict[str, Any]) -> bool:
    """Whether modules of either sizes hold the same."""
    one, other = (nnm.abstract(functools.partial(make, **each)) for each in sizes)
    return _options(one) == _options(other) and shapes_of(nnx.state(one)) == shapes_of(
        nnx.state(other)
    )


def _options(model: nnx.Module) -> dict[Any, Any]:
    return {path: options_of(one) for path, one in modules_of(model).items()}


def shown_with_shapes(
    make: Callable[..., Any],
    sizes: Mapping[str, Size],
    known: dict[str, Any],
    held: Any,
    given: Collection[tuple[int, ...]],
) -> dict[str, Any]:
    """`shown_by`, with whole shapes that fit, or make a difference to layers alone (`trial_shape`)."""
    guess = {**known, **{name: _guess(size) for name, size in sizes.items()}}
    whole = {name: trial_shape(make, guess, name) for name, one in sizes.items() if one.is_whole}
    whole = {name: shape for name, shape in whole.items() if shape is not None}
    numbers = {name: size for name, size in sizes.items() if name not in whole}
    found = shown_by(make, numbers, {**known, **whole}, held)
    guess |= whole | found
    for name, shape in whole.items():
        found[name] = fitting_shape(make, guess, name, given, shapes_of(held)) or shape
    return found


def shown_by(
    make: Callable[..., Any], sizes: Mapping[str, Size], known: dict[str, Any], held: Any
) -> dict[str, Any]:
    """The sizes that an axis of a variable has, and the facts of the call that made the variables."""
    shapes = shapes_of(held)
    if not shapes:
        return {}
    numbers = [name for name, one in sizes.items() if one.fact is None and not one.shows_nowhere]
    guess = {**known, **{name: _guess(one) for name, one in sizes.items() if one.fact is None}}
    facts = [name for name, one in sizes.items() if one.fact in ("given", "truth")]
    found = _shown_facts(make, facts, guess, shapes)
    guess |= found
    first = built_shapes(make, guess)
    others = {name: built_shapes(make, {**guess, name: _PRIMES[1]}) for name in numbers}
    axes = {name: _axis(first, other, shapes) for name, other in others.items()}
    found |= {name: size for name, size in axes.items() if size is not None}
    rest = {name: other for name, other in others.items() if axes[name] is None}
    found |= _shown_sums(make, guess, first, rest, shapes)
    for name, one in sizes.items():
        if one.path.count("*") == 1 and one.axis is not None:
            parts = _shown_parts(make, name, {**guess, **found}, shapes)
            found |= {name: SizeDict(parts, guess[name].guess)} if parts else {}
    return found


def _shown_sums(
    make: Callable[..., Any],
    known: dict[str, Any],
    first: Shapes,
    others: Mapping[str, Shapes],
    shapes: Shapes,
) -> dict[str, int]:
    """Sizes of which an axis has the sum, as of inputs that are concatenated.

    Any that add up to it do, where nothing that the module holds tells them apart.

    Args:
      known: sizes with which modules are built, the first prime for those in question.
      first: the variables of that module; ``others``: with the second prime for one of them.
      shapes: the variables that are held.
    """
    step = _PRIMES[1] - _PRIMES[0]
    axes: dict[tuple[Path, int], list[str]] = {}
    for name, built in others.items():
        for path, shape in built.items():
            for axis, (one, other) in enumerate(zip(first[path], shape, strict=True)):
                if other - one == step and path in shapes:
                    axes.setdefault((path, axis), []).append(name)
    found: dict[str, int] = {}
    for (path, axis), (name, *more) in axes.items():
        rest = first[path][axis] - _PRIMES[0] * (1 + len(more))
        size = shapes[path][axis] - rest - len(more)
        moved = [{**known, name: _PRIMES[0] - 64, other: _PRIMES[0] + 64} for other in more]
        is_free = size > 0 and not found.keys() & {name, *more}
        if more and is_free and all(_are_alike(make, known, one) for one in moved):
            found |= {name: size, **dict.fromkeys(more, 1)}
    return found


def _shown_parts(
    make: Callable[..., Any],
    name: str,
    known: dict[str, Any],
    shapes: Shapes,
) -> dict[str, int]:
    """The sizes in a dict by submodules that an axis of a variable has."""
    each = SizeDict({}, _PRIMES[0])
    first = built_shapes(make, {**known, name: each})
    found: dict[str, int] = {}
    for part in sorted(each.asked):
        other = {**known, name: SizeDict({part: _PRIMES[1]}, _PRIMES[0])}
        size = _axis(first, built_shapes(make, other), shapes)
        found |= {} if size is None else {part: size}
    return found


def _axis(first: Shapes, other: Shapes, shapes: Shapes) -> int | None:
    """The size of which an axis is a multiple, or a part, in modules built with either of two primes."""
    for path, shape in other.items():
        axes = [i for i, (a, b) in enumerate(zip(first[path], shape, strict=True)) if a != b]
        one = axes[0] if len(axes) == 1 and path in shapes else None
        if one is None or first[path][one] * _PRIMES[1] != shape[one] * _PRIMES[0]:
            continue
        size, rest = divmod(shapes[path][one] * _PRIMES[0], first[path][one])
        if not rest:
            return size
    return None


def _shown_facts(
    make: Callable[..., Any], names: list[str], known: dict[str, Any], held: Mapping[Path, Any]
) -> dict[str, Any]:
    """The facts with which a module is built that has the variables held, as far as they show it."""
    found: dict[str, Any] = dict.fromkeys(names, False)
    for name in names:
        without, given = (
            built_shapes(make, {**known, **found, name: one}).keys() for one in (False, True)
        )
        found[name] = bool(held.keys() & (given - without)) or (
            bool(without - given) and held.keys().isdisjoint(without - given)
        )
    return found
