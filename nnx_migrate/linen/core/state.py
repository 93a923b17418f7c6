"""What a bound module remembers during a call."""

from __future__ import annotations

import dataclasses
import enum
import weakref
from typing import Any

from nnx_migrate.linen.core.tree import is_module


class SetupState(enum.IntEnum):
    """How far `setup` has come."""

    NEW = 0
    TRANSFORMED = 1  # it ran outside of the transformation that we are in
    DONE = 2


@dataclasses.dataclass
class CallState:
    """Flags, the next automatic names and the children of a module that runs.

    ``children``: submodules by name, and for names of variables their collection.
    """

    in_compact_method: bool = False
    in_setup: bool = False
    setup_called: SetupState = SetupState.NEW
    is_initialized: bool = False
    autoname_cursor: dict[str, int] = dataclasses.field(default_factory=dict)
    children: dict[str, Any] = dataclasses.field(default_factory=dict)

    def reset(self) -> None:
        """Forget what belongs to one method."""
        self.in_compact_method = False
        self.in_setup = False
        self.autoname_cursor = {}

    def export(self) -> CallState:
        """What a module inside a transformation starts with."""
        done = SetupState.TRANSFORMED if self.setup_called else SetupState.NEW
        return CallState(
            in_compact_method=self.in_compact_method,
            in_setup=self.in_setup,
            setup_called=done,
            is_initialized=self.is_initialized,
            autoname_cursor=dict(self.autoname_cursor),
        )

    def reimport(self, other: CallState) -> None:
        """Take back what the module inside a transformation ended with."""
        self.in_compact_method = other.in_compact_method
        self.in_setup = other.in_setup
        self.is_initialized = other.is_initialized
        self.autoname_cursor = dict(other.autoname_cursor)


UNINITIALIZED = CallState()


class UnspecifiedParent:
    """Stands for the module whose method runs; the same object also after copying and pickling."""

    def __copy__(self) -> UnspecifiedParent:
        return self

    def __deepcopy__(self, memo: Any) -> UnspecifiedParent:
        return self

    def __reduce__(self) -> Any:
        return _unspecified_parent, ()


UNSPECIFIED_PARENT = UnspecifiedParent()


def _unspecified_parent() -> UnspecifiedParent:
    return UNSPECIFIED_PARENT


class ParentDescriptor:
    """The parent of a module, held weakly: a cycle would keep tracers and arrays alive."""

    def __get__(self, obj: Any, objtype: Any = None) -> Any:
        if obj is None:
            return None
        parent = object.__getattribute__(obj, "_parent_ref")
        return parent() if isinstance(parent, weakref.ReferenceType) else parent

    def __set__(self, obj: Any, value: Any) -> None:
        reference = weakref.ref(value) if is_module(value) else value
        object.__setattr__(obj, "_parent_ref", reference)
