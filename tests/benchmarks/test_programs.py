"""Comparing runs of flax's example programs: a difference is found, and nothing is no agreement."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks.corpus.packages import CHECKOUT
from benchmarks.programs.comparing import Compared, compare
from benchmarks.programs.judging import Verdict, Verdicts
from benchmarks.programs.programs import PROGRAMS, Tree, rewritten, same_text
from benchmarks.programs.session import Session
from benchmarks.programs.table import table

KERNEL = np.arange(1.0, 7.0, dtype=np.float32).reshape(2, 3)


def run(
    folder: Path,
    losses: tuple[float, ...] = (2.0, 1.5),
    texts: tuple[str, ...] = ("a",),
    **arrays: Any,
) -> Path:
    """A run as the worker leaves it."""
    session = Session(folder, len(losses))
    for step, loss in enumerate(losses):
        session.scalar(step, "train_loss", np.float32(loss))
        session.scalar(step, "steps_per_second", np.float32(step + id(folder) % 97))
    folder.mkdir()
    log = {"scalars": session.scalars, "texts": texts}
    (folder / "log.json").write_text(json.dumps(log), encoding="utf-8")
    np.savez(folder / "state.npz", **({"params/kernel": KERNEL} | arrays))
    return folder


def test_the_same_bits_are_the_same_and_times_do_not_count(tmp_path: Path) -> None:
    found = compare(run(tmp_path / "a"), run(tmp_path / "b"))
    assert found == Compared(losses=2, scalars=2, texts=1, arrays=1)
    assert found.ok


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"losses": (2.0, 1.5000001)}, "train_loss at step 1"),
        ({"losses": (2.0, 1.5, 1.4)}, "2 numbers logged before, 3 after"),
        ({"texts": ("b",)}, "other texts are predicted"),
        ({"params/kernel": KERNEL + np.float32(1e-6)}, "params/kernel: other values"),
        ({"params/kernel": KERNEL.astype(np.float64)}, "params/kernel: other values"),
        ({"params/bias": KERNEL}, "only on one side: params/bias"),
    ],
)
def test_every_difference_is_found(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    found = compare(run(tmp_path / "a"), run(tmp_path / "b", **change))
    assert not found.ok
    assert any(said in one for one in found.differences), found.differences


@pytest.mark.parametrize(
    ("both", "said"),
    [
        ({"losses": (2.0,)}, "only 1 losses were logged"),
        ({"losses": (2.0, float("nan"))}, "a loss is not finite"),
        ({"losses": (2.0, 2.0)}, "every loss is the same"),
        ({"params/kernel": KERNEL * 0}, "every parameter is zero"),
    ],
)
def test_two_runs_alike_that_show_nothing_fail(
    tmp_path: Path, both: dict[str, Any], said: str
) -> None:
    found = compare(run(tmp_path / "a", **both), run(tmp_path / "b", **both))
    assert not found.ok
    assert said in found.differences


def test_the_steps_that_nnx_counts_are_compared_as_a_number(tmp_path: Path) -> None:
    linen, nnx = run(tmp_path / "a", step=np.int32(3)), run(tmp_path / "b", step=np.uint32(3))
    assert compare(linen, nnx).differences == ("step: other values",)
    assert compare(linen, nnx, counts=True).ok
    assert not compare(linen, run(tmp_path / "c", step=np.uint32(4)), counts=True).ok


def test_a_run_that_is_not_there_fails(tmp_path: Path) -> None:
    assert not compare(run(tmp_path / "a"), tmp_path / "b").ok


def test_a_session_takes_its_patches_back_and_keeps_states_as_numpy(tmp_path: Path) -> None:
    owner = SimpleNamespace(step=len)
    session = Session(tmp_path, 1)
    state = SimpleNamespace(step=jnp.int32(4), opt_state=())
    session.patch(owner, "step", session.watched(lambda: (state, jnp.float32(3.0)), loss=True))
    owner.step()
    session.end()
    assert owner.step is len
    assert session.state is state
    assert session.scalars == [(4, "loss", "float32:00004040:3.0")]


def test_nothing_run_is_a_failure_and_so_is_a_lazy_model_that_was_not_built() -> None:
    good = Compared(losses=2, scalars=2, arrays=1)
    assert not Verdicts((), (), ()).ok
    for forms, built, expected in (
        ("3 lazy", "equal (1 outputs)", True),
        ("3 lazy", "", False),
        ("1 explicit, 2 lazy", "TypeError: no", False),
        ("3 explicit", "", True),
    ):
        verdict = Verdict(PROGRAMS[0], Tree("auto", Path(), forms), good, good, good, built)
        verdicts = Verdicts((verdict,), (), ())
        assert verdicts.ok is expected
        assert f"{int(expected)} of 1 the same" in table(verdicts)


def test_a_program_is_rewritten_as_a_user_would(tmp_path: Path) -> None:
    folder = tmp_path / "before" / "small"
    folder.mkdir(parents=True)
    (folder / "models.py").write_text(
        "from flax import linen as nn\n\n\nclass A(nn.Module):\n  n: int\n"
    )
    tree = Tree("before", folder)
    after = rewritten(tree, "lazy", tmp_path)
    assert "nnx_migrate" in (after.folder / "models.py").read_text()
    assert after.forms == "1 lazy"
    assert not same_text(tree, after)
    assert same_text(after, Tree("auto", after.folder))


def test_there_is_a_module_for_every_program() -> None:
    folder = CHECKOUT / "benchmarks" / "programs" / "examples"
    assert {one.name for one in PROGRAMS} == {f.stem for f in folder.glob("[!_]*.py")}
    assert len({one.example for one in PROGRAMS}) == 9
