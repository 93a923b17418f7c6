"""Static size inference: which sizes NNX constructors need, as expressions."""

from nnx_migrate.sizes.analyse import Memory as SizeMemory
from nnx_migrate.sizes.analyse import analyse
from nnx_migrate.sizes.extras import Extras
from nnx_migrate.sizes.result import ClassSizes, LoopCarry, Origin, Site, SiteKind, SizeSource

__all__ = [
    "ClassSizes",
    "Extras",
    "LoopCarry",
    "Origin",
    "Site",
    "SiteKind",
    "SizeMemory",
    "SizeSource",
    "analyse",
]
