"""How a block goes on: what ends it early, and under which conditions its rest runs."""

from __future__ import annotations

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.expression import Expr

# What ends a block early.
RETURN, RAISE, JUMP = "return", "raise", "jump"

# Conditions under which what follows a statement runs; one that is None hangs on the call.
Rest = tuple[Expr | None, ...]

# The condition of what a round, or the rest of a block, only runs if nothing left before.
UNLESS_LEFT = ex.name(f"{ex.FOREIGN}unless_left")
