"""Axis names in collections beside the variables."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

from tests.linen.layers.comparison import assert_same_error, evaluate, floats, pair

SOURCE = """
from flax.linen.partitioning import (
    AxisMetadata, RulesFallback, param_with_axes, remat, scan_with_axes, variable_with_axes, vmap_with_axes,
)

class Layer(Module):
    @compact
    def __call__(self, x):
        kernel = param_with_axes("kernel", initializers.lecun_normal(), (4, 4), axes=("embed", "mlp"))
        plain = param_with_axes("plain", initializers.ones, (1, 4))
        total = variable_with_axes("state", "total", jnp.zeros, (1, 4), axes=("batch", "embed"))
        if not self.is_initializing() and self.is_mutable_collection("state"):
            total.value = total.value + x.sum(0, keepdims=True)
        return x @ kernel + plain + total.value

class Step(Module):
    @compact
    def __call__(self, x, _):
        return Layer()(x), None

class Scanned(Module):
    @compact
    def __call__(self, x):
        stack = scan_with_axes(
            Step, variable_axes={"params": 1, "state": 0}, split_rngs={"params": True}, length=3,
            axis_name="layers", axes_collections=("params", "state"),
        )
        return stack(name="stack")(x, None)[0]

class Mapped(Module):
    @compact
    def __call__(self, x):
        stack = vmap_with_axes(
            Layer, variable_axes={"params": 0, "state": 0}, split_rngs={"params": True},
            partitioning_axis_names={"params": "layers", "state": "layers"},
        )
        return stack()(x[None].repeat(2, 0))

class Flagged(Module):
    @compact
    def __call__(self, x, flag, names):
        return Layer()(x) if flag and names == "text" else x

class Again(Module):
    @compact
    def __call__(self, x):
        return remat(Flagged, static_argnums=(1, 2))()(x, True, "text")

class Twice(Module):
    @compact
    def __call__(self, x):
        for names in (("a",), ("b",)):
            self.sow("params_axes", "x_axes", AxisMetadata(names),
                     reduce_fn=partitioning._param_with_axes_sow_reduce_fn)

class Named(Module):
    embed: object
    def setup(self):
        self.layer = self.embed
    def __call__(self, x):
        return self.layer(x)
"""
COLLECTIONS = ["state", "params_axes", "state_axes"]


@pytest.mark.parametrize("model", ["Layer", "Scanned", "Mapped", "Again"])
def test_a_model_is_the_same_program(model):
    found = pair(f"{model}()", floats(2, 4), source=SOURCE, mutable=COLLECTIONS)
    names = [
        side.get_axis_names(jax.eval_shape(found.init(one), found._keys(1))["params_axes"])
        for side, one in zip(evaluate("partitioning"), (found.linen, found.lazy), strict=True)
    ]
    assert names[0] == names[1]
    found.check_programs()


@pytest.mark.parametrize("model", ["Layer", "Scanned"])
def test_a_model_gives_the_same_bits(model):
    found = pair(f"{model}()", floats(2, 4), source=SOURCE, mutable=["state"])
    found.check_numbers()


def test_constraints_of_names_are_the_same_program():
    rules = (("embed", "model"), ("batch", "data"))
    found = pair("Scanned()", floats(2, 4), source=SOURCE, mutable=COLLECTIONS)
    axis_rules, _ = evaluate("partitioning.axis_rules")
    devices = jax.sharding.Mesh([[jax.devices()[0]]], ("data", "model"))
    with jax.set_mesh(devices), axis_rules(rules):
        found.check_programs()
        text = jax.jit(found.init(found.lazy)).lower(found._keys(1)).as_text()
    assert "sharding" in text


@pytest.mark.parametrize(
    "expression",
    [
        "Layer().apply({'params': {'kernel': jnp.ones((4, 4)), 'plain': jnp.ones((1, 4))}}, jnp.ones((2, 4)))",
        "param_with_axes('kernel', initializers.ones, (1,))",
        "variable_with_axes('state', 'total', jnp.zeros, (1,))",
        "Twice().init(jax.random.key(0), jnp.ones((2, 4)))",
        "partitioning._param_with_axes_sow_reduce_fn((), 'names')",
        "partitioning._param_with_axes_sow_reduce_fn('other', AxisMetadata(('a',)))",
        "remat(Flagged, concrete=True)().init(jax.random.key(0), jnp.ones((2, 4)), True, None)",
    ],
)
def test_what_linen_refuses_is_refused(expression):
    assert_same_error(expression, SOURCE)


def test_an_axis_that_is_not_there_cannot_be_removed():
    source = f"""{SOURCE}
def run():
    variables = Scanned().init(jax.random.key(0), jnp.ones((2, 4)))
    wrong = jax.tree.map(
        lambda record: AxisMetadata(("other",) * 3), variables["params_axes"],
        is_leaf=lambda node: isinstance(node, AxisMetadata),
    )
    Scanned().apply({{**variables, "params_axes": wrong}}, jnp.ones((2, 4)), mutable=["params_axes"])
"""
    assert_same_error("run()", source)


@pytest.mark.parametrize(
    ("expression", "x"),
    [
        ("Dense(3, kernel_axes=('embed', 'mlp'))", floats(2, 4)),
        (
            "Dense(3, use_bias=False, dtype=jnp.bfloat16, kernel_axes=('embed', 'mlp'))",
            floats(2, 4),
        ),
        ("Embed(5, 3)", jnp.array([[1, 2, 4]])),
        ("Embed(5, 3, one_hot=True, dtype=jnp.bfloat16)", jnp.array([[1, 2, 4]])),
        ("Embed(5, 3, cast_input_dtype=jnp.int32)", jnp.array([[1.0, 2.0]])),
        ("LayerNorm(use_bias=False, use_scale=False)", floats(2, 4)),
        ("LayerNorm(use_bias=False, use_scale=False)", floats(2, 4, dtype=jnp.bfloat16)),
    ],
)
def test_layers_with_named_axes_are_the_same_program(expression, x):
    with jax.numpy_rank_promotion("allow"):
        pair(f"layers_with_named_axes.{expression}", x).check_programs()


def test_embed_with_named_axes_attends():
    text = "layers_with_named_axes.Embed(5, 3, attend_dtype=jnp.bfloat16)"
    pair(text, floats(2, 3), method="attend").check_programs()


def test_layer_norm_with_named_axes_needs_a_method_as_in_linen():
    assert_same_error(
        "layers_with_named_axes.LayerNorm().init(jax.random.key(0), jnp.ones((2, 4)))"
    )
    source = """
class Norm(layers_with_named_axes.LayerNorm):
    def param_with_axes(self, name, init, *args, axes):
        return partitioning.param_with_axes(name, init, *args, axes=axes, module=self)
"""
    pair("Norm()", floats(2, 4), source=source).check_programs()


def test_records_have_no_leaves():
    linen, lazy = evaluate("lambda: partitioning.AxisMetadata(('a', 'b'))")
    assert jax.tree.leaves(lazy()) == jax.tree.leaves(linen()) == []
