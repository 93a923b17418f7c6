"""Statements of the size interpreter: functions, blocks, branches and loops."""

from nnx_migrate.sizes.statements.blocks import run
from nnx_migrate.sizes.statements.functions import call_function, run_function, set_up

__all__ = ["call_function", "run", "run_function", "set_up"]
