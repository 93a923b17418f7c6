"""The names of ``flax.linen``, read off the text of `nnx_migrate.linen`, which has them all.

So a rewrite imports neither jax nor flax.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from nnx_migrate.source.names import table_of

LINEN = Path(__file__).parents[1] / "linen"


@cache
def public_names() -> frozenset[str]:
    """What ``from flax.linen import *`` may bind.

    >>> {"Dense", "relu", "initializers"} <= public_names(), "nnx" in public_names()
    (True, False)
    """
    files = (one.stem for one in LINEN.iterdir())
    return frozenset(one for one in (*linen_names(()), *files) if not one.startswith("_"))


@cache
def linen_names(module: tuple[str, ...]) -> frozenset[str]:
    """Names that a module below ``flax.linen`` binds; ``()`` is the package itself."""
    file = linen_file(module)
    assert file is not None
    table, _ = table_of(ast.parse(file.read_text(encoding="utf-8")).body, "")
    return frozenset(table)


def linen_file(module: tuple[str, ...]) -> Path | None:
    """The file of such a module; None where there is none."""
    path = LINEN.joinpath(*module)
    found = (path / "__init__.py", path.with_suffix(".py"))
    return next((one for one in found if one.is_file()), None)
