"""Factories under partial, automatic names, output widths, and life under transforms."""

from __future__ import annotations

import inspect
from functools import partial

import jax
import jax.numpy as jnp
import pytest
from flax import linen, nnx

from nnx_migrate import nn
from nnx_migrate.constructs import all_layers
from nnx_migrate.nn import factory
from tests.nn.oracle import array, check

FACTORIES = {
    name: value for name, value in vars(factory).items() if isinstance(value, factory.Factory)
}


def linen_layers() -> set[str]:
    return {
        name
        for name, value in vars(linen).items()
        if isinstance(value, type) and issubclass(value, linen.Module)
    }


def test_every_linen_layer_has_a_factory_of_its_name():
    unsupported = {"Module", "RNNCellBase", "SpectralNorm", "WeightNorm"}
    unsupported |= {n for n in linen_layers() if "Fp8" in n}
    unsupported |= {layer.name for layer in all_layers().values() if not layer.has_factory}
    assert linen_layers() - unsupported == set(FACTORIES)
    assert all(FACTORIES[name].linen_name == name for name in FACTORIES)


@pytest.mark.parametrize("name", sorted(FACTORIES))
def test_factory_has_linens_positional_order(name):
    layer = getattr(linen, name)
    fields = [f for f in inspect.signature(layer).parameters if f not in ("parent", "name")]
    built = inspect.signature(FACTORIES[name])
    positional = [n for n, p in built.parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
    # Fields that only carry quantisation hooks may be missing.
    known = [field for field in fields if field in built.parameters]
    assert positional == known
    hooks = {"promote_dtype", "conv_general_dilated", "conv_general_dilated_cls"}
    assert set(fields) - set(known) <= hooks


class LinenBlock(linen.Module):
    features: int
    conv: object = linen.Conv
    norm: object = partial(linen.BatchNorm, use_running_average=False)

    @linen.compact
    def __call__(self, x):
        y = self.norm()(self.conv(self.features, (3,))(x))
        return self.norm(scale_init=linen.initializers.zeros)(self.conv(2, (1,), 2)(y))


TRAINED_NORM = partial(factory.BatchNorm, use_running_average=False)


class Block(nnx.Module):
    def __init__(
        self,
        features,
        conv=factory.Conv,
        norm=TRAINED_NORM,
        *,
        in_features,
        rngs,
    ):
        names = nn.LinenNames()
        first = conv(features, (3,), in_features=in_features, rngs=rngs)
        self.first = names(first)
        setattr(self, self.first, first)
        width = nn.out_features(first, in_features)
        self.inner = names(norm)
        setattr(self, self.inner, norm(in_features=width, rngs=rngs))
        second = conv(2, (1,), 2, in_features=width, rngs=rngs)
        self.second = names(second)
        setattr(self, self.second, second)
        last = norm(scale_init=nnx.initializers.zeros, in_features=2, rngs=rngs)
        self.last = names(last)
        setattr(self, self.last, last)

    def __call__(self, x):
        for name in (self.first, self.inner, self.second, self.last):
            x = getattr(self, name)(x)
        return x


@pytest.mark.parametrize("bias", [True, False])
def test_class_valued_fields_take_factories_and_partials(bias):
    check(
        LinenBlock(4, conv=partial(linen.Conv, use_bias=bias)),
        lambda r: Block(4, conv=partial(factory.Conv, use_bias=bias), in_features=3, rngs=r),
        array(2, 6, 3),
        mutable=("batch_stats",),
    )


SIZED = sorted(
    set(FACTORIES)
    - {"Embed", "Einsum", "ConvLocal", "Dropout"}
    - {"RNN", "Bidirectional", "Sequential"}
)
FIRST_ARGUMENTS = {"Conv": (3, (3,)), "ConvTranspose": (3, (3,)), "ConvLSTMCell": (3, (3,))}


def _arguments(name):
    no_arguments = "Norm" in name
    return () if no_arguments else FIRST_ARGUMENTS.get(name, (2,))


@pytest.mark.parametrize("name", SIZED)
def test_factory_names_a_missing_size_and_missing_rngs(name):
    with pytest.raises(TypeError, match=f"{name} needs in_features="):
        FACTORIES[name](*_arguments(name), rngs=nnx.Rngs(0))
    with pytest.raises(TypeError, match=f"{name} needs rngs="):
        FACTORIES[name](*_arguments(name), in_features=4)


@pytest.mark.parametrize("name", sorted(FACTORIES))
def test_factory_refuses_fields_that_linen_has_not(name):
    with pytest.raises(TypeError, match="no_such_field"):
        FACTORIES[name](*_arguments(name), in_features=4, rngs=nnx.Rngs(0), no_such_field=1)


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("Dense", "dot_general_cls"),
        ("DenseGeneral", "dot_general_cls"),
        ("Conv", "conv_general_dilated_cls"),
        ("MultiHeadAttention", "qk_attn_weights_einsum_cls"),
    ],
)
def test_factory_refuses_quantisation_hooks(name, field):
    with pytest.raises(TypeError, match=field):
        FACTORIES[name](*_arguments(name), **{field: object}, in_features=4, rngs=nnx.Rngs(0))


def test_dense_general_factory_needs_the_batch_sizes():
    with pytest.raises(TypeError, match="batch_sizes"):
        factory.DenseGeneral(3, -1, (0,), in_features=4, rngs=nnx.Rngs(0))


def test_layers_that_need_no_size_accept_one():
    rngs = nnx.Rngs(0)
    assert factory.Embed(5, 3, in_features=9, rngs=rngs)(jnp.zeros(2, jnp.int32)).shape == (2, 3)
    assert factory.Dropout(0.5, in_features=9, rngs=rngs)(jnp.ones(2), True).shape == (2,)
    layers = factory.Sequential([factory.Dropout(0.5, (), True)], in_features=9, rngs=rngs)
    assert layers(jnp.ones(2)).shape == (2,)


class MyDense(nnx.Linear):
    pass


def test_names_count_per_class_in_construction_order():
    names = nn.LinenNames()
    layers = [
        factory.Dense,
        partial(partial(factory.Dense, 3), use_bias=False),
        nnx.Linear(2, 3, rngs=nnx.Rngs(0)),
        nnx.LinearGeneral,
        "ScanBlock",
        nn.BatchNorm,
        nnx.BatchNorm,
        MyDense,
        Block,
        "Dense",
    ]
    assert [names(layer) for layer in layers] == [
        "Dense_0",
        "Dense_1",
        "Dense_2",
        "DenseGeneral_0",
        "ScanBlock_0",
        "BatchNorm_0",
        "BatchNorm_1",
        "MyDense_0",
        "Block_0",
        "Dense_3",
    ]
    assert nn.LinenNames()(factory.Dense) == "Dense_0"


@pytest.mark.parametrize("layer", [jnp.sin, 3, None, int])
def test_names_refuse_what_is_no_layer(layer):
    with pytest.raises(TypeError, match="expected a layer factory"):
        nn.linen_name(layer)


class Wide(nnx.Module):
    def __init__(self, out_features):
        self.out_features = out_features


@pytest.mark.parametrize(
    ("name", "args", "fields", "shape"),
    [
        ("Dense", (5,), {}, (2, 4)),
        ("DenseGeneral", ((3, 5),), {}, (2, 4)),
        ("Conv", (5, (3,)), {}, (2, 6, 4)),
        ("ConvTranspose", (5, (3,)), {}, (2, 6, 4)),
        ("ConvLocal", (5, (3,)), {"input_shape": (2, 6, 4)}, (2, 6, 4)),
        ("Einsum", ((4, 5), "ab,bc->ac"), {}, (2, 4)),
        ("Einsum", ((2, 3), "ab,ac->cb"), {}, (2, 4)),
        ("LayerNorm", (), {}, (2, 4)),
        ("GroupNorm", (2,), {}, (2, 4)),
        ("BatchNorm", (True,), {}, (2, 4)),
        ("Dropout", (0.5, (), True), {}, (2, 4)),
        ("MultiHeadAttention", (2,), {"out_features": 7}, (2, 3, 4)),
        ("SelfAttention", (2,), {}, (2, 3, 4)),
    ],
)
def test_out_features_is_the_width_of_the_output(name, args, fields, shape):
    layer = FACTORIES[name](*args, **fields, in_features=4, rngs=nnx.Rngs(0))
    width = nn.out_features(layer, 4)
    assert jax.eval_shape(lambda: layer(jnp.ones(shape))).shape[-1] == width


def test_out_features_of_wrappers_and_migrated_classes():
    rngs = nnx.Rngs(0)
    cells = [nn.GRUCell(n, in_features=4, rngs=rngs) for n in (3, 5)]
    rnns = [nn.RNN(cell) for cell in cells]
    assert nn.out_features(rnns[0], 4) == 3
    assert nn.out_features(nn.Bidirectional(*rnns), 4) == 8
    assert nn.out_features(nn.Sequential([rnns[1], nn.LayerNorm(in_features=5, rngs=rngs)]), 4) == 5
    assert nn.out_features(Wide(9), 4) == 9
    assert nn.out_features(nnx.Embed(3, 7, rngs=rngs), 4) == 7


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (lambda rngs: Wide(None), "width of Wide is not known"),
        (lambda rngs: jnp.sin, "is not known"),
        (lambda rngs: nn.Einsum((2, 3), use_bias=False, rngs=rngs), "without einsum_str"),
        (lambda rngs: nn.Einsum((2, 3), "ab,bc->ca", rngs=rngs), "is not the input's last axis"),
        (
            lambda rngs: nn.Bidirectional(Wide(3), Wide(4), merge_fn=jnp.add),
            "merge_fn is not known",
        ),
    ],
)
def test_out_features_refuses_to_guess(layer, message):
    with pytest.raises(TypeError, match=message):
        nn.out_features(layer(nnx.Rngs(0)), 4)


class Everything(nnx.Module):
    """One of each kind of layer, for what every module must survive."""

    def __init__(self, *, rngs):
        self.MultiHeadAttention_0 = nn.MultiHeadAttention(
            2, normalize_qk=True, dropout_rate=0.1, deterministic=False, in_features=8, rngs=rngs
        )
        self.BatchNorm_0 = nn.BatchNorm(False, in_features=8, rngs=rngs)
        self.GroupNorm_0 = nn.GroupNorm(2, use_bias=False, in_features=8, rngs=rngs)
        self.rnn = nn.RNN(nn.OptimizedLSTMCell(8, in_features=8, rngs=rngs))
        self.Einsum_0 = nn.Einsum((8, 8), "...a,ab->...b", rngs=rngs)
        self.Dropout_0 = nn.Dropout(0.5, deterministic=False, rngs=rngs)
        self.Sequential_0 = nn.Sequential([nn.RMSNorm(in_features=8, rngs=rngs), nnx.relu])

    def __call__(self, x):
        x = self.GroupNorm_0(self.BatchNorm_0(self.MultiHeadAttention_0(x)))
        return self.Sequential_0(self.Dropout_0(self.Einsum_0(self.rnn(x))))


@pytest.mark.slow
def test_layers_split_merge_and_train_in_jit_on_a_mesh():
    def construct():
        return Everything(rngs=nnx.Rngs(0))

    abstract = nnx.eval_shape(construct)
    graphdef, state = nnx.split(nnx.jit(construct)())
    assert jax.tree.structure(nnx.state(abstract)) == jax.tree.structure(state)
    graphdef, params, rest = nnx.split(construct(), nnx.Param, ...)
    mesh = jax.make_mesh((1,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    batch = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))
    x = jax.device_put(array(4, 3, 8), batch)

    @jax.jit
    def step(params, rest, x):
        def loss(params):
            module = nnx.merge(graphdef, params, rest, copy=True)
            y = module(x)
            return jnp.sum(y**2), nnx.state(module, nnx.Not(nnx.Param))

        return jax.value_and_grad(loss, has_aux=True)(params)

    with jax.set_mesh(mesh):
        nnx.eval_shape(construct)
        (first, changed), gradients = step(params, rest, x)
        (second, _), _ = step(params, changed, x)
    assert jax.tree.structure(changed) == jax.tree.structure(rest)
    assert first != second  # streams and statistics moved on
    assert all(jnp.isfinite(g).all() for g in jax.tree.leaves(gradients))


class Built(nnx.Module):
    def __init__(self, with_c: bool) -> None:
        self._with_c = with_c


@pytest.mark.parametrize("holds", [True, False])
def test_a_call_that_has_what_the_module_was_built_for_passes(holds: bool) -> None:
    nn.built_for(Built(holds), with_c=holds)
    with pytest.raises(
        ValueError, match=f"a Built built with with_c={not holds}, it was .*={holds}:"
    ):
        nn.built_for(Built(holds), with_c=not holds)
