"""Everything of a module outside its Linen classes: references, constructor calls, call sites."""

from __future__ import annotations

from nnx_migrate.rewrite.outside.convert import convert_outside
from nnx_migrate.rewrite.outside.data import Kind, OutsideContext, OutsideResult, Remark

__all__ = ["Kind", "OutsideContext", "OutsideResult", "Remark", "convert_outside"]
