import json

import jax.numpy as jnp
import numpy as np
import pytest

from nnx_migrate.parity.evaluation.results import Numbers, SideResult, SubmoduleOutput, load, save
from nnx_migrate.parity.values import ShapeDtype, same_bits

ARRAYS = {
    "f32": np.float32([[1.5, np.nan]]),
    "bf16": np.asarray([1.5, -0.0], jnp.bfloat16),
    "f8": np.asarray([1.5], jnp.float8_e4m3fn),
    "c64": np.complex64([1 + 2j]),
    "bool": np.array([True, False]),
    "i4": np.asarray([1, -2], jnp.int4),
    "key": np.uint32([0, 7]),
    "scalar": np.asarray(3.0, np.float32),
    "empty": np.zeros((0, 3), np.int8),
    "turned": np.arange(6, dtype=np.int64).reshape(2, 3).T,
}

SIDE = SideResult(
    "nnx",
    "m.Model",
    problems=("p",),
    bridges=("b (Dense)",),
    shapes={"params/a": ShapeDtype((2, 3), "bfloat16"), "cache/k": ShapeDtype((), "key<fry>")},
    nnx_only=("rngs/key",),
    init_values=ARRAYS,
    draws=3,
    state=ARRAYS,
    first=Numbers("dict(*)", ARRAYS, {"loss": np.asarray(1, np.float32)}, ARRAYS, {}),
    programs={"forward": "module {}\n"},
    control=("x differs",),
    control_leaves=4,
    submodules=(SubmoduleOutput("a/b", 1, ARRAYS),),
    errors={"loss": "TypeError: no"},
    skip_reasons={"gradients": "none"},
)


def test_a_side_survives_its_files_bit_for_bit(tmp_path):
    save(SIDE, tmp_path / "side")
    found = load(tmp_path / "side")
    for ours, theirs in (
        (SIDE.init_values, found.init_values),
        (SIDE.state, found.state),
        (SIDE.first.gradients, found.first.gradients),
        (SIDE.first.loss, found.first.loss),
        (SIDE.submodules[0].outputs, found.submodules[0].outputs),
    ):
        assert list(ours) == list(theirs)
        assert all(same_bits(ours[name], theirs[name]) for name in ours)
    for name in ("stack", "model", "problems", "bridges", "shapes", "nnx_only", "draws"):
        assert getattr(found, name) == getattr(SIDE, name)
    for name in ("programs", "control", "control_leaves", "errors", "skip_reasons"):
        assert getattr(found, name) == getattr(SIDE, name)
    assert found.first.structure == "dict(*)"
    assert (found.submodules[0].path, found.submodules[0].call) == ("a/b", 1)


def test_an_empty_side_survives(tmp_path):
    save(SideResult("linen", "m"), tmp_path)
    assert load(tmp_path) == SideResult("linen", "m")


def test_the_files_of_another_version_are_refused(tmp_path):
    save(SideResult("linen", "m"), tmp_path)
    document = json.loads((tmp_path / "side.json").read_text())
    (tmp_path / "side.json").write_text(json.dumps({**document, "format": 99}))
    with pytest.raises(ValueError, match="expected format 5, found 99"):
        load(tmp_path)


def test_a_directory_without_a_side_is_refused(tmp_path):
    with pytest.raises(OSError, match=r"side\.json"):
        load(tmp_path / "missing")
