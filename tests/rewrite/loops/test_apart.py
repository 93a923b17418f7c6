"""What runs at another time, or more than once: expressions in lambdas, comprehensions and defaults."""

from __future__ import annotations

import pytest

from tests.rewrite.loops.programs import FULL, HEAD, about_loops, kept, rewritten
from tests.rewrite.loops.test_executes import same_bits

VARIABLES = '{"params": state.params, "batch_stats": state.batch_stats}'
CALL = f'state.apply_fn({VARIABLES}, x, train=True, rngs={{"dropout": key}}, mutable=["batch_stats"])'  # fmt: skip
DROPPED = f"{CALL}[0]"
END = "    return losses, evaluate(state, x), int(state.step)\n"
HELPER = f"def both(state, x, key):\n    return {CALL}\n\n\n"


def before_the_end(statements: str) -> str:
    """The program with running statistics, and statements behind its loop."""
    assert END in FULL
    return HELPER + FULL.replace(END, statements + END)


NOT_KEPT = "running statistics that apply returned here are not kept"
EARLY = "before it keeps running statistics"
# Statements that compute with dropout and drop what the call makes of the statistics; a part of the reason.
DROPS = {
    "a list": (f"[{DROPPED} for key in jax.random.split(key, 3)]", NOT_KEPT),
    "a generator": (f"sum({DROPPED} for key in jax.random.split(key, 3))", NOT_KEPT),
    "a dict": (f"{{index: {DROPPED} for index in range(2)}}", NOT_KEPT),
    "a condition of a comprehension": (f"[1 for _ in x if {DROPPED}.sum() > 0]", NOT_KEPT),
    "what a comprehension goes over": (f"[one for one in {DROPPED}]", NOT_KEPT),
    "a helper in a comprehension": ("[both(state, x, key)[0] for _ in range(2)]", NOT_KEPT),
    "a lambda": (f"(lambda key: {DROPPED})(key)", NOT_KEPT),
    "a lambda that is mapped": (f"jax.tree.map(lambda a: {DROPPED} + a, [x[:, :1]])", NOT_KEPT),
    "a helper in a lambda": ("(lambda key: both(state, x, key)[0])(key)", NOT_KEPT),
    "a lambda in a list": (f"[lambda: {DROPPED}][0]()", NOT_KEPT),
    "a lambda's default": (f"lambda *, a={DROPPED}: a", EARLY),
    "a gradient of a lambda": (
        f"jax.grad(lambda p: {DROPPED.replace('state.params', 'p')}.sum())(state.params)",
        NOT_KEPT,
    ),
    "a conditional": (f"{DROPPED} if x is not None else 0", EARLY),
    "the name of an expression": (f"print((shown := {DROPPED}).sum())", EARLY),
    "a starred argument": (f"print(*{DROPPED})", EARLY),
    "an index": (f"losses[int({DROPPED}.sum())]", EARLY),
}


@pytest.mark.parametrize(("expression", "reason"), DROPS.values(), ids=DROPS)
def test_statistics_that_an_expression_drops_keep_the_functional_loop(
    expression: str, reason: str
) -> None:
    assert reason in kept(before_the_end(f"    {expression}\n"))


STATEMENTS = {
    "a default": (f"    def shown(a={DROPPED}):\n        return a\n\n", EARLY),
    "a decorator": (f"    @functools.partial(map, {DROPPED})\n    def shown(a):\n        return a\n\n", EARLY),
    "a default of a method": (f"    class Shown:\n        def a(self, b={DROPPED}):\n            return b\n\n", "used in Shown"),
    "an exception before they are kept": (
        (f"    try:\n        out, updates = {CALL}\n        check(out)\n"
        "        state = state.replace(batch_stats=updates['batch_stats'])\n    except ValueError:\n        print(state.batch_stats)\n"),
        "read after a later state",
    ),
    "a state that an expression may replace": ("    x is None and (state := load())\n", "bound within an expression"),
    "parameters that a pattern replaces": (
        "    params = state.params\n    match losses:\n        case [params]:\n            pass\n    print(params)\n",
        "bound within an expression, a pattern",
    ),
    "parameters of one case": (
        "    match losses:\n        case []:\n            params = state.params\n        case _:\n            params = None\n    print(params)\n",
        "not the same in all",
    ),
    "an update before an exception of a group": (
        "    try:\n        new, loss = step(state, x, y, key)\n        state = new\n    except* ValueError:\n        pass\n",
        "read after a later state",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("statements", "reason"), STATEMENTS.values(), ids=STATEMENTS)
def test_statements_that_hold_such_expressions_keep_the_functional_loop(
    statements: str, reason: str
) -> None:
    assert reason in kept(before_the_end(statements))


COMPUTES = f"""\
    losses += [state.apply_fn({VARIABLES}, x * scale) for scale in (1, 2)]
    shown = lambda x: state.apply_fn({VARIABLES}, x)
    losses.append(shown(x) + sum(evaluate(state, x) for _ in range(2)))
    losses.append((out := evaluate(state, x)).sum() + out)

    def total(params=state.params):
        return params

    losses.append(total())
    match len(losses):
        case 8:
            state, loss = step(state, x, y, key)
        case number:
            loss = number
    losses.append(loss)
"""
AGAIN = f"""\
    def noisy(params):
        out, changed = {CALL.replace("state.params", "params")}
        return out.sum(), changed

    _, changed = jax.grad(lambda p: noisy(p), has_aux=True)(state.params)
    state = state.replace(batch_stats=changed["batch_stats"])
"""


def test_expressions_that_drop_nothing_compute_the_same_bits() -> None:
    same_bits(HEAD + before_the_end(COMPUTES).replace(HELPER, ""))


def test_statistics_that_a_lambda_gives_and_the_state_keeps_are_the_same_bits() -> None:
    text = FULL.replace("    (loss, updates), grads", f"{AGAIN}    (loss, updates), grads")
    same_bits(HEAD + text)


def test_statistics_that_a_lambda_gives_are_to_be_kept() -> None:
    again = AGAIN[: AGAIN.index("    state = state.replace")]
    text = FULL.replace("    (loss, updates), grads", f"{again}    (loss, updates), grads")
    assert "before" in kept(text)
    (found,) = about_loops(rewritten({"m.py": HEAD + text}))
    assert found.outcome.value == "kept"
