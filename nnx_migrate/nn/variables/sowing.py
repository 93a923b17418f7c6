"""What a call sows, by collection and path: ``nnx.capture`` with one name in several collections.

flax 0.12.8: nnx/module.py (``capture``, ``Module.sow``), which keeps the last of such values alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flax import nnx

from nnx_migrate.nn.variables.parts import CAPTURES
from nnx_migrate.nn.variables.sharing import modules_in
from nnx_migrate.nn.variables.variables import collection_of, variable_type

Path = tuple[str, ...]  # collection, path of the module as Linen names it, name


def caught(
    module: nnx.Module,
    call: Callable[[], Any],
    collections: Sequence[str],
    start: Mapping[Path, Any],
) -> tuple[Any, dict[Path, Any]]:
    """What ``call`` returns, and all that stands in the collections after it.

    Args:
      module: the outermost module of those that the call runs.
      call: runs the module.
      collections: those that the call may sow into.
      start: what earlier calls sowed.
    """
    if not collections:
        return call(), {}
    for place, one in modules_in(module):
        owners = (
            {k[-1]: v for k, v in start.items() if k[:-1] == (name, *place)} for name in collections
        )
        captures = tuple(
            variable_type(name)(values) for name, values in zip(collections, owners, strict=True)
        )
        setattr(one, CAPTURES, nnx.data(captures))
    output = call()
    found: dict[Path, Any] = {}
    for place, one in modules_in(module):
        for variable in getattr(one, CAPTURES, ()):
            above = collection_of(type(variable)), *place
            found |= {(*above, name): value for name, value in variable.items()}
        if hasattr(one, CAPTURES):
            delattr(one, CAPTURES)
    return output, found
