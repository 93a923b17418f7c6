"""The examples of docs/sharding.md run as they stand, one after the other."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec

P = PartitionSpec
PAGE = Path(__file__).parents[2] / "docs" / "sharding.md"


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the examples have defined when all of them have run."""
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert len(examples) == 2
    script = tmp_path_factory.mktemp("readme") / "examples.py"
    script.write_text("".join(examples), "utf-8")
    return runpy.run_path(str(script))


def test_the_model_of_the_examples_is_in_shards(names: dict[str, Any]) -> None:
    for model in (names["model"], names["other"]):
        assert model.wi.kernel.get_raw_value().sharding.spec == P("fsdp", "tensor")
    moment = names["optimizer"].opt_state[0].mu["wi"]["kernel"].get_raw_value()
    assert moment.sharding.spec == P("fsdp", "tensor")


def test_the_step_of_the_examples_keeps_the_shardings(names: dict[str, Any]) -> None:
    state, bare = names["state"], names["bare"]
    assert state[0]["wi"]["kernel"].get_raw_value().sharding == bare[0]["wi"]["kernel"]
    assert state[1]["step"][...] == 1
    np.testing.assert_array_equal(names["y"], 2 * jnp.ones((8, 8)))


def test_the_stack_of_the_examples_comes_back(names: dict[str, Any]) -> None:
    kernel = names["stack"]["wi"]["kernel"]
    assert kernel.shape == (4, 8, 16)
    assert kernel.get_metadata()["out_sharding"] == ("layers", "embed", "mlp")
