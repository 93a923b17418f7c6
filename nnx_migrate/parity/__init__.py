"""Proof that an NNX model is its Linen original: same names, numbers and program."""

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
