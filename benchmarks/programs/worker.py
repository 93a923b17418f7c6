"""``python -m benchmarks.programs.worker JOB.json``: runs of one program, in a process of its own.

The job: ``module`` (of benchmarks.programs.examples), ``folder`` (where the program lies), ``out``,
``block`` (take flax.linen away first), and ``runs``: each with ``name``, ``steps``, perhaps ``start``
(the folder of a run to go on from) and ``build`` (its model is built as an NNX module afterwards).
Each run leaves ``OUT/NAME/``: ``work``, ``checkpoint``, ``state.npz``, ``log.json`` and ``built``.
"""

from __future__ import annotations

import importlib
import json
import random
import shutil
import sys
import traceback
from pathlib import Path
from typing import Any

import jax
import numpy as np

from benchmarks.flax_suite.plugin import block
from benchmarks.programs import built, loggers
from benchmarks.programs.session import Session


def main(file: str) -> None:
    """Do a job."""
    job = json.loads(Path(file).read_text(encoding="utf-8"))
    if job["block"]:
        block()
    sys.path.insert(0, job["folder"])
    example = importlib.import_module(f"benchmarks.programs.examples.{job['module']}")
    for one in job["runs"]:
        _run(example, job, one)


def _run(example: Any, job: Any, one: Any) -> None:
    start, out = one.get("start"), Path(job["out"]) / one["name"]
    shutil.rmtree(out, ignore_errors=True)
    work = out / "work"
    own = getattr(example, "OWN_CHECKPOINT", False)
    if start is not None and own:
        shutil.copytree(Path(start) / "work", work)
    work.mkdir(parents=True, exist_ok=True)
    session = Session(work, one["steps"])
    _seed()
    loggers.install(session)
    if start is not None and not own:
        _start_from(session, Path(start) / "checkpoint")
    models = built.watch(session) if one.get("build") else []
    try:
        example.run(session)
    finally:
        session.end()
    if start is not None and own:
        _went_on(session, Path(start))
    if session.state is None:
        raise RuntimeError(f"{job['module']}: no training state was seen")
    if getattr(example, "REPLICATED", False):
        session.state = jax.tree.map(lambda leaf: leaf[0], session.state)
    _write(session, out)
    if models:
        (out / "built").write_text(
            _built(models[0], getattr(example, "AXIS", None)), encoding="utf-8"
        )


def _built(call: built.Call, axis: str | None) -> str:
    try:
        return built.check(call, axis)
    except Exception as error:  # noqa: BLE001 - it is this check's result; the table shows it
        traceback.print_exc()
        return f"{type(error).__name__}: {error}".splitlines()[0]


def _seed() -> None:
    random.seed(0)
    np.random.seed(0)
    try:
        import tensorflow as tf
    except ImportError:
        return
    tf.config.experimental.enable_op_determinism()
    tf.random.set_seed(0)


def _start_from(session: Session, folder: Path) -> None:
    """For programs that do not restore here: the state that they create is the checkpoint's."""
    from flax.training import checkpoints, train_state

    create = train_state.TrainState.create

    def restored(cls: Any, **kwargs: Any) -> Any:
        made = create.__func__(cls, **kwargs)
        state = checkpoints.restore_checkpoint(str(folder), made)
        if int(np.max(state.step)) == 0:
            raise RuntimeError(f"no checkpoint in {folder}")
        return state

    session.patch(train_state.TrainState, "create", classmethod(restored))


def _went_on(session: Session, start: Path) -> None:
    """A program that does not find its checkpoint begins again without a word."""
    earlier = json.loads((start / "log.json").read_text(encoding="utf-8"))["scalars"]
    if session.scalars[0][0] <= earlier[0][0]:
        raise RuntimeError(f"it began again from step {session.scalars[0][0]}: no checkpoint read")


def _write(session: Session, out: Path) -> None:
    from flax import serialization, traverse_util
    from flax.training import checkpoints

    step = int(session.state.step)
    checkpoints.save_checkpoint(str(out / "checkpoint"), session.state, step, overwrite=True)
    leaves = traverse_util.flatten_dict(serialization.to_state_dict(session.state), sep="/")
    arrays = {name: np.asarray(leaf) for name, leaf in leaves.items() if leaf is not None}
    np.savez(out / "state.npz", **arrays)
    log = {"scalars": session.scalars, "texts": session.texts}
    (out / "log.json").write_text(json.dumps(log, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
