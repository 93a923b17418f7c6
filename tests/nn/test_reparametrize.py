"""SpectralNorm and WeightNorm against Linen's variable trees and bits."""

from __future__ import annotations

import jax.numpy as jnp
import pytest
from flax import linen, nnx

from nnx_migrate import nn
from tests.nn.oracle import array, check

pytestmark = pytest.mark.slow


class LinenInline(linen.Module):
    wrapper: str
    fields: dict

    @linen.compact
    def __call__(self, x, **kwargs):
        x = linen.Dense(3)(x)
        x = getattr(linen, self.wrapper)(linen.Dense(4), **self.fields)(x, **kwargs)
        return linen.Dense(2)(x)


class Inline(nnx.Module):
    def __init__(self, wrapper, fields, *, rngs):
        self.wrapper = f"{wrapper}_0"
        self.Dense_0 = nnx.Linear(5, 3, rngs=rngs)
        self.Dense_1 = nnx.Linear(3, 4, rngs=rngs)
        self.Dense_2 = nnx.Linear(4, 2, rngs=rngs)
        build = getattr(nn, wrapper)
        setattr(self, self.wrapper, build(self.Dense_1, **fields, layer_name="Dense_1", rngs=rngs))

    def __call__(self, x, **kwargs):
        x = self.Dense_0(x)
        x = getattr(self, self.wrapper)(x, **kwargs)
        return self.Dense_2(x)


class LinenHeld(linen.Module):
    def setup(self):
        self.weight = linen.WeightNorm(linen.Conv(4, (3,)), feature_axes=None)
        self.spectral = linen.SpectralNorm(linen.Conv(3, (3,)), n_steps=2)

    def __call__(self, x, update_stats):
        return self.spectral(self.weight(x), update_stats=update_stats)


class Held(nnx.Module):
    def __init__(self, *, rngs):
        weighted = nnx.Conv(5, 4, (3,), rngs=rngs)
        self.weight = nn.WeightNorm(weighted, feature_axes=None, rngs=rngs)
        self.spectral = nn.SpectralNorm(nnx.Conv(4, 3, (3,), rngs=rngs), n_steps=2, rngs=rngs)

    def __call__(self, x, update_stats):
        return self.spectral(self.weight(x), update_stats=update_stats)


@pytest.mark.parametrize("update", [True, False])
@pytest.mark.parametrize(
    "fields", [{}, {"dtype": jnp.bfloat16, "collection_name": "sn", "n_steps": 3}]
)
def test_spectral_norm_inline(fields, update):
    check(
        LinenInline("SpectralNorm", fields),
        lambda r: Inline("SpectralNorm", fields, rngs=r),
        array(4, 5),
        init_kwargs={"update_stats": False},
        kwargs={"update_stats": update},
        mutable=(fields.get("collection_name", "batch_stats"),),
    )


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"variable_filter": None, "scale_init": nnx.initializers.normal()},
        {"use_scale": False, "dtype": jnp.bfloat16},
        {"variable_filter": ("bias",), "param_dtype": jnp.bfloat16},
    ],
)
def test_weight_norm_inline(fields):
    build = lambda r: Inline("WeightNorm", fields, rngs=r)
    check(LinenInline("WeightNorm", fields), build, array(4, 5))


def test_held_layers_live_below_the_wrapper():
    check(
        LinenHeld(),
        lambda r: Held(rngs=r),
        array(2, 6, 5),
        init_kwargs={"update_stats": False},
        kwargs={"update_stats": True},
        mutable=("batch_stats",),
    )


def test_wrapped_layer_keeps_its_parameters_and_updates_its_statistics():
    norm = nnx.BatchNorm(3, rngs=nnx.Rngs(0))
    wrapped = nn.WeightNorm(norm, variable_filter=None, use_scale=False, rngs=nnx.Rngs(0))
    norm.scale.set_value(jnp.array([2.0, 3.0, 4.0]))
    wrapped(array(4, 3))
    assert norm.scale[...].tolist() == [2.0, 3.0, 4.0]
    assert norm.mean[...].all()


def test_spectral_norm_refuses_tensors_when_told():
    with pytest.raises(ValueError, match="found 3 axes"):
        nn.SpectralNorm(
            nnx.Conv(5, 4, (3,), rngs=nnx.Rngs(0)), error_on_non_matrix=True, rngs=nnx.Rngs(0)
        )


def test_a_named_layer_keeps_the_paths_that_it_has_in_the_enclosing_module():
    model = Inline("WeightNorm", {}, rngs=nnx.Rngs(0))
    paths = ["/".join(map(str, path)) for path, _ in nnx.to_flat_state(nnx.state(model))]
    assert "Dense_1/kernel" in paths
    assert "WeightNorm_0/Dense_1/kernel/scale" in paths
    assert not any("layer_instance" in path for path in paths)
