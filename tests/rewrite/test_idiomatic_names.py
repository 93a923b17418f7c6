"""``--names idiomatic``: attributes in snake case, variables where Linen has them."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from tests.rewrite.projects import rewrite_in_form
from tests.rewrite.running import module_of, same_bits

MODEL = """\
import flax.linen as nn
from functools import partial


class Block(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x, train):
        h = nn.relu(nn.Dense(self.width)(nn.LayerNorm()(x)))
        h = nn.Dropout(0.5, deterministic=not train)(h)
        h = nn.BatchNorm(use_running_average=not train)(h)
        for _ in range(2):
            h = nn.Dense(self.width)(h)
        return x + nn.Dense(x.shape[-1])(h)


class Net(nn.Module):
    depth: int = 3
    head: type = partial(nn.Dense, use_bias=False)

    @nn.compact
    def __call__(self, x, train=False):
        x = nn.Dense(8)(x)
        for _ in range(self.depth):
            x = nn.remat(Block, static_argnums=2)(16)(x, train)
        return self.head(2)(x)


MODELS = {"Block": lambda: Block(8), "Net": lambda: Net()}
"""
X = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)


def idiomatic(source: str) -> tuple[str, Any]:
    result = rewrite_in_form({"m.py": source}, "auto", names="idiomatic")
    (file,) = result.files
    assert file.code is not None
    return file.code, result


def test_attributes_are_in_snake_case_and_a_decorator_says_what_linen_calls_them() -> None:
    text, _ = idiomatic(MODEL)
    names = 'batch_norm="BatchNorm", dense="Dense", dropout="Dropout", layer_norm="LayerNorm"'
    assert f"@nnm.named_in_linen({names})class Block".replace(" ", "") in "".join(text.split())
    assert "self.dense_0 = nnx.Linear(in_features, self.width, rngs=rngs)" in text
    assert 'setattr(self, f"dense_{i + 1}", nnx.Linear(' in text
    assert "self.Dense" not in text


def test_the_map_says_where_each_went() -> None:
    (block, net) = idiomatic(MODEL)[1].migration_map.classes
    assert block.attributes["LayerNorm_0"] == "layer_norm_0"
    assert block.attributes["Dense_*"] == "dense_*"
    assert net.attributes == {}


@pytest.mark.parametrize("model", ["Block", "Net"])
def test_calls_in_linens_style_see_linens_variables(model: str) -> None:
    with module_of("linen_side", MODEL) as old, module_of("nnx_side", idiomatic(MODEL)[0]) as new:
        runs = [_run(one.MODELS[model]()) for one in (old, new)]
    same_bits(*runs)


def _run(model: Any) -> Any:
    keys = {"params": jax.random.key(0), "dropout": jax.random.key(1)}
    variables = jax.jit(model.init, static_argnums=2)(keys, X, False)

    def loss(params: Any) -> Any:
        output, updates = model.apply(
            {**variables, "params": params},
            X,
            True,
            mutable=["batch_stats"],
            rngs={"dropout": jax.random.key(2)},
        )
        return (output**2).sum(), updates

    return variables, jax.jit(jax.value_and_grad(loss, has_aux=True))(variables["params"])


KEPT = {
    "a field has the new name": """
class Model(nn.Module):
    dense_0: int

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.dense_0)(x)
""",
    "two classes would have one name": """
class MLP(nn.Module):
    @nn.compact
    def __call__(self, x):
        return x * self.param("w", nn.initializers.ones, ())

class Mlp(nn.Module):
    @nn.compact
    def __call__(self, x):
        return x + self.param("w", nn.initializers.ones, ())

class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        return Mlp()(MLP()(x))
""",
    "what is no submodule": """
class Model(nn.Module):
    def setup(self):
        self.W_0 = self.param("W_0", nn.initializers.ones, (6,))
        self.Scale_0 = 2.0

    def __call__(self, x):
        return x * self.W_0 * self.Scale_0
""",
    "code elsewhere reads it": """
class Part(nn.Module):
    def setup(self):
        self.Dense_0 = nn.Dense(6)

    def __call__(self, x):
        return self.Dense_0(x)

class Model(nn.Module):
    def setup(self):
        self.part = Part()

    def __call__(self, x):
        return self.part(x) + self.part.Dense_0(x)
""",
    "another class inherits from it": """
class Base(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(x)

class Model(Base):
    pass
""",
}


@pytest.mark.parametrize("source", KEPT.values(), ids=KEPT)
def test_names_stay(source: str) -> None:
    text, result = idiomatic("import flax.linen as nn\n" + source)
    assert all(one.form == "explicit" for one in result.classes), result.classes
    assert "named_in_linen" not in text
