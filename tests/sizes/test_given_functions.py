"""Functions that fields are given through tables, factories and other fields may change the size."""

import pytest

from tests.rewrite.projects import LINEN
from tests.rewrite.running import net_alike

FUNCTIONS = (
    "import functools\nfrom typing import Any, Callable\n\nimport jax\nimport jax.numpy as jnp\n"
    + LINEN
    + "def twice(x):\n    return jnp.concatenate([nn.relu(x), nn.relu(-x)], -1)\n\n\n"
    "def half(x):\n    return x[..., : x.shape[-1] // 2]\n\n\n"
)
INNER = (
    "class Inner(nn.Module):\n    act: Callable\n\n    @nn.compact\n    def __call__(self, x):\n"
    "        return nn.Dense(2)(self.act(nn.Dense(8)(x)))\n\n\n"
)
ADDED = (
    "MORE = {}\n\n\ndef register(name):\n    def put(f):\n        MORE[name] = f\n        return f\n\n"
    "    return put\n\n\n@register('third')\ndef third(x):\n    return x[..., : x.shape[-1] // 3]\n\n\n"
)


def net(body: str, head: str = "", fields: str = "    kind: str = 'b'\n") -> str:
    outer = f"class Net(nn.Module):\n{fields}\n    @nn.compact\n    def __call__(self, x):\n"
    return FUNCTIONS + head + INNER + outer + f"        {body}\n"


TABLE = "ACTS = {'a': nn.relu, 'b': twice}\n\n\n"
GET = "def get(name):\n    if name == 'a':\n        return nn.relu\n    return ACTS[name]\n\n\n"
MAKE = "def make(n):\n    def act(x):\n        return jnp.tile(n * x, 2)\n\n    return act\n\n\n"

OUTER = (
    "class Outer(nn.Module):\n    act: Any\n\n    @nn.compact\n    def __call__(self, x):\n"
    "        return Inner(self.act)(x)\n\n\nclass Net"
)

CHANGING = {
    "a table": net("return Inner(ACTS[self.kind])(x)", TABLE),
    "get of a table": net("return Inner(act=ACTS.get(self.kind, nn.relu))(x)", TABLE),
    "a table that the class calls": net(
        "return nn.Dense(2)(ACTS[self.kind](nn.Dense(8)(x)))", TABLE + "ACTS.update(c=half)\n\n\n"
    ),
    "a local name of a table": net(
        "act = MORE['third']\n        return nn.Dense(2)(act(nn.Dense(8)(x)))", ADDED
    ),
    "a list": net("return Inner([nn.relu, half][1])(x)"),
    "a function that looks it up": net("return Inner(get(self.kind))(x)", TABLE + GET),
    "a function that makes it": net("return Inner(make(2.0))(x)", MAKE),
    "a table that a decorator fills": net("return Inner(MORE['third'])(x)", ADDED),
    "a table that an entry fills": net(
        "return Inner(MORE['c'])(x)", "MORE = {}\nMORE['c'] = twice\n\n\n"
    ),
    "a layer's function": net("return Inner({'glu': nn.glu}['glu'])(x)"),
    "a partial": net("return Inner(functools.partial(jnp.repeat, repeats=2, axis=-1))(x)"),
    "a local name": net(
        "act = ACTS[self.kind]\n        return Inner(act)(x)",
        TABLE,
    ),
    "another field": net("return Outer(ACTS[self.kind])(x)", TABLE).replace("class Net", OUTER),
}


@pytest.mark.parametrize("source", CHANGING.values(), ids=CHANGING)
def test_functions_that_change_the_size_are_not_taken_for_activations(source: str) -> None:
    net_alike(source, "jnp.ones(4)")


KEEPING = {
    "a table": net(
        "return Inner(ACTS[self.kind])(x)",
        "ACTS = {'a': nn.relu, 'b': jax.nn.silu, 'c': lambda x: x * jax.nn.sigmoid(1.7 * x)}\n\n\n",
    ),
    "a function that looks it up": net(
        "return Inner(get(self.kind))(x)",
        "ACTS = {'b': nn.softmax, 'c': functools.partial(nn.gelu, approximate=False)}\n\n\n" + GET,
    ),
    "a function that makes it": net(
        "return Inner(make(2.0))(x)",
        "def make(n):\n    def act(x):\n        return jnp.tanh(n * x)\n\n    return act\n\n\n",
    ),
}


@pytest.mark.parametrize("source", KEEPING.values(), ids=KEEPING)
def test_tables_of_activations_keep_the_size(source: str) -> None:
    assert net_alike(source, "jnp.ones(4)")["m.Inner"] == "explicit"
