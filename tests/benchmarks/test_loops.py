"""Step times are measured on programs that both loops rewrite; an NNX state is read as Linen's."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

from benchmarks.loops.measuring import measure, texts_of
from benchmarks.loops.programs import PROGRAMS, Program
from benchmarks.programs.session import Session


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.name)
def test_both_loops_are_rewritten(program: Program) -> None:
    found = texts_of(program)
    assert "TrainState.create" in found["functional"]
    assert "nnx.Optimizer(" in found["nnx"]
    assert "flax.linen" not in found["functional"] + found["nnx"]


def test_the_three_sides_run_in_turns() -> None:
    found = measure(PROGRAMS[0], repeats=1, steps=2)
    assert [one.side for one in found] == ["linen", "functional", "nnx"]
    assert len({one.losses for one in found}) == 1
    assert len(found[0].losses) == 4 * 4  # two steps before the clock starts
    assert all(one.wall > 0 and one.cpu > 0 for one in found)


def test_a_session_keeps_the_state_of_an_nnx_loop_as_linen_has_it(tmp_path: Path) -> None:
    model = nnx.Linear(2, 3, rngs=nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(0.1), wrt=nnx.Param)

    def step(model: nnx.Linear, optimizer: nnx.Optimizer[nnx.Linear], x: jax.Array) -> jax.Array:
        loss, grads = nnx.value_and_grad(lambda model: model(x).sum())(model)
        optimizer.update(model, grads)
        return loss

    session = Session(tmp_path, 1)
    session.watched(step, loss=True)(model, optimizer, jnp.ones((1, 2)))
    state = session.state
    np.testing.assert_array_equal(state.params["kernel"], model.kernel[...])
    np.testing.assert_allclose(state.opt_state[0].mu["kernel"], 0.1 * np.ones((2, 3)), rtol=1e-6)
    assert int(state.step) == 1
    assert [name for _, name, _ in session.scalars] == ["loss"]
