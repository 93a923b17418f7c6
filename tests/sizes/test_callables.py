"""Fields that are called: activations keep sizes, encoders do not."""

from __future__ import annotations

import pytest

from tests.sizes.inference import compact, in_features, sites, sizes_of

FUNCTIONS = """
def waves(t, count=16):
    t = jnp.arange(count) * t
    return jnp.concatenate([jnp.cos(t), jnp.sin(t)], axis=-1)

def gate(x):
    return x * jax.nn.sigmoid(x)
"""


@pytest.mark.parametrize("default", ["", " = gate", " = nn.relu", " = jax.nn.gelu", " = None"])
def test_an_activation_keeps_the_size(default: str) -> None:
    body = "return nn.Dense(3)(self.call(x))"
    found = sizes_of(compact(body, fields=f"call: Callable{default}", before=FUNCTIONS))
    assert in_features(found) == ["in_features"]


@pytest.mark.parametrize(
    "default", ["waves", "functools.partial(waves, count=4)", "lambda x: x[..., :2]"]
)
def test_what_changes_the_size_by_default_leaves_it_open(default: str) -> None:
    body = "return nn.Dense(3)(self.call(nn.Dense(5)(x)))"
    found = sizes_of(compact(body, fields=f"call: Callable = {default}", before=FUNCTIONS))
    assert sites(found)["nn.Dense(3)"] == {"in_features": "Dense_0_in_features"}


@pytest.mark.parametrize(
    ("default", "size"), [("", "Dense_0_in_features"), (" = gate", "5"), (" = nn.relu", "5")]
)
def test_a_field_of_any_type_may_hold_a_module_where_no_default_shows_an_activation(
    default: str, size: str
) -> None:
    body = "return nn.Dense(3)(self.call(nn.Dense(5)(x)))"
    before = f"from typing import Any\n{FUNCTIONS}"
    found = sizes_of(compact(body, fields=f"call: Any{default}", before=before))
    assert sites(found)["nn.Dense(3)"] == {"in_features": size}
