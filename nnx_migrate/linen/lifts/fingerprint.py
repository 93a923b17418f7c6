"""A hashable stand-in for a module: equal for modules whose methods trace to the same program.

The parts that count are those of ``flax/linen/transforms.py`` (flax 0.12.8).
"""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Iterable, Mapping
from typing import Any

from flax import serialization
from flax.core.scope import DenyList

from nnx_migrate.linen.core.tree import is_module

_STATE = ("in_compact_method", "in_setup", "setup_called", "is_initialized", "autoname_cursor")


@dataclasses.dataclass(frozen=True, eq=False)
class HashableProxy:
    """A module that hashes and compares by what its methods depend on while they are traced.

    Attributes:
      module_ref: weak reference to the module.
      hash_key: hash of its fields, its state and what its scope allows.
    """

    module_ref: weakref.ref[Any]
    hash_key: int

    @classmethod
    def from_module(cls, module: Any) -> HashableProxy:
        """The proxy of a module.

        Raises:
          ValueError: a field cannot be hashed.
        """
        return cls(weakref.ref(module), hash(_fingerprint(module, (), {})))

    def __hash__(self) -> int:
        return self.hash_key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HashableProxy) and self.hash_key == other.hash_key

    @property
    def module(self) -> Any:
        """The module, or None when it is gone."""
        return self.module_ref()


def _fingerprint(x: Any, path: tuple[str, ...], numbers_by_id: dict[Any, int]) -> Any:
    def named(pairs: Iterable[tuple[Any, Any]]) -> tuple[Any, ...]:
        return tuple((k, _fingerprint(v, (*path, str(k)), numbers_by_id)) for k, v in pairs)

    if isinstance(x, str):
        return x
    if is_module(x):
        x._try_setup()  # Linen asks every module for an attribute that it lacks, which does so
        return type(x), _of_module(x, path, named, numbers_by_id)
    if hasattr(x, "__fn_or_cls__"):  # a configuration of Pax
        return _fingerprint(x.__fn_or_cls__, path, numbers_by_id)
    if dataclasses.is_dataclass(x):
        present = [f.name for f in dataclasses.fields(x) if hasattr(x, f.name)]
        return type(x), named((name, getattr(x, name)) for name in present)
    if isinstance(x, DenyList):
        return type(x), named([("deny", x.deny)])
    if isinstance(x, dict):
        return named(x.items())
    if serialization.is_serializable(x):
        return type(x), _fingerprint(serialization.to_state_dict(x), path, numbers_by_id)
    if isinstance(x, Mapping):
        return named(x.items())
    if isinstance(x, Iterable):
        return named((str(i), v) for i, v in enumerate(x))
    return _hashable(x, path)


def _of_module(
    module: Any, path: tuple[str, ...], named: Any, numbers_by_id: dict[Any, int]
) -> Any:
    if module._id in numbers_by_id:  # a module that is shared: which one it was is all that counts
        return numbers_by_id[module._id]
    numbers_by_id[module._id] = len(numbers_by_id)
    fields = named(
        (field.name, getattr(module, field.name))
        for field in dataclasses.fields(module)
        if field.name not in ("parent", "name") and hasattr(module, field.name)
    )
    state = named((name, getattr(module._state, name)) for name in _STATE)
    scope = module.scope
    if scope is None:
        return fields, state
    mutable_filter = named(
        [
            ("mutable", scope.mutable),
            ("flags", scope.flags),
            ("rng_counts", scope.rng_counters),
            ("reservations", scope.reservations),
        ]
    )
    return fields, state, _hashable(mutable_filter, (*path, "scope"))


def _hashable(x: Any, path: tuple[str, ...]) -> Any:
    try:
        hash(x)
    except Exception as error:
        raise ValueError(f"Value at '{'/'.join(path)}' is not hashable: {error}") from error
    return x
