"""An explicit class with its fields, whose sizes are found once for calls that are alike."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jax

from nnx_migrate.linen.core.sizes.arrays import is_array
from nnx_migrate.linen.core.sizes.declaration import Size
from nnx_migrate.linen.core.sizes.solving import solve, solve_part
from nnx_migrate.linen.core.sizes.trial_shapes import are_alike, built_shapes, shapes_of

_MOST = 4096  # kinds of calls whose sizes are remembered
_solutions: dict[Any, dict[str, Any]] = {}


@dataclass(frozen=True)
class Sizing:
    """A class with all arguments but its sizes and ``rngs``.

    Attributes:
      make: the class with its fields.
      sizes: where each size comes from.
      optional: those that have a default.
    """

    make: functools.partial[Any]
    sizes: Mapping[str, Size]
    optional: frozenset[str]

    @property
    def fields(self) -> Mapping[str, Any]:
        """What the fields are given."""
        return self.make.keywords

    def for_call(
        self, method: str, args: tuple[Any, ...], kwargs: Any, variables: Any
    ) -> Callable[..., Any]:
        """The class with all its arguments but ``rngs``; see `solve`."""

        def solve_sizes() -> dict[str, Any]:
            initial = self._initial(method, args, kwargs) if variables else None
            if initial and self._builds(variables, initial):
                return initial
            try:
                return solve(self.make, self.sizes, self.optional, method, args, kwargs, variables)
            except Exception:
                sizes = self._of_variables(variables)
                if sizes is None:
                    raise
                return sizes

        return self._with(solve_sizes, _alike(self.make, method, args, kwargs, variables))

    def _of_variables(self, variables: Any) -> dict[str, Any] | None:
        """The sizes of another call, `init` as a rule, with which a module has the variables held.

        None where two such calls built modules that are not alike: nobody knows which one is meant.
        """
        fitting = [one for one in self._earlier() if variables and self._builds(variables, one)]
        if all(are_alike(self.make, fitting[0], one) for one in fitting[1:]):
            return next(iter(fitting), None)
        return None

    def _earlier(self) -> Iterator[dict[str, Any]]:
        """The sizes of other calls of the class with its fields, the last one first."""
        own = _class_and_fields(self.make)
        return (sizes for key, sizes in reversed(_solutions.items()) if key[: len(own)] == own)

    def _builds(self, variables: Any, sizes: dict[str, Any]) -> bool:
        """Whether a module with these sizes has the variables held."""
        return shapes_of(variables).items() <= built_shapes(self.make, sizes).items()

    def _initial(self, method: str, args: tuple[Any, ...], kwargs: Any) -> dict[str, Any] | None:
        """The sizes of a call without variables, if to find them again would run code of the class."""
        if any(one.path or one.method != method for one in self.sizes.values()):
            return _solutions.get(_alike(self.make, method, args, kwargs, None))
        return None

    def for_part(
        self, variables: dict[str, Any], run: Any, input_shapes: tuple[tuple[int, ...], ...] = ()
    ) -> Callable[..., Any]:
        """The same for code that reads a part of the module, or calls one by ``run``; see `solve_part`."""

        def solve_sizes() -> dict[str, Any]:
            return solve_part(self.make, self.sizes, self.optional, variables, run, input_shapes)

        return self._with(
            solve_sizes, _alike(self.make, "", input_shapes, {}, variables) if run is None else None
        )

    def _with(self, solve_sizes: Callable[[], dict[str, Any]], key: Any) -> Callable[..., Any]:
        if not self.sizes:
            return self.make
        found = _solutions.get(key) if key is not None else None
        if found is None:
            found = solve_sizes()
            if key is not None and len(_solutions) < _MOST:
                _solutions[key] = found
        return functools.partial(self.make, **found)


def _alike(
    make: functools.partial[Any], method: str, args: Any, kwargs: Any, variables: Any
) -> Any | None:
    """A key that calls with the same sizes have; None where what they are given cannot be one."""
    try:
        leaves, tree = jax.tree.flatten((args, kwargs, variables))
        shapes = tuple(
            (one.shape, one.dtype) if is_array(one) else (type(one), one) for one in leaves
        )
        key = (*_class_and_fields(make), method, tree, shapes)
        hash(key)
    except TypeError:
        return None
    return key


def _class_and_fields(make: functools.partial[Any]) -> tuple[Any, ...]:
    return make.func, tuple(make.keywords.items())
