"""Training loops that become NNX's."""

from __future__ import annotations

import pytest

from tests.rewrite.loops.programs import (
    CREATE,
    FULL,
    HEAD,
    MAIN,
    PROGRAM,
    STEP,
    about_loops,
    code,
    rewritten,
)


def function(text: str, name: str) -> str:
    """The text of one function, decorators included."""
    parts = [one.strip("\n") for one in text.split("\n\n\n")]
    return next(one for one in parts if f"def {name}(" in one) + "\n"


def test_a_step_updates_the_module_in_place() -> None:
    assert (
        function(code(PROGRAM), "step")
        == """\
@nnx.jit
def step(model, optimizer, x, y):
    def loss_fn(model):
        return jnp.mean((model(x) - y) ** 2)

    loss, grads = nnx.value_and_grad(loss_fn)(model)
    optimizer.update(model, grads)
    return loss
"""
    )


def test_the_state_is_a_module_and_its_optimizer() -> None:
    found = code(PROGRAM)
    assert (
        function(found, "create")
        == """\
def create(key):
    model = lazy(Mlp)(4)
    model = explicit(model, jnp.ones((1, 3)), rngs=key)
    tx = optax.adam(0.1)
    optimizer = nnx.Optimizer(model, tx, wrt=nnx.Param)
    return model, optimizer
"""
    )
    assert (
        function(found, "main")
        == """\
def main(key, x, y):
    model, optimizer = create(key)
    for _ in range(3):
        loss = step(model, optimizer, x, y)
    return loss
"""
    )


def test_running_statistics_and_keys_stay_where_they_belong() -> None:
    found = code(FULL)
    assert (
        function(found, "step")
        == """\
@nnx.jit
def step(model, optimizer, x, y, key):
    def loss_fn(model):
        out = nnm.call(
            model,
            x,
            train=True,
            rngs={"dropout": jax.random.fold_in(key, optimizer.step[...])},
        )
        return jnp.mean((out - y) ** 2)

    loss, grads = nnx.value_and_grad(loss_fn)(model)
    optimizer.update(model, grads)
    return loss
"""
    )
    assert (
        function(found, "evaluate")
        == """\
@nnx.jit
def evaluate(model, x):
    return model(x)
"""
    )


CASES = {
    "annotations": (
        STEP.replace("(state, x, y)", "(state: TrainState, x, y) -> tuple[TrainState, jax.Array]"),
        "def step(model: nnx.Module, optimizer: nnx.Optimizer, x, y):",
    ),
    "positions of arguments": (
        STEP.replace("@jax.jit", "@functools.partial(jax.jit, static_argnums=2, donate_argnums=(0,))"),
        "@functools.partial(nnx.jit, static_argnums=3, donate_argnums=(0, 1))",
    ),
    "a new name": (
        STEP.replace("return state.apply_gradients(grads=grads), loss", "new = state.apply_gradients(grads=grads)\n    return new, loss"),
        "    optimizer.update(model, grads)\n    return loss\n",
    ),
    "a loss in a lambda": (
        STEP.replace("jax.value_and_grad(loss_fn)", "jax.value_and_grad(lambda p: loss_fn(p))"),
        "loss, grads = nnx.value_and_grad(lambda model: loss_fn(model))(model)",
    ),
    "gradients that are changed one by one": (
        STEP.replace("    return state", "    grads = jax.tree.map(jnp.tanh, grads)\n    return state"),
        "    grads = jax.tree.map(jnp.tanh, grads)\n    optimizer.update(model, grads)\n    return loss\n",
    ),
    "a metric beside": (
        STEP.replace("), loss", '), {"loss": loss, "norm": optax.global_norm(grads)}'),
        'return {"loss": loss, "norm": optax.global_norm(grads)}',
    ),
    "parameters as values": (
        STEP.replace("- y) ** 2)", "- y) ** 2) + sum(map(jnp.sum, jax.tree.leaves(params)))"),
        'jax.tree.leaves(nnm.variables_of(model)["params"])',
    ),
    "comments": (
        STEP.replace("    return state.apply", "    # one update\n    return state.apply"),
        "    # one update\n    optimizer.update(model, grads)\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("step", "expected"), CASES.values(), ids=CASES)
def test_a_step_is_rewritten(step: str, expected: str) -> None:
    assert expected in code(CREATE + step + MAIN)


FIELD = """\
class State(TrainState):
    key: jax.Array
    scale: float


def create(key, x) -> State:
    model = Mlp(4)
    params = model.init(key, jnp.ones((1, 3)))["params"]
    return State.create(
        apply_fn=model.apply, params=params, tx=optax.adam(0.1), scale=2.0, key=jax.random.key(1)
    )


@functools.partial(jax.jit, static_argnums=1, donate_argnums=0)
def step(state: State, size, x):
    noise = jax.random.normal(jax.random.fold_in(state.key, state.step), x.shape)

    def loss_fn(params):
        return state.scale * jnp.mean(state.apply_fn({"params": params}, x + noise))

    return state.apply_gradients(grads=jax.grad(loss_fn)(state.params))


def predict(state, x):
    return state.apply_fn({"params": state.params}, x) * state.scale


def main(key, x):
    left_state = create(key, x)
    left_state = step(left_state, 3, x)
    return predict(state=left_state, x=x)
"""


def test_fields_that_are_not_replaced_are_values_beside_the_module() -> None:
    found = code(FIELD)
    assert found.endswith(
        """\
    optimizer = nnx.Optimizer(model, optax.adam(0.1), wrt=nnx.Param)
    state_key = jax.random.key(1)
    scale = 2.0
    return model, optimizer, state_key, scale


@functools.partial(nnx.jit, static_argnums=4, donate_argnums=(0, 1))
def step(model: nnx.Module, optimizer: nnx.Optimizer, key, scale, size, x):
    noise = jax.random.normal(jax.random.fold_in(key, optimizer.step[...]), x.shape)

    def loss_fn(model):
        return scale * jnp.mean(model(x + noise))

    optimizer.update(model, nnx.grad(loss_fn)(model))


def predict(model, scale, x):
    return model(x) * scale


def main(key, x):
    left_model, left_optimizer, left_key, left_scale = create(key, x)
    step(left_model, left_optimizer, left_key, left_scale, 3, x)
    return predict(model=left_model, scale=left_scale, x=x)
"""
    ), found


GIVEN = """\
def init(model, key, x):
    return jax.jit(model.init)(key, x)["params"]


def create(model, key, x) -> TrainState:
    tx = optax.adam(0.1)
    return TrainState.create(apply_fn=model.apply, params=init(model, key, x), tx=tx)


def loss_fn(params, apply_fn, x):
    return jnp.mean(apply_fn({"params": params}, x))


@functools.partial(jax.jit, static_argnums=0)
def predict(apply_fn, params, x):
    return apply_fn({"params": params}, x)


def main(key, x):
    state = create(Mlp(4), key, x)
    loss, grads = jax.value_and_grad(loss_fn)(state.params, state.apply_fn, x)
    state = state.apply_gradients(grads=grads)
    _ = create(Mlp(5), key, x)
    return predict(state.apply_fn, state.params, x), loss
"""


def test_a_module_that_is_handed_on_is_one_module() -> None:
    found = code(GIVEN)
    expected = """\
def init(model, key, x):
    return nnx.jit(functools.partial(explicit, model))(x, rngs=key)


def create(model, key, x):
    tx = optax.adam(0.1)
    net = init(model, key, x)
    optimizer = nnx.Optimizer(net, tx, wrt=nnx.Param)
    return net, optimizer


def loss_fn(model, x):
    return jnp.mean(model(x))


@functools.partial(nnx.jit, static_argnums=())
def predict(model, x):
    return model(x)


def main(key, x):
    model, optimizer = create(lazy(Mlp)(4), key, x)
    loss, grads = nnx.value_and_grad(loss_fn)(model, x)
    optimizer.update(model, grads)
    _ = create(lazy(Mlp)(5), key, x)
    return predict(model, x), loss
"""
    assert found.endswith(expected), found
    assert "from nnx_migrate.linen import explicit, lazy\n" in found
    assert "TrainState" not in found


STARRED = """\
def create(model, key, *inputs):
    params = model.init(key, *inputs)["params"]
    return TrainState.create(apply_fn=model.apply, params=params, tx=optax.adam(0.1))


def main(key, x):
    state = create(Mlp(4), key, x)
    return state.apply_fn({"params": state.params}, x)
"""


def test_inputs_of_the_first_call_may_be_unpacked() -> None:
    assert "    net = explicit(model, *inputs, rngs=key)\n" in code(STARRED)
    (found,) = about_loops(rewritten({"m.py": HEAD + STARRED.replace("key, *inputs", "*inputs")}))
    assert "how these parameters are made is not known" in found.message


def test_two_models_have_names_of_their_own() -> None:
    main = """\
def both(key, x, y):
    left_state = create(key)
    right_state = create(key)
    left_state, one = step(left_state, x, y)
    right_state, other = step(right_state, x, y)
    return one, other
"""
    assert (
        function(code(CREATE + STEP + main), "both")
        == """\
def both(key, x, y):
    left_model, left_optimizer = create(key)
    right_model, right_optimizer = create(key)
    one = step(left_model, left_optimizer, x, y)
    other = step(right_model, right_optimizer, x, y)
    return one, other
"""
    )


def test_a_step_that_is_handed_on_is_followed() -> None:
    epochs = MAIN.replace("step(state, x, y)", "compiled(state, x, y)")
    epochs = epochs.replace("main(key, x, y)", "epoch(compiled, key, x, y)")
    main = "\n\ndef main(key, x, y):\n    return epoch(jax.jit(step), key, x, y)\n"
    found = code(CREATE + STEP.replace("@jax.jit\n", "") + epochs + main)
    assert "loss = compiled(model, optimizer, x, y)" in found
    assert "return epoch(nnx.jit(step), key, x, y)" in found


def test_a_state_goes_through_several_files() -> None:
    files = {
        "models.py": HEAD,
        "steps.py": "import jax\nimport jax.numpy as jnp\n\n\n" + STEP,
        "train.py": HEAD.split("\n\n\n")[0] + "\n\nimport steps\nfrom models import Mlp\n\n\n"
        + CREATE + MAIN.replace("step(", "steps.step("),
    }  # fmt: skip
    result = rewritten(files)
    assert [one.outcome.value for one in about_loops(result)] == ["rewritten"]
    texts = {one.path: one.code or "" for one in result.files}
    assert "def step(model, optimizer, x, y):" in texts["steps.py"]
    assert "loss = steps.step(model, optimizer, x, y)" in texts["train.py"]


def test_explicit_code_of_an_earlier_run_is_input() -> None:
    once = code(PROGRAM)
    (file,) = rewritten({"m.py": once}).files
    assert file.code is None


def test_the_functional_loop_is_the_default() -> None:
    from nnx_migrate.rewrite.forms import rewrite_in
    from nnx_migrate.rewrite.request import RewriteRequest
    from tests.rewrite.projects import ROOT, source

    result = rewrite_in(RewriteRequest(ROOT, (source("m.py", HEAD + PROGRAM),), base=ROOT))
    (file,) = result.files
    assert "TrainState.create(apply_fn=model.apply" in (file.code or "")
    assert about_loops(result) == []


def test_a_parameter_of_the_functions_name_is_another_thing() -> None:
    named = FULL.replace("step(", "train(")
    assert "train: bool" in HEAD
    assert "nnx.Optimizer(" in code(named)
