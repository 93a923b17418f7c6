"""Converting one Linen class to one NNX class (see :func:`convert_class`)."""

from nnx_migrate.rewrite.classes.convert import convert_class
from nnx_migrate.rewrite.classes.data import ClassRefusal, ConversionContext, ConvertedClass

__all__ = ["ClassRefusal", "ConversionContext", "ConvertedClass", "convert_class"]
