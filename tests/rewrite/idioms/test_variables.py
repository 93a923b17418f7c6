"""Idioms 1, 2, 13, 14, 17, 20, 23: parameters and variables in unusual hands."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from nnx_migrate import nn as nnm
from tests.rewrite.running import compare, in_auto, lazy, migrated, module_of, refused

X = np.random.default_rng(0).normal(size=(2, 6)).astype(np.float32)
STEPS = np.random.default_rng(1).normal(size=(2, 5, 6)).astype(np.float32)
SAME = ("identical", "equal_by_rules")

TIED = """\
import flax.linen as nn


class Encoder(nn.Module):
    words: int
    width: int

    def setup(self):
        self.shared = nn.Embed(self.words, self.width)
        self.mix = nn.Dense(self.width)

    def __call__(self, ids):
        return self.mix(self.shared(ids))


class Reader(nn.Module):
    words: int
    width: int
    tied: bool = True

    def setup(self):
        self.model = Encoder(self.words, self.width)
        self.head = nn.Dense(self.words, use_bias=False)

    def __call__(self, ids):
        hidden = self.model(ids)
        if self.tied:
            embedding = self.model.variables["params"]["shared"]["embedding"]
            return self.head.apply({"params": {"kernel": embedding.T}}, hidden)
        return self.head(hidden)
"""


@pytest.mark.parametrize("model", ["Reader(7, 4)", "Reader(7, 4, tied=False)"])
def test_01_a_head_is_given_the_embedding_of_another_submodule(model: str) -> None:
    ids = np.array([[1, 2, 3], [4, 5, 0]])
    report = compare(TIED, model, {}, (ids,))
    assert report.verdict in SAME, report
    assert report.check("paths").leaves == (3 if model == "Reader(7, 4)" else 4)


CACHED = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Decoder(nn.Module):
    width: int
    length: int

    def setup(self):
        self.key = nn.Dense(self.width)
        self.out = nn.Dense(self.width)

    @nn.compact
    def remembered(self, key):
        ready = self.has_variable("cache", "keys")
        keys = self.variable("cache", "keys", jnp.zeros, (key.shape[0], self.length, key.shape[-1]))
        index = self.variable("cache", "index", lambda: jnp.zeros((), jnp.int32))
        if ready:
            keys.value = jax.lax.dynamic_update_slice(keys.value, key, (0, index.value, 0))
            index.value = index.value + key.shape[1]
            key = keys.value
        return key

    def __call__(self, x):
        keys = self.remembered(self.key(x))
        weights = nn.softmax(jnp.einsum("bqd,bkd->bqk", x, keys))
        return self.out(jnp.einsum("bqk,bkd->bqd", weights, keys))
"""


def test_02_a_compact_helper_beside_setup_makes_its_cache_on_the_first_call() -> None:
    key, steps = jax.random.key(0), np.split(STEPS, 5, axis=1)
    with (
        module_of("linen_side", CACHED) as old,
        module_of("nnx_side", migrated(CACHED)) as new,
    ):
        theirs = jax.jit(old.Decoder(6, 8).init)(key, STEPS)

        def built(key: jax.Array, steps: jax.Array) -> tuple[Any, Any]:
            model = nnm.build(new.Decoder, 6, 8, in_features=6, rngs=key)
            return nnx.split(model), nnm.variables_of(model, steps)

        parts, ours = jax.jit(built)(key, STEPS)
        model = nnx.merge(*parts)
        assert set(ours["cache"]) == {"keys", "index"}
        assert int(ours["cache"]["index"]) == int(theirs["cache"]["index"]) == 0
        for x in steps:
            y, changed = old.Decoder(6, 8).apply(theirs, x, mutable=["cache"])
            z, moved = nnm.apply(model, ours, x, mutable=["cache"])
            np.testing.assert_array_equal(z, y)
            jax.tree.map(np.testing.assert_array_equal, moved, changed)
            theirs, ours = {**theirs, **changed}, {**ours, **moved}
    assert int(ours["cache"]["index"]) == 5


OVERWRITTEN = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


@jax.custom_vjp
def scaled(x, amax):
    return x / amax


def forward(x, amax):
    return scaled(x, amax), (x, amax)


def backward(saved, grad):
    x, amax = saved
    return grad / amax, jnp.max(jnp.abs(x))


scaled.defvjp(forward, backward)


class Scaled(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        amax = self.variable("_overwrite_with_gradient", "amax", jnp.ones, ())
        return nn.Dense(self.width)(scaled(x, amax.value))
"""


def test_13_the_gradient_of_a_collection_is_its_next_value() -> None:
    with (
        module_of("linen_side", OVERWRITTEN) as old,
        module_of("nnx_side", migrated(OVERWRITTEN)) as new,
    ):
        model = nnm.build(new.Scaled, 4, in_features=6, rngs=jax.random.key(0))
        values = nnm.variables_of(model)
        theirs = jax.grad(lambda v: (old.Scaled(4).apply(v, X) ** 2).sum())(values)
        ours = jax.grad(lambda v: (nnm.apply(model, v, X) ** 2).sum())(values)
    assert set(ours) == {"params", "_overwrite_with_gradient"}
    jax.tree.map(np.testing.assert_array_equal, ours, theirs)
    np.testing.assert_array_equal(ours["_overwrite_with_gradient"]["amax"], np.abs(X).max())


CALLBACKS = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


def perturbed(x, draw, note):
    y = x + 0.1 * jax.random.normal(draw("noise"), x.shape)
    note("intermediates", "mean", y.mean())
    return y


class Noisy(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        h = perturbed(x, self.make_rng, self.sow)
        return nn.Dense(self.width)(h)
"""


def test_14_bound_methods_of_the_module_are_handed_to_a_function() -> None:
    assert "self.make_rng is handed on" in lazy(CALLBACKS, "Noisy")
    key, options = jax.random.key(3), {"mutable": ["intermediates"]}
    with (
        module_of("linen_side", CALLBACKS) as old,
        module_of("nnx_side", in_auto(CALLBACKS)) as new,
    ):
        values = old.Noisy(4).init({"params": key, "noise": key}, X)["params"]
        theirs, ours = (
            one.Noisy(4).apply({"params": values}, X, rngs={"noise": key}, **options)
            for one in (old, new)
        )
    jax.tree.map(np.testing.assert_array_equal, ours, theirs)
    assert theirs[1]["intermediates"]["mean"][0] != 0


HELPER = """\
import flax.linen as nn


class Tokens(nn.Module):
    width: int

    def positions(self, tokens, name):
        shape = (1, *tokens.shape[1:])
        table = self.param(f"{name}_pos_embedding", nn.initializers.normal(0.02), shape)
        return tokens + table

    @nn.compact
    def __call__(self, inputs):
        image = nn.Dense(self.width, name="image_projection")(inputs["image"])
        text = nn.Dense(self.width, name="text_projection")(inputs["text"])
        return self.positions(image, "image"), self.positions(text, "text")
"""


def test_17_a_helper_makes_parameters_named_by_its_argument() -> None:
    assert "its helper method 'positions' cannot be rewritten" in refused(HELPER, "Tokens")


COMPUTED = """\
import flax.linen as nn
import jax.numpy as jnp


class Whitened(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        kernel = self.param("kernel", nn.initializers.normal(1.0), (x.shape[-1], self.width))
        scale = self.param("scale", lambda key: jnp.linalg.norm(kernel, axis=0))
        return x @ (kernel / jnp.linalg.norm(kernel, axis=0)[None]) * scale[None]
"""


def test_20_a_parameter_starts_from_another_one_just_made() -> None:
    report = compare(COMPUTED, "Whitened(4)", {"in_features": 6}, (X,))
    assert report.verdict in SAME, report
    with module_of("computed", migrated(COMPUTED)) as new:
        model = nnm.build(new.Whitened, 4, in_features=6, rngs=jax.random.key(0))
    norms = jnp.linalg.norm(model.kernel[...], axis=0)
    np.testing.assert_allclose(model.scale[...], norms, rtol=1e-6)


WATCHED = """\
import flax.linen as nn
import jax.numpy as jnp


class Watched(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        h = nn.Dense(self.width)(x)
        if self.is_mutable_collection("grads"):
            h = h + self.variable("grads", "hidden", jnp.zeros_like, h).value
        return nn.Dense(2)(nn.relu(h))
"""


def test_23_a_zero_variable_that_exists_only_to_catch_a_gradient() -> None:
    with module_of("linen_side", WATCHED) as old, module_of("nnx_side", migrated(WATCHED)) as new:
        model = nnm.build(new.Watched, 4, in_features=6, rngs=jax.random.key(0))
        values = {"params": nnm.variables_of(model)["params"]}
        caught = {**values, "grads": {"hidden": np.zeros((2, 4), np.float32)}}

        def losses(apply):
            plain = apply(values)
            slope = jax.grad(lambda v: (apply(v, mutable=["grads"])[0] ** 2).sum())(caught)
            return plain, slope["grads"]["hidden"]

        theirs = losses(lambda v, **options: old.Watched(4).apply(v, X, **options))
        ours = losses(lambda v, **options: nnm.apply(model, v, X, **options))
    jax.tree.map(np.testing.assert_array_equal, ours, theirs)
    assert (ours[1] != 0).any()
