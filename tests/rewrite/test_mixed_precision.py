"""Norms without a dtype get Linen's order of casts where arrays may have other types than float32."""

from __future__ import annotations

import pytest

from tests.rewrite.projects import rewrite, texts
from tests.rewrite.running import printed_alike

SOURCE = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Dense(4, dtype=jnp.bfloat16)(x)
        x = NORM(x)
        return nn.Dense(3)(x)


def main():
    x = jax.random.normal(jax.random.key(1), (8, 4))
    params = Net().init(jax.random.key(0), x)["params"]
    grads = jax.grad(lambda one: (Net().apply({"params": one}, x) ** 2).sum())(params)
    for path, leaf in jax.tree_util.tree_leaves_with_path(grads):
        print(jax.tree_util.keystr(path), leaf.dtype, leaf.tolist())
"""
NORMS = ("nn.LayerNorm()", "nn.GroupNorm(2)", "nn.RMSNorm()", "nn.InstanceNorm()")


@pytest.mark.parametrize("norm", NORMS)
def test_gradients_of_half_precision_are_linens(norm: str) -> None:
    assert set(printed_alike(SOURCE.replace("NORM", norm)).values()) == {"explicit"}


PLAIN = """\
import flax.linen as nn
import jax.numpy as jnp


class Net(nn.Module):
    dtype: jnp.dtype = jnp.float32

    @nn.compact
    def __call__(self, x):
        return nn.LayerNorm()(nn.Dense(4ARGUMENT)(x))
"""


@pytest.mark.parametrize(
    ("argument", "other", "keeps"),
    [
        ("", "", False),
        (", dtype=jnp.float32", "", False),
        (", dtype=x.dtype", "", False),
        ("", "# bfloat16 is not used here", False),
        (", dtype=self.dtype", "", True),
        ("", "HALF = jnp.float16", True),
        ("", "jax.config.update('jax_enable_x64', True)", True),
        ("", "def cast(x, half_precision):\n    return x", True),
    ],
)
def test_the_text_of_the_project_says_whether_other_types_occur(
    argument: str, other: str, keeps: bool
) -> None:
    files = {
        "m.py": PLAIN.replace("ARGUMENT", argument),
        "other.py": f"import jax\nimport jax.numpy as jnp\n\n{other}\n",
    }
    assert ("keep_dtype" in texts(rewrite(files), files)["m.py"]) is keeps
