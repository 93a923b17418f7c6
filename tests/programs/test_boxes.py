"""A script that handles boxed variables, rewritten: specs before and after a step are Linen's."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import jax
import numpy as np
import pytest

from tests.programs import lowering
from tests.sharding.meshes import AUTO, mesh

RULES = (("embed", "fsdp"), ("mlp", "tensor"), ("tensor", "tensor"))
X = np.random.default_rng(0).normal(size=(8, 8)).astype(np.float32)


@pytest.fixture(scope="module")
def pair() -> lowering.Pair:
    return lowering.pair("boxes")


def by_path(tree: Any) -> dict[str, Any]:
    leaves = jax.tree_util.tree_flatten_with_path(
        tree, is_leaf=lambda node: isinstance(node, jax.P)
    )[0]
    return {jax.tree_util.keystr(path): leaf for path, leaf in leaves}


@pytest.mark.slow
def test_a_training_script_has_linens_specs_before_and_after_a_step(pair: lowering.Pair) -> None:
    devices = mesh(AUTO, fsdp=4, tensor=2)

    def run(module: ModuleType) -> tuple[Any, ...]:
        with jax.set_mesh(devices):
            return module.train(jax.random.key(0), X, devices, RULES)  # type: ignore[no-any-return]

    ours, theirs = (run(one) for one in (pair.nnx, pair.linen))
    names, params, after, boxes = (by_path(one) if one is not ours[3] else one for one in ours)
    assert names == by_path(theirs[0])
    assert names["[0]['layers']['Dense_0']['kernel']"] == jax.P("layers", "embed", "mlp")
    assert names["[0]['head']['kernel']"] == jax.P(None, "tensor")
    assert boxes == theirs[3] == 9  # of parameters and both moments: the head's is another box
    for mine, other in ((params, by_path(theirs[1])), (after, by_path(theirs[2]))):
        assert mine.keys() == other.keys()
        for path, value in mine.items():
            assert value.sharding == other[path].sharding, path
            np.testing.assert_array_equal(value, other[path], err_msg=path)


@pytest.mark.slow
def test_boxed_variables_are_opened_under_a_mesh(pair: lowering.Pair) -> None:
    devices = mesh(AUTO, fsdp=4, tensor=2)

    def lowered(module: ModuleType) -> Any:
        with jax.set_mesh(devices):
            return jax.jit(lambda key, x: module.boxed_forward(key, x, devices, RULES)).lower(
                jax.random.key(0), X
            )

    ours, theirs = (lowered(one) for one in (pair.nnx, pair.linen))
    for text in (ours.as_text(), theirs.as_text()):
        assert '[{}, {"tensor"}]>' in text
        assert '{"fsdp"}, {"tensor"}]>' in text  # whole stacks here, layer by layer in Linen
    left, right = (one.compile()(jax.random.key(0), X) for one in (ours, theirs))
    np.testing.assert_allclose(left, right, rtol=1e-6)
