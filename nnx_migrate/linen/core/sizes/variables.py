"""Sizes that the variables show with which a method is called, and those that make no difference."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from nnx_migrate import nn as nnm
from nnx_migrate.linen.core.sizes.declaration import Path, Size, UnknownSize
from nnx_migrate.linen.core.sizes.dicts import SizeDict
from nnx_migrate.linen.core.sizes.trials import class_of, some_value

Shapes = Mapping[Path, tuple[int, ...]]  # of variables, by collection and path
_PRIMES = (61 * 64, 67 * 64)  # two widths that no other dimension has


def of_variables(
    make: Callable[..., Any],
    sizes: Mapping[str, Size],
    known: dict[str, Any],
    held: Any,
    measure: Callable[[Mapping[str, Size], dict[str, Any]], dict[str, Any]],
) -> dict[str, Any]:
    """Sizes that the variables held show, or that make no difference.

    Args:
      measure: finds those of submodules that the call reaches.
    """
    if not held:
        raise UnknownSize(
            f"{class_of(make).__qualname__}: this method does not show the sizes {', '.join(sizes)}:"
            " give it variables that `__call__` made"
        )
    found = shown_by(make, sizes, known, held)
    missing = [name for name in sizes if name not in found]
    guess = {**known, **found, **{name: _guess(sizes[name]) for name in missing}}
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
    return _options(one) == _options(other) and _shapes(nnx.state(one)) == _shapes(nnx.state(other))


def _options(model: nnx.Module) -> list[tuple[Any, str, dict[str, Any]]]:
    """What modules hold beside variables, by path; lifted classes are made anew, so their names count."""
    plain = (int, float, str, tuple, type(None))
    return [
        (path, type(one).__qualname__, {k: v for k, v in vars(one).items() if isinstance(v, plain)})
        for path, one in nnx.iter_graph(model)
        if isinstance(one, nnx.Module)
    ]


def shown_by(
    make: Callable[..., Any], sizes: Mapping[str, Size], known: dict[str, Any], held: Any
) -> dict[str, Any]:
    """The sizes that an axis of a variable has, and the facts of the call that made the variables."""
    shapes = _shapes(held)
    if not shapes:
        return {}
    numbers = [name for name, one in sizes.items() if one.fact is None and not one.shows_nowhere]
    guess = {**known, **{name: _guess(one) for name, one in sizes.items() if one.fact is None}}
    facts = [name for name, one in sizes.items() if one.fact in ("given", "truth")]
    found = _shown_facts(make, facts, guess, shapes)
    guess |= found
    first = _built_shapes(make, guess)
    others = {name: _built_shapes(make, {**guess, name: _PRIMES[1]}) for name in numbers}
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
    first = _built_shapes(make, {**known, name: each})
    found: dict[str, int] = {}
    for part in sorted(each.asked):
        other = {**known, name: SizeDict({part: _PRIMES[1]}, _PRIMES[0])}
        size = _axis(first, _built_shapes(make, other), shapes)
        found |= {} if size is None else {part: size}
    return found


def _axis(first: Shapes, other: Shapes, shapes: Shapes) -> int | None:
    """The size of the axis that differs between modules built with either of two primes."""
    for path, shape in other.items():
        axes = [i for i, (a, b) in enumerate(zip(first[path], shape, strict=True)) if a != b]
        one = axes[0] if len(axes) == 1 and path in shapes else None
        if one is not None and (first[path][one], shape[one]) == _PRIMES:
            return shapes[path][one]
    return None


def _shown_facts(
    make: Callable[..., Any], names: list[str], known: dict[str, Any], held: Mapping[Path, Any]
) -> dict[str, Any]:
    """The facts with which a module is built that has the variables held, as far as they show it."""
    found: dict[str, Any] = dict.fromkeys(names, False)
    for name in names:
        without, given = (
            _built_shapes(make, {**known, **found, name: one}).keys() for one in (False, True)
        )
        found[name] = bool(held.keys() & (given - without)) or (
            bool(without - given) and held.keys().isdisjoint(without - given)
        )
    return found


def _shapes(tree: Any) -> dict[Path, tuple[int, ...]]:
    leaves = jax.tree_util.tree_flatten_with_path(tree, is_leaf=lambda one: hasattr(one, "unbox"))[
        0
    ]
    return {
        tuple(str(getattr(step, "key", step)) for step in path): jnp.shape(
            one.unbox() if hasattr(one, "unbox") else one
        )
        for path, one in leaves
    }


def _built_shapes(make: Callable[..., Any], sizes: dict[str, Any]) -> dict[Path, tuple[int, ...]]:
    return _shapes(jax.eval_shape(lambda: nnm.variables_of(make(**sizes, rngs=nnx.Rngs(0)))))
