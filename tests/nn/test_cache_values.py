"""Variables that hold dicts, which calls make and are given."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from nnx_migrate import nn as nnm
from tests.rewrite.running import net_alike


class Model(nnx.Module):
    def __call__(self, x: jax.Array, change: bool = False) -> jax.Array:
        held = nnm.lazy_variable(
            self, "stats", "held", lambda: {"w": jnp.ones(2), "b": jnp.zeros(2)}
        )
        if change:
            held.set_value({"w": jnp.zeros(2), "b": jnp.ones(2)})
        return x * held.get_value()["w"] + held.get_value()["b"]


X = jnp.ones(2)
GIVEN = {"stats": {"held": {"w": 3 * jnp.ones(2), "b": 4 * jnp.ones(2)}}}


def test_a_call_uses_the_dict_that_it_is_given_and_keeps_its_order() -> None:
    out, changed = nnm.apply(Model(), GIVEN, X, mutable=["stats"])
    np.testing.assert_array_equal(out, jnp.full(2, 7.0))
    assert [*changed["stats"]["held"]] == ["w", "b"]


def test_a_call_that_only_reads_a_dict_changes_nothing() -> None:
    np.testing.assert_array_equal(nnm.apply(Model(), GIVEN, X), jnp.full(2, 7.0))


def test_a_call_that_changes_a_dict_is_refused_unless_it_is_mutable() -> None:
    with pytest.raises(ValueError, match="the call changed 'held'"):
        nnm.apply(Model(), GIVEN, X, change=True)
    out, changed = nnm.apply(Model(), GIVEN, X, change=True, mutable=["stats"])
    np.testing.assert_array_equal(out, jnp.ones(2))
    np.testing.assert_array_equal(changed["stats"]["held"]["b"], jnp.ones(2))


def test_a_dict_that_was_not_given_is_refused_unless_it_is_mutable() -> None:
    with pytest.raises(ValueError, match="the call changed 'held'"):
        nnm.apply(Model(), {}, X)
    np.testing.assert_array_equal(nnm.apply(Model(), {}, X, mutable=["stats"])[0], X)


def test_variables_of_modules_that_a_model_lacks_are_ignored() -> None:
    others = {
        **GIVEN,
        "batch_stats": {"norm": {"mean": X}},
        "stats": {**GIVEN["stats"], "more": {}},
    }
    np.testing.assert_array_equal(nnm.apply(Model(), others, X), jnp.full(2, 7.0))


def test_linen_agrees() -> None:
    class Linen(nn.Module):
        @nn.compact
        def __call__(self, x: jax.Array) -> jax.Array:
            held = self.variable("stats", "held", lambda: {"w": jnp.ones(2), "b": jnp.zeros(2)})
            return x * held.value["w"] + held.value["b"]

    out, changed = Linen().apply(GIVEN, X, mutable=["stats"])
    np.testing.assert_array_equal(out, jnp.full(2, 7.0))
    assert [*changed["stats"]["held"]] == ["w", "b"]


BODIES = {
    "a function": "self.variable('c', 'p', make, x.shape[-1])",
    "a lambda": "self.variable('c', 'p', lambda: {'w': jnp.ones(x.shape[-1]), 'b': x})",
    "nested": "self.variable('c', 'p', lambda: {'w': x, 'b': {'one': x}})",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_classes_whose_calls_make_dicts_print_the_same(body: str) -> None:
    source = (
        "import flax.linen as nn\nimport jax\nimport jax.numpy as jnp\n\n\n"
        "def make(n):\n    return dict(w=jnp.ones(n), b=jnp.zeros(n))\n\n\n"
        "class Inner(nn.Module):\n    @nn.compact\n    def __call__(self, x):\n"
        f"        v = {body}\n        return x * v.value['w']\n\n\n"
        "class Net(nn.Module):\n    @nn.compact\n    def __call__(self, x):\n"
        "        return Inner()(nn.Dense(3)(x))\n"
    )
    assert set(net_alike(source, "jnp.ones(4)").values()) == {"explicit"}
