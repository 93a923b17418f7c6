"""What code around reads and calls inside an explicit module that it uses as Linen's."""

from typing import Any

import flax.linen
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import nnx_migrate.linen as nn
from nnx_migrate import nn as nnm
from tests.linen.core.models import KEY, X

RNGS = {"params": KEY, "dropout": jax.random.key(1)}


class Part(nnx.Module):
    """A submodule with dropout and state, as `rewrite` writes it."""

    def __init__(self, embed: nnx.Embed, *, rngs: nnx.Rngs):
        self.embed = embed
        self.dense = nnx.Linear(3, 4, rngs=rngs)
        self.norm = nnx.BatchNorm(4, rngs=rngs)
        self.dropout = nnm.Dropout(0.5, rngs=rngs)

    def __call__(self, ids, train=False):
        x = self.norm(self.dense(self.embed(ids)), use_running_average=not train)
        return self.dropout(x, deterministic=not train)


class Net(nnx.Module):
    """Parts that share a submodule, and a parameter of its own."""

    def __init__(self, width: int, *, rngs: nnx.Rngs):
        self.width = width
        self.shared = nnx.Embed(7, 3, rngs=rngs)
        self.encoder = Part(self.shared, rngs=rngs)
        self.decoder = Part(self.shared, rngs=rngs)
        for i in range(2):
            setattr(self, f"heads_{i}", nnx.Linear(4, 2, rngs=rngs))
        self.head = nnx.Linear(3, width, use_bias=False, rngs=rngs)
        self.bias = nnx.Param(jnp.zeros((width,)))
        self.half = width // 2

    @property
    def heads(self):
        return tuple(getattr(self, f"heads_{i}") for i in range(2))

    def __call__(self, ids, train=False):
        x = self._part()(ids, train) + self.decoder(ids, train)
        return sum(head(x) for head in self.heads), self.head(self.shared(ids)) + self.bias[
            None, None
        ]

    def _part(self):
        return self.encoder


def linen_net() -> Any:
    linen = flax.linen

    class Part(linen.Module):
        embed: Any

        def setup(self):
            self.dense = linen.Dense(4)
            self.norm = linen.BatchNorm()
            self.dropout = linen.Dropout(0.5)

        def __call__(self, ids, train=False):
            x = self.norm(self.dense(self.embed(ids)), use_running_average=not train)
            return self.dropout(x, deterministic=not train)

    class Net(linen.Module):
        width: int

        def setup(self):
            self.shared = linen.Embed(7, 3)
            self.encoder = Part(self.shared)
            self.decoder = Part(self.shared)
            self.heads = [linen.Dense(2) for _ in range(2)]
            self.head = linen.Dense(self.width, use_bias=False)
            self.bias = self.param("bias", jax.nn.initializers.zeros, (self.width,))
            self.half = self.width // 2

        def __call__(self, ids, train=False):
            x = self._part()(ids, train) + self.decoder(ids, train)
            return sum(head(x) for head in self.heads), self.head(self.shared(ids)) + self.bias[
                None, None
            ]

        def _part(self):
            return self.encoder

    return Net


IDS = jnp.array([[1, 2, 3]])


def tied(net, x):
    embedding = net.shared.variables["params"]["embedding"]
    return net.head.apply({"params": {"kernel": embedding[: net.width].T @ jnp.ones((5, 5))}}, x)


USES = {
    "a submodule": lambda net: net.encoder(IDS),
    "a private method": lambda net: net._part()(IDS),
    "keys and state": lambda net: (net.encoder(IDS, True), net.decoder(IDS, True)),
    "the same keys twice": lambda net: (net.encoder(IDS, True), net.encoder(IDS, train=True)),
    "inside of a submodule": lambda net: net.encoder.dense(jnp.ones((2, 3))),
    "shared": lambda net: net.decoder.embed(IDS),
    "a list": lambda net: (net.heads[1](jnp.ones((1, 4))), len(net.heads)),
    "a parameter": lambda net: net.bias.astype(jnp.float16) + 1,
    "values": lambda net: (net.half, net.width),
    "variables": lambda net: net.encoder.variables["params"]["dense"]["kernel"],
    "variables with variables": lambda net: jax.tree.map(
        jnp.subtract,
        net.encoder.variables["params"]["dense"],
        net.variables["params"]["encoder"]["dense"],
    ),
    "other parameters": lambda net: tied(net, jnp.ones((2, 3))),
    "the module": lambda net: (net(IDS), net.encoder(IDS)),
}


def assert_same(a: Any, b: Any) -> None:
    assert jax.tree.structure(jax.tree.map(np.asarray, a)) == jax.tree.structure(
        jax.tree.map(np.asarray, b)
    )
    for one, other in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_functions_given_to_apply_find_what_linen_has(use: Any) -> None:
    sides = []
    for net in (linen_net()(5), nn.lazy(Net)(5)):
        variables = net.init(RNGS, IDS)

        def run(v: Any, net: Any = net) -> Any:
            return net.apply(v, rngs=RNGS, mutable=["batch_stats"], method=use)

        sides.append((variables, jax.jit(run)(variables)))
    assert_same(*sides)


MAKING = {
    "one submodule": lambda net: net.decoder(IDS),
    "with keys": lambda net: net.decoder(IDS, True),
    "two": lambda net: (net._part()(IDS), net.decoder(IDS), net.head(jnp.ones((1, 3)))),
    "one twice": lambda net: (net.decoder(IDS), net.decoder(IDS)),
    "a parameter": lambda net: net.bias + 1,
    "inside of one": lambda net: net.encoder.dense(jnp.ones((2, 3))),
    "a part and then all": lambda net: (net.decoder(IDS), net(IDS)),
    "all and then a part": lambda net: (net(IDS), net.decoder(IDS)),
    "of a list": lambda net: net.heads[0](jnp.ones((1, 4))),
}


@pytest.mark.parametrize("use", MAKING.values(), ids=MAKING)
def test_init_with_a_function_makes_what_linen_makes(use: Any) -> None:
    sides = [
        jax.jit(lambda net=net: net.init_with_output(RNGS, method=use))()
        for net in (linen_net()(5), nn.lazy(Net)(5))
    ]
    assert_same(*sides)


@pytest.mark.parametrize("name", ["train", "nothing", "sow", "_hidden"])
def test_what_is_not_there_is_an_error(name: str) -> None:
    net = nn.lazy(Net)(5)
    with pytest.raises(AttributeError, match=name):
        net.apply(net.init(RNGS, IDS), method=lambda bound: getattr(bound.encoder, name))


def test_an_unbound_definition_has_no_inside() -> None:
    with pytest.raises(AttributeError, match="encoder"):
        getattr(nn.lazy(Net)(5), "encoder")  # noqa: B009 - it is read for its error


class Sized(nnx.Module):
    """As `rewrite` writes classes whose submodules' sizes only calls show."""

    def __init__(
        self,
        *,
        in_features: int,
        memory_features: int | None = None,
        last_in_features: int,
        rngs: nnx.Rngs,
    ):
        self.first = nnx.Linear(in_features, 4, rngs=rngs)
        if memory_features is not None:
            self.memory = nnx.Linear(memory_features, 4, rngs=rngs)
        self.last = nnx.Linear(last_in_features, 2, rngs=rngs)

    def __call__(self, x, memory=None):
        x = self.first(x)
        x = x if memory is None else x + self.memory(memory)
        return self.last(jnp.concatenate([x, x], -1))


def linen_sized() -> Any:
    linen = flax.linen

    class Sized(linen.Module):
        def setup(self):
            self.first = linen.Dense(4)
            self.memory = linen.Dense(4)
            self.last = linen.Dense(2)

        def __call__(self, x, memory=None):
            x = self.first(x)
            x = x if memory is None else x + self.memory(memory)
            return self.last(jnp.concatenate([x, x], -1))

    return Sized


SIZES = {
    "in_features": nn.Size(),
    "memory_features": nn.Size("memory"),
    "last_in_features": nn.Size(of="last"),
}


@pytest.mark.parametrize("memory", [None, jnp.ones((2, 5))], ids=["without", "with"])
def test_sizes_are_those_of_the_variables(memory: Any) -> None:
    sides = []
    for net in (linen_sized()(), nn.lazy(Sized, **SIZES)()):
        variables = net.init(KEY, X, memory)
        use = lambda net: (net.first(X), net.last(jnp.ones((1, 8))), net(X, memory))
        sides.append((net.apply(variables, method=use), net.bind(variables).first(X)))
    assert_same(*sides)


def test_init_measures_the_sizes_of_the_parts_it_makes() -> None:
    def use(net: Any) -> Any:
        return net.last(jnp.ones((1, 6))), net.first(X)

    sides = [
        jax.jit(lambda net=net: net.init_with_output(KEY, method=use))()
        for net in (
            linen_sized()(),
            nn.lazy(Sized, **{**SIZES, "in_features": nn.Size(of="first")})(),
        )
    ]
    assert_same(*sides)


class Named(nnx.Module):
    """A structure of submodules with names of their own, as `rewrite` stores it."""

    def __init__(self, width: int = 2, *, rngs: nnx.Rngs):
        self.width = width
        layers = {"in": nnm.named("first", nnx.Linear(3, width, rngs=rngs)), "rest": [3]}
        nnm.set_submodules(self, "layers", layers)

    @property
    def layers(self):
        return nnm.get_submodules(self, "layers")

    @property
    def double(self):
        return 2 * self.width

    def __call__(self, x):
        return self.layers["in"](x)


def test_a_structure_with_names_of_its_own_is_read() -> None:
    net = nn.lazy(Named)()
    variables = net.init(KEY, X)
    found = net.bind(variables).layers["in"]
    np.testing.assert_array_equal(found(X), net.apply(variables, X))
    assert found.variables == {"params": variables["params"]["first"]}
    assert net.double == net.bind({}).double == 4  # fields are enough
