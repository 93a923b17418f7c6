"""Which explicit classes are proven together with every place that builds, lifts or calls them."""

from nnx_migrate.rewrite.proof.judge import Doubt, Verdict, judge

__all__ = ["Doubt", "Verdict", "judge"]
