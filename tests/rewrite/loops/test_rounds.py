"""Functions that never settle stay as they are; the others of the project settle."""

from __future__ import annotations

import pytest

from tests.rewrite.loops.programs import CREATE, HEAD, MAIN, STEP, about_loops, rewritten

OWN = CREATE + STEP.replace("step", "advance") + MAIN.replace("step", "advance")
# Functions whose results hang on themselves, and that share no function with a loop beside them.
UNSETTLED = {
    "parameters of a state that the function made before": """\
def make(key, pre=None):
    model = Mlp(4)
    if pre is None:
        pre = model.init(key, jnp.ones((1, 3)))["params"]
    return TrainState.create(apply_fn=model.apply, params=pre, tx=optax.sgd(0.1))


def again(key, x, y):
    state = make(key)
    for _ in range(2):
        state, loss = step(state, x, y)
    other = make(key, state.params)
    for _ in range(2):
        other, loss = step(other, x, y)
    return loss
""",
    "parameters that a function hands back in rounds": """\
def make(key, pre=None, rate=0.1):
    if pre is None:
        pre = Mlp(4).init(key, jnp.ones((1, 3)))["params"]
    return TrainState.create(apply_fn=Mlp(4).apply, params=pre, tx=optax.sgd(rate))


def train(state, x, y):
    for _ in range(2):
        state, loss = step(state, x, y)
    return state


def again(key, x, y):
    state = train(make(key), x, y)
    for rate in (0.1, 0.2):
        best = train(make(key, pre=state.params, rate=rate), x, y)
    return best
""",
    "two makers of one another's parameters": """\
def first(key, pre=None):
    if pre is None:
        pre = Mlp(4).init(key, jnp.ones((1, 3)))["params"]
    return TrainState.create(apply_fn=Mlp(4).apply, params=pre, tx=optax.sgd(0.1))


def second(key, pre=None):
    if pre is None:
        pre = Mlp(4).init(key, jnp.ones((1, 3)))["params"]
    return TrainState.create(apply_fn=Mlp(4).apply, params=pre, tx=optax.adam(0.1))


def again(key, x, y):
    one, other = first(key), second(key)
    for _ in range(2):
        one, _ = step(one, x, y)
        other, _ = step(second(key, one.params), x, y)
        one = first(key, other.params)
    return one.params
""",
    "modules that a function builds of its own": """\
def deep(model, count):
    return deep(Mlp(count), count - 1) if count else model


def again(key, x, y):
    model = deep(Mlp(4), 3)
    params = model.init(key, x)["params"]
    state = TrainState.create(apply_fn=model.apply, params=params, tx=optax.sgd(0.1))
    return step(state, x, y)
""",
}


@pytest.mark.parametrize("program", UNSETTLED.values(), ids=UNSETTLED)
def test_only_what_does_not_settle_stays_functional(program: str) -> None:
    files = {"m.py": HEAD + STEP + program, "own.py": HEAD + OWN, "beside.py": f"{HEAD}{OWN}"}
    files["m.py"] += f"\n\n{OWN}"
    result = rewritten(files)
    found = about_loops(result)
    own = [one for one in found if one.path != "m.py"]
    assert [one.outcome.value for one in own] == ["rewritten"] * 2
    *others, last = [one for one in found if one.path == "m.py"]
    assert last.outcome.value == "rewritten"
    assert others
    assert {one.outcome.value for one in others} == {"kept"}
    assert not any("cannot be followed" in one.message for one in found)
