"""From what the interpreter saw to what the rewriter needs."""

from nnx_migrate.sizes.inference.class_analysis import ClassAnalysis
from nnx_migrate.sizes.inference.finish import finish

__all__ = ["ClassAnalysis", "finish"]
