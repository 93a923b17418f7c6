"""Layers that a random number of Python's skips: LayerDrop, stochastic depth."""

from __future__ import annotations

import pytest

from tests.rewrite.projects import LINEN, texts
from tests.rewrite.running import printed_alike
from tests.rewrite.test_forms import auto, said

MODEL = """\
class Net(nn.Module):
    layerdrop: float = 0.5

    def setup(self):
        self.layers = [nn.Dense(3, name=f"{{i}}") for i in range(2)]

    def __call__(self, x, deterministic: bool = True, mask=None):
        for layer in self.layers:
            {}
        return x


"""
HEAD = LINEN + "import random\nimport jax\nimport jax.numpy as jnp\nimport numpy as np\n\n\n"
MAIN = """\
def main():
    x = jnp.ones((2, 3))
    made = Net().init(jax.random.key(0), x)
    print(sorted(jax.tree_util.keystr(path) for path, _ in jax.tree.leaves_with_path(made)))
    print(Net().apply(made, x))
"""
CHANCE = {
    "a local": "p = random.uniform(0, 1)\nif not deterministic and (p < self.layerdrop):\n    pass\nelse:\n    x = layer(x)",
    "skipped": "p = random.random()\nif not deterministic and p < self.layerdrop:\n    continue\nx = layer(x)",
    "the other way round": "p = random.random()\nif deterministic or p > self.layerdrop:\n    x = layer(x)",
    "negated": "p = np.random.rand()\nif not (p < self.layerdrop and not deterministic):\n    x = layer(x)",
    "chance alone": "p = random.random()\nif p < 0.0:\n    pass\nelse:\n    x = layer(x)",
}
OPEN = {
    "a value": "p = x.sum()\nif not deterministic and mask == 'a':\n    pass\nelse:\n    x = layer(x)",
    "a value beside chance": (
        "p = random.random()\nif mask == 'a' and p < self.layerdrop:\n    x = layer(x)"
    ),
    "a number of the module": "p = self.layerdrop\nif mask == 'a' or p < 0.1:\n    x = layer(x)",
}


def source(body: str) -> str:
    lines = f"\n{' ' * 12}".join(body.splitlines())
    return HEAD + MODEL.format(lines) + MAIN


@pytest.mark.parametrize("body", CHANCE.values(), ids=CHANCE)
def test_what_chance_may_reach_is_built_and_a_person_is_told(body: str) -> None:
    result = auto({"m.py": source(body)})
    assert said(result) == {"m.Net": "explicit"}
    assert any("a random number decides" in one.message for one in result.findings)


@pytest.mark.parametrize("body", OPEN.values(), ids=OPEN)
def test_what_arguments_decide_is_left_to_its_first_call(body: str) -> None:
    assert printed_alike(source(body)) == {"m.Net": "explicit"}
    assert not any(
        "a random number decides" in one.message for one in auto({"m.py": source(body)}).findings
    )


def test_a_program_with_such_layers_prints_the_same() -> None:
    assert printed_alike(source(CHANCE["a local"])) == {"m.Net": "explicit"}


STACK = """\
class Block(nn.Module):
    def setup(self):
        self.out = nn.Dense(4)

    def __call__(self, x, probe: bool = False):
        out = (x + self.out(x),)
        return out + (x,) if probe else out


class Stack(nn.Module):
    layerdrop: float = 0.5

    def setup(self):
        self.layers = [Block(name=str(i)) for i in range(2)]

    def __call__(self, x, deterministic: bool = True):
        for layer in self.layers:
            p = random.uniform(0, 1)
            if not deterministic and p < self.layerdrop:
                out = {skipped}
            else:
                out = layer(x)
            x = out[0]
        return {result}


class Net(nn.Module):
    def setup(self):
        self.embed = nn.Embed(5, 4)
        self.stack = Stack()
        self.norm = nn.LayerNorm()

    def __call__(self, ids, deterministic: bool = True):
        return self.norm(self.stack(self.embed(ids), deterministic)[0])


def main():
    x = jnp.ones((2, 3), int)
    made = Net().init(jax.random.key(0), x)
    print(jax.tree.map(jnp.shape, made), Net().apply(made, x))
"""


@pytest.mark.parametrize("result", ["(x, None)", "tuple(v for v in (x, None) if v is not None)"])
def test_what_follows_a_skipped_layer_has_the_sizes_of_one_that_runs(result: str) -> None:
    files = {"m.py": HEAD + STACK.format(skipped="(None, None)", result=result)}
    assert printed_alike(files["m.py"]) == dict.fromkeys(
        ("m.Block", "m.Stack", "m.Net"), "explicit"
    )
    code = texts(auto(files), files)["m.py"]
    assert "self.norm = nnx.LayerNorm(4, rngs=rngs)" in code


def test_a_skipped_layer_that_gives_another_size_leaves_the_size_to_the_caller() -> None:
    files = {"m.py": HEAD + STACK.format(skipped="(x[:, :, :2], None)", result="(x, None)")}
    assert "self.norm = nnx.LayerNorm(4" not in texts(auto(files), files)["m.py"]


NUMBERS = """\
    random.seed(0)
    np.random.seed(0)
    net, x = Net(), jnp.ones((2, 3), int)
    made = net.init(jax.random.key(0), x)
    print(random.random(), np.random.rand())
    print(net.apply(made, x, deterministic=False), random.random())
    print(jax.jit(net.apply)(made, x), random.random())
    print(jax.grad(lambda one: net.apply(one, x).sum())(made), random.random())
"""


@pytest.mark.parametrize("draw", ["random.uniform(0, 1)", "np.random.rand()"])
def test_random_numbers_go_on_as_in_linen(draw: str) -> None:
    stack = STACK.format(skipped="(x, None)", result="(x, None)")
    stack = stack.replace("random.uniform(0, 1)", draw)
    assert printed_alike(HEAD + stack + NUMBERS)["m.Stack"] == "explicit"


UNEVEN = """\
class Block(nn.Module):
    heads: int = 2

    def setup(self):
        self.q = nn.Dense(8)
        self.out = nn.Dense(4)

    def __call__(self, x):
        a, b = jnp.split(self.q(x).reshape(x.shape[0], self.heads, -1), 2, axis=-1)
        return (self.out((a * b).reshape(x.shape[0], -1)),)


class Net(nn.Module):
    layerdrop: float = 0.9

    def setup(self):
        self.layers = [Block() for _ in range(3)]

    def __call__(self, x, deterministic: bool = True):
        for layer in self.layers:
            p = random.uniform(0, 1)
            if not deterministic and p < self.layerdrop:
                out = (None,)
            else:
                out = layer(x)
            if out[0] is not None:
                x = out[0]
        return x


def main():
    net, x = Net(), jnp.ones((2, 4))
    made = net.init(jax.random.key(0), x)
    random.seed(0)
    print(jax.tree.map(jnp.shape, made), net.apply(made, x, deterministic=False))
"""


def test_a_layer_that_is_skipped_has_the_sizes_of_its_variables() -> None:
    assert set(printed_alike(HEAD + UNEVEN).values()) == {"explicit"}
