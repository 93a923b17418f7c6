"""Linen that files take from another one by a star."""

from __future__ import annotations

import pytest

from tests.rewrite.projects import LINEN, dense, looped
from tests.rewrite.running import printed_alike
from tests.rewrite.test_forms import auto, code, said

STAR = "from common import *\n\n\n"


@pytest.mark.parametrize(
    "between",
    [{}, {"package.py": "from common import *\n"}],
    ids=["by a star", "by a star of a star"],
)
def test_a_lazy_class_keeps_the_name_that_it_takes(between: dict[str, str]) -> None:
    star = "from package import *\n\n\n" if between else STAR
    result = auto({"common.py": LINEN + dense("A"), **between, "m.py": star + looped("B")})
    assert said(result) == {"common.A": "explicit", "m.B": "lazy"}
    assert "import nnx_migrate.linen as nn" in code(result, "common.py")


def test_a_star_of_linen_itself_has_its_public_names_alone() -> None:
    source = """\
from flax.linen import *
import jax
import jax.numpy as jnp


def doubled(x, scale=2.0):
    return relu(x) * scale


class Net(Module):
    width: int = 3

    @compact
    def __call__(self, x, train: bool = False):
        for rate in (0.5, 0.2):
            x = Dropout(rate, deterministic=not train)(doubled(Dense(self.width)(x)))
        scale = self.param("scale", initializers.ones, (1, x.shape[-1]))
        return x * scale, sum(len(str(k)) for k in range(2))


def main():
    print(Net().init_with_output(jax.random.key(0), jnp.ones((2, 3))))
"""
    assert printed_alike(source) == {"m.Net": "explicit"}


def test_so_does_code_outside_of_classes() -> None:
    files = {"common.py": LINEN + dense("A"), "m.py": STAR + "kinds = [nn.Module, A]\n"}
    assert "import nnx_migrate.linen as nn" in code(auto(files), "common.py")


def test_explicit_classes_need_it_no_more() -> None:
    result = auto({"common.py": LINEN + dense("A"), "m.py": STAR + dense("B")})
    assert said(result) == {"common.A": "explicit", "m.B": "explicit"}
    assert "linen" not in code(result, "common.py") + code(result)
