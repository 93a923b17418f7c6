"""Which explicit classes are proven together with every place that builds, lifts or calls them."""

from nnx_migrate.rewrite.proof.doubt import Doubt
from nnx_migrate.rewrite.proof.judge import judge

__all__ = ["Doubt", "judge"]
