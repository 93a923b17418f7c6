"""Wrappers that have no explicit form: classes that build them are lazy."""

from __future__ import annotations

import pytest

from nnx_migrate.model import Outcome
from tests.rewrite.projects import LINEN, caller, rewrite


@pytest.mark.parametrize("wrapper", ["SpectralNorm", "WeightNorm"])
def test_a_norm_around_a_layer_has_no_explicit_form(wrapper: str) -> None:
    body = f"nn.{wrapper}(nn.Dense(6))(x)"
    (found,) = rewrite({"m.py": LINEN + caller("Model", body)}).classes
    assert found.outcome is Outcome.REFUSED
    assert found.reason is not None
    assert wrapper in found.reason
