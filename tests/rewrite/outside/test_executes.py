"""Rewritten programs run and compute what the Linen programs compute, bit by bit."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from tests.rewrite.projects import explicit_source as rewrite_source

HEAD = """\
import jax
import jax.numpy as jnp
import optax
import flax.linen as nn
from flax.training.train_state import TrainState


class MLP(nn.Module):
    features: int

    @nn.compact
    def __call__(self, x, train=False):
        x = nn.relu(nn.Dense(self.features)(x))
        x = nn.BatchNorm(use_running_average=not train)(x)
        x = nn.Dropout(0.5, deterministic=not train)(x)
        return nn.Dense(1)(x)


key, x = jax.random.key(0), jnp.linspace(0.0, 1.0, 12).reshape(4, 3)
"""

PROGRAMS = {
    "train state": """
def main(key, x, y):
    model = MLP(features=4)
    variables = model.init({"params": key, "dropout": key}, x, train=False)
    params, stats = variables["params"], variables["batch_stats"]
    state = TrainState.create(apply_fn=model.apply, params=params, tx=optax.sgd(0.1))

    @jax.jit
    def step(state, stats, key):
        def loss_fn(p):
            out, new = state.apply_fn(
                {"params": p, "batch_stats": stats}, x, train=True,
                rngs={"dropout": key}, mutable=["batch_stats"],
            )
            return ((out - y) ** 2).mean(), new

        (loss, new), grads = jax.value_and_grad(loss_fn, has_aux=True)(state.params)
        return state.apply_gradients(grads=grads), new["batch_stats"], loss

    for i in range(3):
        state, stats, loss = step(state, stats, jax.random.fold_in(key, i))
    return state.params, stats, loss


RESULT = main(key, x, x.sum(1, keepdims=True))
""",
    "globals": """
model = MLP(4)


def init(k, x):
    return model.init(k, x)


def forward(v, x):
    return model.apply(v, x)


RESULT = init(key, x), forward(init(key, x), x)
""",
    "late inputs and jit": """
model = MLP(4)
inputs = x * 2
v = model.init(jax.random.PRNGKey(1), inputs)
jitted = jax.jit(MLP(4).init)(key, inputs)
RESULT = v, model.apply(v, inputs), jitted, MLP(4).apply(jitted, inputs)
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_same_results(name: str, tmp_path: Path) -> None:
    before = HEAD + PROGRAMS[name]
    result = rewrite_source(before)
    after = result.code
    assert "flax.linen" not in after
    assert result.call_sites.rewritten == result.call_sites.total > 0
    expected = _run(before, tmp_path / "linen_side.py")
    found = _run(after, tmp_path / "nnx_side.py")
    assert jax.tree.structure(expected) == jax.tree.structure(found)
    leaves = zip(jax.tree.leaves(expected), jax.tree.leaves(found), strict=True)
    for one, other in leaves:
        np.testing.assert_array_equal(one, other)


def _run(code: str, path: Path) -> Any:
    path.write_text(code)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    with jax.numpy_rank_promotion("allow"):
        spec.loader.exec_module(module)
    return module.RESULT
