"""``param_with_axes`` and ``variable_with_axes``: values, names and constraints are Linen's."""

from __future__ import annotations

from textwrap import indent
from typing import Any

import jax
import numpy as np
import pytest
from flax import linen, nnx
from flax.linen import partitioning

from nnx_migrate import nn as nnm
from nnx_migrate.sharding import construct_named_sharding, get_partition_spec
from tests.rewrite.projects import rewrite
from tests.rewrite.running import compare, migrated, module_of, refused
from tests.sharding.meshes import AUTO, mesh

HEADER = """\
import flax.linen as nn
import jax.numpy as jnp
from flax.linen import partitioning as nn_partitioning
from flax.linen.partitioning import param_with_axes, variable_with_axes

KERNEL = ("embed", "mlp")


"""
SOURCE = (
    HEADER
    + """\
class Layer(nn.Module):
    width: int
    axes: tuple = ("mlp",)

    @nn.compact
    def __call__(self, x):
        kernel = param_with_axes(
            "kernel", nn.initializers.lecun_normal(), (x.shape[-1], self.width), axes=KERNEL
        )
        y = nn_partitioning.with_sharding_constraint(x @ kernel, ("batch", "mlp"))
        return y + nn_partitioning.param_with_axes(
            "bias", nn.initializers.normal(1.0), (self.width,), jnp.float32, axes=self.axes
        )[None]


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        return Layer(4)(nn.relu(Layer(8)(x)))
"""
)
X = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)
RULES = (("batch", "data"), ("embed", "data"), ("mlp", "tensor"))


def test_paths_values_and_programs_are_linens() -> None:
    assert compare(SOURCE, "Model()", {"in_features": 6}, (X,)).verdict == "identical"


def test_names_specs_and_constraints_are_linens_under_a_mesh() -> None:
    devices = mesh(AUTO, data=2, tensor=2)
    with module_of("old", SOURCE) as old, module_of("new", migrated(SOURCE)) as new:
        shapes = jax.eval_shape(old.Model().init, jax.random.key(0), X)
        names = partitioning.get_axis_names(shapes["params_axes"])
        model = new.Model(in_features=6, rngs=nnx.Rngs(0))
        graphdef, state = nnx.split(model)
        for layer in ("Layer_0", "Layer_1"):
            for name in ("kernel", "bias"):
                assert get_partition_spec(state[layer][name]) == names[layer][name]
        found = construct_named_sharding(state, devices, RULES)
        expected = linen.logical_to_mesh_sharding(names, devices, RULES)
        assert found["Layer_0"]["kernel"].get_value() == expected["Layer_0"]["kernel"]
        assert expected["Layer_0"]["kernel"].spec == jax.P("data", "tensor")
        values = nnm.variables_of(model)
        assert isinstance(values["params"]["Layer_0"]["kernel"], jax.Array)  # no box, as in Linen

        def constraints(function: Any, *args: Any) -> list[str]:
            with jax.set_mesh(devices), linen.logical_axis_rules(RULES):
                lines = jax.jit(function).lower(*args).as_text().splitlines()
            return [line.split("<@mesh")[1] for line in lines if "sharding_constraint" in line]

        theirs = constraints(old.Model().apply, values, X)
        ours = constraints(lambda s, x: nnx.merge(graphdef, s, copy=True)(x), state, X)
        assert ours == theirs
        assert len(ours) == 6


STATS = (
    HEADER
    + """\
class Model(nn.Module):
    width: int
    names: tuple = ("embed",)

    @nn.compact
    def __call__(self, x):
        both = ("mlp", "embed")
        mean = variable_with_axes("stats", "mean", jnp.zeros, (x.shape[-1],), axes=self.names)
        scale = nn_partitioning.variable_with_axes(
            collection="stats", name="scale", init_fn=lambda: jnp.ones((self.width, 6)),
            axes=both, fallback=nn_partitioning.RulesFallback.NO_CONSTRAINT,
        )
        both = None
        y = (x - mean.value[None]) @ scale.value.T
        mean.value = 0.9 * mean.value + 0.1 * x.mean(0)
        scale.value += 1.0
        _ = variable_with_axes("stats", "last", lambda: y, axes=("batch", "mlp"))
        free = variable_with_axes("stats", "free", jnp.ones, (4,), axes=None).value
        none = variable_with_axes("stats", "none", jnp.ones, (4,), axes=())
        return nn.Dense(4)(y) * free[None] + none.value[None]
"""
)


def test_variables_and_their_updates_are_linens() -> None:
    report = compare(STATS, "Model(8)", {}, (X,), collections=("stats",))
    assert report.verdict == "identical", report


@pytest.mark.parametrize("rules", [RULES, RULES[:2]], ids=["all names", "a name without a rule"])
def test_variables_have_linens_names_and_constraints_under_a_mesh(rules: Any) -> None:
    devices = mesh(AUTO, data=2, tensor=2)
    with module_of("old", STATS) as old, module_of("new", migrated(STATS)) as new:
        shapes = jax.eval_shape(old.Model(8).init, jax.random.key(0), X)
        names = partitioning.get_axis_names(shapes["stats_axes"])
        model = new.Model(8, rngs=nnx.Rngs(0))
        nnm.lazy_init(model, X)
        graphdef, state = nnx.split(model)
        specs = {name: get_partition_spec(state[name]) for name in names}
        assert specs == dict(names)
        assert set(specs) == {"mean", "scale", "last", "none"}
        assert get_partition_spec(state["free"]) == jax.P()
        values = nnm.variables_of(model)

        def constraints(function: Any, *args: Any) -> list[str]:
            with jax.set_mesh(devices), linen.logical_axis_rules(rules):
                lines = jax.jit(function).lower(*args).as_text().splitlines()
            return [line.split("<@mesh")[1] for line in lines if "sharding_constraint" in line]

        def theirs(values: Any, x: Any) -> Any:
            return old.Model(8).apply(values, x, mutable=["stats"])

        def ours(state: Any, x: Any) -> Any:
            merged = nnx.merge(graphdef, state, copy=True)
            y = merged(x)
            return y, nnm.variables_of(merged)["stats"]

        found = constraints(ours, state, X)
        assert found == constraints(theirs, values, X)
        assert len(found) == (7 if rules is RULES else 4)


STACKED = (
    HEADER
    + """\
class Layer(nn.Module):
    @nn.compact
    def __call__(self, x):
        k = param_with_axes("k", nn.initializers.normal(1.0), (6, 6), axes=KERNEL)
        v = variable_with_axes("stats", "v", jnp.zeros, (6,), axes=("embed",))
        v.value += 1.0
        return x @ k + v.value[None], None


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        stack = nn.scan(
            Layer, variable_axes={"params": 0, "stats": 0}, split_rngs={"params": True}, length=3
        )
        return stack()(x)[0]
"""
)


def test_a_stack_whose_axis_has_no_name_constrains_its_layers_as_linen_does() -> None:
    report = compare(STACKED, "Model()", {}, (X,), collections=("stats",))
    assert report.verdict == "identical", report
    with module_of("old", STACKED) as old, module_of("new", migrated(STACKED)) as new:
        model = new.Model(rngs=nnx.Rngs(0))
        assert get_partition_spec(nnx.state(model)["ScanLayer_0"]["k"]) == jax.P(
            None, *("embed", "mlp")
        )
        values = nnm.variables_of(model)

        def count(function: Any, *args: Any) -> int:
            devices = mesh(AUTO, data=2, tensor=2)
            with jax.set_mesh(devices), linen.logical_axis_rules(RULES):
                return jax.jit(function).lower(*args).as_text().count("sharding_constraint")

        graphdef, state = nnx.split(model)
        theirs = count(lambda v, x: old.Model().apply(v, x, mutable=["stats"])[0], values, X)
        assert count(lambda s, x: nnx.merge(graphdef, s, copy=True)(x), state, X) == theirs > 0


REFUSED = {
    "in setup": """\
class Model(nn.Module):
    def setup(self):
        self.kernel = param_with_axes("kernel", nn.initializers.ones, (6, 4), axes=KERNEL)

    def __call__(self, x):
        return x @ self.kernel
""",
    "of another module": """\
class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        return x @ param_with_axes("k", nn.initializers.ones, (6, 4), axes=KERNEL, module=self)
""",
    "in a function": """\
class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        make = lambda: param_with_axes("k", nn.initializers.ones, (6, 4), axes=KERNEL)
        return x @ make()
""",
    "without axes": """\
class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        return x @ param_with_axes("k", nn.initializers.ones, (6, 4))
""",
    "under a local name": """\
class Model(nn.Module):
    @nn.compact
    def __call__(self, x, param_with_axes):
        return x @ param_with_axes("k", nn.initializers.ones, (6, 4), axes=KERNEL)
""",
    "names of a tree": """\
class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        k = param_with_axes("k", lambda key: {"a": jnp.ones((6,))}, axes={"a": ("embed",)})
        return x + k["a"]
""",
    "a variable of another module": """\
class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        v = variable_with_axes("stats", "v", jnp.zeros, (6,), axes=("embed",), module=self)
        return x + v.value
""",
    "a variable in a function": """\
class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        make = lambda: variable_with_axes("stats", "v", jnp.zeros, (6,), axes=("embed",))
        return x + make().value
""",
    "a variable without axes": """\
class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        return x + variable_with_axes("stats", "v", jnp.zeros, (6,)).value
""",
}
HELD_OTHERWISE = {
    "in setup": """\
    def setup(self):
        self.v = variable_with_axes("stats", "v", jnp.zeros, (6,), axes=("embed",))

    def __call__(self, x):
        return x + self.v.value
""",
    "handed on": """\
    @nn.compact
    def __call__(self, x):
        v = variable_with_axes("stats", "v", jnp.zeros, (6,), axes=("embed",))
        return x + read(v)
""",
    "an alias": """\
    @nn.compact
    def __call__(self, x):
        v = variable_with_axes("stats", "v", jnp.zeros, (6,), axes=("embed",))
        w = v
        return x + w.value
""",
    "bound twice": """\
    @nn.compact
    def __call__(self, x):
        v = variable_with_axes("stats", "v", jnp.zeros, (6,), axes=("embed",))
        y = v.value
        v = self.variable("stats", "w", jnp.ones, (6,))
        return x + y + v.value
""",
    "an argument's name": """\
    @nn.compact
    def __call__(self, x, v=None):
        v = variable_with_axes("stats", "v", jnp.zeros, (6,), axes=("embed",))
        return x + v.value
""",
    "global": """\
    @nn.compact
    def __call__(self, x):
        global v
        v = variable_with_axes("stats", "v", jnp.zeros, (6,), axes=("embed",))
        return x + v.value
""",
    "in a tuple": """\
    @nn.compact
    def __call__(self, x):
        v, y = variable_with_axes("stats", "v", jnp.zeros, (6,), axes=("embed",)), 1
        return x + v.value + y
""",
    "read under an attribute": """\
    @nn.compact
    def __call__(self, x):
        v = variable_with_axes("stats", "v", jnp.zeros, (6,), axes=("embed",))
        return x + getattr(v, "value")
""",
    "returned": """\
    @nn.compact
    def __call__(self, x):
        return variable_with_axes("stats", "v", jnp.zeros, (6,), axes=("embed",))
""",
    "names of a tree": """\
    @nn.compact
    def __call__(self, x):
        v = variable_with_axes("stats", "v", make, axes=(("embed",), ("mlp",)))
        return x + v.value[0]
""",
}


@pytest.mark.parametrize("place", ["global", "local", "around"])
def test_names_of_a_tree_under_a_name_of_their_own_are_refused(place: str) -> None:
    axes = "axes = {'a': ('embed',)}\n"
    call = "return x + param_with_axes('v', make, axes=axes)['a']"
    inside = f"        {axes}" if place == "local" else ""
    source = f"class Model(nn.Module):\n    @nn.compact\n    def __call__(self, x):\n{inside}        {call}\n"
    if place == "around":
        source = "def f():\n" + indent(axes + source, "    ")
    text = f"{HEADER}make = None\n{axes if place == 'global' else ''}{source}"
    name = "f.<locals>.Model" if place == "around" else "Model"
    assert "a tree of arrays" in refused(text, name)


@pytest.mark.parametrize("methods", HELD_OTHERWISE.values(), ids=HELD_OTHERWISE)
def test_a_variable_that_is_not_plainly_read_where_it_is_made_is_refused(methods: str) -> None:
    functions = "def read(v):\n    return v.value\n\n\nmake = None\n\n\n"
    assert "with_axes" in refused(f"{HEADER}{functions}class Model(nn.Module):\n{methods}")


@pytest.mark.parametrize("source", REFUSED.values(), ids=REFUSED)
def test_refused(source: str) -> None:
    (found,) = rewrite({"m.py": HEADER + source}).classes
    assert found.outcome.value == "refused"
    assert "with_axes" in (found.reason or ""), found.reason
