"""``nn.grad``, ``nn.value_and_grad``, ``nn.vjp``, ``nn.jvp`` and ``nn.custom_vjp``."""

from __future__ import annotations

import pytest

from tests.linen.side_by_side import same_error, same_model

LOSS = """
def loss(module, x, y):
    seen = module.variable("stats", "seen", lambda: jnp.zeros(()))
    seen.value = seen.value + 1
    return (Noise(name="n")(Linear(4, name="l")(x)) * y).sum()

def with_aux(module, x, y):
    value = loss(module, x, y)
    return value, {"twice": 2 * value}
"""


@pytest.mark.parametrize(
    "call",
    [
        "nn.grad(loss, self, x, x)",
        "nn.grad(with_aux, self, x, x, has_aux=True)",
        "nn.value_and_grad(loss, self, x, x)",
        "nn.value_and_grad(with_aux, self, x, x, has_aux=True)",
        "nn.value_and_grad(Net.method_loss, self, x)",
    ],
)
def test_gradients_of_inputs(call: str) -> None:
    same_model(
        LOSS
        + f"""
class Net(nn.Module):
    def method_loss(self, x):
        return jnp.sin(x).sum()

    @nn.compact
    def __call__(self, x):
        return {call}

model, inputs = Net(), (jnp.arange(8.0).reshape(2, 4),)
"""
    )


@pytest.mark.parametrize("options", ["", ", vjp_variables=['params', 'scales']"])
@pytest.mark.parametrize("has_aux", [True, False])
def test_vjp(options: str, has_aux: bool) -> None:
    fn = "with_aux" if has_aux else "loss"
    same_model(
        LOSS
        + f"""
class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        self.variable("scales", "s", jnp.ones, ())
        value, backward, *aux = nn.vjp({fn}, self, x, x, has_aux={has_aux}{options})
        return value, backward(jnp.ones(value.shape)), aux

model, inputs = Net(), (jnp.arange(8.0).reshape(2, 4),)
""",
        grad=False,
    )


def test_the_backward_function_of_vjp_passes_through_jit() -> None:
    same_model(
        LOSS
        + """
class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        value, backward = nn.vjp(loss, self, x, x)
        return jax.jit(lambda backward: backward(jnp.ones(())))(backward)

model, inputs = Net(), (jnp.arange(8.0).reshape(2, 4),)
""",
        grad=False,
    )


def test_jvp() -> None:
    same_model(
        """
class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        linear = Linear(4)
        y = linear(x)
        ones = jax.tree.map(jnp.ones_like, linear.variables["params"])
        if self.is_initializing():
            return y, y
        return nn.jvp(
            lambda module, x: jnp.sin(module(x)),
            linear,
            (x,),
            (jnp.ones_like(x),),
            variable_tangents={"params": ones, "stats": {}},
        )

model, inputs = Net(), (jnp.arange(8.0).reshape(2, 4),)
"""
    )


def test_custom_vjp() -> None:
    same_model(
        """
class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        def f(module, x, power):
            return module(x) ** power

        def forward(module, x, power):
            y, backward = nn.vjp(lambda module, x: module(x) ** power, module, x)
            return y, backward

        def backward(power, backward, g):
            of_variables, of_x = backward(g)
            return jax.tree.map(jnp.sign, of_variables), of_x * power

        sign_grad = nn.custom_vjp(
            f, forward_fn=forward, backward_fn=backward, nondiff_argnums=(2,)
        )
        return sign_grad(Linear(4), x, 2)

model, inputs = Net(), (jnp.arange(8.0).reshape(2, 4),)
"""
    )


ERRORS = {
    "value that is no scalar": "nn.grad(lambda m, x: x, self, x)",
    "module class": "nn.grad(Linear, self, x)",
    "module that reaches another": "nn.vjp(lambda m, x: m(x), Holds(Linear(4)), x)",
    "module among the arguments": "nn.vjp(lambda m, x, l: l(x), self, x, Linear(4))",
    "axes to reduce": "nn.vjp(lambda m, x: x, self, x, reduce_axes=('a',))",
}


@pytest.mark.parametrize("call", ERRORS.values(), ids=ERRORS.keys())
def test_errors(call: str) -> None:
    same_error(
        f"""
class Holds(nn.Module):
    inner: nn.Module

    def __call__(self, x):
        return self.inner(x)

class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return {call}

def run():
    return Net().init(jax.random.key(0), jnp.ones((2, 4)))
""",
        message="Linear(4)" not in call,  # Linen says it with a slip of the pen
    )
