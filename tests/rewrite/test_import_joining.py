"""New names join a statement of their module."""

from __future__ import annotations

import libcst as cst
import pytest

from nnx_migrate.edit.data import NewImport
from nnx_migrate.rewrite.new_imports import join_imports

LINEN = "nnx_migrate.linen"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"from {LINEN} import lazy\n", f"from {LINEN} import explicit, lazy\n"),
        (f"from {LINEN} import Size, lazy\n", f"from {LINEN} import Size, explicit, lazy\n"),
        (f"from {LINEN} import lazy, Size\n", f"from {LINEN} import lazy, Size, explicit\n"),
        (f"from {LINEN} import lazy  # one\n", f"from {LINEN} import explicit, lazy  # one\n"),
        (f"from {LINEN} import lazy as build\n", None),
        (f"from {LINEN} import *\n", None),
        (f"from {LINEN} import (\n    lazy,  # one\n)\n", None),
        (f"import {LINEN}\n", None),
        ("from .linen import lazy\n", None),
    ],
)
def test_a_name_joins_a_plain_statement_of_its_module(before: str, after: str | None) -> None:
    wanted = [NewImport(LINEN, "explicit")]
    module, left = join_imports(cst.parse_module(before), wanted)
    assert (module.code, left) == ((before, wanted) if after is None else (after, []))


def test_names_of_other_packages_and_aliases_have_statements_of_their_own() -> None:
    wanted = [NewImport("flax", "nnx"), NewImport("nnx_migrate", "nn", "nnm")]
    text = "from flax import struct\nfrom nnx_migrate import linen\n"
    module, left = join_imports(cst.parse_module(text), wanted)
    assert (module.code, left) == (text, wanted)
