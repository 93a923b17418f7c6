"""Normalisation layers."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.linen.layers.comparison import assert_same_error, evaluate, floats, pair

N = "normalization."
LAYERS = {
    "layer": f"{N}LayerNorm()",
    "layer axes": f"{N}LayerNorm(reduction_axes=(1, 2), feature_axes=(2, 1))",
    "layer plain": f"{N}LayerNorm(use_bias=False, use_scale=False)",
    "layer bfloat16": f"{N}LayerNorm(dtype=jnp.bfloat16, use_fast_variance=False)",
    "layer half reductions": (
        f"{N}LayerNorm(dtype=jnp.bfloat16, param_dtype=jnp.bfloat16, force_float32_reductions=False)"
    ),
    "rms": f"{N}RMSNorm()",
    "rms axes": f"{N}RMSNorm(reduction_axes=(1, 2), feature_axes=(1,), dtype=jnp.bfloat16)",
    "rms plain": f"{N}RMSNorm(use_scale=False, force_float32_reductions=False)",
    "group": f"{N}GroupNorm(num_groups=2)",
    "group size": f"{N}GroupNorm(num_groups=None, group_size=2, use_bias=False)",
    "group axes": f"{N}GroupNorm(num_groups=2, reduction_axes=(-1,))",
    "instance": f"{N}InstanceNorm()",
    "instance axes": f"{N}InstanceNorm(feature_axes=(1, -1), use_scale=False)",
}
TRAIN = {"use_running_average": False, "mutable": ["batch_stats"]}
BATCH = {
    "train": (f"{N}BatchNorm()", TRAIN),
    "evaluate": (f"{N}BatchNorm(use_running_average=True)", {}),
    "axis": (f"{N}BatchNorm(axis=1, momentum=0.9)", TRAIN),
    "bfloat16": (f"{N}BatchNorm(dtype=jnp.bfloat16, use_fast_variance=False)", TRAIN),
    "half reductions": (
        f"{N}BatchNorm(param_dtype=jnp.bfloat16, force_float32_reductions=False)",
        TRAIN,
    ),
    "half evaluate": (
        f"{N}BatchNorm(True, param_dtype=jnp.bfloat16, force_float32_reductions=False)",
        {},
    ),
    "plain": (f"{N}BatchNorm(use_bias=False, use_scale=False)", TRAIN),
    "axis name at init": (f"{N}BatchNorm(False)", {"mutable": ["batch_stats"]}),
}


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
@pytest.mark.parametrize("case", LAYERS)
def test_a_norm_is_the_same_program(case, dtype):
    pair(LAYERS[case], floats(2, 3, 4, dtype=dtype)).check_programs()


@pytest.mark.parametrize("case", ["layer axes", "rms", "group", "instance"])
def test_a_norm_gives_the_same_bits(case):
    pair(LAYERS[case], floats(2, 3, 4)).check_numbers()


@pytest.mark.parametrize("case", ["layer", "layer bfloat16", "rms", "group", "instance"])
def test_masked_positions_do_not_count(case):
    mask = jnp.arange(24).reshape(2, 3, 4) % 3 != 0
    pair(LAYERS[case], floats(2, 3, 4), mask=mask).check_programs()


@pytest.mark.parametrize("case", BATCH)
def test_batch_norm_is_the_same_program(case):
    expression, options = BATCH[case]
    pair(expression, floats(2, 3, 4), **options).check_programs()


def test_batch_norm_moves_its_averages_as_linen_does():
    first, (_, changed) = pair(BATCH["train"][0], floats(2, 3, 4), **TRAIN).check_numbers()
    assert np.all(first["batch_stats"]["mean"] == 0)
    assert np.any(changed["batch_stats"]["mean"] != 0)


def test_batch_norm_takes_a_mask():
    mask = jnp.arange(24).reshape(2, 3, 4) % 3 != 0
    pair(f"{N}BatchNorm()", floats(2, 3, 4), mask=mask, **TRAIN).check_programs()


@pytest.mark.parametrize("name", ["BatchNorm(False, ", "LayerNorm("])
def test_statistics_are_shared_over_a_mapped_axis(name):
    linen, lazy = evaluate(f"{N}{name}axis_name='batch')")
    x = floats(2, 3, 4)
    mapped_init = lambda model: jax.vmap(model.init, (None, 0), axis_name="batch")
    variables = mapped_init(linen)(jax.random.key(0), x)
    texts = []
    for model in (linen, lazy):
        apply = lambda variables, x, model=model: model.apply(variables, x, mutable=["batch_stats"])
        mapped = jax.vmap(apply, axis_name="batch")
        texts.append(jax.jit(mapped).lower(variables, x).as_text())
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    "expression",
    [
        "GroupNorm(num_groups=3).init(jax.random.key(0), jnp.ones((2, 4)))",
        "GroupNorm(num_groups=0).init(jax.random.key(0), jnp.ones((2, 4)))",
        "GroupNorm(num_groups=None).init(jax.random.key(0), jnp.ones((2, 4)))",
        "GroupNorm(group_size=2).init(jax.random.key(0), jnp.ones((2, 4)))",
        "GroupNorm(num_groups=None, group_size=3).init(jax.random.key(0), jnp.ones((2, 4)))",
        "GroupNorm(2, reduction_axes=(1,)).init(jax.random.key(0), jnp.ones((2, 3, 4)))",
        "InstanceNorm(feature_axes=0).init(jax.random.key(0), jnp.ones((2, 3, 4)))",
        "BatchNorm().init(jax.random.key(0), jnp.ones((2, 4)))",
        "BatchNorm(True).init(jax.random.key(0), jnp.ones((2, 4)), True)",
        "BatchNorm(False).apply(BatchNorm(False).init(jax.random.key(0), jnp.ones((2, 4))), jnp.ones((2, 4)))",
        "SpectralNorm(linear.Dense(3)).init(jax.random.key(0), jnp.ones((2, 4)))",
        "STRICT.init(jax.random.key(0), jnp.ones((2, 4, 3)), update_stats=False)",
    ],
)
def test_what_linen_refuses_is_refused(expression):
    strict = "STRICT = SpectralNorm(linear.Conv(3, (2,)), error_on_non_matrix=True)"
    assert_same_error(expression, f"from flax.linen.normalization import *\n{strict}")


WRAPPED = """
from flax.linen.normalization import SpectralNorm, WeightNorm

class Model(Module):
    wrapper: object
    @compact
    def __call__(self, x, **options):
        x = linear.Dense(3)(x)
        x = self.wrapper(linear.Dense(4))(x, **options)
        return linear.Dense(2)(x)

class Field(Module):
    def setup(self):
        self.norm = WeightNorm(linear.Dense(4), variable_filter=None)
    def __call__(self, x):
        return self.norm(x)
"""
SPECTRAL = {
    "spectral": "SpectralNorm",
    "steps": "functools.partial(SpectralNorm, n_steps=3, epsilon=1e-6)",
    "none": "functools.partial(SpectralNorm, n_steps=0)",
    "collection": "functools.partial(SpectralNorm, collection_name='other', dtype=jnp.bfloat16)",
}
WEIGHT = {
    "weight": "WeightNorm",
    "all": "functools.partial(WeightNorm, variable_filter=None)",
    "whole": "functools.partial(WeightNorm, feature_axes=None, use_scale=False)",
    "other": "functools.partial(WeightNorm, variable_filter={'bias'}, dtype=jnp.bfloat16)",
}


@pytest.mark.parametrize("update_stats", [True, False])
@pytest.mark.parametrize("case", SPECTRAL)
def test_spectral_norm_is_the_same_program(case, update_stats):
    found = pair(
        f"Model({SPECTRAL[case]})",
        floats(2, 5),
        source=WRAPPED,
        mutable=["batch_stats", "other"],
        update_stats=update_stats,
    )
    found.check_programs()


def test_spectral_norm_gives_the_same_bits():
    options = {"mutable": ["batch_stats"], "update_stats": True}
    pair("Model(SpectralNorm)", floats(2, 5), source=WRAPPED, **options).check_numbers()


def test_spectral_norm_takes_a_kernel_of_more_axes_as_a_matrix():
    options = {"mutable": ["batch_stats"], "update_stats": True}
    pair(f"{N}SpectralNorm(linear.Conv(3, (2,)))", floats(2, 4, 3), **options).check_programs()


@pytest.mark.parametrize("case", WEIGHT)
def test_weight_norm_is_the_same_program(case):
    pair(f"Model({WEIGHT[case]})", floats(2, 5), source=WRAPPED).check_programs()


def test_weight_norm_gives_the_same_bits():
    pair("Field()", floats(2, 5), source=WRAPPED).check_numbers()


def test_helpers_that_flax_keeps_private_are_there():
    x = floats(2, 3, 4)
    for expression in (
        "normalization._compute_stats(x, (0, 1), None)",
        "normalization._compute_stats(x, -1, jnp.float32, use_mean=False)",
        "normalization._l2_normalize(x, 1)",
        "normalization._abs_sq(x)",
    ):
        linen, lazy = evaluate(f"lambda x: {expression}")
        assert jax.jit(linen).lower(x).as_text() == jax.jit(lazy).lower(x).as_text()
    linen, lazy = evaluate("normalization._canonicalize_axes(3, (-1, 0))")
    assert linen == lazy
