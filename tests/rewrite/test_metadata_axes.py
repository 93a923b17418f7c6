"""``nn.add_metadata_axis`` of a compact method: names outside and inside are Linen's."""

from __future__ import annotations

import functools

import jax
import numpy as np
import pytest
from flax import linen, nnx

from nnx_migrate import nn as nnm
from nnx_migrate.sharding import get_partition_spec
from tests.rewrite.running import compare, migrated, module_of, refused

HEADER = """\
from functools import partial

import flax.linen as nn
import jax
import jax.numpy as jnp

SEEN = []


class Inner(nn.Module):
    @nn.compact
    def __call__(self, x):
        init = nn.with_logical_partitioning(nn.initializers.lecun_normal(), ("embed", "mlp"))
        x = nn.Dense(4, kernel_init=init, name="dense")(x)
        SEEN.append(nn.get_partition_spec(self.variables["params"]))
        mean = self.variable("stats", "mean", jnp.zeros, (4,))
        mean.value += x.mean(0)
        return nn.Dropout(0.5, deterministic=False)(x)


"""
MODEL = """\
class Model(nn.Module):
    features: int = 3

    @partial(
        nn.add_metadata_axis,
        variable_axes={"params": 1, "stats": 0},
        metadata_params={nn.PARTITION_NAME: "stage"},
    )
    @nn.compact
    def __call__(self, x):
        init = nn.with_partitioning(nn.initializers.normal(1.0), ("data",))
        scale = self.param("scale", init, (4,))
        return nn.Dense(self.features)(Inner(name="inner")(x) * scale[None])
"""
SOURCE = HEADER + MODEL
X = np.random.default_rng(0).normal(size=(2, 6)).astype(np.float32)


def test_paths_updates_and_programs_are_linens() -> None:
    report = compare(
        SOURCE, "Model()", {"in_features": 6}, (X,), collections=("stats",), rngs={"dropout": 0}
    )
    assert report.verdict == "identical", report


def test_a_seed_gives_linens_values() -> None:
    with module_of("old", SOURCE) as old, module_of("new", migrated(SOURCE)) as new:
        theirs = linen.unbox(jax.jit(old.Model().init)(jax.random.key(3), X)["params"])
        make = jax.jit(lambda key: nnm.variables_of(nnm.build(new.Model, in_features=6, rngs=key)))
        found = linen.unbox(make(jax.random.key(3))["params"])
        assert jax.tree.all(jax.tree.map(np.array_equal, found, theirs))


def test_names_are_linens_outside_and_in_the_call() -> None:
    with module_of("old", SOURCE) as old, module_of("new", migrated(SOURCE)) as new:
        theirs = jax.eval_shape(old.Model().init, jax.random.key(0), X)
        model = new.Model(in_features=6, rngs=nnx.Rngs(0))
        expected = linen.get_partition_spec(theirs["params"])
        assert get_partition_spec(nnm.variables_of(model)["params"]) == expected
        assert expected["inner"]["dense"]["kernel"] == jax.P("embed", "stage", "mlp")
        assert expected["scale"] == jax.P("data", "stage")
        old.SEEN.clear()
        jax.eval_shape(
            lambda v: old.Model().apply(v, X, rngs={"dropout": jax.random.key(1)}, mutable="stats"),
            theirs,
        )
        model(X)
        assert new.SEEN == old.SEEN
        assert new.SEEN[0]["dense"]["kernel"] == jax.P("embed", "mlp")
        assert get_partition_spec(nnm.variables_of(model)["params"]) == expected


def test_a_module_that_is_handed_in_is_an_error() -> None:
    class Named(nnx.Module):
        def __init__(self, inner: nnx.Module, *, rngs: nnx.Rngs) -> None:
            self.inner = inner

        @functools.partial(
            nnm.add_metadata_axis,
            variable_axes={"params": 0},
            metadata_params={nnx.PARTITION_NAME: "x"},
        )
        def __call__(self, x: jax.Array) -> jax.Array:
            return x

    rngs = nnx.Rngs(0)
    with pytest.raises(TypeError, match="build all its submodules"):
        Named(nnx.Linear(2, 2, rngs=rngs), rngs=rngs)


DECORATOR = (
    '@partial(nn.add_metadata_axis, variable_axes={"params": 0}, '
    'metadata_params={nn.PARTITION_NAME: "x"})'
)
NOT_COMPACT = f"""\
class Model(nn.Module):
    {DECORATOR}
    def __call__(self, x):
        return self.inner(x)

    @nn.compact
    def inner(self, x):
        return nn.Dense(4)(x)
"""
SETUP = f"""\
class Model(nn.Module):
    def setup(self):
        self.dense = nn.Dense(4)

    {DECORATOR}
    @nn.compact
    def __call__(self, x):
        return self.dense(x)
"""
OF_A_CLASS = """\
class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.add_metadata_axis(Inner, variable_axes={"params": 0})()(x)
"""
REFUSED = {
    "from the end": (MODEL.replace('{"params": 1', '{"params": -1'), "not written out"),
    "no axis": (MODEL.replace('{"params": 1', '{"params": None'), "not written out"),
    "another key": (MODEL.replace("nn.PARTITION_NAME", '"size"'), "other keys"),
    "a name of a variable": (
        MODEL.replace('{nn.PARTITION_NAME: "stage"}', "PARAMS"),
        "not written out",
    ),
    "no name": (MODEL.replace('{nn.PARTITION_NAME: "stage"}', "{}"), "not written out"),
    "not compact": (NOT_COMPACT, "other decorators"),
    "setup": (SETUP, "with setup"),
    "under remat": (
        MODEL.replace("    @partial(", "    @nn.remat\n    @partial("),
        "other decorators",
    ),
    "with a subclass": (MODEL + "\n\nclass Sub(Model):\n    pass\n", "bases or subclasses"),
    "with a base": (
        "class Base(nn.Module):\n    pass\n\n\n" + MODEL.replace("(nn.Module)", "(Base)"),
        "bases or subclasses",
    ),
    "a class": (OF_A_CLASS, "add_metadata_axis"),
}


@pytest.mark.parametrize(("model", "reason"), REFUSED.values(), ids=REFUSED)
def test_refused(model: str, reason: str) -> None:
    assert reason in refused(HEADER + model)
