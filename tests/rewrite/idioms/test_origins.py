"""Idioms 18, 22, 24, 25: where models come from and how they are called."""

from __future__ import annotations

import jax
import numpy as np
from flax import nnx

from nnx_migrate import nn as nnm
from tests.rewrite.projects import rewrite
from tests.rewrite.running import compare, migrated, module_of, refused

X = np.random.default_rng(0).normal(size=(2, 6)).astype(np.float32)
SAME = ("identical", "equal_by_rules")

SLICED = """\
import flax.linen as nn
import jax


class Critic(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return nn.Dense(1)(nn.relu(nn.Dense(self.width)(x)))


class Ensemble(nn.Module):
    width: int
    members: int = 5

    @nn.compact
    def __call__(self, x):
        critics = nn.vmap(Critic, variable_axes={"params": 0}, split_rngs={"params": True},
                          in_axes=None, out_axes=0, axis_size=self.members)
        return critics(self.width)(x)


def targets(params, x, chosen):
    few = jax.tree.map(lambda p: p[chosen], params["VmapCritic_0"])
    model = Ensemble(8, members=2)
    return model.apply({"params": {"VmapCritic_0": few}}, x)
"""


def test_18_an_ensemble_is_applied_to_some_of_its_members() -> None:
    report = compare(SLICED, "Ensemble(8)", {"in_features": 6}, (X,))
    assert report.verdict in SAME, report
    with module_of("linen_side", SLICED) as old, module_of("nnx_side", migrated(SLICED)) as new:
        model = nnm.build(new.Ensemble, 8, in_features=6, rngs=jax.random.key(0))
        params = nnm.variables_of(model)["params"]
        chosen = np.array([3, 1])
        theirs = jax.jit(old.targets)(params, X, chosen)
        np.testing.assert_array_equal(jax.jit(new.targets)(params, X, chosen), theirs)
        assert theirs.shape == (2, 2, 1)


BY_NAME = """\
import flax.linen as nn


class Base(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.width)(x)


class Doubled(Base):
    def __call__(self, x):
        return 2 * Base.__call__(self, x)
"""


def test_22_a_base_is_called_by_its_name() -> None:
    report = compare(BY_NAME, "Doubled(4)", {"in_features": 6}, (X,))
    assert report.verdict in SAME, report


CONFIGURED = """\
import flax.linen as nn


class Tower(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.width)(x)


class Towers(nn.Module):
    towers: dict[str, nn.Module]

    @nn.compact
    def __call__(self, x, name):
        return self.towers[name](x)


CONFIG = {"_target_": "m.Tower", "width": 4}


def instantiate(config):
    config = dict(config)
    return globals()[config.pop("_target_").split(".")[-1]](**config)
"""


def test_24_a_config_names_the_class_and_a_call_argument_the_submodule() -> None:
    found = {one.name: one for one in rewrite({"m.py": CONFIGURED}).classes}
    # No text of Python shows who builds a Tower: the report says what its config has to give.
    assert found["m.Tower"].new_arguments == ("in_features",)
    with (
        module_of("linen_side", CONFIGURED) as old,
        module_of("nnx_side", migrated(CONFIGURED)) as new,
    ):
        sized = {**new.CONFIG, "in_features": 6, "rngs": nnx.Rngs(0)}
        image, text = new.instantiate(sized), new.Tower(3, in_features=6, rngs=nnx.Rngs(1))
        model = new.Towers({"image": image, "text": text}, rngs=nnx.Rngs(0))
        theirs = old.Towers({"image": old.instantiate(old.CONFIG), "text": old.Tower(3)})
        values = nnm.variables_of(model)
        assert set(values["params"]) == {"towers_image", "towers_text"}
        for name in values["params"]:
            name = name.removeprefix("towers_")
            y = jax.jit(theirs.apply, static_argnums=2)(values, X, name)
            ours = jax.jit(lambda values, x, name=name: nnm.apply(model, values, x, name))(
                values, X
            )
            np.testing.assert_array_equal(ours, y)
            reached = theirs.init(jax.random.key(0), X, name)["params"]
            assert set(reached) == {f"towers_{name}"}


DEFAULTS = """\
import flax.linen as nn


class Block(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return nn.relu(nn.Dense(self.width, name=f"{self.name}_mix")(x))


class Head(nn.Module):
    inner: nn.Module = Block(4)

    @nn.compact
    def __call__(self, x):
        return nn.Dense(2)(self.inner(x))


class Model(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        x = nn.remat_scan(Block, lengths=(2, 2))(self.width, name="deep")(x)
        return Head()(x)


def through(model, x):
    return model(x) + 1


def start(key, x):
    return nn.init(through, Model(6))(key, x)
"""


def test_25_a_module_is_a_default_names_come_from_the_parents_and_a_function_is_initialised() -> (
    None
):
    assert "self.name" in refused(DEFAULTS, "Block")
    assert "default of 'inner' builds a module" in refused(DEFAULTS, "Head")
    assert refused(DEFAULTS)
