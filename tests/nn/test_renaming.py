"""Submodules whose attributes have other names than Linen gives them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, nnx

from nnx_migrate import nn as nnm
from nnx_migrate.nn.variables.sharing import renamed_paths
from nnx_migrate.parity import ParityCase, check

X = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)


class Linen(linen.Module):
    @linen.compact
    def __call__(self, x):
        for _ in range(2):
            x = linen.Dense(4)(x)
        x = linen.BatchNorm(use_running_average=False)(x)
        x = linen.Dropout(0.5, deterministic=False)(x)
        return linen.Dense(2)(x)


@nnm.named_in_linen("layer", "part", batch_norm="BatchNorm")
class Numbered(nnx.Module):
    def __init__(self, layers: int = 2, *, rngs: nnx.Rngs) -> None:
        for i in range(layers):
            setattr(self, f"layer_0_{i}", nnx.Linear(4 if i else 3, 4, rngs=rngs))
        self.batch_norm_0 = nnm.BatchNorm(False, in_features=4, rngs=rngs)
        self.part_0 = nnx.Dropout(0.5, deterministic=False, rngs=rngs)
        self.layer_1 = nnx.Linear(4, 2, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        x = self.layer_0_1(self.layer_0_0(x))
        return self.layer_1(self.part_0(self.batch_norm_0(x)))


NAMES = {
    "layer_0_0": "Dense_0",
    "layer_0_1": "Dense_1",
    "batch_norm_0": "BatchNorm_0",
    "part_0": "Dropout_0",
    "layer_1": "Dense_2",
}


def test_variables_keys_and_streams_are_linens() -> None:
    rngs = {"dropout": 0}
    case = ParityCase(
        linen=Linen(),
        nnx=lambda rngs: Numbered(rngs=rngs),
        inputs=(X,),
        rngs=rngs,
        collections=("batch_stats",),
    )
    report = check(case)
    assert report.verdict == "identical", report
    assert {"init_values", "rng", "collections"} <= {
        one.name for one in report.checks if one.status == "pass"
    }


def test_a_merged_and_a_cloned_module_know_the_names() -> None:
    model = Numbered(rngs=nnx.Rngs(0, dropout=1))
    expected = {linens: own for own, linens in NAMES.items()}
    for one in (model, nnx.merge(*nnx.split(model)), nnx.clone(model)):
        assert dict(renamed_paths(one)) == expected


def test_a_subclass_goes_on_with_the_numbers() -> None:
    @nnm.named_in_linen("more")
    class Longer(Numbered):
        def __init__(self, *, rngs: nnx.Rngs) -> None:
            super().__init__(rngs=rngs)
            self.more_0 = nnx.Linear(2, 2, rngs=rngs)

    assert renamed_paths(Longer(rngs=nnx.Rngs(0, dropout=1)))["Dense_3"] == "more_0"


@pytest.mark.parametrize("attribute", ["layer", "layer_a", "layers_0", "other_0"])
def test_attributes_of_other_names_keep_them(attribute: str) -> None:
    @nnm.named_in_linen("layer")
    class Model(nnx.Module):
        def __init__(self, rngs: nnx.Rngs) -> None:
            setattr(self, attribute, nnx.Linear(2, 2, rngs=rngs))
            self.layer_0 = nnx.Linear(2, 2, rngs=rngs)

    assert dict(renamed_paths(Model(nnx.Rngs(0)))) == {"Dense_0": "layer_0"}


def test_what_calls_make_goes_to_the_module_that_linen_names() -> None:
    @nnm.named_in_linen("part")
    class Outer(nnx.Module):
        def __init__(self, rngs: nnx.Rngs) -> None:
            self.part_0 = Inner()

        def __call__(self, x: Any) -> Any:
            return self.part_0(x)

    class Inner(nnx.Module):
        def __call__(self, x: Any) -> Any:
            count = nnm.lazy_variable(self, "cache", "count", jnp.zeros, ())
            count.set_value(count[...] + 1)
            return x * count[...]

    model = Outer(nnx.Rngs(0))
    output, updates = nnm.apply(
        model, {"cache": {"Inner_0": {"count": jnp.ones(())}}}, jnp.ones(2), mutable=["cache"]
    )
    assert jax.tree.map(float, updates) == {"cache": {"Inner_0": {"count": 2.0}}}
    assert output.tolist() == [2.0, 2.0]


def test_what_is_sown_is_at_the_module_that_linen_names() -> None:
    class LinenInner(linen.Module):
        @linen.compact
        def __call__(self, x):
            self.sow("intermediates", "size", x.sum())
            return linen.Dense(2)(x)

    class LinenOuter(linen.Module):
        @linen.compact
        def __call__(self, x):
            return LinenInner(name="Inner_0")(x)

    class Inner(nnx.Module):
        def __init__(self, rngs: nnx.Rngs) -> None:
            self.Dense_0 = nnx.Linear(2, 2, rngs=rngs)

        def __call__(self, x: Any) -> Any:
            nnm.sow(self, "intermediates", "size", x.sum())
            return self.Dense_0(x)

    @nnm.named_in_linen("part")
    class Outer(nnx.Module):
        def __init__(self, rngs: nnx.Rngs) -> None:
            self.part_0 = Inner(rngs)

        def __call__(self, x: Any) -> Any:
            return self.part_0(x)

    x = jnp.ones(2)
    variables = LinenOuter().init(jax.random.key(0), x)
    for given in ({"params": variables["params"]}, variables):
        _, wanted = LinenOuter().apply(given, x, mutable=["intermediates"])
        _, found = nnm.apply(Outer(nnx.Rngs(0)), given, x, mutable=["intermediates"])
        assert jax.tree.map(float, found) == jax.tree.map(float, wanted)
    case = ParityCase(
        linen=LinenOuter(),
        nnx=lambda rngs: Outer(rngs),
        inputs=(x,),
        collections=("intermediates",),
    )
    report = check(case)
    assert report.ok, [one for one in report.checks if one.status == "fail"]


@nnm.called_in_linen(scale_="scale", head_="head")
class Beside(nnx.Module):
    def __init__(self, scale: float = 2.0, head: int = 2, *, rngs: nnx.Rngs) -> None:
        self.scale, self.head = scale, head
        self.scale_ = nnx.Param(jnp.ones((1, 3)) * scale)
        self.head_ = nnx.Linear(3, head, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return self.head_(x * self.scale_[...] * self.scale)


def test_attributes_beside_fields_have_linens_names() -> None:
    made = nnm.variables_of(nnm.build(Beside, rngs=jax.random.key(0)))
    assert {*made["params"]} == {"scale", "head"}
    assert {*made["params"]["head"]} == {"kernel", "bias"}
    zero = jax.tree.map(jnp.zeros_like, made)
    model = nnm.build(Beside, rngs=jax.random.key(0))
    np.testing.assert_array_equal(nnm.apply(model, zero, X), jnp.zeros((2, 2)))
    assert renamed_paths(model) == {"scale": "scale_", "head": "head_"}
