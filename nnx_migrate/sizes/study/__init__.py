"""From what the interpreter saw to what the rewriter needs."""

from nnx_migrate.sizes.study.finish import finish
from nnx_migrate.sizes.study.study import Study

__all__ = ["Study", "finish"]
