"""``linen.add_metadata_axis`` of a method: names of an axis that the values have for themselves."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from flax import nnx

from nnx_migrate.nn.variables.parts import take_apart
from nnx_migrate.nn.variables.variables import collection_of
from nnx_migrate.sharding.boxes import Partitioned, boxed

Edit = Callable[[Partitioned, int], Partitioned]


class add_metadata_axis:
    """Name an axis of the variables of a class; its ``__call__`` sees them without the name.

    ``@functools.partial(add_metadata_axis, variable_axes={"params": 0}, metadata_params=...)`` on a
    method of a class: after the constructor every variable of the collections whose initialiser gave
    names has ``metadata_params[nnx.PARTITION_NAME]`` among them at that index. Values stay as they are.
    The method runs on a copy whose variables have the names that the initialisers gave (flax 0.12.8,
    linen/transforms.py, core/meta.py).

    Args:
      target: the method.
      variable_axes: collection -> index of the name, from the front.
      metadata_params: ``{nnx.PARTITION_NAME: name}``.

    Raises:
      TypeError: a module is handed to the constructor or the method: its variables belong elsewhere.
      ValueError: ``metadata_params`` has no name, or the names lack it where it was put.
    """

    def __init__(
        self,
        target: Callable[..., Any],
        *,
        variable_axes: Mapping[str, int],
        metadata_params: Mapping[Any, Any],
    ) -> None:
        self._target = target
        self._axes = dict(variable_axes)
        self._params = dict(metadata_params)

    def __set_name__(self, owner: type[Any], name: str) -> None:
        """Take the place of the method and of the constructor of the class."""
        target, make = self._target, owner.__init__

        @functools.wraps(make)
        def __init__(module: Any, *args: Any, **kwargs: Any) -> None:
            given = {key: one for key, one in kwargs.items() if key != "rngs"}
            _refuse_modules(owner, (args, given))
            make(module, *args, **kwargs)
            for _, one in nnx.to_flat_state(nnx.state(module)):
                for key, value in self._added(one).items():
                    one.set_metadata(key, value)

        @functools.wraps(target)
        def call(module: Any, *args: Any, **kwargs: Any) -> Any:
            _refuse_modules(owner, (args, kwargs))
            parts = take_apart(module)
            given = parts.values() | parts.random_state()
            copy = parts.assemble(
                given, lambda i, old: {**old, **self._removed(parts.variables[i])}
            )
            outputs = target(copy, *args, **kwargs)
            parts.put_back(parts.changed(copy, given))
            return outputs

        setattr(owner, "__init__", __init__)  # noqa: B010 - of a class that is being made
        setattr(owner, name, call)

    def _added(self, variable: nnx.Variable[Any]) -> Mapping[str, Any]:
        return self._edited(variable, lambda box, index: box.add_axis(index, self._params))

    def _removed(self, variable: nnx.Variable[Any]) -> Mapping[str, Any]:
        return self._edited(variable, lambda box, index: box.remove_axis(index, self._params))

    def _edited(self, variable: nnx.Variable[Any], edit: Edit) -> Mapping[str, Any]:
        """Metadata of the names, edited; nothing for a variable without a box."""
        index = self._axes.get(collection_of(type(variable)))
        box = None if index is None else boxed(variable)
        if index is None or not isinstance(box, Partitioned):
            return {}
        return dict(edit(box, index).metadata)


def _refuse_modules(owner: type[Any], given: Any) -> None:
    found = [one for _, one in nnx.iter_graph(given) if isinstance(one, nnx.Module)]
    if found:
        raise TypeError(
            f"{owner.__name__} names an axis of its variables and got a {type(found[0]).__name__}: "
            "expected it to build all its submodules"
        )
