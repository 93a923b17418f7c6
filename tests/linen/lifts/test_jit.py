"""``nn.jit`` and ``nn.fold_rngs``: keys folded once, counters, what is traced again."""

from __future__ import annotations

import pytest

from nnx_migrate.linen.transforms import _HashableProxy
from tests.linen.side_by_side import OURS, same_error, same_model, same_run

NET = """
class Block(nn.Module):
    features: int = 4

    @nn.compact
    def __call__(self, x, train=True):
        y = Noise()(x) if train else x
        return jnp.tanh(Linear(self.features)(Mean()(y)))
"""


@pytest.mark.parametrize("lift", ["jit", "fold_rngs"])
def test_classes_in_jitted_calls(lift: str) -> None:
    found = same_model(
        NET
        + f"""
class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        Lifted = nn.{lift}(Block)
        return Linear(2)(Lifted()(Lifted()(x)))

model, inputs = Net(), (jnp.ones((2, 4)),)
"""
    )
    assert f"{lift.capitalize()}Block_1" in found["variables"]["params"]


@pytest.mark.parametrize("lift", ["jit", "fold_rngs"])
def test_methods_draw_other_keys_in_every_call(lift: str) -> None:
    same_run(
        NET
        + f"""
class Net(nn.Module):
    @nn.{lift}
    @nn.compact
    def __call__(self, x):
        noise = Noise()
        return noise(noise(Block()(x)))

class Twice(nn.Module):
    @nn.compact
    def __call__(self, x):
        net = Net()
        return net(x), net(x), Noise()(x), net(x)

def run():
    keys = {{name: jax.random.key(i) for i, name in enumerate(("params", "noise"))}}
    model, x = Twice(), jnp.ones((2, 4))
    first = [model.init_with_output(keys, x) for _ in range(2)]
    again = [model.apply(first[0][1], x, rngs=keys, mutable=["stats"]) for _ in range(2)]
    return jax.tree.map(lambda x: jnp.round(x, 4), (first, again))
"""
    )


def test_static_arguments_and_methods() -> None:
    same_model(
        NET
        + """
class Net(nn.Module):
    def setup(self):
        self.a = nn.jit(Block, static_argnums=(2,))()
        self.b = nn.jit(Block, static_argnames="train")(features=3)

    def __call__(self, x):
        return self.b(self.a(x, False), train=False)

model, inputs = Net(), (jnp.ones((2, 4)),)
""",
    )


TRACES = """
class Net(nn.Module):
    features: int = 4

    @nn.jit
    @nn.compact
    def __call__(self, x):
        traced.append(self.features)
        return Linear(self.features)(x)

def run():
    keys, x = jax.random.key(0), jnp.ones((2, 4))
    variables = [Net().init(keys, x) for _ in range(3)]
    [Net().apply(variables[0], x) for _ in range(3)]
    Net().apply(variables[0], jnp.ones((3, 4)))
    Net(features=2).init(keys, x)
    Net(features=2).init(keys, x)
    return jnp.array(traced)
"""


def test_a_call_is_traced_once_for_each_module_and_shape() -> None:
    found = same_run("traced = []\n" + TRACES)
    assert list(found) == [4, 4, 4, 2]


def test_lifted_methods_that_call_each_other() -> None:
    same_model(
        """
class Net(nn.Module):
    def setup(self):
        self.linear = Linear(4)

    @nn.jit
    def once(self, x):
        return self.linear(x)

    @nn.jit
    def __call__(self, x):
        return self.once(self.once(x))

class Twice(nn.Module):
    @nn.compact
    def __call__(self, x):
        net = Net()
        return net.once(net(net(x)))

model, inputs = Twice(), (jnp.ones((2, 4)),)
"""
    )


def test_a_field_that_cannot_be_hashed() -> None:
    same_error(
        """
class Net(nn.Module):
    table: Any

    @nn.jit
    @nn.compact
    def __call__(self, x):
        return x

def run():
    class Odd:
        __hash__ = None

    return Net(Odd()).init(jax.random.key(0), jnp.ones(3))
"""
    )


def test_proxies_of_equal_modules_are_equal() -> None:
    class Leaf(OURS.Module):
        features: int
        table: dict  # type: ignore[type-arg]

    class Pair(OURS.Module):
        a: Leaf
        b: Leaf

    one, other = Leaf(3, {"a": 1}), Leaf(4, {"a": 1})
    same = [_HashableProxy.from_module(Leaf(3, {"a": 1})) for _ in range(2)]
    assert same[0] == same[1]
    assert hash(same[0]) == hash(same[1])
    assert same[0] != _HashableProxy.from_module(other)
    shared = _HashableProxy.from_module(Pair(one, one))
    assert shared != _HashableProxy.from_module(Pair(one, Leaf(3, {"a": 1})))
    assert _HashableProxy.from_module(one).module is one


@pytest.mark.parametrize("method", ["", "@nn.jit"])
@pytest.mark.parametrize("lifts", ["nn.jit(", "nn.fold_rngs(nn.fold_rngs(", "nn.fold_rngs(nn.jit("])
def test_what_setup_draws_has_the_keys_of_the_outermost_lift(lifts: str, method: str) -> None:
    same_model(
        f"""
class Scaled(nn.Module):
    def setup(self):
        self.scale = self.param("scale", jax.random.normal, (3,))

    {method}
    def __call__(self, x):
        return x * self.scale

class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return {lifts}Scaled{")" * lifts.count("(")}(name="scaled")(x)

model, inputs = Net(), (jnp.ones(3),)
"""
    )
