"""Functions whose callers are not followed: methods, and what nobody in the project calls."""

from __future__ import annotations

import pytest

from tests.rewrite.loops.programs import CREATE, HEAD, MAIN, STEP, about_loops, kept, rewritten
from tests.rewrite.loops.test_executes import same_bits

MADE = """\
model = Mlp(4)
        params = model.init(key, jnp.ones((1, 3)))["params"]
        return TrainState.create(apply_fn=model.apply, params=params, tx=optax.adam(0.1))
"""
# A class' method that makes a state, and an expression that calls it.
MAKERS = {
    "a method": (f"    def make(self, key):\n        {MADE}", "Run().make(key)"),
    "a static method": (f"    @staticmethod\n    def make(key):\n        {MADE}", "Run.make(key)"),
    "a class method that is inherited": (
        f"    @classmethod\n    def make(cls, key):\n        {MADE}\n\nclass Other(Run):\n    pass\n",
        "Other.make(key)",
    ),
    "a property": (f"    key = jax.random.key(0)\n\n    @property\n    def state(self):\n        key = self.key\n        {MADE}", "Run().state"),
    "a property that is kept": (f"    @functools.cached_property\n    def state(self):\n        key = jax.random.key(0)\n        {MADE}", "Run().state"),
    "a call of an object": (f"    def __call__(self, key):\n        {MADE}", "Run()(key)"),
    "an operator": (f"    def __getitem__(self, key):\n        {MADE}", "Run()[key]"),
    "under a condition": ("    if True:\n\n        def make(self, key):\n            " + MADE.replace("\n        ", "\n            "), "Run().make(key)"),
    "a state beside others": (f"    def make(self, key):\n        {MADE}".replace("return T", "state = T") + "        return state, key\n", "Run().make(key)[0]"),
    "a maker that a method calls": ("    def make(self, key):\n        return create(key)\n", "Run().make(key)"),
}  # fmt: skip


@pytest.mark.parametrize(("method", "call"), MAKERS.values(), ids=MAKERS)
def test_a_state_that_a_method_gives_keeps_the_functional_loop(method: str, call: str) -> None:
    main = MAIN.replace("create(key)", call)
    reason = kept(
        f"{CREATE if 'create(key)' in method else ''}class Run:\n{method}\n\n{STEP}{main}"
    )
    assert "is a method, and who calls it is not followed" in reason


def test_a_state_that_a_method_of_a_local_class_gives_keeps_the_functional_loop() -> None:
    made = MADE.replace("\n        ", "\n            ")
    method = f"        def make(self, key):\n            {made}"
    main = MAIN.replace(
        "    state = create(key)", f"    class Run:\n{method}\n    state = Run().make(key)"
    )
    assert "make is a method" in kept(STEP + main)


def test_a_state_that_a_function_of_a_coroutine_gives_keeps_the_functional_loop() -> None:
    coroutine = (
        f"async def run(key):\n    def make(key):\n        {MADE}\n    return make(key)\n\n\n"
    )
    main = MAIN.replace("create(key)", "asyncio.run(run(key))")
    assert "who calls it is not followed" in kept(coroutine + STEP + main)


STEPS = """\
class Run:
    def steps(self, key, x, y):
        def step(state, x, y):
            def loss_fn(params):
                return jnp.mean((state.apply_fn({"params": params}, x) - y) ** 2)

            loss, grads = jax.value_and_grad(loss_fn)(state.params)
            return state.apply_gradients(grads=grads), loss

        state = create(key)
        state, loss = step(state, x, y)
        return step, loss


def main(key, x, y):
    step, loss = Run().steps(key, x, y)
    return step(load(key), x, y), loss
"""


def test_a_step_that_a_method_gives_keeps_the_functional_loop() -> None:
    assert "step is used here in an unknown way" in kept(CREATE + STEPS)


FITS = """\
class Run:
    def __init__(self, key):
        self.key = key

    def fit(self, x, y):
        def make(key):
            return create(key)

        state = make(self.key)
        for _ in range(3):
            state, loss = step(state, x, y)
        return loss, self.predict(state.params, x)

    def predict(self, params, x):
        return Mlp(4).apply({"params": params}, x)


def main(key, x, y):
    return Run(key).fit(x, y)
"""


def test_a_method_around_a_whole_loop_computes_the_same_bits() -> None:
    same_bits(HEAD + CREATE + STEP + FITS)


# Functions that hand the step a state of which nothing is known.
UNKNOWN = {
    "nobody calls it": "def resume(state, x, y):\n    return step(state, x, y)[1]\n",
    "what a method keeps": "class Run:\n    def resume(self, x, y):\n        return step(self.make(), x, y)[1]\n",
    "what others give": "def resume(load, x, y):\n    for state in load():\n        state, loss = step(state, x, y)\n    return loss\n",
}


@pytest.mark.parametrize("function", UNKNOWN.values(), ids=UNKNOWN)
def test_a_step_that_is_given_what_nobody_knows_keeps_the_functional_loop(function: str) -> None:
    assert "not the same in all" in kept(f"{CREATE}{STEP}{function}\n\n{MAIN}")


def test_a_loop_that_unknown_callers_start_is_rewritten() -> None:
    start = "\n\ndef start(args):\n    return main(args.key, args.x, args.y)\n"
    (found,) = about_loops(rewritten({"m.py": HEAD + CREATE + STEP + MAIN + start}))
    assert found.outcome.value == "rewritten"
