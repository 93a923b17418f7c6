"""Defaults of inherited fields stand in the constructor of the class again, in NNX's names."""

import pytest

from tests.rewrite.projects import one_line
from tests.rewrite.running import printed_alike
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


CONSTANTS = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Part(nn.Module):
    width: int = 3

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.width)(x)


class Other(nn.Module):
    width: int = 3

    @nn.compact
    def __call__(self, x):
        return nn.LayerNorm()(nn.Dense(self.width)(x))


class Base(nn.Module):
    {base}

    {body}


class Model(Base):
    {derived}


def main():
    for cls in (Base, Model):
        x = jnp.sin(jnp.arange(12.0)).reshape(2, 6)
        variables = cls().init(jax.random.key(0), x)
        for path, leaf in jax.tree_util.tree_leaves_with_path(variables):
            print(jax.tree_util.keystr(path), leaf.shape, float(leaf.sum()))
        print(cls().apply(jax.tree.map(lambda v: v * 1.1, variables), x).tolist())
"""
BUILT = {
    "compact": "@nn.compact\n    def __call__(self, x):\n        return self.made()(x)",
    "setup": (
        "def setup(self):\n        self.part = self.made()\n\n"
        "    def __call__(self, x):\n        return self.part(x)"
    ),
}


@pytest.mark.parametrize("body", BUILT.values(), ids=BUILT)
@pytest.mark.parametrize(
    ("base", "derived"),
    [
        ("made = nn.LayerNorm", "made = nn.RMSNorm"),
        ("made = Part", "made = Other"),
        ("@property\n    def made(self):\n        return Part", None),
    ],
    ids=["layers", "classes", "property"],
)
def test_classes_that_a_constant_names_otherwise_in_a_derived_class_are_lazy(
    body: str, base: str, derived: str | None
) -> None:
    other = base.replace("Part", "Other") if derived is None else derived
    source = CONSTANTS.replace("{body}", body).replace("{base}", base).replace("{derived}", other)
    forms = printed_alike(source)
    assert (forms["m.Base"], forms["m.Model"]) == ("lazy", "lazy")


@pytest.mark.parametrize("body", BUILT.values(), ids=BUILT)
@pytest.mark.parametrize("derived", ["scale = 2", "made = nn.LayerNorm"])
def test_a_constant_that_names_the_same_class_is_explicit(body: str, derived: str) -> None:
    source = CONSTANTS.replace("{body}", body).replace("{base}", "made = nn.LayerNorm")
    assert printed_alike(source.replace("{derived}", derived))["m.Model"] == "explicit"
