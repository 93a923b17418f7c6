"""R1, R2, R10, R12: what is built, under which names, and with which arguments."""

from __future__ import annotations

import inspect
import re
from typing import Any

import jax
import numpy as np
import pytest
from flax import nnx

from tests.rewrite.running import compare, migrated, module_of

HEADER = "import flax.linen as nn\nimport jax.numpy as jnp\n\n\n"
X = np.random.default_rng(0).normal(size=(2, 6)).astype(np.float32)

EAGER = (
    HEADER
    + """\
class Model(nn.Module):
    width: int
    project: bool = False

    def setup(self):
        self.inner = nn.Dense(self.width)
        self.drop = nn.Dropout(0.5)
        self.shortcut = None
        if self.project:
            self.shortcut = nn.Dense(self.width)
        self.tails = [nn.Dense(self.width) for _ in range(2)]
        self.heads = {"a": nn.Dense(self.width)}

    def __call__(self, x, train):
        y = self.drop(self.inner(x), deterministic=not train)
        for tail in self.tails:
            y = tail(y)
        y = self.heads["a"](y)
        return y + (x if self.shortcut is None else self.shortcut(x))
"""
)


def test_r1_everything_is_built_in_the_constructor_and_a_call_assigns_nothing() -> None:
    with module_of("eager", migrated(EAGER)) as new:
        for project in (False, True):
            model = new.Model(6, project, in_features=6, rngs=nnx.Rngs(0))
            attributes, (graphdef, state) = set(vars(model)), nnx.split(model)
            nnx.jit(lambda m, x: m(x, True))(model, X)  # traced: an array attribute would leak
            model(X, False)
            assert set(vars(model)) == attributes
            after = nnx.state(model)
            assert nnx.graphdef(model) == graphdef
            assert jax.tree.structure(after) == jax.tree.structure(state)


def test_r1_an_attribute_that_starts_as_none_is_data_and_containers_are_submodules() -> None:
    text = migrated(EAGER)
    assert "self.shortcut = nnx.data(None)" in text
    assert not re.search(r"= \[|= \{", text)
    for model in ("Model(6)", "Model(5, True)"):
        assert compare(EAGER, model, {"in_features": 6}, (X, False)).verdict == "identical"


def test_r1_what_only_some_calls_reach_exists_from_the_start_or_the_call_raises() -> None:
    source = HEADER + (
        "class Model(nn.Module):\n"
        "    @nn.compact\n"
        "    def __call__(self, x, deep):\n"
        "        if deep:\n"
        "            x = nn.Dense(4)(x)\n"
        "        return nn.Dense(2)(x)\n"
    )
    for deep in (True, False):
        sizes = {"in_features": 6, "init_deep": deep}
        assert compare(source, "Model()", sizes, (X, deep)).verdict == "identical"
    with module_of("late", migrated(source)) as new:
        shallow = new.Model(in_features=6, init_deep=False, rngs=nnx.Rngs(0))
        with pytest.raises(ValueError, match="init_deep=True"):
            shallow(X, True)


NAMED = (
    HEADER
    + """\
class Rotation(nn.Module):
    @nn.compact
    def __call__(self, x):
        return x * self.param("angle", nn.initializers.ones, x.shape[-1:])[None]


class Model(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        shared = nn.Dense(6, name="shared")
        x = Rotation()(shared(Rotation()(x)))
        for i in range(2):
            x = shared(Rotation(name=f"layers_{i}")(x))
        return nn.Dense(self.width)(nn.relu(nn.Dense(self.width)(x)))
"""
)


def test_r2_paths_are_linens_and_a_shared_module_is_there_once() -> None:
    report = compare(NAMED, "Model(6)", {"in_features": 6}, (X,))
    assert report.check("paths").status == "pass"
    assert report.verdict == "identical"
    with module_of("named", migrated(NAMED)) as new:
        model = new.Model(6, in_features=6, rngs=nnx.Rngs(0))
    paths = {"/".join(map(str, path)) for path, _ in nnx.to_flat_state(nnx.state(model))}
    assert {path.split("/")[0] for path in paths} == {
        *("Dense_0", "Dense_1", "Rotation_0", "Rotation_1", "layers_0", "layers_1", "shared")
    }
    assert len(paths) == 4 + 4 + 2


ARGUMENTS = (
    HEADER
    + """\
class Model(nn.Module):
    width: int
    scale: float = 2.0
    weight: float = 0.0

    @nn.compact
    def __call__(self, x, positions, *, train: bool = False, skip_logits: bool = False):
        x = nn.Dense(self.width)(x) * self.scale
        if skip_logits and not self.weight > 0.0:
            return x
        return nn.Dense(3)(x) + positions
"""
)


def test_r10_arguments_defaults_and_conditions_stay() -> None:
    source = ARGUMENTS.replace(
        "        if skip_logits and not self.weight > 0.0:\n            return x\n", ""
    )
    with module_of("old", source) as old, module_of("new", migrated(source)) as new:
        theirs, ours = (inspect.signature(one.Model.__init__) for one in (old, new))
        added = {"in_features", "rngs"}
        assert [p for p in ours.parameters if p not in added] == [
            p for p in theirs.parameters if p not in ("parent", "name")
        ]
        for name, parameter in ours.parameters.items():
            if name not in added:
                assert parameter.default == theirs.parameters[name].default
                assert parameter.kind == theirs.parameters[name].kind
        calls = [inspect.signature(one.Model.__call__) for one in (old, new)]
        assert calls[0] == calls[1]


def test_r10_a_condition_on_a_call_argument_keeps_all_its_parts() -> None:
    source = ARGUMENTS.replace(
        "x = nn.Dense(self.width)(x)", "head = nn.Dense(3)(x)\n        x = nn.Dense(self.width)(x)"
    )
    source = source.replace("nn.Dense(3)(x) + positions", "head + positions")
    assert "if skip_logits and not self.weight > 0.0:" in migrated(source)
    positions = np.ones((2, 3), np.float32)
    for model, flag in (("Model(4)", True), ("Model(4)", False), ("Model(4, weight=0.5)", True)):
        case: dict[str, Any] = {"kwargs": {"skip_logits": flag}}
        sizes = {"in_features": 6}
        assert compare(source, model, sizes, (X, positions), **case).verdict == "identical"


MODE = (
    HEADER
    + """\
class Model(nn.Module):
    deterministic: bool = True

    @nn.compact
    def __call__(self, x, deterministic):
        x = nn.Dropout(0.5)(nn.Dense(8)(x), deterministic=deterministic)
        return nn.BatchNorm(use_running_average=None)(x, use_running_average=deterministic)
"""
)


def test_r12_the_mode_is_the_calls_not_the_constructors() -> None:
    for deterministic in (True, False):
        case: dict[str, Any] = {"rngs": {"dropout": 1}, "collections": ("batch_stats",)}
        inputs = (X, deterministic)
        report = compare(MODE, "Model(True)", {"in_features": 6}, inputs, **case)
        assert report.ok, report
    with module_of("mode", migrated(MODE)) as new:
        model = new.Model(True, in_features=6, rngs=nnx.Rngs(0))
        model.eval()  # NNX's own switch counts where the call says nothing
        ones = np.ones((9, 9))
        assert (np.asarray(model.Dropout_0(ones, deterministic=False)) == 0).any()
        assert (np.asarray(model.Dropout_0(ones)) == 1).all()
        before = np.asarray(model.BatchNorm_0.mean[...])
        model(X, False)
        assert (np.asarray(model.BatchNorm_0.mean[...]) != before).any()
