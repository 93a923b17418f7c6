"""Defaults of inherited fields stand in the constructor of the class again, in NNX's names."""

import pytest

from tests.rewrite.projects import one_line
from tests.rewrite.test_forms import auto, code, reason, said

BASE = (
    "{imports}\n\n\nclass Base(nn.Module):\n    width: int = 8\n    field: object = {default}\n\n"
    "    @nn.compact\n    def __call__(self, x):\n        return nn.Dense(self.width)(x), self.field\n\n\n"
)
CHILD = "class Child(Base):\n    width: int = 2\n"
IMPORTS = "import flax.linen as nn\nimport jax.numpy as jnp\nfrom functools import partial\n"

DEFAULTS = {
    "nn.relu": "nnx.relu",
    "nn.initializers.lecun_normal()": "nnx.initializers.lecun_normal()",
    "nn.LayerNorm": "nnm.factory.LayerNorm",
    "partial(nn.Dense, use_bias=False)": "partial(nnm.factory.Dense, use_bias=False)",
    "(nn.relu, nn.tanh)": "(nnx.relu, nnx.tanh)",
    "jnp.float32": "jnp.float32",
    "3": "3",
}


@pytest.mark.parametrize("default", DEFAULTS)
def test_of_a_base_in_the_same_file(default: str) -> None:
    result = auto({"m.py": BASE.format(imports=IMPORTS, default=default) + CHILD})
    assert said(result) == {"m.Base": "explicit", "m.Child": "explicit"}
    made = one_line(code(result).partition("class Child")[2])
    assert f"width: int = 2, field: object = {DEFAULTS[default]}, *" in made


@pytest.mark.parametrize("default", DEFAULTS)
def test_of_a_base_in_another_file_that_has_linen_by_another_name(default: str) -> None:
    base = BASE.format(imports=IMPORTS, default=default)
    base = base.replace(" as nn", " as fnn").replace("nn.", "fnn.")
    child = (
        "import jax.numpy as jnp\nfrom functools import partial\nfrom m import Base\n\n\n" + CHILD
    )
    result = auto({"m.py": base, "n.py": child})
    assert said(result) == {"m.Base": "explicit", "n.Child": "explicit"}
    assert f"width: int = 2, field={DEFAULTS[default]}, *" in one_line(code(result, "n.py"))


def test_what_the_file_of_the_class_does_not_have_is_lazy() -> None:
    base = BASE.format(imports=IMPORTS + "LIMIT = 3\n", default="LIMIT")
    result = auto({"m.py": base, "n.py": "from m import Base\n\n\n" + CHILD})
    assert said(result) == {"m.Base": "lazy", "n.Child": "lazy"}
    assert "the inherited default of 'field' reads 'LIMIT'" in reason(result, "n.Child")


READ = BASE.format(imports=IMPORTS, default="(2 * width, K * SIZE)").replace(
    "    field", "    SIZE = 3\n    field"
)


def test_what_a_default_reads_of_its_class_body_is_written_out() -> None:
    base = READ.replace("K * SIZE", "SIZE")
    result = auto({"m.py": base, "n.py": "from m import Base\n\n\n" + CHILD})
    assert said(result) == {"m.Base": "explicit", "n.Child": "explicit"}
    assert "width: int = 8, field: object = (2 * 8, SIZE)," in one_line(code(result))
    assert "width: int = 2, field=(2 * 8, 3)," in one_line(code(result, "n.py"))


def test_what_only_its_class_body_knows_is_lazy() -> None:
    base = READ.replace("SIZE = 3", "K = SIZE = sorted([3])[0]")
    result = auto({"m.py": base + CHILD})
    assert said(result) == {"m.Base": "lazy", "m.Child": "lazy"}
    assert "the default reads 'K' of its class body" in reason(result, "m.Child")
