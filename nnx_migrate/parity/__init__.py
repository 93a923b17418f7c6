"""Proof that an NNX model is its Linen original: same names, numbers and program.

What is named here is loaded when it is asked for: reading a certificate needs no jax.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nnx_migrate.parity.case import BadCase, ParityCase
    from nnx_migrate.parity.instantiation.instantiate import instantiate
    from nnx_migrate.parity.report import Check, ParityFailure, ParityReport
    from nnx_migrate.parity.run import check

__all__ = [
    "BadCase",
    "Check",
    "ParityCase",
    "ParityFailure",
    "ParityReport",
    "check",
    "instantiate",
]
_PLACES = {
    "BadCase": "case",
    "Check": "report",
    "ParityCase": "case",
    "ParityFailure": "report",
    "ParityReport": "report",
    "check": "run",
    "instantiate": "instantiation.instantiate",
}


def __getattr__(name: str) -> Any:
    """Load what is named above. Raises AttributeError for any other name."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
