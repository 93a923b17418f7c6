"""Built-in layers as models of their own, outside of any class."""

from __future__ import annotations

import pytest

from tests.rewrite.projects import rewrite, texts

HEADER = "import jax\nimport jax.numpy as jnp\nimport flax.linen as nn\n"
KEY = "jax.random.key(0)"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            f"model = nn.Dense(10)\nv = model.init({KEY}, x)\ny = model.apply(v, x)\n",
            (
                f"model = nnm.build(nnm.factory.Dense, 10, in_features=x.shape[-1], rngs={KEY})\n"
                "v = nnm.variables_of(model, x)\ny = nnm.apply(model, v, x)\n"
            ),
        ),
        (
            (
                f"net = nn.Conv(features=3, kernel_size=(2,))\n"
                f"v = net.init({KEY}, inputs=jnp.ones((1, 5, 4)))['params']\nf = net.apply\n"
            ),
            (
                "net = nnm.build(\n    nnm.factory.Conv, features=3, kernel_size=(2,), "
                f"in_features=4, rngs={KEY}\n)\n"
                "v = nnm.variables_of(net, inputs=jnp.ones((1, 5, 4)))['params']\n"
                "f = nnm.apply_fn(net)\n"
            ),
        ),
    ],
)
def test_a_layer_whose_init_shows_its_size_is_rewritten_with_its_uses(
    before: str, after: str
) -> None:
    files = {"m.py": f"{HEADER}x = jnp.ones((2, 3))\n{before}"}
    result = rewrite(files)
    assert texts(result, files)["m.py"].endswith(after)
    assert all(one.outcome.value == "rewritten" for one in result.findings)


@pytest.mark.parametrize(
    "text",
    [
        f"model = nn.Dense(10)\nv = model.init({KEY}, load())\n",
        "model = nn.Dense(10)\n",
        f"model = nn.Dense(10, name='d')\nv = model.init({KEY}, x)\n",
        f"model = nn.Dense(**options)\nv = model.init({KEY}, x)\n",
        f"model = nn.Dense(10)\nv = model.init({KEY}, x)\nprint(model.features)\n",
        f"model = nn.Dense(10)\nv = model.init({KEY}, x)\nkeep(model)\n",
        f"model = nn.LayerNorm()\nv = model.init({KEY}, x)\n",
        "model = nn.Dense(10)\ny = model.apply(v, x)\nz = model.bind(v)\n",
    ],
)
def test_any_other_layer_is_left_alone_and_refused(text: str) -> None:
    files = {"m.py": f"{HEADER}x = jnp.ones((2, 3))\n{text}"}
    result = rewrite(files)
    assert texts(result, files) == files
    assert any("built outside of a Linen class" in one.message for one in result.findings)
