"""What ends a block early."""

from __future__ import annotations

from nnx_migrate.sizes import expression as ex

# What ends a block early.
RETURN, RAISE, JUMP = "return", "raise", "jump"


NOTHING = ex.literal("nothing")
