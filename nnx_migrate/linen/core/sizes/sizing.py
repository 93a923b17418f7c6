"""An explicit class with its fields, whose sizes are found once for calls that are alike."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax

from nnx_migrate.linen.core.sizes.arrays import is_array
from nnx_migrate.linen.core.sizes.built import built_shapes, shapes_of
from nnx_migrate.linen.core.sizes.declaration import Size
from nnx_migrate.linen.core.sizes.solving import solve, solve_part

_MOST = 4096  # kinds of calls whose sizes are remembered
_known: dict[Any, dict[str, Any]] = {}


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

    def for_call(
        self, method: str, args: tuple[Any, ...], kwargs: Any, held: Any
    ) -> Callable[..., Any]:
        """The class with all its arguments but ``rngs``; see `solve`."""

        def solved() -> dict[str, Any]:
            initial = self._initial(method, args, kwargs) if held else None
            if initial and shapes_of(held).items() <= built_shapes(self.make, initial).items():
                return initial
            return solve(self.make, self.sizes, self.optional, method, args, kwargs, held)

        return self._with(solved, _alike(self.make, method, args, kwargs, held))

    def _initial(self, method: str, args: tuple[Any, ...], kwargs: Any) -> dict[str, Any] | None:
        """The sizes of a call without variables, if to find them again would run code of the class."""
        if any(one.path or one.method != method for one in self.sizes.values()):
            return _known.get(_alike(self.make, method, args, kwargs, None))
        return None

    def for_part(
        self, held: dict[str, Any], run: Any, given: tuple[tuple[int, ...], ...] = ()
    ) -> Callable[..., Any]:
        """The same for code that reads a part of the module, or calls one by ``run``; see `solve_part`."""

        def solved() -> dict[str, Any]:
            return solve_part(self.make, self.sizes, self.optional, held, run, given)

        return self._with(solved, _alike(self.make, "", given, {}, held) if run is None else None)

    def _with(self, solved: Callable[[], dict[str, Any]], key: Any) -> Callable[..., Any]:
        if not self.sizes:
            return self.make
        found = _known.get(key) if key is not None else None
        if found is None:
            found = solved()
            if key is not None and len(_known) < _MOST:
                _known[key] = found
        return functools.partial(self.make, **found)


def _alike(
    make: functools.partial[Any], method: str, args: Any, kwargs: Any, held: Any
) -> Any | None:
    """A key that calls with the same sizes have; None where what they are given cannot be one."""
    try:
        leaves, tree = jax.tree.flatten((args, kwargs, held))
        shapes = tuple(
            (one.shape, one.dtype) if is_array(one) else (type(one), one) for one in leaves
        )
        key = (make.func, tuple(make.keywords.items()), method, tree, shapes)
        hash(key)
    except TypeError:
        return None
    return key
