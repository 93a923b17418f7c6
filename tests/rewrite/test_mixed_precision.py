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


COMPLEX = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return NORM(jnp.fft.fft(nn.Dense(4)(x)))


def main():
    x = jax.random.normal(jax.random.key(1), (8, 4))
    params = Net().init(jax.random.key(0), x)["params"]
    grads = jax.grad(lambda one: jnp.abs(Net().apply({"params": one}, x) ** 2).sum())(params)
    for path, leaf in jax.tree_util.tree_leaves_with_path(grads):
        print(jax.tree_util.keystr(path), leaf.dtype, leaf.tolist())
"""


@pytest.mark.parametrize("norm", NORMS)
def test_gradients_of_complex_input_are_linens(norm: str) -> None:
    assert set(printed_alike(COMPLEX.replace("NORM", norm)).values()) == {"explicit"}


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
        ("", "from jax.numpy import half", True),
        ("", "from jmp import Policy", True),
        ("", "HALF = jax.numpy.half", True),
        ("", "HALF = jnp.asarray(1, 'half')", True),
        ("", "def cast(x):\n    return x.astype('f2')", True),
        ("", "def cast(x, name):\n    return x.astype(getattr(jnp, name))", True),
        ("", "def cast(x, cfg):\n    return x.astype(cfg.dtype)", True),
        ("", "def cast(x, cfg):\n    return jnp.asarray(x, dtype=cfg.dtype)", True),
        ("", "def cast(x, cfg):\n    return jnp.asarray(x * cfg.scale, cfg.dtype)", True),
        ("", "def cast(x, dtype):\n    return jnp.asarray(x, dtype)", True),
        ("", "def cast(x, kind):\n    return jax.lax.convert_element_type(x, kind)", True),
        ("", "def turn(x):\n    return x * 1j", True),
        ("", "def turn(x):\n    return x.astype(complex)", True),
        ("", "def turn(x):\n    return jnp.fft.fft(x)", True),
        ("", "def cast(x):\n    return x.astype(jnp.uint8).astype('float32')", False),
        ("", "def cast(x, y):\n    return x.astype(y.dtype) + y", False),
        ("", "def none(x):\n    return jnp.zeros(x.shape, x.dtype)", False),
        (
            "",
            "def cast(x, old):\n    return jnp.zeros(3, jnp.int32 if old else jnp.float32)",
            False,
        ),
        ("", "def cast(x):\n    return jnp.asarray(x, dtype=float)", False),
        ("", "SIZE = 'at 64x64'", False),
        ("", "def split(width):\n    half = width // 2\n    return half", False),
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
