"""Callers that the proof does not find, and the ledger does: their class is lazy, and they run as before."""

from __future__ import annotations

import pytest

from nnx_migrate.source.stars import Stars
from tests.rewrite.projects import LINEN, dense, rewrite_in_form, texts
from tests.rewrite.running import files_printed_alike
from tests.rewrite.test_forms import said

MAIN = """\
from models import Net
import jax
import jax.numpy as jnp


def main():
    print(Net().init_with_output(jax.random.key(0), jnp.ones((2, 3))))
"""
HOLDER = """\
import flax.linen as nn
from {module} import Layer


class Net(nn.Module):
    def setup(self):
        self.layer = Layer()

    def __call__(self, x):
        return self.layer(x)
"""


def chain(length: int) -> dict[str, str]:
    """A class whose name each of so many modules has from the one before."""
    files = {"m0.py": LINEN + dense("Layer")}
    for number in range(length):
        files[f"m{number + 1}.py"] = f"from m{number} import Layer\n"
    return files | {"models.py": HOLDER.format(module=f"m{length}"), "main.py": MAIN}


@pytest.mark.parametrize(("length", "form"), [(3, "explicit"), (40, "lazy")])
def test_a_class_whose_name_is_handed_on_too_often_is_lazy(length: int, form: str) -> None:
    forms = files_printed_alike(chain(length))
    assert forms["m0.Layer"] == form


CIRCLE = {
    "pack/__init__.py": "from .one import *\nfrom .two import *\n",
    "pack/one.py": "from .net import Layer\n",
    "pack/net.py": LINEN + dense("Layer"),
    "pack/two.py": HOLDER.format(module="."),
    "main.py": MAIN.replace("models", "pack"),
}


def test_a_package_that_takes_its_own_names_back_is_followed() -> None:
    result = rewrite_in_form(CIRCLE, "auto")
    assert said(result) == {"pack.net.Layer": "explicit", "pack.two.Net": "explicit"}
    made = texts(result, CIRCLE)["pack/two.py"]
    assert "self.layer = Layer(in_features=in_features, rngs=rngs)" in made


def test_the_class_of_a_caller_that_is_not_followed_is_lazy_and_the_reason_says_where(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Stars, "_is_of", lambda *_: False)
    result = rewrite_in_form(CIRCLE, "auto")
    assert said(result) == {"pack.net.Layer": "lazy", "pack.two.Net": "lazy"}
    reasons = {one.name: one.reason for one in result.classes}
    assert reasons["pack.net.Layer"] == (
        "not proven: pack/two.py:7: it is built here in a way that is not followed"
    )
    assert result.call_sites.refused == 0
