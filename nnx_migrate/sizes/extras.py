"""What is decided of a class beside its code, before its sizes are inferred."""

from __future__ import annotations

from dataclasses import dataclass

_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Extras:
    """What its constructor gets beside sizes, and how its fields are taken.

    Attributes:
      shapes: parameters of ``__call__`` whose whole shape becomes an argument.
      facts: parameters of ``__call__`` of which an argument says what the initial call has: whether
        ``mask`` is given, whether ``train`` is set.
      unpassable_facts: parameters of ``__call__`` of which the class's callers cannot pass that on.
      open_fields: fields that build modules of classes that nobody knows, whatever the project gives
        them: ``block`` of ``Net(block=blocks[kind])``.
    """

    shapes: frozenset[str] = _NONE
    facts: frozenset[str] = _NONE
    unpassable_facts: frozenset[str] = _NONE
    open_fields: frozenset[str] = _NONE


NO_EXTRAS = Extras()
