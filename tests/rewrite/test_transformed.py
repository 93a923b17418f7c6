"""Whole modules with jit, cond, switch, while_loop, vjp and the like: rewritten, run, compared."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.rewrite.running import compare, refused

HEADER = """\
from functools import partial
import flax.linen as nn
import jax
import jax.numpy as jnp


class Block(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return nn.tanh(nn.Dense(self.width)(x))


"""
X = np.random.default_rng(0).normal(size=(2, 6)).astype(np.float32)

CASES: dict[str, tuple[str, str, dict[str, Any], dict[str, Any]]] = {
    "vmap and scan of methods that share their module": (
        """\
class Shared(nn.Module):
    @partial(nn.vmap, in_axes=(0, None), variable_axes={"params": None},
             split_rngs={"params": False})
    @nn.compact
    def __call__(self, x, y):
        return nn.Dense(3)(x * y)


class Steps(nn.Module):
    @partial(nn.scan, variable_broadcast="params", in_axes=(nn.broadcast, 0),
             split_rngs={"params": False})
    @nn.compact
    def __call__(self, carry, whole, x):
        return carry + 1, nn.Dense(2)(x * whole)


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        return Shared()(x, 2.0), Steps()(0, 3.0, Block(6)(x))
""",
        "Model()",
        {"in_features": 6},
        {},
    ),
}


@pytest.mark.parametrize(("source", "model", "sizes", "options"), CASES.values(), ids=CASES)
def test_the_rewritten_model_is_at_parity(
    source: str, model: str, sizes: dict[str, Any], options: dict[str, Any]
) -> None:
    report = compare(HEADER + source, model, sizes, (X,), **options)
    assert report.ok, report
    assert report.verdict in ("identical", "equal_by_rules", "numerically_equal"), report


REFUSED = {
    "a function that stacks the variables of its own module": (
        "nn.scan(lambda m, c, _: (c, ()), variable_axes={'params': 0}, length=3)(self, x, ())",
        "nn.scan of something else than a module class",
    ),
    "a function that stacks those of another": (
        "nn.vmap(lambda m, x: m(x), variable_axes={'params': 0}, axis_size=2, in_axes=None)(Block(3), x)",
        "nn.vmap of something else than a module class",
    ),
}


@pytest.mark.parametrize(("value", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_exact_is_refused(value: str, reason: str) -> None:
    model = f"""\
class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        return {value}
"""
    assert reason in refused(HEADER + model)


def test_a_class_that_extends_linens_init_is_refused() -> None:
    model = """\
class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(x)

    def init_with_output(self, rngs, *args):
        return super().init_with_output(rngs, *args)
"""
    assert "it calls init_with_output of linen.Module" in refused(HEADER + model)
