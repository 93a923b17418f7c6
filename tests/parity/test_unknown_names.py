"""What a case says that cannot be meant: one line and exit code 2, where it was a verdict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import flax.linen as nn
import pytest
from flax import nnx

from nnx_migrate.parity.case import BadCase
from nnx_migrate.parity.evaluation.linen_names import attributes_of, unused_entries
from nnx_migrate.parity.evaluation.results import ModeRun, Numbers, SideResult
from nnx_migrate.parity.files.case_file import CaseError
from nnx_migrate.parity.files.unknown_names import require_known_names
from nnx_migrate.parity.files.worker import _from_case
from nnx_migrate.parity.modes import Mode
from nnx_migrate.parity.values import ShapeDtype

SHAPES = {"params/d/kernel": ShapeDtype((2, 2), "float32")}
NNX = SideResult("nnx", "m.N", shapes=SHAPES, attributes=("d", "d/kernel", "drop"))
MODE = ModeRun(Mode(), first=Numbers(collections={"state/n": None}))  # type: ignore[dict-item]
LINEN = SideResult("linen", "m.L", shapes=SHAPES, sown=("intermediates/x",), modes=(MODE,))


def refusal_of(nnx: SideResult = NNX, **settings: Any) -> str:
    settings = {"collections": (), "path_map": {}, **settings}
    with pytest.raises(CaseError) as caught:
        require_known_names(settings, "case.py", LINEN, nnx)
    return str(caught.value)


def test_a_collection_that_neither_side_has_is_refused() -> None:
    assert refusal_of(collections=("intermediates", "state", "nope")) == (
        "case.py: CASE: collections: expected collections of the model, found 'nope', which neither side "
        "has (known: params, intermediates, state): correct it, or leave it out"
    )
    assert "; did you mean params?" in refusal_of(collections=("param",))


class Net(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.layers = nnx.List([nnx.Linear(2, 2, rngs=rngs)])


def test_a_path_that_the_nnx_module_does_not_have_is_refused() -> None:
    path_map = {
        "layers_0": "layers/0",
        "layers_0/kernel": "layers/0/kernel",
        "a": "layer",
        "b": "lay",
    }
    attributes = attributes_of(Net(nnx.Rngs(0)))
    found = unused_entries(path_map, attributes)
    assert found == {"a": "layer", "b": "lay"}
    side = SideResult("nnx", "m.N", shapes=SHAPES, unused_map_entries=found, attributes=attributes)
    assert refusal_of(side, path_map={"a": "layer"}) == (
        "case.py: CASE: path_map: expected {Linen path: NNX path}, found {'a': 'layer'}, where the NNX "
        "module has nothing; did you mean layers?: correct it, or leave it out"
    )


def test_what_the_migration_map_says_and_what_did_not_run_is_no_fault_of_the_case() -> None:
    settings = {"collections": (), "path_map": {}}
    side = SideResult("nnx", "m.N", shapes=SHAPES, unused_map_entries={"a": "b"})
    require_known_names(settings, "case.py", LINEN, side)
    failed = SideResult("nnx", "m.N", errors={"forward": "E"})
    require_known_names({**settings, "collections": ("nope",)}, "case.py", LINEN, failed)


@pytest.mark.parametrize(
    ("returned", "line"),
    [
        (None, "None: expected a flax.nnx.Module: end it with `return Model(..., rngs=rngs)`"),
        (
            nn.Dense(2),
            "the Linen module Dense: expected a flax.nnx.Module (does after= name the NNX tree?)",
        ),
        (3, "a int: expected a flax.nnx.Module"),
    ],
)
def test_an_nnx_function_that_returns_no_module_is_refused(returned: Any, line: str) -> None:
    with pytest.raises(BadCase) as caught:
        _from_case(lambda rngs: returned, Path("case.py"))(None)
    assert str(caught.value) == f"case.py: nnx(rngs) returned {line}"
