"""Methods beside ``__call__`` of explicit classes: which sizes the variables show, and which matter."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import errors, nnx

from nnx_migrate import linen as nn
from nnx_migrate import nn as nnm
from nnx_migrate.linen.core.sizes import sizing
from nnx_migrate.linen.core.sizes.declaration import UnknownSize
from nnx_migrate.numerics.large_constants import MOST_BYTES

IMAGES = jnp.ones((2, 8, 6, 3))
KEY = jax.random.key(0)


class Coder(nnx.Module):
    """The shape of the images shows in the encoder alone."""

    def __init__(self, *, x_shape: tuple[int, ...], rngs: nnx.Rngs) -> None:
        self.conv = nnx.Conv(x_shape[-1], 4, (3, 3), strides=2, rngs=rngs)
        self.code = nnx.Linear(x_shape[-3] // 2 * (x_shape[-2] // 2) * 4, 5, rngs=rngs)
        self.head = nnx.Linear(5, 7, rngs=rngs)

    def encode(self, images: jax.Array) -> jax.Array:
        found = nnx.relu(self.conv(images))
        return self.code(found.reshape(len(images), -1))

    def decode(self, code: jax.Array) -> jax.Array:
        return self.head(code)

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.decode(self.encode(x))


class Kept(Coder):
    """The module itself keeps something of the shape."""

    def __init__(self, *, x_shape: tuple[int, ...], rngs: nnx.Rngs) -> None:
        super().__init__(x_shape=x_shape, rngs=rngs)
        self.height = x_shape[-3]

    def decode(self, code: jax.Array) -> jax.Array:
        return self.head(code) * self.height


class Grouped(nnx.Module):
    """A kernel has a part of the size, another a multiple of it."""

    def __init__(self, *, in_features: int, more_features: int, rngs: nnx.Rngs) -> None:
        self.conv = nnx.Conv(in_features, 6, (3,), feature_group_count=3, rngs=rngs)
        self.wide = nnx.Linear(more_features * 4, 2, rngs=rngs)

    def __call__(self, x: jax.Array, more: jax.Array) -> jax.Array:
        return self.conv(x).sum() + self.wide(jnp.tile(more, 4))

    def turned(self, x: jax.Array, more: jax.Array) -> jax.Array:
        return -self(x, more)


def _with(kind: Any, *inputs: jax.Array) -> tuple[Any, Any]:
    model = nn.lazy(kind)()
    return model, model.init(KEY, *inputs)


def test_a_method_that_does_not_reach_what_a_shape_is_for_runs_without_it() -> None:
    model, variables = _with(Coder, IMAGES)
    code = model.apply(variables, IMAGES, method="encode")
    found = model.apply(variables, code, method="decode")
    np.testing.assert_array_equal(found, model.apply(variables, IMAGES))


def test_an_input_of_the_method_that_fits_the_variables_is_the_shape() -> None:
    model, variables = _with(Coder, IMAGES)
    for method in ("encode", lambda one, x: one.encode(x)):
        code = model.apply(variables, IMAGES[:1], method=method)
        assert code.shape == (1, 5)


def test_a_method_that_reaches_it_with_another_shape_raises_linens_error() -> None:
    model, variables = _with(Coder, IMAGES)
    with pytest.raises(errors.ScopeParamShapeError, match="of Coder to have the shape"):
        model.apply(variables, jnp.ones((2, 4, 4, 3)), method=lambda one, x: one.encode(x))


def test_a_shape_that_the_module_itself_keeps_is_that_of_init(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sizing, "_solutions", {})
    model, variables = _with(Kept, IMAGES)
    found = model.apply(variables, jnp.ones((2, 5)), method="decode")
    np.testing.assert_array_equal(found, 8 * model.bind(variables).head(jnp.ones((2, 5))))
    model.apply(variables, IMAGES[:1])  # another batch makes no difference
    np.testing.assert_array_equal(
        found[:1], model.apply(variables, jnp.ones((1, 5)), method="decode")
    )


@pytest.mark.parametrize("others", [(), (IMAGES, jnp.ones((2, 6, 8, 3)))])
def test_a_shape_that_the_module_itself_keeps_and_no_call_or_several_show_is_asked_for(
    others: tuple[jax.Array, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, variables = _with(Kept, IMAGES)
    monkeypatch.setattr(sizing, "_solutions", {})
    for images in others:
        model.init(KEY, images)
    with pytest.raises(UnknownSize, match="show the size x_shape"):
        model.apply(variables, jnp.ones((2, 5)), method="decode")


class Towers(nnx.Module):
    """Two inputs whose whole shapes show in variables, and a width."""

    def __init__(
        self,
        *,
        ids_shape: tuple[int, ...],
        images_shape: tuple[int, ...],
        code_features: int,
        rngs: nnx.Rngs,
    ) -> None:
        self.places = nnx.Param(rngs.params.normal((1, ids_shape[1])))
        self.pixels = nnx.Param(rngs.params.normal((1, *images_shape[1:])))
        self.head = nnx.Linear(code_features, 3, rngs=rngs)

    def read(self, ids: jax.Array) -> jax.Array:
        return ids * self.places[...]

    def see(self, images: jax.Array) -> jax.Array:
        return images * self.pixels[...]

    def plan(self, code: jax.Array) -> jax.Array:
        return self.head(code)

    def __call__(
        self, ids: jax.Array, images: jax.Array, code: jax.Array
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        return self.read(ids), self.see(images), self.plan(code)


@pytest.mark.parametrize(
    "is_new", [False, True], ids=["after init", "variables of another process"]
)
def test_each_method_of_several_inputs_has_the_shapes_of_the_variables(
    is_new: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = jnp.ones((2, 7)), IMAGES, jnp.ones((2, 5))
    model, variables = _with(Towers, *inputs)
    wanted = model.apply(variables, *inputs)
    if is_new:
        monkeypatch.setattr(sizing, "_solutions", {})
    for method, given, one in zip(("read", "see", "plan"), inputs, wanted, strict=True):
        np.testing.assert_array_equal(model.apply(variables, given, method=method), one)


def test_parts_and_multiples_of_a_size_show_it() -> None:
    inputs = jnp.ones((1, 4, 12)), jnp.ones((1, 9))
    model, variables = _with(Grouped, *inputs)
    found = model.apply(variables, *inputs, method="turned")
    np.testing.assert_array_equal(found, -model.apply(variables, *inputs))


class Cast(nnx.Module):
    """A call that is given a dtype."""

    def __init__(self, *, in_features: int, rngs: nnx.Rngs) -> None:
        self.head = nnx.Linear(in_features, 3, rngs=rngs)

    def __call__(self, x: jax.Array, dtype: Any = jnp.float32) -> jax.Array:
        return self.head(x).astype(dtype)


@pytest.mark.parametrize("dtype", [jnp.float16, np.float16, np.dtype("float16"), "float16"])
def test_a_dtype_among_the_inputs_is_no_array(dtype: Any) -> None:
    module = nn.lazy(Cast)()
    values = module.init(KEY, IMAGES, dtype)
    assert values["params"]["head"]["kernel"].shape == (3, 3)
    assert module.apply(values, IMAGES, dtype).dtype == jnp.float16


class Heads(nnx.Module):
    """A part that can be built with a multiple of three alone, beside one that is called without it."""

    def __init__(self, *, in_features: int, heads_in_features: int, rngs: nnx.Rngs) -> None:
        self.wide = nnx.Linear(in_features, 21, rngs=rngs)
        self.heads = nnm.MultiHeadDotProductAttention(3, in_features=heads_in_features, rngs=rngs)

    def encode(self, x: jax.Array) -> jax.Array:
        return self.wide(x)

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.heads(self.encode(x))


def test_widths_on_trial_suit_numbers_of_heads_that_are_no_powers_of_two() -> None:
    x = jnp.ones((2, 3, 5))
    model, variables = _with(Heads, x)
    assert variables["params"]["heads"]["query"]["kernel"].shape == (21, 3, 7)
    alone = model.apply(variables, x, method="encode")
    assert alone.shape == (2, 3, 21)


class Recurrent(nnx.Module):
    """A kernel between two sizes, as a recurrent cell has it."""

    kinds: ClassVar[set[bool]] = set()

    def __init__(self, *, h_features: int, x_features: int, rngs: nnx.Rngs) -> None:
        self.cell = nnx.Linear(h_features, x_features, kernel_init=self.initial, rngs=rngs)
        self.head = nnx.Linear(h_features, 3, rngs=rngs)

    def initial(self, key: Any, shape: tuple[int, ...], dtype: Any) -> jax.Array:
        kernel = jnp.zeros(shape, dtype)
        if kernel.nbytes > MOST_BYTES:
            self.kinds.add(isinstance(kernel, jax.core.Tracer))
        return kernel

    def embed(self, h: jax.Array) -> jax.Array:
        return self.head(h)

    def __call__(self, h: jax.Array, x: jax.Array) -> jax.Array:
        return self.head(h) + (self.cell(h) * x).sum()


def test_a_kernel_between_two_widths_on_trial_is_not_computed() -> None:
    """It took 13 GB."""
    h, x = jnp.ones((2, 4)), jnp.ones((2, 3))
    model = nn.lazy(Recurrent)()
    variables = model.init(KEY, h, x)
    assert model.apply(variables, h, method="embed").shape == (2, 3)
    assert Recurrent.kinds == {True}
