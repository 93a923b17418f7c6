"""Functions inside of setup and compact methods that build one submodule and return it."""

from __future__ import annotations

import pytest

from tests.rewrite.projects import LINEN
from tests.rewrite.running import lazy, migrated, printed_alike

HEAD = "class M(nn.Module):\n    n: int = 3\n\n"
COMPACT = HEAD + "    @nn.compact\n    def __call__(self, x, train=False):\n"
LAMBDA = "dense = lambda width: nn.Dense(width, use_bias=False)"


def model(*lines: str, head: str = COMPACT) -> str:
    return LINEN + head + "".join(f"        {line}\n" for line in lines)


def test_a_lambda_moves_to_the_constructor_and_takes_a_size_and_streams() -> None:
    code = migrated(model(LAMBDA, "return dense(2)(nn.relu(dense(self.n)(x)))"))
    assert (
        "        dense = lambda width, *, in_features, rngs:"
        " nnx.Linear(in_features, width, use_bias=False, rngs=rngs)\n"
        "        self.Dense_0 = dense(2, in_features=self.n, rngs=rngs)\n"
        "        self.Dense_1 = dense(self.n, in_features=in_features, rngs=rngs)\n\n"
        "    def __call__(self, x, train=False):\n"
        "        return self.Dense_0(nnx.relu(self.Dense_1(x)))"
    ) in code


def test_a_function_does_so_with_its_comments() -> None:
    code = migrated(
        model(
            "# as the paper does",
            "def dense(width, bias=True):",
            '    """A layer."""',
            "    return nn.Dense(width, use_bias=bias)  # of any width",
            "return dense(2, bias=False)(nn.relu(dense(self.n)(x)))",
        )
    )
    assert (
        "        # as the paper does\n        def dense(width, bias=True, *, in_features, rngs):"
        in code
    )
    assert "nnx.Linear(in_features, width, use_bias=bias, rngs=rngs)  # of any width" in code
    assert code.count("def dense(") == 1


PROGRAM = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Block(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return nn.tanh(nn.Dense(self.width)(x))


class Compact(nn.Module):
    depth: int = 3
    skip: int = 2

    @nn.compact
    def __call__(self, x, other=None):
        dense = lambda width, **rest: nn.Dense(width, kernel_init=nn.initializers.normal(0.3), **rest)
        inputs = x
        for i in range(self.depth):
            x = nn.relu(dense(4)(x))
            if i % self.skip == 0 and i > 0:
                x = jnp.concatenate([x, inputs], axis=-1)
        first = dense(1, name="first")(x)
        if other is not None:
            x = dense(4, use_bias=False)(jnp.concatenate([x, other], -1))
        return dense(3)(x), first


class Setup(nn.Module):
    widths: tuple = (4, 3)

    def setup(self):
        half = 2

        def block(width):
            return Block(width * half)

        self.blocks = [block(one) for one in self.widths]
        self.last = block(2)

    def __call__(self, x):
        for one in self.blocks:
            x = one(x)
        return self.last(x)


def main():
    x = jnp.linspace(-1, 1, 6).reshape(2, 3)
    for model, inputs in ((Compact(), (x,)), (Compact(1), (x, x)), (Setup(), (x,)), (Setup((2,)), (x,))):
        variables = model.init(jax.random.key(0), *inputs)
        for path, value in jax.tree_util.tree_leaves_with_path(variables):
            print(jax.tree_util.keystr(path), value.tobytes().hex())
        print(jax.tree.map(lambda one: one.tobytes().hex(), model.apply(variables, *inputs)))
"""


def test_loops_conditions_names_and_setup_compute_the_same() -> None:
    forms = printed_alike(PROGRAM)
    assert forms == {"m.Block": "explicit", "m.Compact": "lazy", "m.Setup": "explicit"}


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        pytest.param(
            ("w = 4", "dense = lambda n: nn.Dense(n * w)", "w = 5", "return dense(2)(x)"),
            "inside a lambda",
            id="a local is bound again",
        ),
        pytest.param(
            ("dense = lambda n: nn.Dense(n * w)", "w = 5", "return dense(2)(x)"),
            "inside a lambda",
            id="a local is bound below",
        ),
        pytest.param(
            (LAMBDA, "other = dense", "return other(2)(x)"), "inside a lambda", id="another name"
        ),
        pytest.param(
            (LAMBDA, "run = lambda y: dense(2)(y)", "return run(x)"),
            "inside a lambda",
            id="called in another",
        ),
        pytest.param(
            (LAMBDA, "dense = lambda n: nn.Dense(n)", "return dense(2)(x)"),
            "is built where NNX cannot build it",
            id="bound twice",
        ),
        pytest.param(
            (
                "def dense(width):",
                "    self.sow('a', 'b', x)",
                "    return nn.Dense(width)",
                "return dense(2)(x)",
            ),
            "inside the local function dense",
            id="it does more",
        ),
        pytest.param(
            ("norm = lambda m: nn.BatchNorm(not train, momentum=m)", "return norm(0.5)(x)"),
            "depends on 'train'",
            id="a flag of the call",
        ),
    ],
)
def test_functions_that_are_more_than_that_keep_the_class_lazy(
    lines: tuple[str, ...], why: str
) -> None:
    assert why in lazy(model(*lines), "M")


WRAP = """\
class Wrap(nn.Module):
    inner: nn.Module

    @nn.compact
    def __call__(self, x):
        return self.inner(x)


"""


def test_a_function_that_hands_a_local_submodule_on_keeps_the_class_lazy() -> None:
    lines = ("inner = nn.Dense(3)", "wrap = lambda n: Wrap(inner)", "return wrap(1)(x) + inner(x)")
    assert "lazy" in printed_forms(model(*lines, head=WRAP + COMPACT))


def printed_forms(source: str) -> set[str]:
    program = source + (
        "\n\ndef main():\n    x = jnp.ones((2, 3))\n    variables = M().init(jax.random.key(0), x)\n"
        "    print(jax.tree.map(jnp.shape, variables), M().apply(variables, x))\n"
    )
    return set(printed_alike("import jax\nimport jax.numpy as jnp\n" + program).values())
