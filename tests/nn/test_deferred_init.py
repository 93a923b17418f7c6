"""Parameters whose shape the first call shows."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from flax import linen, nnx

from nnx_migrate import nn
from nnx_migrate.linen import lazy
from tests.nn.oracle import array, assert_same_bits

KEY = jax.random.key(3)
NAMED = nnx.with_partitioning(nnx.initializers.lecun_normal(), (None, None, "out"))


class LinenNet(linen.Module):
    conv: Any = linen.Conv

    @linen.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        for _ in range(2):
            x = linen.tanh(self.conv(4, (3,))(x))
        return linen.Dense(2)(x)


class Net(nnx.Module):
    def __init__(self, conv: Any = nn.factory.Conv, *, in_features: int, rngs: nnx.Rngs) -> None:
        self.conv = conv
        names = nn.LinenNames()
        for size in (in_features, 4):
            setattr(self, names(self.conv), self.conv(4, (3,), in_features=size, rngs=rngs))
        self.Dense_0 = nnx.Linear(4, 2, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        names = nn.LinenNames()
        for _ in range(2):
            # A view has the variables of the module, and other modules in their places.
            x = nnx.tanh(nnx.view(getattr(self, names(self.conv)))(x))
        return self.Dense_0(x)


PAIRS = {
    "layer": (linen.ConvLocal, nn.factory.ConvLocal),
    "partial": (
        partial(linen.ConvLocal, use_bias=False, padding="VALID"),
        partial(nn.factory.ConvLocal, use_bias=False, padding="VALID"),
    ),
    "layer whose size is given": (linen.Conv, nn.factory.Conv),
}


@pytest.mark.parametrize(("before", "after"), PAIRS.values(), ids=PAIRS)
@pytest.mark.parametrize("is_lazy", [True, False], ids=["lazy", "explicit"])
def test_a_model_that_does_not_know_its_layers_sizes_has_linens_bits(
    before: Any, after: Any, is_lazy: bool
) -> None:
    x, model = array(2, 7, 6), LinenNet(before)
    wanted = jax.jit(model.init)(KEY, x)
    if is_lazy:
        found = jax.jit(lazy(Net)(after).init)(KEY, x)
        output = jax.jit(lazy(Net)(after).apply)(wanted, x)
    else:
        found = jax.jit(
            lambda key, x: nn.variables_of(nn.build(Net, after, in_features=6, rngs=key), x)
        )(KEY, x)
        output = jax.jit(partial(nn.apply, nn.abstract(Net, after, in_features=6)))(wanted, x)
    assert_same_bits(wanted, found)
    assert_same_bits(jax.jit(model.apply)(wanted, x), output)


def test_the_first_call_makes_them_and_later_calls_keep_them() -> None:
    layer, x = nn.factory.ConvLocal(4, (3,), rngs=nnx.Rngs(0)), array(2, 7, 6)
    first = layer(x)
    assert layer.kernel.shape == (7, 18, 4)
    assert_same_bits(first, layer(x))
    given = nn.ConvLocal(4, (3,), input_shape=x.shape, rngs=nnx.Rngs(0))
    assert_same_bits(nnx.to_pure_dict(nnx.state(given)), nnx.to_pure_dict(nnx.state(layer)))
    with pytest.raises(TypeError, match="shape"):
        layer(array(2, 9, 6))


def test_a_compiled_first_call_gives_them_to_the_module() -> None:
    layer = nn.factory.ConvLocal(4, (3,), rngs=nnx.Rngs(0))
    output = nnx.jit(lambda model, x: model(x))(layer, array(2, 7, 6))
    assert layer.kernel.shape == (7, 18, 4)
    assert output.shape == (2, 7, 4)


def test_names_of_axes_are_those_of_the_initialiser() -> None:
    mesh = jax.make_mesh((1,), ("out",), axis_types=(jax.sharding.AxisType.Auto,))
    with jax.set_mesh(mesh):
        layer = nn.factory.ConvLocal(4, (3,), kernel_init=NAMED, rngs=nnx.Rngs(0))
        layer(array(2, 7, 6))
        given = nn.ConvLocal(4, (3,), kernel_init=NAMED, input_shape=(7, 6), rngs=nnx.Rngs(0))
    assert layer.kernel.get_metadata() == given.kernel.get_metadata()
    assert (None, None, "out") in layer.kernel.get_metadata().values()


def test_variables_of_another_shape_are_refused_by_a_model_that_knows_its_own() -> None:
    model = nn.abstract(nn.ConvLocal, 4, (3,), input_shape=(7, 6))
    variables = {"params": {"kernel": jnp.ones((9, 18, 4)), "bias": jnp.ones((9, 4))}}
    with pytest.raises(ValueError, match="to have the shape"):
        nn.apply(model, variables, array(2, 9, 6))
