"""Training loops: those around a ``TrainState`` become NNX's own, where every place is proven."""

from __future__ import annotations

from nnx_migrate.rewrite.loops.run import LOOPS, with_nnx_loops

__all__ = ["LOOPS", "with_nnx_loops"]
