"""Static size inference: which sizes NNX constructors need, as expressions."""

from nnx_migrate.sizes.analyse import analyse
from nnx_migrate.sizes.result import Carried, ClassSizes, Site, SiteKind

__all__ = ["Carried", "ClassSizes", "Site", "SiteKind", "analyse"]
