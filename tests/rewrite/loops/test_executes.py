"""Programs with NNX's loop compute what they computed with the functional one, bit by bit."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.rewrite.loops.programs import (
    CREATE,
    FULL,
    HEAD,
    MAIN,
    PROGRAM,
    STEP,
    WITHOUT_STATISTICS,
    about_loops,
    rewritten,
)
from tests.rewrite.running import module_of

SCRIPT = """\
model = Mlp(width=5)


@jax.jit
def evaluate(params, x):
    return model.apply({"params": params}, x)


def main(key, x, y):
    variables = model.init({"params": key}, x)
    schedule = optax.warmup_cosine_decay_schedule(0.0, 0.1, 2, 8)
    state = TrainState.create(
        apply_fn=model.apply, params=variables["params"], tx=optax.adamw(schedule)
    )
    losses, values = [], []
    for index in range(4):
        previous = jax.tree.leaves(state.params)
        state, loss = step(state, x, y)
        if index % 2:
            values.append(evaluate(state.params, x))
        losses.append(loss)
    return losses, values, previous, jax.tree.leaves(state.params)
"""
APART = """\
@jax.jit
def gradients(state, x, y):
    def loss_fn(params):
        out = state.apply_fn({"params": params}, x)
        return jnp.mean((out - y) ** 2), out

    grad_fn = jax.value_and_grad(loss_fn, has_aux=True)
    (loss, out), grads = grad_fn(state.params)
    return grads, loss, out


@jax.jit
def update(state, grads):
    return state.apply_gradients(grads=grads)


def epoch(state, x, y, steps):
    losses = []
    for _ in range(steps):
        grads, loss, _ = gradients(state, x, y)
        state = update(state, grads)
        losses.append(loss)
    return state, losses


def main(key, x, y):
    state = create(key)
    found = []
    while len(found) < 4:
        state, losses = epoch(state, x, y, 2)
        found += losses
    return found, state.params
"""
OTHER = """\
def deterministic(width):
    return Mlp(width)


def main(key, x, y):
    state = create(key)
    found = []
    for _ in range(3):
        state, loss = step(state, x, y)
        other = deterministic(4).apply({"params": state.params}, x)
        found += [loss, other]
    return found
"""
GIVEN = """\
def init(model, key):
    variables = jax.jit(model.init)(key, jnp.ones((1, 3)))
    return variables["params"]


def make(model, key, tx):
    return TrainState.create(apply_fn=model.apply, params=init(model, key), tx=tx)


@functools.partial(jax.jit, static_argnums=0)
def predict(apply_fn, params, x):
    return apply_fn({"params": params}, x)


def error(params, apply_fn, x, y):
    return jnp.mean((apply_fn({"params": params}, x) - y) ** 2)


def step(state, x, y):
    for _ in range(2):
        loss, grads = jax.value_and_grad(error)(state.params, state.apply_fn, x, y)
        state = state.apply_gradients(grads=grads)
    return state, loss


def main(key, x, y):
    found = []
    for width in (4, 5):
        model = Mlp(width)
        state = make(model, key, optax.adam(0.1))
        for _ in range(2):
            state, loss = step(state, x, y)
            found += [loss, model.apply({"params": state.params}, x)]
            found.append(predict(state.apply_fn, state.params, x))
    return found
"""
TOGETHER = FULL.replace(
    "def create(key):",
    """\
def init(model, key):
    variables = model.init(key, jnp.ones((1, 3)))
    return variables["params"], variables["batch_stats"]


def create(key):""",
).replace(
    "    variables = model.init(key, jnp.ones((1, 3)))\n    return State",
    "    params, batch_stats = init(model, key)\n    return State",
)
for _name in ("params", "batch_stats"):
    TOGETHER = TOGETHER.replace(f'{_name}=variables["{_name}"]', f"{_name}={_name}")
FIELD = (
    FULL.replace("    batch_stats: dict\n", "    batch_stats: dict\n    key: jax.Array\n    scale: float\n")
    .replace("        batch_stats=variables", "        key=jax.random.key(7),\n        scale=0.5,\n        batch_stats=variables")
    .replace("def step(state, x, y, key):", "def step(state, x, y):")
    .replace("fold_in(key, state.step)", "fold_in(key=state.key, data=state.step)")
    .replace("jnp.mean((out - y) ** 2)", "jnp.mean((out - y) ** 2) * state.scale")
    .replace("step(state, x, y, key)", "step(state, x, y)")
)  # fmt: skip
ANEW = """\
def network(width):
    return Mlp(width)


def create(key, config):
    params = network(config.width).init(key, jnp.ones((1, 3)))["params"]
    return TrainState.create(
        apply_fn=network(config.width).apply, params=params, tx=optax.adam(0.1)
    )


def step(state, x, y, width):
    def loss_fn(params):
        return jnp.mean((network(width).apply({"params": params}, x) - y) ** 2)

    loss, grads = jax.value_and_grad(loss_fn)(state.params)
    return state.apply_gradients(grads=grads), loss


def main(key, x, y):
    config = types.SimpleNamespace(width=4)
    state = create(key, config)
    losses = []
    for _ in range(3):
        state, loss = step(state, x, y, config.width)
        losses.append(loss)
    return losses
"""
METRICS = """\
class State(TrainState):
    total: jax.Array
    count: jax.Array


def create(key):
    model = Mlp(4)
    params = model.init(key, jnp.ones((1, 3)))["params"]
    return State.create(
        apply_fn=model.apply, params=params, tx=optax.adam(0.1), total=jnp.zeros(()), count=jnp.ones(())
    )


@functools.partial(jax.jit, donate_argnums=0)
def step(state, x, y):
    def loss_fn(params):
        return jnp.mean((state.apply_fn({"params": params}, x) - y) ** 2)

    loss, grads = jax.value_and_grad(loss_fn)(state.params)
    state = state.apply_gradients(grads=grads, total=state.total + loss)
    return state, loss


def swap(state):
    return state.replace(total=state.count, count=state.total)


def maybe(state, flag):
    if flag:
        state = state.replace(count=state.count + 1)
    return state


def chained(state, x, y):
    state, loss = step(state, x, y)
    state = swap(state)
    return maybe(state, loss > 0.3)


def main(key, x, y):
    state = create(key)
    found = []
    for _ in range(4):
        state = chained(state, x, y)
        found.append(float(state.total))
        state = swap(state)
        state, loss = step(state, x, y)
        found += [loss, float(state.total), float(state.count)]
    return found, state.params
"""
WHOLE = """\
left, right = Mlp(4), Mlp(3)


def make(model, key, x):
    return TrainState.create(
        apply_fn=model.apply, params=model.init(key, x), tx=optax.adam(0.1)
    )


@jax.jit
def step(one, other, x, y):
    def loss_fn(params, other):
        out = one.apply_fn(params, x) + other.apply_fn(other.params, x)
        return jnp.mean((out - y) ** 2)

    loss, grads = jax.value_and_grad(loss_fn)(one.params, other)
    return one.apply_gradients(grads=grads), loss


def main(key, x, y):
    one, other = make(left, key, x), make(right, key, x)
    losses = []
    for _ in range(3):
        one, loss = step(one, other, x, y)
        best, params = loss, one.params
        losses += [best, left.apply(params, x), sum(map(jnp.sum, jax.tree.leaves(one.params)))]
    return losses, other.params["params"]
"""
MAKER = """\
def make_steps(model, scale):
    @jax.jit
    def step(state, x, y):
        def loss_fn(params):
            return scale * jnp.mean((model.apply({"params": params}, x) - y) ** 2)

        loss, grads = jax.value_and_grad(loss_fn)(state.params)
        return state.apply_gradients(grads=grads), loss

    def evaluate(state, x):
        return model.apply({"params": state.params}, x)

    return step, evaluate


def main(key, x, y):
    model = Mlp(4)
    params = model.init(key, x)["params"]
    state = TrainState.create(apply_fn=model.apply, params=params, tx=optax.adam(0.1))
    step, evaluate = make_steps(model, 2.0)
    losses = []
    for _ in range(3):
        state, loss = step(state, x, y)
        losses += [loss, evaluate(state, x)]
    return losses
"""
AVERAGE = """\
@jax.jit
def step(state, average, x, y):
    loss, first = jax.value_and_grad(
        lambda p: jnp.mean((state.apply_fn({"params": p}, x) - y) ** 2)
    )(state.params)
    second = jax.grad(lambda p: jnp.mean(jnp.abs(state.apply_fn({"params": p}, x))))(state.params)
    grads = jax.tree.map(lambda a, b: jnp.clip(a + b, -0.1, 0.1), first, second)
    state = state.apply_gradients(grads=grads)
    average = jax.tree.map(lambda a, b: 0.9 * a + 0.1 * b, average, state.params)
    return state, average, loss


def main(key, x, y):
    model = Mlp(4)
    params = model.init(key, x)["params"]
    state = TrainState.create(apply_fn=model.apply, params=params, tx=optax.adam(0.1))
    average = jax.tree.map(jnp.copy, state.params)
    losses = []
    for _ in range(3):
        state, average, loss = step(state, average, x, y)
        losses += [loss, model.apply({"params": average}, x)]
    return losses, average
"""
RETURNED = """\
def update(state, x, y):
    state, _ = step(state, x, y)
    return state


def twice(state, x, y):
    state = update(state, x, y)
    return update(state, x, y)


def main(key, x, y):
    state = create(key)
    state = twice(state, x, y)
    return state.params
"""
PLAIN_STEP = STEP.replace("@jax.jit\n", "")
PROGRAMS = {
    "a compiled step": PROGRAM,
    "a step that is not compiled": CREATE + PLAIN_STEP + MAIN,
    "running statistics, dropout and a clipped norm": FULL,
    "a model of the module, a schedule, old parameters": STEP + SCRIPT,
    "gradients and update apart": CREATE + APART,
    "a model built anew for the same parameters": CREATE + STEP + OTHER,
    "a module that is handed on, its apply too": GIVEN,
    "statistics that a function returns beside the parameters": TOGETHER,
    "further fields of the state": FIELD,
    "fields of the state with defaults": FIELD.replace("scale: float", "scale: float = 1.0").replace(
        "batch_stats: dict\n    key: jax.Array", "batch_stats: object = None\n    key: object = None"
    ),
    "further fields that are replaced": METRICS,
    "steps that a function makes": MAKER,
    "losses in lambdas, clipped gradients, an average of the parameters": AVERAGE,
    "an update that is returned as it is called": CREATE + STEP + RETURNED,
    "an apply_fn that nobody reads": f"import types\n\n\n{ANEW}",
    "several updates in a call": CREATE
    + STEP.replace("    return state.apply", "    state = state.apply_gradients(grads=grads)\n    return state.apply")
    + MAIN,
    "donated": CREATE + STEP.replace("@jax.jit", "@functools.partial(jax.jit, donate_argnums=0)") + MAIN,
}  # fmt: skip


def outcome(text: str) -> Any:
    """What ``main`` gives, as numpy arrays."""
    x = jnp.linspace(-1.0, 1.0, 12).reshape(4, 3)
    with module_of("training", text) as module:
        found = module.main(jax.random.key(3), x, jnp.sin(x[:, :1]))
    return jax.tree.map(np.asarray, found)


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_the_loop_computes_the_same_bits(program: str) -> None:
    same_bits(HEAD + program)


def test_a_loop_whose_parameters_are_all_variables_computes_the_same_bits() -> None:
    same_bits(WITHOUT_STATISTICS + WHOLE)


def same_bits(text: str) -> None:
    """The loop of a program becomes NNX's, and computes what it did."""
    result = rewritten({"m.py": text})
    assert {one.outcome.value for one in about_loops(result)} == {"rewritten"}, about_loops(result)
    (file,) = result.files
    before, after = outcome(text), outcome(file.code or "")
    structures = {str(jax.tree.structure(one)) for one in (before, after)}
    assert len(structures) == 1, structures
    leaves = list(zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True))
    assert leaves
    for one, other in leaves:
        assert one.dtype == other.dtype
        assert one.tobytes() == other.tobytes()
