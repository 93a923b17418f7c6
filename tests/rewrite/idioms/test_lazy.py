"""All twenty-five idioms in the lazy form: Linen's calls give Linen's bits, none is refused."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from nnx_migrate.model import Form
from tests.rewrite.idioms import test_lifts, test_origins, test_scopes, test_variables
from tests.rewrite.projects import rewrite_in_form, texts
from tests.rewrite.running import module_of, same_bits

X = test_scopes.X
IDS = np.array([[1, 2, 3], [4, 5, 0]])
TOKENS = {"image": test_lifts.STEPS, "text": test_lifts.STEPS[:, :3]}
HALF = np.full((2, 1), 0.5, np.float32)

# Idiom, where its text is, the model, what it is called with, collections that it may change.
IDIOMS: list[tuple[int, Any, str, str, tuple[Any, ...], list[str]]] = [
    (1, test_variables, "TIED", "Reader(7, 4)", (IDS,), []),
    (2, test_variables, "CACHED", "Decoder(6, 8)", (test_lifts.STEPS,), ["cache"]),
    (3, test_scopes, "PUSHED", "Stack(6, 3)", (X,), []),
    (4, test_scopes, "LEVELLESS", "Outer(4)", (X,), []),
    (5, test_scopes, "INTERCEPTED", "Adapted(Mlp(4), 2)", (X,), []),
    (6, test_scopes, "SHARED", "Layer(4)", (X,), []),
    (7, test_scopes, "COPIED", "Anchored(Policy(4))", (X,), []),
    (8, test_lifts, "SPLIT", "Model(6, 3)", (X,), []),
    (9, test_lifts, "BRANCHES", "Gated(6)", (X, np.array(True)), []),
    (10, test_lifts, "FLOW", "Model(6, 3)", (X,), []),
    (11, test_lifts, "COLLECTIONS", "Model(6, 2)", (X, HALF), ["statistics", "cache"]),
    (12, test_lifts, "GATHERED", "Pipeline(6, 2)", (X,), []),
    (13, test_variables, "OVERWRITTEN", "Scaled(4)", (X,), []),
    (14, test_variables, "CALLBACKS", "Noisy(4)", (X,), ["intermediates"]),
    (15, test_lifts, "INJECTED", "Model(4)", (X,), []),
    (16, test_scopes, "UNBOUND", "Model(6, 3)", (X,), []),
    (17, test_variables, "HELPER", "Tokens(6)", (TOKENS,), []),
    (18, test_origins, "SLICED", "Ensemble(8)", (X,), []),
    (19, test_lifts, "REBOUND", "Model(4)", (X,), []),
    (19, test_lifts, "REBOUND", "BatchModel(4)", (X,), []),
    (20, test_variables, "COMPUTED", "Whitened(4)", (X,), []),
    (21, test_lifts, "DECORATED", "Model()", (test_lifts.STEPS,), []),
    (22, test_origins, "BY_NAME", "Doubled(4)", (X,), []),
    (23, test_variables, "WATCHED", "Watched(4)", (X,), ["grads"]),
    (24, test_origins, "CONFIGURED", 'Towers({"a": instantiate(CONFIG)})', (X, "a"), []),
    (25, test_origins, "DEFAULTS", "Model(6)", (X,), []),
]


def results(text: str, expression: str, inputs: tuple[Any, ...], mutable: list[str]) -> Any:
    """Variables, a call with what it changes, and gradients; all compiled."""
    streams = {"params": jax.random.key(0), "noise": jax.random.key(1)}
    arrays = [one for one in inputs if not isinstance(one, str)]
    names = [one for one in inputs if isinstance(one, str)]
    with module_of("m", text) as module:
        model = eval(expression, vars(module))

        @jax.jit
        def run(arrays: Any) -> Any:
            variables = model.init(streams, *arrays, *names)

            def loss(params: Any) -> Any:
                values = {**variables, "params": params}
                out = model.apply(values, *arrays, *names, rngs=streams, mutable=mutable or False)
                first = out[0] if mutable else out
                return sum((one**2).sum() for one in jax.tree.leaves(first)), out

            gradients, out = jax.grad(loss, has_aux=True)(variables["params"])
            return variables, out, gradients

        return run(arrays)


@pytest.mark.parametrize(
    ("number", "where", "name", "model", "inputs", "mutable"),
    IDIOMS,
    ids=[f"{number:02}-{name}-{model.split('(')[0]}" for number, _, name, model, _, _ in IDIOMS],
)
def test_the_lazy_form_computes_the_same(
    number: int, where: Any, name: str, model: str, inputs: Any, mutable: list[str]
) -> None:
    files = {"m.py": getattr(where, name)}
    result = rewrite_in_form(files, "lazy")
    assert {one.form for one in result.classes} == {Form.LAZY}
    wanted = results(files["m.py"], model, inputs, mutable)
    same_bits(wanted, results(texts(result, files)["m.py"], model, inputs, mutable))


def test_no_idiom_is_left_out() -> None:
    assert {number for number, *_ in IDIOMS} == set(range(1, 26))
