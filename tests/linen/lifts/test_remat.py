"""``nn.remat``, ``nn.checkpoint`` and ``nn.remat_scan``: names, keys, static arguments, nesting."""

from __future__ import annotations

import pytest

from tests.linen.side_by_side import paths, same_error, same_model

BLOCK = """
class Block(nn.Module):
    @nn.compact
    def __call__(self, x, train: bool = True, scale=1.0):
        y = Noise()(x) if train else x
        return jnp.tanh(Linear(4)(Mean()(y))) * scale
"""


@pytest.mark.parametrize("name", ["remat", "checkpoint"])
def test_classes_with_static_arguments_and_keywords(name: str) -> None:
    found = same_model(
        BLOCK
        + f"""
class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        Lifted = nn.{name}(Block, static_argnums=(2,), policy=jax.checkpoint_policies.dots_saveable)
        x = Lifted()(x, True)
        x = Lifted()(x, False, scale=2.0)
        return Lifted(name="last")(x, True, 3.0)

model, inputs = Net(), (jnp.ones((2, 4)),)
"""
    )
    assert list(found["variables"]["params"]) == ["CheckpointBlock_0", "CheckpointBlock_1", "last"]


def test_partial_of_a_class() -> None:
    same_model(
        """
class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.remat(functools.partial(Linear, features=3))()(x)

model, inputs = Net(), (jnp.ones((2, 4)),)
"""
    )


def test_methods_of_a_module_with_setup() -> None:
    same_model(
        BLOCK
        + """
class Net(nn.Module):
    def setup(self):
        self.first = Block()
        self.layers = [nn.remat(Block)(), Block()]
        self.table = {"a": Linear(3)}

    @nn.remat
    def middle(self, x):
        for layer in self.layers:
            x = layer(x, True)
        return x

    @functools.partial(nn.remat, prevent_cse=False)
    @nn.nowrap
    def last(self, x):
        return self.table["a"](x)

    def __call__(self, x):
        return self.last(self.middle(self.first(x)))

model, inputs = Net(), (jnp.ones((2, 4)),)
""".replace("nn.remat(Block)()", "nn.remat(Block, static_argnums=2)()")
    )


def test_compact_methods_called_twice_share_and_count_keys() -> None:
    same_model(
        """
class Net(nn.Module):
    @nn.remat
    @nn.compact
    def __call__(self, x):
        noise, linear = Noise(), Linear(4)
        return linear(noise(linear(noise(x))))

class Twice(nn.Module):
    @nn.compact
    def __call__(self, x):
        net = Net()
        return net(net(x))

model, inputs = Twice(), (jnp.ones((2, 4)),)
"""
    )


def test_variables_of_the_module_and_of_others_in_its_fields() -> None:
    same_model(
        """
class Adds(nn.Module):
    seen: Any

    @nn.compact
    def __call__(self, x):
        self.seen.value = self.seen.value + x.sum()
        return Linear(4)(x) * self.seen.value

class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        seen = self.variable("stats", "seen", lambda: jnp.zeros(()))
        x = nn.remat(Adds)(seen)(x)

        def change(module, x, seen):
            seen.value = seen.value * 2
            return x * seen.value

        return nn.remat(change)(self, x, seen)

model, inputs = Net(), (jnp.ones((2, 4)),)
"""
    )


def test_only_some_collections_and_keys() -> None:
    same_model(
        BLOCK
        + """
class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        Lifted = nn.remat(
            Block, variables=["params", "stats"], rngs=["params", "noise"], static_argnums=2
        )
        return Lifted(name="b")(x, True, scale=2.0)

model, inputs = Net(), (jnp.ones((2, 4)),)
"""
    )


def test_a_child_shared_by_two_lifted_modules_has_one_path() -> None:
    found = same_model(
        """
class Uses(nn.Module):
    child: nn.Module

    @nn.compact
    def __call__(self, x):
        return Linear(4)(self.child(x))

class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        child = Linear(4, name="child")
        return nn.remat(Uses)(child)(nn.remat(Uses)(child)(x))

model, inputs = Net(), (jnp.ones((2, 4)),)
"""
    )
    assert "params/child/kernel" in paths(found["variables"])
    assert len([path for path in paths(found["variables"]) if "child" in path]) == 2


@pytest.mark.parametrize("lengths", ["(3,)", "(2, 3)", "(2, 1, 2)"])
def test_remat_scan(lengths: str) -> None:
    same_model(
        f"""
class Block(nn.Module):
    @nn.compact
    def __call__(self, x):
        return jnp.tanh(Linear(4)(Noise()(x)))

class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.remat_scan(Block, lengths={lengths})()(Linear(4)(x))

model, inputs = Net(), (jnp.ones((2, 4)),)
"""
    )


def test_remat_scan_of_a_method_with_shared_parameters() -> None:
    same_model(
        """
class Net(nn.Module):
    @functools.partial(
        nn.remat_scan,
        lengths=(2, 2),
        policy=jax.checkpoint_policies.nothing_saveable,
        variable_broadcast="params",
        variable_axes={},
        split_rngs={"params": False},
    )
    @nn.compact
    def __call__(self, x):
        return jnp.tanh(Linear(4)(x))

model, inputs = Net(), (jnp.ones((2, 4)),)
"""
    )


@pytest.mark.parametrize(
    "call",
    [
        "nn.remat(Linear, concrete=True)(3)(x)",
        "nn.remat(lambda module, x: Linear(3))(self, x)",
        "nn.remat(3)",
    ],
)
def test_errors(call: str) -> None:
    same_error(
        f"""
class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return {call}

def run():
    return Net().init(jax.random.key(0), jnp.ones((3, 4)))
"""
    )
