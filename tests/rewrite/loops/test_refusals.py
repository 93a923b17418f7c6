"""Training loops that stay functional, and why."""

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
    kept,
    rewritten,
)

UPDATE = "return state.apply_gradients(grads=grads), loss"
LOOP = "        state, loss = step(state, x, y)\n"
PREDICT = """\
def predict(apply_fn, params, x):
    return apply_fn({"params": params}, x)


"""
# What is replaced in the program, by what, and a part of the reason.
CASES = {
    "an old state is read": (LOOP, LOOP.replace("state,", "new,", 1) + "        state.params\n", "read after a later state"),
    "an update that is not always taken": (
        LOOP,
        "        new, loss = step(state, x, y)\n        if loss < 1:\n            state = new\n",
        "read after a later state",
    ),
    "a round that is left before the state is kept": (
        LOOP,
        "        new, loss = step(state, x, y)\n        if loss > 1:\n            continue\n        state = new\n",
        "read after a later state",
    ),
    "an exception before the state is kept": (
        LOOP,
        ("        try:\n            new, loss = step(state, x, y)\n            state = new\n"
        "        except ValueError:\n            continue\n"),
        "read after a later state",
    ),
    "a new state that nobody keeps": (
        UPDATE, "state.apply_gradients(grads=grads)\n    return state, loss", "no name",
    ),
    "a step that keeps its update to itself": (UPDATE, "state = state.apply_gradients(grads=grads)\n    return loss", "not the same in all"),
    "pmap": ("@jax.jit", "@functools.partial(jax.pmap, axis_name='i')", "decorated by"),
    "another transformation": ("step(state, x, y)\n", "jax.checkpoint(step)(state, x, y)\n", "not known"),
    "shardings": ("@jax.jit", "@functools.partial(jax.jit, in_shardings=None)", "in_shardings"),
    "names of donated arguments": ("@jax.jit", "@functools.partial(jax.jit, donate_argnames='state')", "donate_argnames"),
    "a checkpoint": (LOOP, LOOP + "        checkpoints.save_checkpoint('d', state, 1)\n", "handed to"),
    "pickled": (LOOP, LOOP + "        pickle.dumps(state)\n", "handed to"),
    "replicated": ("state = create(key)", "state = jax_utils.replicate(create(key))", "handed to"),
    "compared": (LOOP, LOOP + "        assert state == state\n", "not known"),
    "kept on an object": ("state = create(key)", "key.state = create(key)\n    state = key.state", "kept in"),
    "kept in a list": ("state = create(key)", "states = [create(key)]\n    state = states[0]", "not known"),
    "kept in a tuple": ("state = create(key)", "both = create(key), 1\n    state, _ = both", "tuple"),
    "deleted": ("    return loss\n", "    del state\n    return loss\n", "deleted"),
    "the optimizer's state is read": (LOOP, LOOP + "        state.opt_state\n", "opt_state"),
    "the transformation is read": (LOOP, LOOP + "        state.tx\n", "tx"),
    "a step that is computed with": (LOOP, LOOP + "        state.step + 1\n", "not known"),
    "replaced parameters": (LOOP, LOOP + "        state = state.replace(params=state.params)\n", "other arguments"),
    "an unknown optimizer": ("optax.adam(0.1)", "make_optimizer()", "which optimizer"),
    "an optimizer with a mask": ("optax.adam(0.1)", "optax.adamw(0.1, mask=decayed)", "which optimizer"),
    "an optimizer with a mask by position": ("optax.adam(0.1)", "optax.add_decayed_weights(0.1, decayed)", "which optimizer"),
    "parts with optimizers of their own": ("optax.adam(0.1)", "optax.multi_transform({}, labels)", "which optimizer"),
    "unknown parameters": ('model.init(key, jnp.ones((1, 3)))["params"]', "load()", "how these parameters are made"),
    "another module's apply": ("apply_fn=model.apply", "apply_fn=Mlp(5).apply", "may not be that"),
    "two states of the same parameters": (
        "    return TrainState.create",
        "    first = TrainState.create(apply_fn=model.apply, params=params, tx=tx)\n    return TrainState.create",
        "two states",
    ),
    "gradients that meet other arrays": (UPDATE, "grads = jax.tree.map(jnp.add, grads, other)\n    " + UPDATE, "gradients are handed to"),
    "gradients of something else": ("jax.value_and_grad(loss_fn)(state.params)", "jax.value_and_grad(loss_fn)(state)", "used in a way"),
    "gradients of two arguments": ("jax.value_and_grad(loss_fn)", "jax.value_and_grad(loss_fn, argnums=(0,))", ""),
    "a loss in a lambda that is kept": (
        "    loss, grads = jax.value_and_grad(loss_fn)(state.params)",
        "    gradient = jax.value_and_grad(lambda p: loss_fn(p))\n    loss, grads = gradient(state.params)",
        "",
    ),
    "a function that sees an earlier state": (
        LOOP,
        ("        def show(a):\n            return a + state.apply_fn({'params': state.params}, x)\n\n"
         "        new, loss = step(state, x, y)\n        jax.tree.map(show, [x])\n        state = new\n"),
        "state is read here, maybe after a later state was made of it",
    ),
    "a function that sees an earlier state beside a lambda that has its name": (
        LOOP,
        ("        def show(a):\n            plain = lambda state: state\n"
         "            return plain(a) + state.apply_fn({'params': state.params}, x)\n\n"
         "        new, loss = step(state, x, y)\n        jax.tree.map(show, [x])\n        state = new\n"),
        "state is read here, maybe after a later state was made of it",
    ),
    "a generator that sees an earlier state": (
        LOOP,
        ("        shown = (a * state.apply_fn({'params': state.params}, x) for a in [1, 2])\n"
         "        new, loss = step(state, x, y)\n        list(shown)\n        state = new\n"),
        "state is read here, maybe after a later state was made of it",
    ),
    "a default that holds the state in a lambda": (LOOP, LOOP + "        (lambda a, b=state: b)(x)\n", "not known"),
    "a lambda that sees an earlier state": (
        LOOP,
        ("        show = lambda a: a + state.apply_fn({'params': state.params}, x)\n"
         "        new, loss = step(state, x, y)\n        show(x)\n        state = new\n"),
        "state is read here, maybe after a later state was made of it",
    ),
    "further collections": ("{\"params\": params}, x)", "{\"params\": params}, x, mutable=[\"cache\"])[0]", "mutable"),
    "intermediates": ("{\"params\": params}, x)", "{\"params\": params}, x, capture_intermediates=True)[0]", "how these parameters are made"),
    "an apply_fn that is made by a call": ("apply_fn=model.apply", "apply_fn=make_apply(model)", "which module's apply"),
    "another module handed on": (
        LOOP,
        LOOP + "        predict(Mlp(5).apply, state.params, x)\n",
        "this part of the state is handed",
    ),
    "an initial call that is compiled with options": (
        "model.init(key,", "jax.jit(model.init, static_argnums=2)(key,", "how these parameters are made",
    ),
    "unknown keywords": ("{\"params\": params}, x)", "{\"params\": params}, x, **options)", "**kwargs"),
    "a default": ("def step(state, x, y)", "def step(state=None, x=0, y=0)", "has a default"),
    "any arguments": ("def step(state, x, y):", "def step(*args):\n    state, x, y = args", "which parameter"),
    "twice in a call": (LOOP, LOOP + "        pair(state, state)\n", "handed to"),
    "a state of several kinds": ("    return loss\n", "    step(None, x, y)\n    return loss\n", "not the same in all"),
    "returned in some cases": (UPDATE, "if x is None:\n        return None, None\n    " + UPDATE, ""),
    "a step taken by its name": ("    return loss\n", "    getattr(key, 'step')\n    return loss\n", "by its name"),
    "a step among values": ("    return loss\n", "    key.update({'step': step})\n    return loss\n", "unknown way"),
    "a global state": ("def main(key, x, y):\n", "def main(key, x, y):\n    global state\n", ""),
    "a state that a function compiles in": (
        "    return loss\n",
        "    @jax.jit\n    def predict(x):\n        return state.apply_fn({'params': state.params}, x)\n\n    return predict(x)\n",
        "compiled in",
    ),
    "a coroutine": ("    return loss\n", "    async def later():\n        return state.params\n\n    return later\n", "used in later"),
    "a generator": ("    return loss\n", "    yield state\n", "not known"),
    "a default that holds the state": ("    return loss\n", "    def last(x=state):\n        return x\n\n    return loss\n", "not known"),
    "swapped": (
        LOOP,
        ("        other = create(key)\n        for _ in x:\n            state, other = other, state\n"
        "            state, loss = step(state, x, y)\n"),
        "not the same in all",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "reason"), CASES.values(), ids=CASES)
def test_the_loop_stays_functional(old: str, new: str, reason: str) -> None:
    assert old in PROGRAM
    assert reason in kept(PREDICT + PROGRAM.replace(old, new))


STATISTICS = {
    "statistics that are not kept": (
        ", batch_stats=updates[\"batch_stats\"])", ")", "are not kept",
    ),
    "statistics that go elsewhere": ("    return state, loss\n", "    return state, updates\n", ""),
    "a call before they are kept": (
        "    state = state.apply_gradients", "    loss = evaluate(state, x)\n    state = state.apply_gradients", "before",
    ),
    "statistics of another model": (
        "    variables = model.init(key, jnp.ones((1, 3)))\n",
        ("    variables = model.init(key, jnp.ones((1, 3)))\n"
        "    other = model.init(key, jnp.ones((1, 3)))\n    variables = {**variables, 'batch_stats': other['batch_stats']}\n"),
        "",
    ),
    "statistics of another kind": ("batch_stats=variables[\"batch_stats\"]", "batch_stats={}", "not the state's"),
    "a replaced field beside gradients that may read it": (
        "    state = state.apply_gradients(grads=grads,",
        "    state = state.apply_gradients(grads=jax.grad(loss_fn, has_aux=True)(state.params)[0], scale=2.0,",
        "where fields are replaced",
    ),
    "the state as a field of itself": (
        "    return state, loss\n", "    return state.replace(scale=state), loss\n", "becomes a field of it",
    ),
    "a call that gives a state beside others": (
        "        state, loss = step(state, x, y, key)\n",
        ("        state, loss = other(state, x, y, key)\n\n\ndef other(state, x, y, key):\n"
        "    state = state.replace(scale=2.0)\n    return step(state, x, y, key)\n\n\n"
        "def losses_of(losses, loss, state, x):\n    if True:\n"),
        "beside others",
    ),
    "a further field with a default": ("    batch_stats: dict\n", "    batch_stats: dict\n    scale: float = 1.0\n", "other arguments"),
    "a method of the state": ("    batch_stats: dict\n", "    batch_stats: dict\n\n    def both(self):\n        return self.params\n", "adds more than annotated fields"),
    "a class with a cache": (
        "class State(TrainState)",
        ("class Cached(nn.Module):\n    @nn.compact\n    def __call__(self, x):\n"
        "        seen = self.variable('cache', 'seen', jnp.zeros, ())\n        return x + seen.value\n\n\n"
        "class State(TrainState)"),
        "has state beside",
    ),
    "named axes": (
        "class State(TrainState)",
        ("class Named(nn.Module):\n    @nn.compact\n    def __call__(self, x):\n"
        "        init = nn.with_logical_partitioning(nn.initializers.ones, ('a',))\n"
        "        return x * self.param('scale', init, (3,))\n\n\nclass State(TrainState)"),
        "names axes",
    ),
    "a class that holds a lazy one, which draws from streams of its own": (
        "class State(TrainState)",
        ("class Leaf(nn.Module):\n    @nn.compact\n    def __call__(self, x):\n"
        "        return (lambda y: nn.Dense(4, name='inside')(y))(x)\n\n\n"
        "class Holder(nn.Module):\n    @nn.compact\n    def __call__(self, x):\n"
        "        return Leaf()(x)\n\n\nclass State(TrainState)"),
        "holds a lazy submodule",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "reason"), STATISTICS.values(), ids=STATISTICS)
def test_a_loop_with_running_statistics_stays_functional(old: str, new: str, reason: str) -> None:
    assert old in FULL
    text = FULL.replace(old, new)
    if "scale=" in new:
        text = text.replace("    batch_stats: dict\n", "    batch_stats: dict\n    scale: float\n")
        text = text.replace(
            "        batch_stats=variables", "        scale=1.0,\n        batch_stats=variables"
        )
    assert reason in kept(text)


def test_variables_as_parameters_keep_the_functional_loop_where_statistics_may_be_among_them() -> (
    None
):
    text = PROGRAM.replace('jnp.ones((1, 3)))["params"]', "jnp.ones((1, 3)))")
    text = text.replace('{"params": params}', "params")
    assert "m.Net may have variables beside its parameters (BatchNorm)" in kept(text)


FACTORY = """\
def make(model):
    @jax.jit
    def step(state, x, y):
        def loss_fn(params):
            return jnp.mean((model.apply({"params": params}, x) - y) ** 2)

        return state.apply_gradients(grads=jax.grad(loss_fn)(state.params))

    return step


def main(key, x, y):
    state = create(key)
    step = make(Mlp(4))
    for _ in range(3):
        state = step(state, x, y)
    return state.params
"""


MADE = "    step = make(Mlp(4))\n"
ESCAPES = {
    "kept on an object": (MADE, f"{MADE}    key.step = step\n", "step is used here"),
    "made by others": (MADE, f"{MADE}    run(make)\n", "make is used here"),
    "an attribute": (MADE, f"{MADE}    make(Mlp(5)).lower\n", "step is used here"),
    "in a list": (MADE, f"{MADE}    run([make(Mlp(5))])\n", "step is used here"),
    "not in all cases": (
        "    return step\n",
        "    if model:\n        return step\n    return None\n",
        "handed to step, which is not known",
    ),
}


@pytest.mark.parametrize(("old", "new", "reason"), ESCAPES.values(), ids=ESCAPES)
def test_a_step_that_others_may_call_keeps_the_functional_loop(
    old: str, new: str, reason: str
) -> None:
    assert old in FACTORY
    assert reason in kept(CREATE + FACTORY.replace(old, new))


def test_states_that_are_made_in_one_statement_keep_the_functional_loop() -> None:
    made = "TrainState.create(apply_fn=model.apply, params=params, tx=tx)"
    create = CREATE.replace(f"    return {made}", f"    state, other = {made}, 1\n    return state")
    assert "made beside another value" in kept(create + STEP + MAIN)


def test_a_step_of_which_only_one_branch_knows_keeps_the_functional_loop() -> None:
    other = STEP.replace("step", "other")
    main = MAIN.replace(
        "    state = create(key)\n",
        "    state = create(key)\n    if x is None:\n        run = step\n"
        "    else:\n        run = other\n    run(load(), x, y)\n",
    )
    assert "is used here in an unknown way" in kept(CREATE + STEP + other + main)


def test_statistics_that_a_function_returns_beside_another_model_keep_the_functional_loop() -> None:
    init = """\
def init(model, key):
    variables = model.init(key, jnp.ones((1, 3)))
    other = model.init(key, jnp.ones((1, 3)))
    return variables["params"], other["batch_stats"]


"""
    text = init + FULL.replace('variables["', "").replace('"],\n        batch', ",\n        batch")
    text = text.replace('=batch_stats"]', "=batch_stats").replace("=params,", "=params,")
    text = text.replace(
        "    variables = model.init(key, jnp.ones((1, 3)))\n    return State",
        "    params, batch_stats = init(model, key)\n    return State",
    )
    assert "beside another model" in kept(text)
    apart = text.replace("init(model, key)\n", "first(model, key), second(model, key)\n")
    apart = apart.replace(
        init,
        """\
def first(model, key):
    return model.init(key, jnp.ones((1, 3)))["params"]


def second(model, key):
    return model.init(key, jnp.ones((1, 3)))["batch_stats"]


""",
    )
    assert "gives nothing back stands beside" in kept(apart)


@pytest.mark.parametrize("widths", [("3", "4"), ("width", "width")])
def test_the_apply_of_another_state_keeps_the_functional_loop(widths: tuple[str, str]) -> None:
    create = CREATE.replace("create(key)", "create(key, width)").replace("Mlp(4)", "Mlp(width)")
    main = f"""\
def main(key, x, y, width):
    one = create(key, {widths[0]})
    other = create(key, {widths[1]})
    one, loss = step(one, x, y)
    return other.apply_fn({{"params": one.params}}, x), loss
"""
    reason = "the module that is applied may not be the state's"
    assert reason in kept(create + STEP + main)


def test_a_lazy_class_keeps_the_functional_loop() -> None:
    text = PROGRAM.replace("Mlp(4)", "getattr(nets, 'Mlp')(4)")
    assert "how these parameters are made is not known" in kept(text)


def test_a_file_that_is_only_read_keeps_the_functional_loop() -> None:
    imports = HEAD.split("\n\n\n")[0]
    files = {"m.py": HEAD + "import steps\n\n\n" + CREATE + MAIN.replace("step(", "steps.step(")}
    result = rewritten(files, {"steps.py": f"{imports}\n\n\n{STEP}"})
    (found,) = about_loops(result)
    assert "not rewritten in this run" in found.message


def test_a_place_in_another_file_keeps_the_functional_loop() -> None:
    test = "import m\n\n\ndef test_step():\n    assert m.step(state(), 1, 2)\n"
    result = rewritten({"m.py": HEAD + PROGRAM, "test_m.py": test})
    (found,) = about_loops(result)
    assert found.outcome.value == "kept"


def test_a_program_of_its_own_is_rewritten_beside_one_that_is_not() -> None:
    other = (
        PROGRAM.replace("create(key)", "make(key)")
        .replace("step", "advance")
        .replace("main", "run")
    )
    other = other.replace("optax.adam(0.1)", "make_optimizer()")
    result = rewritten({"m.py": HEAD + PROGRAM + "\n\n" + other})
    assert sorted(one.outcome.value for one in about_loops(result)) == ["kept", "rewritten"]
    (file,) = result.files
    assert "nnx.Optimizer(model, tx, wrt=nnx.Param)" in (file.code or "")
    assert "TrainState.create(apply_fn=model.apply" in (file.code or "")


def test_a_compiled_step_that_stays_leaves_the_others_of_its_file() -> None:
    other = PROGRAM.replace("create(key)", "make(key)").replace("step", "advance")
    other = other.replace("main", "run").replace("@jax.jit", "@jax.jit(in_shardings=None)")
    both = about_loops(rewritten({"m.py": f"{HEAD}{PROGRAM}\n\n{other}"}))
    assert [one.outcome.value for one in both] == ["rewritten", "kept"]
    assert "compiled with in_shardings" in both[1].message


@pytest.mark.parametrize(
    "result",
    ["loss, state.step", "state.step", "loss, (state.step, loss)", "[loss, state.step]"],
)
def test_the_number_of_steps_is_a_number_where_it_is_asked_for_as_such(result: str) -> None:
    """Linen's is an int32 array, NNX's of uint32."""
    program = CREATE + STEP + MAIN.replace("return loss", f"return {result}")
    assert "`state.step` is used in a way that is not known" in kept(program)
    as_number = program.replace("state.step", "int(state.step)")
    assert {one.outcome.value for one in about_loops(rewritten({"m.py": HEAD + as_number}))} == {
        "rewritten"
    }
