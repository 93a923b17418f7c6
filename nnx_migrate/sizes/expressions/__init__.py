"""Expressions of the size interpreter: what each ``ast`` node means on abstract values."""

from nnx_migrate.sizes.expressions.comprehensions import iterate
from nnx_migrate.sizes.expressions.conditions import truth
from nnx_migrate.sizes.expressions.evaluation import evaluate

__all__ = ["evaluate", "iterate", "truth"]
