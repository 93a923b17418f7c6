"""Code of a module around its explicit classes.

It keeps Linen's style: each class there takes its lazy form, and what such classes alone read becomes
NNX with them.
"""

from __future__ import annotations

from nnx_migrate.rewrite.outside.convert import convert_outside
from nnx_migrate.rewrite.outside.data import Kind, OutsideContext, OutsideResult, Remark

__all__ = ["Kind", "OutsideContext", "OutsideResult", "Remark", "convert_outside"]
