"""Code around a class that reads fields of the built-in layers which it holds."""

from __future__ import annotations

import pytest

from nnx_migrate.model import Form
from tests.rewrite.projects import rewrite_in_form

MODEL = """\
import flax.linen as nn


class M(nn.Module):
    def setup(self):
        self.head = nn.Dense(4)
        self.layers = [nn.Dense(4), nn.Dense(4)]
        self.drop = nn.Dropout(0.5, deterministic=True)

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.drop(self.head(x))


class Config:
    features = 3


def read(variables, config=Config(), **heads):
    model = M().bind(variables)
    {}
"""


def form_and_reason(read: str) -> tuple[Form | None, str | None]:
    (found,) = rewrite_in_form({"m.py": MODEL.format(read)}, "auto").classes
    return found.form, found.reason


@pytest.mark.parametrize(
    "read",
    [
        "return model.head.features",
        "return model.layers[1].features",
        "head = model.head\n    return head.features",
        "return M().apply(variables, method=lambda one: one.head.kernel_init)",
    ],
)
def test_one_that_nnx_keeps_otherwise_makes_the_class_lazy(read: str) -> None:
    form, reason = form_and_reason(read)
    assert form is Form.LAZY
    assert "is read here, which NNX's may not keep" in (reason or "")


@pytest.mark.parametrize(
    "read",
    [
        "return model.drop.rate",
        "return model.layers[1].use_bias",
        "return config.features",
        "return heads['head'].features",
        "return model.head(3)",
    ],
)
def test_others_do_not(read: str) -> None:
    assert form_and_reason(read) == (Form.EXPLICIT, None)
