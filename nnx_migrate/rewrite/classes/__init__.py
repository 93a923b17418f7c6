"""Converting one Linen class to one NNX class (see :func:`convert_class`)."""

from nnx_migrate.rewrite.classes.convert import convert_class
from nnx_migrate.rewrite.classes.data import (
    ClassRefusal,
    ConversionContext,
    ConvertedClass,
    ConvertedFunction,
)
from nnx_migrate.rewrite.classes.function import convert_function

__all__ = [
    "ClassRefusal",
    "ConversionContext",
    "ConvertedClass",
    "ConvertedFunction",
    "convert_class",
    "convert_function",
]
