"""``cst`` is LibCST, loaded when the first node is made: a run that changes nothing never loads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import libcst as cst
else:

    class _Library:
        """Stands for the package until somebody asks it for something."""

        def __getattr__(self, name: str) -> Any:
            import libcst

            self.__dict__.update(vars(libcst))
            return getattr(libcst, name)

    cst = _Library()

__all__ = ["cst"]
