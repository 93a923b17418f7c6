"""Idioms 8 to 12, 15, 19, 21: lifted transforms."""

from __future__ import annotations

import jax
import numpy as np
from flax import nnx

from nnx_migrate import nn as nnm
from nnx_migrate.sharding import get_partition_spec
from tests.rewrite.running import compare, lazy, migrated, module_of, refused

X = np.random.default_rng(0).normal(size=(2, 6)).astype(np.float32)
STEPS = np.random.default_rng(1).normal(size=(2, 5, 6)).astype(np.float32)
SAME = ("identical", "equal_by_rules")

SPLIT = """\
import flax.linen as nn


class Layer(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x, _):
        x = nn.Dense(self.width, name="own")(x)
        return nn.tanh(nn.Dense(self.width, name="shared")(x)), None


def apart(variables):
    own = dict(variables.get("params", {}))
    common = {name: own.pop(name) for name in list(own) if name == "shared"}
    return {"params": own, "common": common}


def together(variables):
    return {"params": {**variables.get("params", {}), **variables.get("common", {})}}


class Model(nn.Module):
    width: int
    depth: int

    @nn.compact
    def __call__(self, x):
        both = ["params", "common"]
        layer = nn.map_variables(Layer, both, together, apart, mutable=True)
        layers = nn.scan(
            layer, variable_axes={"params": 0}, variable_broadcast="common",
            split_rngs={"params": False}, length=self.depth,
        )
        layers = nn.map_variables(layers, both, apart, together, mutable=True)
        return layers(self.width, name="layers")(x, None)[0]
"""


def test_08_a_scan_between_two_maps_that_part_the_parameters_by_name() -> None:
    assert refused(SPLIT)


BRANCHES = """\
import flax.linen as nn


class Gated(nn.Module):
    width: int

    def setup(self):
        self.mix = nn.Dense(self.width)

    def skip(self, x):
        return x

    def take(self, x):
        return nn.relu(self.mix(x))

    def __call__(self, x, use):
        if self.is_mutable_collection("params"):
            return self.take(x)
        return nn.cond(use, lambda m, x: m.take(x), lambda m, x: m.skip(x), self, x)
"""


def test_09_init_runs_one_branch_and_later_calls_choose() -> None:
    assert "cond is not rewritten" in refused(BRANCHES, "Gated")


FLOW = """\
import flax.linen as nn
import jax.numpy as jnp


class Flow(nn.Module):
    width: int
    half: int

    @nn.compact
    def coefficients(self, x):
        h = nn.tanh(nn.Dense(self.width)(x))
        return nn.Dense(self.half)(h), nn.Dense(self.half)(h)

    def forward(self, x):
        a, b = jnp.split(x, 2, axis=-1)
        scale, shift = self.coefficients(a)
        return jnp.concatenate([a, b * jnp.exp(scale) + shift], axis=-1)

    def inverse(self, x):
        a, b = jnp.split(x, 2, axis=-1)
        scale, shift = self.coefficients(a)
        return jnp.concatenate([a, (b - shift) * jnp.exp(-scale)], axis=-1)


class Model(nn.Module):
    width: int
    half: int

    @nn.compact
    def __call__(self, x):
        flow = nn.remat(Flow, methods=("forward", "inverse"))(self.width, self.half)
        y = flow.forward(x)

        def body(module, carry, x):
            carry = module.forward(carry) + x
            return carry, carry.sum()

        steps = jnp.stack([x, x * 2, x * 3])
        loop = nn.scan(body, variable_broadcast="params", split_rngs={"params": False})
        carry, sums = loop(flow, y, steps)
        return flow.inverse(carry), sums
"""


def test_10_methods_share_a_compact_one_under_remat_and_in_a_scan_over_a_closure() -> None:
    assert "nn.scan of something else than a module class" in lazy(FLOW, "Model")


COLLECTIONS = """\
import flax.linen as nn
import jax.numpy as jnp
from flax.linen import partitioning


class Layer(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x, scale):
        init = nn.with_logical_partitioning(nn.initializers.lecun_normal(), ("embed", "mlp"))
        x = x + nn.tanh(nn.Dense(self.width, kernel_init=init)(x)) * scale
        mean = self.variable("statistics", "mean", jnp.zeros, (self.width,))
        mean.value = 0.9 * mean.value + 0.1 * x.mean((0, 1)) if x.ndim == 3 else mean.value
        self.sow("intermediates", "norm", jnp.linalg.norm(x))
        seen = self.variable("cache", "seen", lambda: jnp.zeros((), jnp.int32))
        seen.value = seen.value + 1
        return x, None


class Model(nn.Module):
    width: int
    depth: int

    @nn.compact
    def __call__(self, x, scale):
        initializing = self.is_mutable_collection("params")
        params = 1 if initializing else partitioning.ScanIn(1)
        x, _ = nn.scan(
            Layer,
            variable_axes={"params": params, "statistics": 0, "intermediates": 0, "cache": 0, "aux": 0},
            split_rngs={"params": True},
            in_axes=nn.broadcast,
            length=self.depth,
            metadata_params={nn.PARTITION_NAME: "layers"},
        )(self.width, name="layers")(x, scale)
        return x
"""


def test_11_collections_on_axes_of_their_own_some_only_read() -> None:
    options = {"collections": ("statistics", "cache")}
    inputs = (X, np.full((2, 1), 0.5, np.float32))
    report = compare(COLLECTIONS, "Model(6, 2)", {"in_features": 6}, inputs, **options)
    assert report.verdict in SAME, report
    assert report.check("collections").leaves > 0
    with module_of("collections", migrated(COLLECTIONS)) as new:
        model = new.Model(6, 2, in_features=6, rngs=nnx.Rngs(0))
        values = nnm.variables_of(model)
        _, sown = nnm.apply(
            model, values, *inputs, mutable=["statistics", "intermediates", "cache"]
        )
    (norms,) = sown["intermediates"]["layers"]["norm"]
    assert norms.shape == (2,)
    assert get_partition_spec(values)["params"]["layers"]["Dense_0"]["kernel"] == jax.P(
        "embed", "layers", "mlp"
    )


GATHERED = """\
import flax.linen as nn
import jax


class Stage(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return nn.tanh(nn.Dense(self.width)(x))


class Pipeline(nn.Module):
    width: int
    stages: int

    @nn.compact
    def __call__(self, x):
        stage = Stage(self.width, parent=None)
        if self.is_initializing():
            stage.init(jax.random.key(0), x)
        gathered = nn.map_variables(
            Stage, "params", trans_in_fn=lambda v: jax.tree.map(lambda p: p[0], v),
            trans_out_fn=lambda v: jax.tree.map(lambda p: p[None], v),
            init=self.is_initializing(), mutable=self.is_initializing(),
        )
        for i in range(self.stages):
            x = gathered(self.width, name=f"stage_{i}")(x)
        return x
"""


def test_12_parameters_are_gathered_by_stage_and_init_is_called_inside() -> None:
    assert refused(GATHERED, "Pipeline")


INJECTED = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Product(nn.Module):
    limit: float = 1.0

    @nn.compact
    def __call__(self, x, y, dimensions, precision=None, preferred_element_type=None):
        gain = self.param("gain", nn.initializers.ones, ())
        return jax.lax.dot_general(x, y, dimensions, precision) * gain


class Model(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        def f(module, x):
            return module(x)

        def fwd(module, x):
            y, vjp = nn.vjp(f, module, x)
            return y, vjp

        def bwd(vjp, grad):
            params, x = vjp(grad)
            return jax.tree.map(lambda g: jnp.clip(g, -1, 1), params), x

        clipped = nn.custom_vjp(f, forward_fn=fwd, backward_fn=bwd, grad_vars=True)
        dense = nn.Dense(self.width, dot_general_cls=Product)
        return clipped(dense, x)
"""


def test_15_a_product_is_injected_and_its_gradient_rule_sees_the_parameters() -> None:
    assert "a lazy submodule is more than called here" in refused(INJECTED)


REBOUND = """\
import flax.linen as nn


def cloned(layer, copies):
    return nn.vmap(layer, in_axes=None, out_axes=-1, axis_size=copies,
                   variable_axes={"params": 1}, split_rngs={"params": True})


class Layer(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return nn.tanh(nn.Dense(self.width)(x))


Layer = cloned(Layer, 3)


class Model(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return Layer(self.width)(x).mean(-1)


BatchModel = nn.vmap(Model, in_axes=0, out_axes=0, variable_axes={"params": None}, split_rngs={"params": False})
"""


def test_19_a_class_name_stands_for_its_mapped_version() -> None:
    assert "Layer is bound more than once" in lazy(REBOUND, "Layer")


DECORATED = """\
from functools import partial

import flax.linen as nn
import jax


class Recurrent(nn.Module):
    @partial(nn.scan, variable_broadcast="params", in_axes=1, out_axes=1, split_rngs={"params": False})
    @nn.compact
    def __call__(self, carry, ins):
        carry, y = nn.GRUCell(ins.shape[-1])(carry, ins)
        return carry, y

    @staticmethod
    def start(batch, width):
        return nn.GRUCell(width, parent=None).initialize_carry(jax.random.key(0), (batch, width))


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        h = Recurrent.start(x.shape[0], x.shape[-1])
        h, y = Recurrent()(h, x)
        return nn.Dense(2)(y)
"""


def test_21_the_scan_is_a_decorator_and_sizes_come_from_the_slices() -> None:
    # Of inputs with one axis more than the scanned one the last size would be that of the steps.
    sizes = {"x_features": 6, "Dense_0_in_features": 6}
    report = compare(DECORATED, "Model()", sizes, (STEPS,))
    assert report.verdict in SAME, report
