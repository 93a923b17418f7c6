"""A call of a function of modules as a pure function of the values that the modules hold.

What is lifted need not hold all modules it works on: others come in as arguments, alone or in
containers, as Linen allows (flax 0.12.8, linen/transforms.py, ``get_module_scopes``). They are taken
apart together, so that what they share is one variable, and their places in the arguments are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
from flax import nnx

from nnx_migrate.nn.variables.parts import Parts, take_apart


@jax.tree_util.register_static
@dataclass(frozen=True)
class _Place:
    """Stands in the arguments where a module (or variable) was: no data for ``jax``."""

    index: int


@dataclass(frozen=True)
class PureCall:
    """The modules of one call taken apart, and its arguments without them.

    Attributes:
      modules: all of them, the one that is lifted first.
      parts: of their tuple.
      args, kwargs: the other arguments; places of modules hold nothing.
    """

    modules: tuple[Any, ...]
    parts: Parts
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    @classmethod
    def of(cls, module: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> PureCall:
        """Take apart the modules of ``function(module, *args, **kwargs)``."""
        found: list[Any] = [module]

        def placeholder(leaf: Any) -> Any:
            if not _is_node(leaf):
                return leaf
            found.append(leaf)
            return _Place(len(found) - 1)

        args, kwargs = jax.tree.map(placeholder, (args, dict(kwargs)), is_leaf=_is_node)
        modules = tuple(found)
        return cls(modules, take_apart(modules), args, kwargs)

    def run(
        self,
        function: Callable[..., Any],
        values: Mapping[int, Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        prepare: Callable[[Any], None] = lambda copies: None,
    ) -> tuple[Any, Any]:
        """``function`` on copies that hold ``values``: its result, and the copies.

        Args:
          prepare: what happens to the copies before.

        Raises:
          TypeError: the result has a module, which no transformation can return.
        """
        copies = self.parts.assemble(values)
        prepare(copies)
        args, kwargs = jax.tree.map(
            lambda leaf: copies[leaf.index] if isinstance(leaf, _Place) else leaf,
            (args, dict(kwargs)),
            is_leaf=lambda leaf: isinstance(leaf, _Place),
        )
        outputs = function(copies[0], *args, **kwargs)
        if any(map(_is_node, jax.tree.leaves(outputs, is_leaf=_is_node))):
            name = getattr(function, "__name__", repr(function))
            raise TypeError(f"expected {name} to return arrays from a lifted call, found a module")
        return outputs, copies


def _is_node(value: Any) -> bool:
    return isinstance(value, nnx.Module | nnx.Variable)
