"""Methods that build one submodule for ``setup`` or the compact method of their class, and return it."""

from __future__ import annotations

import pytest

from tests.rewrite.projects import LINEN
from tests.rewrite.running import lazy, migrated, printed_alike

DENSE = "    def dense(self, width):\n        return nn.Dense(width, use_bias=False)\n"
COMPACT = "    @nn.compact\n    def __call__(self, x):\n"
SETUP = (
    "    def setup(self):\n        self.first = self.dense(self.n)\n        self.last = self.dense(2)\n\n"
    "    def __call__(self, x):\n        return self.last(nn.relu(self.first(x)))\n"
)
CALL = "return self.dense(2)(nn.relu(self.dense(self.n)(x)))"
FIELDS = "class M(nn.Module):\n    n: int = 3\n\n"


def model(*lines: str, method: str = DENSE, fields: str = FIELDS) -> str:
    """A class whose compact call has these lines, and its factory method."""
    return LINEN + fields + COMPACT + "".join(f"        {one}\n" for one in lines) + "\n" + method


def test_it_stays_a_method_that_takes_a_size_and_streams() -> None:
    code = migrated(model(CALL))
    assert code.splitlines()[-8:] == [
        "        self.Dense_0 = self.dense(2, in_features=self.n, rngs=rngs)",
        "        self.Dense_1 = self.dense(self.n, in_features=in_features, rngs=rngs)",
        "",
        "    def __call__(self, x):",
        "        return self.Dense_0(nnx.relu(self.Dense_1(x)))",
        "",
        "    def dense(self, width, *, in_features, rngs):",
        "        return nnx.Linear(in_features, width, use_bias=False, rngs=rngs)",
    ]


def test_setup_calls_it_too() -> None:
    code = migrated(LINEN + FIELDS + SETUP + "\n" + DENSE)
    assert "self.first = self.dense(self.n, in_features=in_features, rngs=rngs)" in code
    assert "self.last = self.dense(2, in_features=self.n, rngs=rngs)" in code


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        pytest.param(
            "    def dense(self, width):\n        return nn.Embed(5, width)\n",
            ("def dense(self, width, *, rngs):", "return nnm.Embed(5, width, rngs=rngs)"),
            id="no size",
        ),
        pytest.param(
            "    @nn.nowrap\n" + DENSE,
            ("    def dense(self, width, *, in_features, rngs):",),
            id="nn.nowrap goes",
        ),
        pytest.param(
            "    @staticmethod\n" + DENSE.replace("self, ", ""),
            ("    @staticmethod\n    def dense(width, *, in_features, rngs):",),
            id="static",
        ),
        pytest.param(
            DENSE.replace("(width,", "(width * self.twice,")
            + "\n    @property\n    def twice(self):\n        return self.n * 2\n",
            ("return nnx.Linear(in_features, width * self.twice, use_bias=False, rngs=rngs)",),
            id="reads a property",
        ),
        pytest.param(
            "    bias = False\n\n" + DENSE.replace("=False", "=self.bias"),
            ("return nnx.Linear(in_features, width, use_bias=self.bias, rngs=rngs)",),
            id="reads a constant of the class",
        ),
        pytest.param(
            DENSE.replace("width)", "width, **rest)").replace("use_bias=False", "**rest"),
            (
                "def dense(self, width, *, in_features=None, rngs, **rest):",
                "return nnm.factory.Dense(width, **rest, in_features=in_features, rngs=rngs)",
            ),
            id="any keywords",
        ),
    ],
)
def test_what_it_may_be(method: str, expected: tuple[str, ...]) -> None:
    x = "x" if "Embed" not in method else "x.astype(int)"
    code = migrated(model(f"return self.dense(2)({x})", method=method))
    assert all(one in code for one in expected)


PROGRAM = """\
import flax.linen as nn
import jax
import jax.numpy as jnp
import optax


class Block(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return nn.tanh(nn.Dense(self.width)(x))


class Loop(nn.Module):
    widths: tuple = (4, 3)
    bias: bool = True

    @nn.compact
    def __call__(self, x):
        for width in self.widths:
            x = self.norm()(nn.relu(self.dense(width)(x)))
        return self.dense(x.shape[-1], name="last")(x)

    def dense(self, width: int, **rest) -> nn.Module:
        \"\"\"A layer.\"\"\"
        return nn.Dense(width, use_bias=self.bias, **rest)  # of any width

    def norm(self):
        return nn.LayerNorm(epsilon=1e-3)


class Choice(nn.Module):
    deep: bool = True

    @nn.compact
    def __call__(self, x):
        first = self.make(6)
        return self.make(5)(first(x))

    def make(self, width):
        if self.deep:
            return Block(width)
        return nn.Dense(width)


class Listed(nn.Module):
    widths: tuple = (4, 3)

    def setup(self):
        self.layers = [self.make(width, i) for i, width in enumerate(self.widths)]
        self.head = nn.Sequential([self.make(4, 0), nn.relu, self.make(2, 1)])

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(x)

    def make(self, width, i):
        return Block(width) if i else nn.Dense(width)


def main():
    x = jnp.linspace(-1, 1, 6).reshape(2, 3)
    for one in (Loop(), Loop((5,), bias=False), Choice(), Choice(False), Listed()):
        variables = one.init(jax.random.key(0), x)
        optimizer = optax.adam(0.1)
        state = optimizer.init(variables)
        for _ in range(2):
            grads = jax.grad(lambda v: (one.apply(v, x) ** 2).sum())(variables)
            updates, state = optimizer.update(grads, state)
            variables = optax.apply_updates(variables, updates)
        for path, value in jax.tree_util.tree_leaves_with_path(variables):
            print(jax.tree_util.keystr(path), value.tobytes().hex())
"""


def test_loops_names_choices_and_lists_compute_the_same() -> None:
    assert printed_alike(PROGRAM) == {
        "m.Block": "explicit",
        "m.Loop": "explicit",
        "m.Choice": "explicit",
        "m.Listed": "explicit",
    }


IN_HELPER = "it is built in the helper method 'dense'"
HEIR = "\n\nclass Heir(M):\n    pass\n"
WRAP = (
    "class Wrap(nn.Module):\n    inner: nn.Module\n\n"
    + COMPACT
    + "        return self.inner(x)\n\n\n"
)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param(model(CALL) + HEIR, IN_HELPER, id="a class inherits it"),
        pytest.param(
            model(CALL) + "\n\ndef use(m):\n    return m.dense(4)\n", IN_HELPER, id="used outside"
        ),
        pytest.param(model(CALL) + "\n\nMETHOD = 'dense'\n", IN_HELPER, id="its name is in a string"),
        pytest.param(
            model(CALL, method=DENSE + "\n    def other(self, x):\n        return self.dense(4)(x)\n"),
            IN_HELPER,
            id="another method calls it",
        ),
        pytest.param(
            model(CALL, method=DENSE.replace("False", "False, name='one'")),
            "its helper method 'dense' cannot be rewritten",
            id="it names",
        ),
        pytest.param(
            model(CALL, method=DENSE.replace("False", "self.has_rng('a')")),
            IN_HELPER,
            id="it asks its module",
        ),
        pytest.param(
            model(CALL, method="    @nn.jit\n" + DENSE), "it is built", id="decorated"
        ),
        pytest.param(
            model("return self.dense(2)(x)", method=DENSE.replace("rn nn.Dense(width, use_bias=False)", "rn Wrap(self.inner)"),
                  fields=WRAP + "class M(nn.Module):\n    inner: nn.Module\n\n")
            + "\n\nmodel = M(nn.Dense(3))\n",
            "it is built in the helper method 'dense'",
            id="it hands a module on",
        ),
        pytest.param(
            model("return self.dense(x.sum() > 0)(x)", method=DENSE.replace("(width,", "(2 if width else 3,")),
            "depends on 'x'",
            id="a value of the call",
        ),
    ],
)  # fmt: skip
def test_methods_that_are_more_than_that_keep_the_class_lazy(text: str, why: str) -> None:
    assert why in lazy(text, "M")


FUNCTION = """\
import flax.linen as nn


class Block(nn.Module):
    n: int

    @nn.compact
    def __call__(self, x):
        return nn.Dense(int(x.sum()))(x)


class M(nn.Module):
    @nn.compact
    def __call__(self, x):
        return self.make(3)(x)

    def make(self, n):
        return Block(n)
"""


def test_one_that_builds_a_lazy_class_keeps_its_own_lazy() -> None:
    assert lazy(FUNCTION, "M") == "what the helper method 'make' builds is lazy"
