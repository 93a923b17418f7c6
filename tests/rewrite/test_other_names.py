"""Explicit classes that a file which cannot be changed calls by a name of its own."""

from __future__ import annotations

from nnx_migrate.model import Form
from tests.rewrite.projects import rewrite_in_form

LAYERS = """\
import flax.linen as nn


class Alpha(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(4)(x)
"""
MODELS = """\
import flax.linen as nn
from layers import Alpha as Mine

ACTS = {"relu": nn.relu}


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        for LOOP in range(2):
            x = ACTS["relu"](Mine()(x)) * LOOP
        return x + len(self.name or "")
"""


def forms(loop: str) -> dict[str, Form | None]:
    files = {"layers.py": LAYERS, "models.py": MODELS.replace("LOOP", loop)}
    return {one.name: one.form for one in rewrite_in_form(files, "auto").classes}


def test_a_class_is_lazy_where_a_file_that_names_it_otherwise_cannot_take_its_lazy_form() -> None:
    assert forms("lazy") == {"layers.Alpha": Form.LAZY, "models.Model": Form.LAZY}


def test_a_class_is_explicit_where_such_a_file_takes_its_lazy_form() -> None:
    assert forms("number") == {"layers.Alpha": Form.EXPLICIT, "models.Model": Form.LAZY}
