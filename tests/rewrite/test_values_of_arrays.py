"""Calls that ask for values of arrays: Linen's ``init`` and ``apply`` run them where nothing is traced."""

from __future__ import annotations

import pytest

from tests.rewrite.running import NET_MAIN, net_alike, printed_alike

NET = """\
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        n = jnp.max(jnp.array((2, 1)))
        x = nn.Dense(3)(x)
        return {} * self.param("scale", nn.initializers.ones, ())
"""


@pytest.mark.parametrize(
    "value",
    [
        "x.reshape(n, -1)",
        "x[:n]",
        "jnp.zeros((n, 3))",
        "jnp.split(x, n)[0]",
        "x * float(n)",
        "(x if n > 1 else -x)",
        "x * [1.0, 2.0, 3.0][n]",
        "(x + np.asarray(x).sum())",
        "x[x[:, 0] > 0.5]",
    ],
)
def test_values_are_there_where_linen_has_them(value: str) -> None:
    assert net_alike(NET.format(value), "jnp.ones((2, 3))") == {"m.Net": "explicit"}


HEAD = """\
import functools

import flax.linen as nn
import jax
import jax.numpy as jnp

TABLES = {}


@functools.lru_cache(maxsize=None)
def causal(n):
    return jnp.tril(jnp.ones((n, n)))


def table(n):
    if n not in TABLES:
        TABLES[n] = jnp.arange(1.0, n + 1)[:, None]
    return TABLES[n]


"""
COMPUTED = {
    "rates of an array": """\
class Net(nn.Module):
    rate: float = 0.2

    @nn.compact
    def __call__(self, x):
        for one in [one.item() for one in jnp.linspace(0, self.rate, 3)]:
            x = nn.Dropout(one, deterministic=True)(nn.Dense(3)(x)) * (1 - one)
        return x
""",
    "a width": """\
class Net(nn.Module):
    n: int = 9

    @nn.compact
    def __call__(self, x):
        return nn.Dense(int(jnp.sqrt(self.n)))(x)
""",
    "a number of layers": """\
class Net(nn.Module):
    n: int = 8

    def setup(self):
        assert jnp.log2(self.n) == 3
        self.layers = [nn.Dense(2**i) for i in range(int(jnp.log2(self.n)))]

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
""",
    "a shape": """\
class Net(nn.Module):
    dims: tuple = (2, 3)

    @nn.compact
    def __call__(self, x):
        size = jnp.prod(jnp.array(self.dims)).item()
        return x * self.param("w", nn.initializers.normal(), (size,)).sum()
""",
    "a function that keeps what it gives": """\
class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return causal(x.shape[0]) @ nn.Dense(3)(x)
""",
    "a table that a dict keeps": """\
class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return table(x.shape[0]) * nn.Dense(3)(x)
""",
}


@pytest.mark.parametrize("text", COMPUTED.values(), ids=COMPUTED)
def test_what_is_computed_from_numbers_has_values(text: str) -> None:
    again = "\n    print(Net().init(jax.random.key(1), *inputs), Net().apply(variables, *inputs))\n"
    forms = printed_alike(f"{HEAD}{text}{NET_MAIN.format(inputs='(jnp.ones((2, 3)),)')}{again}")
    assert forms == {"m.Net": "explicit"}


CHANGED = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Net(nn.Module):
    @nn.compact
    def __call__(self, batch):
        {}


def main():
    batch = {{"x": jnp.ones((2, 3)), "mask": jnp.ones((2, 1)), "seen": [jnp.ones((2, 1))]}}
    variables = Net().init(jax.random.key(0), batch)
    print(variables, sorted(batch), len(batch["seen"]))
"""


@pytest.mark.parametrize(
    "body",
    [
        "mask = batch.pop('mask')\n        return nn.Dense(3)(batch['x']) * mask",
        "batch['seen'].append(nn.Dense(4)(batch['x']))\n        return sum(one.sum() for one in batch['seen'])",
        "batch['x'] = nn.Dense(4)(batch['x'])\n        return batch['x']",
    ],
)
def test_inputs_are_changed_once(body: str) -> None:
    assert printed_alike(CHANGED.format(body))


KINDS = """\
import collections

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

Pair = collections.namedtuple("Pair", "x d")


class Net(nn.Module):
    @nn.compact
    def __call__(self, x, d):
        {}
        return nn.Dense(2)(jnp.asarray(x)) * d.get("n", 1)


class Pairs(nn.Module):
    @nn.compact
    def __call__(self, pair):
        pair.d["n"] += 1
        return nn.Dense(2)(pair.x) * pair.d["n"]


def main():
    given, x = {}, np.ones((2, 3), np.float32)
    variables = Net().init(jax.random.key(0), x, given)
    print(variables, given, x, Net().apply(variables, x, given), given, x)
    pair = Pair(jnp.ones((2, 3)), {{"n": 1}})
    variables = Pairs().init(jax.random.key(0), pair)
    print(pair, Pairs().apply(variables, pair), pair)
"""


@pytest.mark.parametrize(
    ("body", "given"),
    [
        ("d.pop('n', 0)", "collections.OrderedDict(n=2)"),
        ("d['n'] += 2", "collections.defaultdict(int)"),
        ("x /= 2", "{'n': 3}"),
    ],
)
def test_inputs_of_other_kinds_are_changed_once(body: str, given: str) -> None:
    assert printed_alike(KINDS.format(body, given))


TRACED = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        jax.debug.callback(print, jnp.arange(3.0).sum())
        return nn.Dense(2)(x)


def main():
    x = jnp.ones((2, 3))
    print(jax.eval_shape(Net().init, jax.random.key(0), x))
    variables = jax.jit(Net().init)(jax.random.key(0), x)
    jax.effects_barrier()
    print(jax.make_jaxpr(Net().init)(jax.random.key(0), x).jaxpr.effects, variables)
"""


def test_nothing_is_computed_in_a_trace() -> None:
    assert printed_alike(TRACED) == {"m.Net": "explicit"}
