"""Lists, tuples and dicts of arrays that modules keep: data of NNX modules, constants of lifted calls."""

from __future__ import annotations

import pytest

from tests.rewrite.running import net_alike

SOURCE = """\
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np


def tables(n):
    return [np.arange(n).reshape(1, n), {"a": (np.ones((1, n)) / 3,)}]


class Layer(nn.Module):
    def setup(self):
        self.dense = nn.Dense(3)
        SETUP

    def __call__(self, x):
        return self.dense(x) + VALUE
"""
NET = """

class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return LAYER(x)
"""
X = "jnp.arange(12.0).reshape(4, 3)"
KEPT = [
    ("self.rows = [np.full((1, 3), i) for i in range(2)]", "self.rows[1]"),
    ("self.rows = {'a': np.ones((1, 3)) / 3, 'b': 2}", "self.rows['a'] / 7 * self.rows['b']"),
    ("self.rows = tables(3)", "self.rows[0] * self.rows[1]['a'][0]"),
    ("rows = []\n        rows.append(np.ones((1, 3)))\n        self.rows = rows", "self.rows[0]"),
    ("self.rows = (np.arange(3), 1)", "x[:, self.rows[0]] * int(self.rows[0][2])"),
    ("self.rows = [jnp.ones((1, 3)), np.ones((1, 3))]", "self.rows[0] + self.rows[1]"),
]


@pytest.mark.parametrize(("setup", "value"), KEPT)
def test_arrays_in_containers_are_kept(setup: str, value: str) -> None:
    source = SOURCE.replace("SETUP", setup).replace("VALUE", value).replace("Layer", "Net")
    assert net_alike(source, X) == {"m.Net": "explicit"}


@pytest.mark.parametrize(
    "layer",
    [
        "nn.remat(Layer)()",
        "nn.vmap(Layer, variable_axes={'params': 0}, split_rngs={'params': True}, axis_size=4)()",
        "nn.vmap(Layer, variable_axes={'params': None}, split_rngs={'params': False})()",
    ],
)
@pytest.mark.parametrize("make", ["np", "jnp"])
def test_a_lifted_layer_has_them_as_constants(layer: str, make: str) -> None:
    value = "self.rows[0] if x.ndim == 2 else self.rows[0][0]"
    source = SOURCE.replace("SETUP", f"self.rows = [{make}.ones((1, 3))]")
    source = source.replace("VALUE", f"({value})") + NET.replace("LAYER", layer)
    assert net_alike(source, X) == {"m.Layer": "explicit", "m.Net": "explicit"}


@pytest.mark.parametrize(
    ("field", "given"),
    [("rows: Any = None", ""), ("rows: tuple = ()", "(np.ones((1, 3)) / 3,)")],
)
def test_fields_may_hold_them(field: str, given: str) -> None:
    source = (
        SOURCE.partition("class Layer")[0]
        + f"""class Layer(nn.Module):
    {field}

    def __post_init__(self):
        if not self.rows:
            self.rows = [np.ones((1, 3))]
        super().__post_init__()

    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(x) * (self.rows[0] / 7)
"""
    )
    source += NET.replace("LAYER", f"Layer({given})")
    assert net_alike(source, X) == {"m.Layer": "explicit", "m.Net": "explicit"}
