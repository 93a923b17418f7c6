"""The public names of ``flax.linen``, read off the text of `nnx_migrate.linen`, which has them all."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from nnx_migrate.source.names import table_of

_LINEN = Path(__file__).parents[1] / "linen"


@cache
def linen_names() -> frozenset[str]:
    """What ``from flax.linen import *`` may bind.

    >>> {"Dense", "relu", "initializers"} <= linen_names(), "nnx" in linen_names()
    (True, False)
    """
    text = (_LINEN / "__init__.py").read_text(encoding="utf-8")
    table, _ = table_of(ast.parse(text).body, "")
    files = (one.stem for one in _LINEN.iterdir())
    return frozenset(one for one in (*table, *files) if not one.startswith("_"))
