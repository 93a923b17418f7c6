"""What size inference says about random networks in two files is what tracing Linen shows."""

from __future__ import annotations

import os
import sys
import types
from typing import Any

import jax
import numpy as np
import pytest
from flax import linen
from hypothesis import HealthCheck, Phase, assume, event, given, settings
from hypothesis import strategies as st

from nnx_migrate.model import Form, RewriteResult
from nnx_migrate.parity.instantiation.calls import record_calls
from nnx_migrate.parity.instantiation.sizing import sizes_for
from tests.rewrite.projects import rewrite_in_form, texts
from tests.sizes.networks import PARTS, networks, setups
from tests.sizes.test_property import first_call, shapes

FIELDS = ("flag", "widths", "config", "layer")
FILES = ("parts.py", "model.py")

# More programs than a test run has time for: NNX_MIGRATE_PROGRAMS=2000 python -m pytest FILE
PROGRAMS = int(os.environ.get("NNX_MIGRATE_PROGRAMS", "15"))


def modules_of(monkeypatch: pytest.MonkeyPatch, parts: str, model: str) -> types.ModuleType:
    """Run both files; ``model`` imports ``parts``."""
    found = types.ModuleType("model")
    for name, text in (("parts", parts), ("model", model)):
        module = found if name == "model" else types.ModuleType(name)
        monkeypatch.setitem(sys.modules, name, module)
        exec(compile(text, f"{name}.py", "exec", dont_inherit=True), vars(module))  # noqa: S102
    return found


def traced(module: linen.Module, x: jax.ShapeDtypeStruct) -> tuple[Any, dict[str, Any]] | None:
    """The output and the parameters; None when the network does not take such an input."""
    try:
        output, variables = jax.eval_shape(module.init_with_output, jax.random.key(0), x)
    except (TypeError, ValueError, linen.errors.FlaxError):
        return None
    return output, shapes(variables.get("params", {}))


def sizes_of(
    result: RewriteResult, module: linen.Module, migrated: Any, x: jax.ShapeDtypeStruct
) -> dict[str, Any]:
    """What parity hands in: sizes that a Linen trace shows."""
    maps = {one.linen: one for one in result.migration_map.classes}
    calls = record_calls(module, (np.ones(x.shape, x.dtype),), {})
    name = "model.Model"
    sizes, missing = sizes_for(migrated, FIELDS, maps[name], calls, (), name)
    assert missing == ()
    return sizes


random_programs = settings(
    max_examples=PROGRAMS,
    deadline=None,
    derandomize=PROGRAMS < 100,
    phases=(Phase.explicit, Phase.generate),  # shrinking takes minutes: every step traces twice
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.filter_too_much,
    ],
)
SHAPES = st.tuples(st.just(2), st.integers(2, 5), st.integers(1, 7))


@random_programs
@given(networks(), SHAPES)
def test_networks_of_two_files_have_the_parameters_linen_makes(
    text: str, shape: tuple[int, int, int]
) -> None:
    compare(text, jax.ShapeDtypeStruct(shape, "float32"))


@random_programs
@given(setups(), SHAPES)
def test_networks_built_in_setup_have_the_parameters_linen_makes(
    text: str, shape: tuple[int, int, int]
) -> None:
    compare(text, jax.ShapeDtypeStruct(shape, "float32"))


def compare(text: str, x: jax.ShapeDtypeStruct) -> None:
    """Parameters and output of the migrated ``Model`` have Linen's shapes, unless it is refused."""
    with pytest.MonkeyPatch.context() as patch:
        module = modules_of(patch, PARTS, text).Model()
        found = traced(module, x)
        assume(found is not None)
        assert found is not None
        output, params = found
        files = {"parts.py": PARTS, "model.py": text}
        result = rewrite_in_form(files, "auto")
        left = {one.name: one for one in result.classes if one.form is not Form.EXPLICIT}
        event("explicit" if not left else "lazy" if "model.Model" in left else "parts are lazy")
        if left:
            assert all(one.reason for one in left.values())
            return
        made = texts(result, files)
        migrated = modules_of(patch, made["parts.py"], made["model.py"]).Model
        sizes = sizes_of(result, module, migrated, x)
        made_params, given_back = first_call(migrated, sizes, x)
        assert made_params == params
        assert given_back.shape == output.shape
