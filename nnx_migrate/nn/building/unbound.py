"""Layers without parameters of their own: each call is given those that it computes with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import jax
from flax import nnx

T = TypeVar("T")


class Unbound:
    """A layer that Linen's ``init`` made no parameters for: ``head.apply({"params": ...}, x)``.

    It stands where the layer would, so that code outside of the class finds it there.
    """

    def __init__(self, factory: Callable[..., Any], *args: Any, **fields: Any) -> None:
        """Take a factory of ``nnm.factory`` and the fields of Linen's layer."""
        self._factory, self._args, self._fields = factory, args, fields

    def __eq__(self, other: object) -> bool:
        """Whether two stand for the same layer: modules that hold them then share compilations."""
        return isinstance(other, Unbound) and self._parts == other._parts

    def __hash__(self) -> int:
        """Of the factory alone: fields need not be hashable."""
        return hash(self._factory)

    @property
    def _parts(self) -> tuple[Any, ...]:
        return self._factory, self._args, self._fields

    def apply(self, variables: Mapping[str, Any], x: jax.Array, **options: Any) -> Any:
        """The layer called with the parameters in ``variables``; ``x`` has any leading axes.

        Raises:
          ValueError: other collections, or other parameters than the layer's.
        """
        if set(variables) != {"params"}:
            raise ValueError(f"expected the collection 'params' alone, found {sorted(variables)}")

        def build(rngs: nnx.Rngs) -> Any:
            return self._factory(*self._args, in_features=x.shape[-1], rngs=rngs, **self._fields)

        return with_params(build, variables["params"])(x, **options)


def with_params(build: Callable[[nnx.Rngs], T], params: Mapping[str, Any]) -> T:
    """A layer with the given parameters (``layer.apply({"params": params}, ...)`` of Linen).

    ``build`` runs abstractly, so nothing is initialised. ``params`` is nested like the layer's
    attributes.

    Raises:
      ValueError: a parameter of the layer is not given, or one is given that it does not have.
    """
    layer = nnx.eval_shape(lambda: build(nnx.Rngs(0)))
    graph, state = nnx.split(layer)
    values = _flat(params)
    flat: dict[Any, Any] = dict(nnx.to_flat_state(state))
    paths = {path for path, one in flat.items() if isinstance(one, nnx.Param)}
    if paths != set(values):
        raise ValueError(
            f"expected parameters {sorted('/'.join(map(str, p)) for p in paths)}, "
            f"found {sorted('/'.join(map(str, p)) for p in values)}"
        )
    for path, one in flat.items():
        if path in values:
            flat[path] = one.replace(values[path])
    return nnx.merge(graph, nnx.from_flat_state(flat))


def _flat(params: Mapping[str, Any], prefix: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    found: dict[tuple[str, ...], Any] = {}
    for key, value in params.items():
        if isinstance(value, Mapping):
            found |= _flat(value, (*prefix, key))
        else:
            found[(*prefix, key)] = value.get_value() if isinstance(value, nnx.Variable) else value
    return found
