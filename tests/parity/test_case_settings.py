"""Settings of a case: what may be, and the line on what may not."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import optax
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax.sharding import Mesh

from nnx_migrate.parity.case import BadCase, ParityCase
from nnx_migrate.parity.case_settings import fault
from nnx_migrate.parity.words import MOST
from tests.hostile import FEW, json_values, refusal

MESH = "mesh: expected {axis: size} with sizes of at least 1, or a Mesh"
RULES = "axis_rules: expected a sequence of pairs (logical name, mesh axes), axes as None, a name or names"
ABSENT = "axis_rules: expected axes of the mesh (data), found 'nope'"
SIZES = (0, -1, "x", 1.5, True)
KEY = jax.eval_shape(lambda: jax.random.key(0))


@pytest.mark.parametrize(
    "settings",
    [
        {"rngs": {"dropout": 0, "params": KEY, "gumbel": np.int64(3)}},
        {"collections": ["batch_stats"]},
        {"mesh": {"data": 8}},
        {"mesh": Mesh(np.array(jax.devices()[:1]), ("data",))},
        {"axis_rules": (("batch", "data"), ["embed", None])},
        {"axis_rules": (("batch", ("data", "model")),), "mesh": {"data": 2, "model": 1}},
        {"optimizer": optax.adam(1e-3)},
        {"path_map": {"a/b": "a/c"}},
        {"steps": MOST, "seed": np.uint32(7), "tolerance": 1e-3, "method": "encode"},
        {"mesh": None, "method": None, "unknown": object()},
    ],
)
def test_a_setting_of_its_kind_is_taken(settings: dict[str, Any]) -> None:
    assert fault(settings) is None


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"rngs": 5}, "rngs: expected {stream: seed or key}, found 5"),
        ({"rngs": {"a": "x"}}, "rngs: expected {stream: seed or key}, found {'a': 'x'}"),
        ({"rngs": {"a": -1}}, "rngs: expected {stream: seed or key}, found {'a': -1}"),
        ({"collections": 5}, "collections: expected a sequence of names, found 5"),
        ({"collections": "cache"},
         "collections: expected a sequence of names, found 'cache': write collections=('cache',)"),
        ({"rngs": [], "collections": "cache"}, "rngs: expected {stream: seed or key}, found []"),
        ({"mesh": 5}, f"{MESH}, found 5"),
        *(({"mesh": {"data": size}}, f"{MESH}, found {{'data': {size!r}}}") for size in SIZES),
        ({"axis_rules": 5},
         f"{RULES}, found 5"),
        ({"axis_rules": (("a", 3),)}, f"{RULES}, found (('a', 3),)"),
        ({"mesh": {"data": 2}, "axis_rules": (("a", "data"), ("b", ("data", "nope")))},
         f"{ABSENT} in ('b', ('data', 'nope')): leave the rule out, or add the axis to mesh (1 is a size, too)"),
        ({"optimizer": "adam"},
         "optimizer: expected an optimizer of optax, as optax.adam(1e-3), found 'adam'"),
        ({"path_map": {1: 2}}, "path_map: expected {Linen path: NNX path}, found {1: 2}"),
        ({"steps": -1}, f"steps: expected a whole number from 0 to {MOST}, found -1"),
        ({"steps": 1.5}, f"steps: expected a whole number from 0 to {MOST}, found 1.5"),
        ({"seed": 2**70}, f"seed: expected a whole number from 0 to {MOST}, found {2**70}"),
        ({"method": 5}, "method: expected the name of a method, found 5"),
        ({"tolerance": "x"}, "tolerance: expected a number, found 'x'"),
    ],
)  # fmt: skip
def test_a_setting_of_another_kind_is_one_line(settings: dict[str, Any], line: str) -> None:
    assert fault(settings) == line
    with pytest.raises(BadCase) as caught:
        ParityCase(**settings)
    assert str(caught.value) == line


NAMES = (
    "rngs", "collections", "mesh", "axis_rules", "optimizer", "path_map", "steps", "seed", "method"
)  # fmt: skip


@FEW
@given(st.dictionaries(st.sampled_from((*NAMES, "tolerance")), json_values(*NAMES), max_size=3))
def test_any_settings_are_taken_or_refused_with_one_line(values: dict[str, Any]) -> None:
    reason = refusal(lambda: ParityCase(**values), BadCase)
    assert reason.startswith(fault(values) or "")
    assert "\n" not in reason
