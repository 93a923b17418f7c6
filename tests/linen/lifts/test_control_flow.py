"""``nn.cond``, ``nn.switch`` and ``nn.while_loop``."""

from __future__ import annotations

import pytest

from tests.linen.side_by_side import same_error, same_model


@pytest.mark.parametrize("sign", ["<", ">"])
def test_cond(sign: str) -> None:
    same_model(
        f"""
class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        def layers(module, x):
            seen = module.variable("stats", "seen", lambda: jnp.zeros(()))
            return Noise(name="noise")(Linear(4, name="linear")(x)), seen

        def yes(module, x):
            return layers(module, x)[0]

        def no(module, x):
            _, seen = layers(module, x)
            seen.value = seen.value + 1
            return x

        return nn.cond(x.sum() {sign} 0, yes, no, self, x)

model, inputs = Net(), (jnp.ones((2, 4)),)
"""
    )


@pytest.mark.parametrize("index", [0, 1, 5])
def test_switch_between_submodules(index: int) -> None:
    same_model(
        f"""
class Net(nn.Module):
    def setup(self):
        self.heads = [Linear(3), Linear(3), Linear(3)]

    def __call__(self, x, index):
        def head(i):
            return lambda module, x: module.heads[i](x)

        branches = [head(i) for i in range(3)]
        if self.is_initializing():
            for branch in branches:
                branch(self, x)
        return nn.switch(index, branches, self, x)

model, inputs = Net(), (jnp.ones((2, 4)), jnp.int32({index}))
"""
    )


@pytest.mark.parametrize("split", [True, False])
def test_while_loop(split: bool) -> None:
    same_model(
        f"""
class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        linear = Linear(4)
        self.variable("stats", "steps", lambda: jnp.zeros((), int))
        if self.is_initializing():
            return linear(x)

        def goes_on(module, state):
            return module.get_variable("stats", "steps") < 3

        def body(module, state):
            module.put_variable("stats", "steps", module.get_variable("stats", "steps") + 1)
            return linear_of(module, state) + jax.random.normal(module.make_rng("noise"), x.shape)

        def linear_of(module, state):
            kernel = module.variables["params"]["Linear_0"]["kernel"]
            return state @ kernel

        return nn.while_loop(
            goes_on,
            body,
            self,
            x,
            carry_variables="stats",
            broadcast_variables="params",
            split_rngs={{"noise": {split}}},
        )

model, inputs = Net(), (jnp.ones((2, 4)),)
""",
        grad=False,
    )


ERRORS = {
    "a class is no function": "nn.cond(True, Linear, Linear, self, x)",
    "something that cannot be called": "nn.switch(0, [3, 4], self, x)",
    "branches that make other variables": (
        "nn.cond(x.sum() > 0, lambda m, x: Linear(4)(x), lambda m, x: x, self, x)"
    ),
    "variables made in a loop": (
        "nn.while_loop(lambda m, x: x.sum() < 9, lambda m, x: Linear(4)(x), self, x)"
    ),
    "what is broadcast changes in a loop": (
        "nn.while_loop(lambda m, x: x.sum() < 9, lambda m, x: m.put_variable('s', 'a', x), self, x)"
    ),
}


@pytest.mark.parametrize("call", ERRORS.values(), ids=ERRORS.keys())
def test_errors(call: str) -> None:
    # Messages say where jax, or who raised, was called.
    same_error(
        f"""
class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return {call}

def run():
    return Net().init(jax.random.key(0), jnp.ones((2, 4)))
""",
        message=False,
    )
