"""Modules without a parent, of which functions take pure functions of variables."""

from __future__ import annotations

import numpy as np
import pytest

from tests.rewrite.projects import outcomes, rewrite, texts
from tests.rewrite.running import compare

HEAD = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Inner(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return nn.tanh(nn.Dense(self.width)(x))


class Outer(nn.Module):
    inner: nn.Module

    @nn.compact
    def __call__(self, x):
        return self.inner(x)


class Own(nn.Module):
    width: int

    def apply(self, variables, x):
        return x * self.width


"""
MODEL = """

class Model(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        layers = nn.vmap(Inner, variable_axes={"params": 0}, split_rngs={"params": True},
                         in_axes=None, axis_size=3)(self.width)
        if self.is_initializing():
            layers(x)
            return x
        return turn(layers.variables["params"], x, self.width)
"""
IN_TURN = """\
def turn(weights, x, width):
    for layer in range(3):
        weight = jax.tree.map(lambda w: w[layer], weights)
        x = Inner(width, parent=None).apply({"params": weight}, x)
    return x
"""
MAPPED = """\
def names(width):
    x = jax.ShapeDtypeStruct((1, width), jnp.float32)
    boxes = jax.eval_shape(Inner(width, parent=None).init, jax.random.key(0), x)
    return nn.get_partition_spec(boxes)["params"]


def turn(weights, x, width):
    def layer(weight):
        return Inner(width, parent=None).apply({"params": weight}, x)

    scaled = jax.tree.map(lambda w, spec: w * (1 + len(spec)), weights, names(width))
    return jax.vmap(layer)(scaled).sum(0)
"""
X = np.random.default_rng(0).normal(size=(2, 4)).astype(np.float32)


@pytest.mark.parametrize("function", [IN_TURN, MAPPED])
def test_the_layers_of_a_stack_are_applied_one_by_one(function: str) -> None:
    report = compare(HEAD + function + MODEL, "Model(4)", {"in_features": 4}, (X,))
    assert report.verdict in ("identical", "equal_by_rules"), report
    assert report.check("gradients").leaves == 3  # two parameters and the input


def test_the_module_is_named_before_its_fields() -> None:
    files = {"m.py": HEAD + IN_TURN + MODEL}
    result = rewrite(files)
    assert set(outcomes(result).values()) == {"rewritten"}
    call = 'lazy(Inner)(width, parent=None).apply({"params": weight}, x)'
    assert call in texts(result, files)["m.py"]


@pytest.mark.parametrize(
    "body",
    [
        'return Inner(width).apply({"params": weights}, x)',
        'return Inner(width, parent=other).apply({"params": weights}, x)',
        'return Inner(width, **{"parent": None}).apply({"params": weights}, x)',
        'applied = Inner(width, parent=None).apply\n    return applied({"params": weights}, x)',
        'return nn.vmap(Inner)(width, parent=None).apply({"params": weights}, x)',
        'layer = Inner(width, parent=None)\n    return layer.apply({"params": weights}, x)',
        'return Inner(width, parent=None).bind({"params": weights})(x)',
        "return Inner(width, parent=None)(x)",
        'return Outer(Inner(width, parent=None), parent=None).apply({"params": weights}, x)',
        "return Outer(Inner(width, parent=None))(x)",
        'Inner(width, parent=None).apply({"params": weights}, x)\n    return Inner(width)(x)',
    ],
)
def test_a_module_that_may_get_a_parent_keeps_its_users_linen(body: str) -> None:
    source = f"{HEAD}def turn(weights, x, width, other=None):\n    {body}\n{MODEL}"
    assert outcomes(rewrite({"m.py": source}))["m.Model"] == "refused"


@pytest.mark.parametrize(
    "body",
    [
        "return Outer(Inner(4, parent=None))(x)",
        "inner = Inner(4, parent=None)\n        return Outer(inner)(x)",
        "return Inner(4, parent=None)(x)",
    ],
)
def test_in_a_compact_method_it_belongs_to_the_module_that_gets_it(body: str) -> None:
    source = f"{HEAD}class Model(nn.Module):\n    @nn.compact\n    def __call__(self, x):\n        {body}\n"
    assert outcomes(rewrite({"m.py": source}))["m.Model"] == "refused"


def test_a_method_of_its_own_called_apply_is_no_pure_function_of_linens() -> None:
    function = (
        "def turn(weights, x, width):\n    return Own(width, parent=None).apply(weights, x)\n"
    )
    files = {"m.py": HEAD + function + MODEL}
    assert "nnm.apply" not in texts(rewrite(files), files)["m.py"]
