"""Explicit NNX classes inside lazy code, and lazy modules inside explicit ones."""

import dataclasses
import functools
import inspect
import pickle
from typing import Any

import flax.core
import flax.linen
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import errors, nnx
from jax.sharding import PartitionSpec as P

import nnx_migrate.linen as nn
from nnx_migrate import nn as nnm
from nnx_migrate.linen.core.sizes import sizing
from nnx_migrate.linen.core.sizes.declaration import UnknownSize
from tests.linen.core.models import KEY, X

X4 = jnp.ones((2, 4))

RNGS = {"params": KEY, "dropout": jax.random.key(1)}


class Mlp(nnx.Module):
    """As `rewrite` writes it: sizes and rngs in the constructor."""

    def __init__(self, width: int, *, rate: float = 0.5, in_features: int, rngs: nnx.Rngs):
        self.Dense_0 = nnx.Linear(in_features, width, rngs=rngs)
        self.norm = nnx.BatchNorm(width, rngs=rngs)
        self.dropout = nnm.Dropout(rate, rngs=rngs)

    def __call__(self, x, train=True):
        x = self.norm(self.Dense_0(x), use_running_average=not train)
        return self.dropout(x, deterministic=not train)

    def width_of(self, x):
        return self.Dense_0(x).shape[-1]


def linen_mlp() -> Any:
    linen = flax.linen

    class Mlp(linen.Module):
        width: int
        rate: float = 0.5

        @linen.compact
        def __call__(self, x, train=True):
            x = linen.Dense(self.width)(x)
            x = linen.BatchNorm(use_running_average=not train, name="norm")(x)
            return linen.Dropout(self.rate, name="dropout")(x, deterministic=not train)

    return Mlp


def model(api: Any, mlp: Any) -> Any:
    class Model(api.Module):
        @api.compact
        def __call__(self, x, train=True):
            block = mlp(3)
            x = block(block(x, train), train)
            x = mlp(3, name="second", rate=0.2)(x, train)

            def step(block, carry, _):
                return block(carry, train), None

            scan = api.scan(
                step,
                variable_axes={"params": 0, "batch_stats": 0},
                split_rngs={"params": True, "dropout": True},
                length=2,
            )
            return scan(mlp(3, name="stack"), x, None)[0]

    return Model()


def assert_trees_equal(a: Any, b: Any) -> None:
    assert jax.tree.structure(a) == jax.tree.structure(b)
    assert jax.tree.leaves(a)
    for one, other in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_array_equal(one, other)


def test_an_explicit_class_in_lazy_code_has_linens_paths_values_and_masks():
    sides = []
    for side in (model(flax.linen, linen_mlp()), model(nn, nn.lazy(Mlp))):
        variables = jax.jit(side.init)(RNGS, X)
        run = jax.jit(lambda v, side=side: side.apply(v, X, rngs=RNGS, mutable=["batch_stats"]))
        sides.append((variables, run(variables)))
    assert_trees_equal(*sides)


def test_its_fields_are_the_constructors_arguments():
    lazy = nn.lazy(Mlp)
    assert lazy.__name__ == "Mlp"
    assert lazy(4, rate=0.1).copy(width=5, parent=None).width == 5
    assert lazy(4) == lazy(4)
    with pytest.raises(TypeError, match="width"):
        lazy()


def test_its_other_methods_can_be_called():
    variables = nn.lazy(Mlp)(4).init(RNGS, X)
    assert nn.lazy(Mlp)(4).apply(variables, X, method="width_of") == 4


def test_sizes_may_be_declared():
    class Bias(nnx.Module):
        def __init__(self, *, length: int, rngs: nnx.Rngs):
            self.bias = nnx.Param(jnp.zeros((length, 1)))

        def __call__(self, x, mask=None):
            return x + self.bias

    lazy = nn.lazy(Bias, length=nn.Size("x", 0))
    assert lazy().init(KEY, X)["params"]["bias"].shape == (2, 1)


@pytest.mark.parametrize("what", [3, flax.linen.Dense, int])
def test_only_explicit_classes_are_made_lazy(what):
    with pytest.raises(TypeError, match="to make lazy, found"):
        nn.lazy(what)


def test_a_lazy_class_is_its_own_lazy_class():
    lifted = nn.remat(nn.Dense)
    assert nn.lazy(lifted) is lifted


def test_lazy_classes_are_pickled_by_the_explicit_ones() -> None:
    declared = nn.lazy(Mlp, in_features=nn.Size(axis=-1))
    held = {"classes": [nn.lazy(Mlp), declared], "partial": functools.partial(nn.lazy(Mlp), 3)}
    found = pickle.loads(pickle.dumps(held))
    assert found["classes"] == [nn.lazy(Mlp), declared]
    assert found["partial"](rate=0.1) == nn.lazy(Mlp)(3, rate=0.1)


def test_a_class_that_code_makes_of_a_lazy_one_has_fields_of_its_own() -> None:
    named = type("Named", (nn.lazy(Mlp),), {"__annotations__": {"tag": str}, "tag": "a"})
    model = named(3, tag="b")
    variables = model.init(RNGS, X4)
    assert (model.tag, named(3).tag, named.__module__) == ("b", "a", __name__)
    assert variables["params"]["Dense_0"]["kernel"].shape == (4, 3)


def test_members_of_the_explicit_class_are_not_replaced_on_its_lazy_class() -> None:
    made = nn.lazy(Mlp)
    with pytest.raises(AttributeError, match=r"__call__ of lazy\(Mlp\) cannot be set"):
        made.__call__ = lambda self, x: x
    made.tag = "a note"
    assert made.tag == "a note"


def test_a_class_of_unnamed_arguments_is_refused():
    class Unnamed(nnx.Module):
        def __init__(self, *sizes, rngs):
            self.sizes = sizes

    with pytest.raises(TypeError, match="sizes"):
        nn.lazy(Unnamed)


class Noisy(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        kernel = self.param("kernel", jax.nn.initializers.normal(), (x.shape[-1], self.width))
        y = x @ kernel
        return y + jax.random.normal(self.make_rng("noise"), y.shape)


class Explicit(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        self.first = Noisy(4)
        self.linear = nnx.Linear(4, 3, rngs=rngs)
        self.rest = nnx.List([Noisy(2), Noisy(2)])

    def __call__(self, x):
        x = self.linear(self.first(x))
        for module in self.rest:
            x = module(x)
        return x


def test_lazy_modules_in_an_explicit_one_are_built_with_it():
    explicit = nn.build(Explicit(nnx.Rngs(0)), X, rngs={"params": KEY, "noise": KEY})
    shapes = {
        "/".join(map(str, path)): value.get_value().shape
        for path, value in nnx.to_flat_state(nnx.state(explicit, nnx.Param))
    }
    assert shapes == {
        "first/kernel": (3, 4),
        "linear/bias": (3,),
        "linear/kernel": (4, 3),
        "rest/0/kernel": (3, 2),
        "rest/1/kernel": (2, 2),
    }
    step = nnx.jit(lambda model, x: model(x).sum())
    assert step(explicit, X) != step(explicit, X)


def test_their_values_are_those_of_linens_path():
    explicit = nn.build(Explicit(nnx.Rngs(0)), X, rngs={"params": KEY, "noise": KEY})

    class Around(nn.Module):
        def setup(self):
            self.first = Noisy(4)

        def __call__(self, x):
            return self.first(x)

    expected = Around().init({"params": KEY, "noise": KEY}, X)["params"]["first"]["kernel"]
    np.testing.assert_array_equal(explicit.first.kernel[...], expected)


def test_unbuilt_they_raise():
    with pytest.raises(errors.CallCompactUnboundModuleError):
        Explicit(nnx.Rngs(0))(X)


class Averaging(nnx.Module):
    def __init__(self, *, in_features: int, rngs: nnx.Rngs):
        self.BatchNorm_0 = nnm.BatchNorm(in_features=in_features, axis_name="batch", rngs=rngs)

    def __call__(self, x, train=True):
        return self.BatchNorm_0(x, use_running_average=not train)


class Decoding(nnx.Module):
    def __init__(self, *, in_features: int, rngs: nnx.Rngs):
        self.MultiHeadDotProductAttention_0 = nnm.MultiHeadDotProductAttention(
            2, qkv_features=4, decode=True, in_features=in_features, rngs=rngs
        )

    def __call__(self, x):
        return self.MultiHeadDotProductAttention_0(x)


def averaging(api: Any) -> Any:
    class Averaging(api.Module):
        @api.compact
        def __call__(self, x, train=True):
            return api.BatchNorm(use_running_average=not train, axis_name="batch")(x)

    return Averaging()


def decoding(api: Any) -> Any:
    class Decoding(api.Module):
        @api.compact
        def __call__(self, x):
            return api.MultiHeadDotProductAttention(2, qkv_features=4, decode=True)(x)

    return Decoding()


@pytest.mark.parametrize(
    ("lazy", "linen", "inputs"),
    [
        (nn.lazy(Averaging)(), averaging(flax.linen), X),
        (nn.lazy(Decoding)(), decoding(flax.linen), jnp.ones((1, 5, 4))),
    ],
    ids=["batch norm needs no mapped axis", "attention starts a cache of any length"],
)
def test_layers_start_as_in_linens_init(lazy: Any, linen: Any, inputs: Any) -> None:
    outputs, variables = lazy.init_with_output(KEY, inputs)
    expected, given = linen.init_with_output(KEY, inputs)
    assert jax.tree.structure(variables) == jax.tree.structure(given)
    pairs = zip(jax.tree.leaves(variables), jax.tree.leaves(given), strict=True)
    assert all(np.array_equal(one, other) for one, other in pairs)
    np.testing.assert_array_equal(outputs, expected)


class Named(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs):
        ones = nnx.initializers.ones
        self.kernel = nnm.param(rngs, nnm.with_logical_partitioning(ones, ("a", "b")), (2, 3))
        self.table = nnm.param(rngs, nnm.with_partitioning(ones, ("x", None)), (2, 3))

    def __call__(self, x):
        return x * self.kernel[...].sum() + self.table[...].sum()


def test_names_of_arrays_come_in_the_boxes_of_linen() -> None:
    variables = nn.lazy(Named)().init(KEY, X)
    boxes = variables["params"]
    assert type(boxes["kernel"]) is nn.LogicallyPartitioned
    assert type(boxes["table"]) is nn.Partitioned
    assert nn.get_partition_spec(boxes) == {"kernel": P("a", "b"), "table": P("x", None)}
    np.testing.assert_array_equal(nn.lazy(Named)().apply(variables, X), X * 6 + 6)
    own = nnm.variables_of(nnm.build(Named, rngs=KEY))["params"]
    assert isinstance(own["kernel"], nn.LogicallyPartitioned)
    assert not isinstance(own["table"], nn.LogicallyPartitioned)


class Scaled(nnx.Module):
    def __init__(self, *, in_features: int, rngs: nnx.Rngs):
        self.norm = nnm.BatchNorm(in_features=in_features, rngs=rngs)
        self.gain = nnx.Param(jnp.ones((1, in_features)))

    def __call__(self, x, train=False):
        return self.norm(x * self.gain[...], use_running_average=not train)


def scaled() -> Any:
    class Scaled(flax.linen.Module):
        @flax.linen.compact
        def __call__(self, x, train=False):
            x = x * self.param("gain", flax.linen.initializers.ones, (1, x.shape[-1]))
            return flax.linen.BatchNorm(use_running_average=not train, name="norm")(x)

    return Scaled()


def changed(variables: Any, **collections: Any) -> Any:
    every = {**variables, **collections}
    return {name: part for name, part in every.items() if part is not None}


MISUSES = {
    "a parameter of another shape": lambda m, v: m.apply(
        changed(v, params={**v["params"], "gain": jnp.ones((1, 7))}), X
    ),
    "no such parameter": lambda m, v: m.apply(changed(v, params={"norm": v["params"]["norm"]}), X),
    "no parameters": lambda m, v: m.apply(changed(v, params=None), X),
    "no statistics": lambda m, v: m.apply(changed(v, batch_stats=None), X),
    "a collection that is not mutable": lambda m, v: m.apply(v, X, train=True),
    "no key": lambda m, v: m.init({}, X),
    "None for a key": lambda m, v: m.init(None, X),
    "an input of another width": lambda m, v: m.apply(v, X[:, :2]),
}


@pytest.mark.parametrize("misuse", MISUSES.values(), ids=MISUSES)
def test_misuse_raises_what_linen_raises(misuse: Any) -> None:
    linen, lazy = scaled(), nn.lazy(Scaled)()
    with pytest.raises(errors.FlaxError) as wanted:
        misuse(linen, linen.init(KEY, X))
    with pytest.raises(wanted.type) as found:
        misuse(lazy, lazy.init(KEY, X))
    assert found.type.__name__ == wanted.type.__name__


def test_a_built_model_keeps_what_explicit_modules_in_it_change() -> None:
    class Around(nn.Module):
        @nn.compact
        def __call__(self, x, train=True):
            return nn.BatchNorm(use_running_average=not train)(nn.lazy(Scaled)()(x, train))

    built = nn.build(Around(), X, rngs=KEY)
    before = nn.variables(built)
    outputs, changed = Around().apply(before, X, mutable=["batch_stats"])
    np.testing.assert_array_equal(built(X), outputs)
    after = nn.variables(built)["batch_stats"]
    same_leaves(after, changed["batch_stats"])
    graphdef, state = nnx.split(built)
    _, later = Around().apply(nn.variables(built), X, mutable=["batch_stats"])
    merged = nnx.merge(graphdef, state)
    merged(X)
    same_leaves(nn.variables(merged)["batch_stats"], later["batch_stats"])


def same_leaves(found: Any, wanted: Any) -> None:
    assert jax.tree.structure(found) == jax.tree.structure(wanted)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_array_equal(one, other)


class Step(nnx.Module):
    """A step of a decoder: without its cache it takes whole sequences only."""

    def __init__(self, *, dense_in_features: int, rngs: nnx.Rngs):
        self.dense = nnx.Linear(dense_in_features, 3, rngs=rngs)

    def __call__(self, x, mask):
        if getattr(self, "seen", None) is None and x.shape[0] != mask.shape[0]:
            raise ValueError("a mask for each position")
        nnm.lazy_variable(self, "cache", "seen", jnp.zeros, mask.shape)
        return self.dense(jnp.concatenate([x, x], -1))


def test_sizes_are_the_variables_where_a_call_needs_its_cache():
    net = nn.lazy(Step, dense_in_features=nn.Size(of="dense"))()
    variables = net.init(KEY, X, jnp.ones(2))
    y, _ = net.apply(variables, X[:1], jnp.ones(2), mutable=["cache"])
    assert y.shape == (1, 3)


class Constant(nnx.Module):
    """An array that is no variable."""

    def __init__(self, *, rngs: nnx.Rngs):
        self.table = nnm.constant(jnp.arange(3.0))
        self.scale = nnx.Param(jnp.ones(()))

    def __call__(self, x):
        return x * self.table[None] * self.scale[...]


def test_arrays_that_are_no_variables_stay_out_of_them():
    net = nn.lazy(Constant)()
    assert jax.tree.map(jnp.shape, net.init(KEY, X)) == {"params": {"scale": ()}}
    table = jnp.arange(3.0)[None]
    np.testing.assert_array_equal(net.apply({"params": {"scale": jnp.ones(())}}, X), X * table)
    jitted = jax.jit(net.apply)({"params": {"scale": jnp.ones(())}}, X)
    np.testing.assert_array_equal(jitted, X * table)


class Optional(nnx.Module):
    def __init__(
        self,
        with_bias: bool = True,
        *,
        in_features: int | None = None,
        c_features: int | None = None,
        with_c: bool = False,
        init_train: bool = True,
        with_other: bool = True,
        rngs: nnx.Rngs,
    ):
        self.asked = (with_bias, in_features, c_features, with_c, init_train, with_other)
        self.w = nnx.Param(jnp.ones(()))

    def __call__(self, x, c=None, train=True):
        return x * self.w, self.asked


@pytest.mark.parametrize(
    ("args", "kwargs", "asked"),
    [
        ((X,), {}, (X.shape[-1], None, False, True)),
        ((X, X[:, :2]), {}, (X.shape[-1], 2, True, True)),
        ((X,), {"train": False}, (X.shape[-1], None, False, False)),
    ],
)
def test_sizes_and_facts_are_read_off_the_call_by_their_names(args, kwargs, asked):
    module = nn.lazy(Optional)(False, with_other=False)  # no input is called bias or other
    (_, found), _ = module.init_with_output(RNGS, *args, **kwargs)
    assert found == (False, *asked, False)


class Rescaled(nnx.Module):
    """Its layer's input has a width that no input of its own shows."""

    def __init__(self, *, norm_in_features: int, rngs: nnx.Rngs):
        self.norm = nnx.LayerNorm(norm_in_features, rngs=rngs)

    def __call__(self, x):
        return self.norm(jnp.concatenate([x, x], axis=-1))


def test_the_first_input_of_a_layer_is_measured_whatever_its_inputs_are_called():
    module = nn.lazy(Rescaled, norm_in_features=nn.Size(of="norm"))()
    variables = module.init(RNGS, X)  # nnx.LayerNorm has a mask beside x
    assert variables["params"]["norm"]["scale"].shape == (2 * X.shape[-1],)


class Counted(nnx.Module):
    """It sows, and counts its calls as code does that Linen's ``init`` runs, too."""

    def __init__(self, *, in_features: int, rngs: nnx.Rngs):
        self.Dense_0 = nnx.Linear(in_features, 3, rngs=rngs)
        self.calls = nnm.variable("state", jnp.zeros(()))

    def __call__(self, x, named=True):
        self.calls.set_value(self.calls.get_value() + 1)
        nnm.sow(self, "losses", "first", x.sum())
        if named:
            nnm.sow(self, "extra", "second", x.mean())
        return self.Dense_0(x)


def linen_counted() -> Any:
    class Counted(flax.linen.Module):
        @flax.linen.compact
        def __call__(self, x, named=True):
            calls = self.variable("state", "calls", jnp.zeros, ())
            calls.value += 1
            self.sow("losses", "first", x.sum())
            if named:
                self.sow("extra", "second", x.mean())
            return flax.linen.Dense(3)(x)

    return Counted


def calling(api: Any, counted: Any) -> Any:
    """Modules that call one of theirs more than once."""

    class Model(api.Module):
        def setup(self):
            self.once = counted()
            self.more = counted()

        def __call__(self, x):
            x = self.more(self.once(x)[..., :3])
            return self.more(self.more(x, named=False), named=False)

    return Model()


@pytest.mark.parametrize("mutable", [True, ["losses", "state"], flax.core.DenyList("extra")])
def test_what_is_sown_and_counted_in_later_calls_of_init_is_kept(mutable: Any) -> None:
    linen, ours = calling(flax.linen, linen_counted()), calling(nn, nn.lazy(Counted))
    variables = linen.init(KEY, X)
    same_leaves(ours.init(KEY, X), variables)
    found, wanted = (one.apply(variables, X, mutable=mutable) for one in (ours, linen))
    same_leaves(found, wanted)


class Scale(nnx.Module):
    """Without variables; Linen runs it unbound."""

    def __init__(self, by: float, *, rngs: nnx.Rngs) -> None:
        self.by = by

    def __call__(self, x: jax.Array) -> jax.Array:
        return x * self.by


def test_a_call_that_reads_fields_only_needs_no_variables() -> None:
    module = nn.lazy(Scale)(2.0)
    np.testing.assert_array_equal(module(jnp.ones(3)), 2 * jnp.ones(3))
    assert module.init(jax.random.key(0), jnp.ones(3)) == {}
    _, state = module.apply({}, jnp.ones(3), capture_intermediates=True)
    np.testing.assert_array_equal(state["intermediates"]["__call__"][0], 2 * jnp.ones(3))


class Positive(Scale):
    """As Linen's ``setup`` does, the constructor refuses a field that the call alone would take."""

    def __init__(self, by: float, *, rngs: nnx.Rngs) -> None:
        super().__init__(by, rngs=rngs)
        if self.by <= 0:
            raise ValueError("by must be positive")


def test_a_call_that_reads_fields_only_asks_the_constructor() -> None:
    x = jnp.ones(3)
    module = nn.lazy(Positive)
    np.testing.assert_array_equal(module(2.0).apply({}, x), 2 * x)
    assert module(2.0).init(jax.random.key(0), x) == {}
    for call in (
        lambda: module(0.0).init(jax.random.key(0), x),
        lambda: module(0.0).apply({}, x),
        lambda: jax.jit(module(0.0).apply)({}, x),
        lambda: nn.Sequential([module(0.0)]).apply({}, x),
        lambda: jax.vmap(module(0.0).bind({}))(x),
    ):
        with pytest.raises(ValueError, match="by must be positive"):
            call()


class Either(nnx.Module):
    """One of two layers runs, as a field says; the other's size shows nowhere."""

    def __init__(self, wide: bool, keeps: bool, *, in_features: int, rngs: nnx.Rngs) -> None:
        if wide:
            self.dense = nnx.Linear(in_features, 4, rngs=rngs)
        else:
            self.einsum = nnx.Einsum("...a,ab->...b", (4, 4), rngs=rngs)
        self.width = in_features if keeps else 0

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.dense(x) if hasattr(self, "dense") else self.einsum(x)

    def turned(self, x: jax.Array) -> jax.Array:
        return -self(x) * (self.width or 1)


@pytest.mark.parametrize("wide", [False, True])
def test_other_methods_need_no_size_that_makes_no_difference(wide: bool) -> None:
    module = nn.lazy(Either)(wide, False)
    values = module.init(KEY, X4)
    found = module.apply(values, X4, method="turned")
    np.testing.assert_array_equal(found, -module.apply(values, X4))


@pytest.mark.parametrize("error", [errors.CallCompactUnboundModuleError, AttributeError])
def test_unbuilt_they_raise_what_compact_methods_do_and_what_those_with_setup_do(error) -> None:
    with pytest.raises(error, match="CallCompactUnboundModuleError"):
        nn.lazy(Either)(True, True)(X4)


class Stepping(nnx.Module):
    """Methods that need no more than fields, at least with some of them."""

    def __init__(self, width: int, deep: bool = False, *, in_features: int, rngs: nnx.Rngs) -> None:
        self.width, self.deep = width, deep
        self.cell = nnm.GRUCell(width, in_features=in_features, rngs=rngs)

    @nnm.remat
    def __call__(self, x: jax.Array) -> jax.Array:
        return self.cell(self.initialize_carry(x.shape), x)[0] if self.deep else x * self.width

    def initialize_carry(self, shape: tuple[int, ...]) -> jax.Array:
        return nnm.GRUCell.make_carry(KEY, self._sized(shape), features=self.width)

    def _sized(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return (*shape[:-1], self.width)


def test_unbuilt_they_run_what_needs_fields_alone() -> None:
    np.testing.assert_array_equal(nn.lazy(Stepping)(5).initialize_carry((2, 3)), jnp.zeros((2, 5)))
    np.testing.assert_array_equal(nn.lazy(Stepping)(5)(X4), X4 * 5)
    with pytest.raises(AttributeError, match="CallCompactUnboundModuleError"):
        nn.lazy(Stepping)(5, deep=True)(X4)


class Lifted(Either):
    """Also beside a class that is lifted anew whenever the module is built."""

    def __init__(self, wide: bool, keeps: bool, *, in_features: int, rngs: nnx.Rngs) -> None:
        super().__init__(wide, keeps, in_features=in_features, rngs=rngs)
        self.last = nnm.remat(Plain)(rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.last(super().__call__(x))


class Plain(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.kernel = nnx.Param(jnp.ones((1, 4)))

    def __call__(self, x: jax.Array) -> jax.Array:
        return x * self.kernel[...]


def test_lifted_classes_are_alike_however_often_they_are_made() -> None:
    module = nn.lazy(Lifted)(False, False)
    values = module.init(KEY, X4)
    found = module.apply(values, X4, method="turned")
    np.testing.assert_array_equal(found, -module.apply(values, X4))


def test_a_size_that_is_kept_must_show(monkeypatch: pytest.MonkeyPatch) -> None:
    module = nn.lazy(Either)(False, True)
    values = module.init(KEY, X4)
    monkeypatch.setattr(sizing, "_solutions", {})  # as if another process had run `init`
    with pytest.raises(TypeError, match="neither the call nor the variables show the size in_feat"):
        module.apply(values, X4, method="turned")


class Drifting(nnx.Module):
    """Its output shows a variable that the call itself updates, and one that only a call makes."""

    def __init__(self, *, in_features: int, rngs: nnx.Rngs):
        self.Dense_0 = nnx.Linear(in_features, 3, rngs=rngs)
        self.mean = nnm.variable("state", jnp.zeros(()))

    def moved(self, x):
        self.mean.set_value(self.mean.get_value() + x.mean())
        return x - self.mean.get_value()

    def __call__(self, x):
        last = nnm.lazy_variable(self, "state", "last", jnp.zeros, x.shape)
        last.set_value(0.5 * last.get_value() + x)
        return self.Dense_0(self.moved(x) + last.get_value())


def linen_drifting() -> Any:
    class Drifting(flax.linen.Module):
        def setup(self):
            self.Dense_0 = flax.linen.Dense(3)
            self.mean = self.variable("state", "mean", jnp.zeros, ())
            self.last = self.variable("state", "last", jnp.zeros, X.shape)

        def moved(self, x):
            self.mean.value = self.mean.value + x.mean()
            return x - self.mean.value

        def __call__(self, x):
            self.last.value = 0.5 * self.last.value + x
            return self.Dense_0(self.moved(x) + self.last.value)

    return Drifting


def repeating(api: Any, drifting: Any) -> Any:
    class Model(api.Module):
        def setup(self):
            self.m = drifting()

        def __call__(self, x):
            return self.m(x) + self.m(self.m.moved(x)).sum()

    return Model()


def test_a_first_call_changes_variables_once() -> None:
    linen, ours = repeating(flax.linen, linen_drifting()), repeating(nn, nn.lazy(Drifting))
    found, wanted = (one.init_with_output(KEY, X) for one in (ours, linen))
    same_leaves(found, wanted)
    found, wanted = (one.apply(wanted[1], X, mutable="state") for one in (ours, linen))
    same_leaves(found, wanted)


class Tokens(nnx.Module):
    """Its constructor takes the shape of what the call reshapes apart: three axes."""

    def __init__(self, *, tokens_shape: tuple[int, ...], rngs: nnx.Rngs):
        _, length, width = nnm.abstract_array(tokens_shape).shape
        self.mix = nnx.Linear(width, width, rngs=rngs)
        self.scale = nnx.Param(jnp.ones(length))

    def __call__(self, tokens):
        return self.mix(tokens) * self.scale[...][None, :, None]


class Image(nnx.Module):
    def __init__(self, *, body_shape: tuple[int, ...], rngs: nnx.Rngs):
        self.body = Tokens(tokens_shape=body_shape, rngs=rngs)

    def __call__(self, image):
        return self.body(image.reshape(image.shape[0], -1, image.shape[-1]))


@pytest.mark.parametrize("shape", [(2, 4, 4, 3), (2, 6, 3), (2, 2, 2, 2, 3)])
def test_a_shape_with_another_number_of_axes_than_the_input_is_measured(shape: Any) -> None:
    model = nn.lazy(Image, body_shape=nn.Size("tokens", None, of="body"))()
    scale = model.init(KEY, jnp.ones(shape))["params"]["body"]["scale"]
    assert scale.shape == (np.prod(shape[1:-1]),)


class Around(nnx.Module):
    def __init__(self, *, inner_features: int, rngs: nnx.Rngs):
        self.inner = nnx.Linear(inner_features, 4, rngs=rngs)

    def __call__(self, x, layer):
        return layer(x) + self.inner(x)


class Handing(nnx.Module):
    """It hands a submodule of its own to another one, which is measured."""

    def __init__(self, *, layer_features: int, around_features: int, rngs: nnx.Rngs):
        self.layer = nnx.Linear(layer_features, 4, rngs=rngs)
        self.around = Around(inner_features=around_features, rngs=rngs)

    def __call__(self, x):
        return self.around(self.layer(x), layer=self.layer)


def test_an_input_that_is_a_module_has_no_shape() -> None:
    sizes = {"layer_features": nn.Size(of="layer"), "around_features": nn.Size("x", of="around")}
    variables = nn.lazy(Handing, **sizes)().init(KEY, X4)
    assert variables["params"]["around"]["inner"]["kernel"].shape == (4, 4)


class Batched(nnx.Module):
    """It has a layer where the first input has more than one row."""

    def __init__(self, *, x_shape: tuple[int, ...], rngs: nnx.Rngs):
        self.out = nnx.Linear(x_shape[-1], 4, rngs=rngs)
        if x_shape[0] > 1:
            self.mix = nnx.Linear(x_shape[0], x_shape[0], rngs=rngs)

    def __call__(self, x):
        x = self.out(x)
        return self.mix(x.T).T if x.shape[0] > 1 else x

    def turned(self, x):
        return -self(x)


@pytest.mark.parametrize("rows", [1, 3])
def test_a_shape_shows_in_the_call_that_another_method_makes(rows: int) -> None:
    model, x = nn.lazy(Batched)(), jnp.ones((rows, 5))
    variables = model.init(KEY, x)
    found = model.apply(variables, x, method="turned")
    np.testing.assert_array_equal(found, -model.apply(variables, x))
    assert ("mix" in variables["params"]) == (rows > 1)


class Sowing(nnx.Module):
    """What it computes shows whether the collection may change."""

    def __init__(self, *, in_features: int, rngs: nnx.Rngs):
        self.Dense_0 = nnx.Linear(in_features, 4, rngs=rngs)

    def __call__(self, x, _):
        x = self.Dense_0(x)
        return (x + 1 if nnm.sow(self, "losses", "top", x.max()) else x), None


def linen_sowing() -> Any:
    class Sowing(flax.linen.Module):
        @flax.linen.compact
        def __call__(self, x, _):
            x = flax.linen.Dense(4)(x)
            return (x + 1 if self.sow("losses", "top", x.max()) else x), None

    return Sowing


def test_a_first_call_in_a_scan_changes_what_the_scan_lets_change() -> None:
    options: dict[str, Any] = {"variable_axes": {"params": 0}, "split_rngs": {"params": True}}
    linen, ours = (
        api.scan(cls, length=2, **options)()
        for api, cls in ((flax.linen, linen_sowing()), (nn, nn.lazy(Sowing)))
    )
    found, wanted = (jax.jit(one.init_with_output)(KEY, X4, None) for one in (ours, linen))
    same_leaves(found, wanted)


class Sampled(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs):
        self.noise = nnm.stream(rngs, "noise")
        self.last = nnm.variable("state", jnp.zeros(()))

    def __call__(self, x):
        x = x + jax.random.normal(self.noise(), x.shape)
        nnm.sow(self, "losses", "total", x.sum())
        self.last.set_value(x.mean())
        return x


def linen_sampled() -> Any:
    class Sampled(flax.linen.Module):
        @flax.linen.compact
        def __call__(self, x):
            last = self.variable("state", "last", jnp.zeros, ())
            x = x + jax.random.normal(self.make_rng("noise"), x.shape)
            self.sow("losses", "total", x.sum())
            last.value = x.mean()
            return x

    return Sampled


def test_what_a_first_call_draws_shows_in_what_it_changes() -> None:
    rngs = {"params": KEY, "noise": jax.random.key(3)}
    linen, ours = linen_sampled()(), nn.lazy(Sampled)()
    found, wanted = (jax.jit(one.init_with_output)(rngs, X) for one in (ours, linen))
    same_leaves(found, wanted)


class Chained(nnx.Module):
    def __init__(self, *, d_0_in_features: int, d_1_in_features: int, rngs: nnx.Rngs):
        self.d_0 = nnx.Linear(d_0_in_features, 5, rngs=rngs)
        self.d_1 = nnx.Linear(d_1_in_features, 4, rngs=rngs)

    def __call__(self, x):
        return self.d_1(self.d_0(x))

    def turned(self, x):
        return -self(x)

    def first(self, x):
        return self.d_0(x)


def test_sizes_of_several_submodules_show_in_the_call_that_another_method_makes() -> None:
    model = nn.lazy(Chained)()
    variables = model.init(KEY, X)
    found = model.apply(variables, X, method="turned")
    np.testing.assert_array_equal(found, -model.apply(variables, X))


def test_those_that_another_method_does_not_call_show_in_the_variables() -> None:
    model = nn.lazy(Chained)()
    variables = model.init(KEY, X)
    found = model.apply(variables, X, method="first")
    np.testing.assert_array_equal(found, model.bind(variables).d_0(X))
    layer = variables["params"]["d_0"]
    np.testing.assert_allclose(found, X @ layer["kernel"] + layer["bias"][None], rtol=1e-6)


class WithNorm(nnx.Module):
    """Its part is there by a field, and is no equal of itself: it holds a function of its own."""

    def __init__(self, flag: bool = False, *, norm_in_features: int, rngs: nnx.Rngs):
        self.scale = lambda x: 2 * x
        if flag:
            self.norm = nnx.LayerNorm(norm_in_features, use_bias=False, use_scale=False, rngs=rngs)
        self.Dense_0 = nnx.Linear(3, 3, rngs=rngs)

    def __call__(self, x):
        x = self.norm(x) if hasattr(self, "norm") else x
        return self.Dense_0(self.scale(x))

    def turned(self, x):
        return -self(x)


@pytest.mark.parametrize("flag", [False, True])
def test_the_size_of_a_part_without_variables_is_measured_in_other_methods_too(flag):
    lazy = nn.lazy(WithNorm, norm_in_features=nn.Size(of="norm"))(flag)
    variables = lazy.init(KEY, X)
    turned = lazy.apply(variables, X, method="turned")
    np.testing.assert_array_equal(turned, -lazy.apply(variables, X))


def test_fields_of_a_lazy_form_have_the_defaults_and_types_of_the_constructor() -> None:
    class Net(nnx.Module):
        def __init__(self, width: int = 4, sizes: Any = (), *, in_features: int, rngs: nnx.Rngs):
            self.width = width

        def __call__(self, x):
            return x

    fields = {one.name: (one.type, one.default) for one in dataclasses.fields(nn.lazy(Net))}
    assert fields["width"] == (int, 4)
    assert fields["sizes"] == (Any, ())
    assert "in_features" not in fields
    assert list(inspect.signature(nn.lazy(Net)).parameters)[:2] == ["width", "sizes"]


def test_they_stand_in_the_order_of_linens_which_has_those_of_a_base_first() -> None:
    class Base(nnx.Module):
        def __init__(self, a: int, *, b: float = 0.5, rngs: nnx.Rngs) -> None:
            self.a, self.b = a, b

    class Sub(Base):
        def __init__(self, a: int, c: int = 3, *, b: float = 0.5, rngs: nnx.Rngs) -> None:
            super().__init__(a, b=b, rngs=rngs)
            self.c = c

    found = [one.name for one in dataclasses.fields(nn.lazy(Sub))]
    assert found[:3] == ["a", "b", "c"]
    assert nn.lazy(Sub)(1, 2) == nn.lazy(Sub)(1, c=2, b=0.5)


class Critic(nnx.Module):
    def __init__(self, keep: bool = False, *, x_features: int, a_features: int, rngs: nnx.Rngs):
        self.body = nnx.Linear(x_features + a_features, 4, rngs=rngs)
        self.head = nnx.Linear(4, 2, rngs=rngs)
        self.width = x_features * a_features if keep else None

    def __call__(self, x, a):
        return self.head(self.body(jnp.concatenate([x, a], -1)))

    def read(self, h):
        return self.head(h)


def test_sizes_that_show_in_a_sum_are_any_of_that_sum() -> None:
    model = nn.lazy(Critic)()
    variables = model.init(KEY, X, X[:, :2])
    np.testing.assert_array_equal(
        model.apply(variables, X4, method="read"), model.bind(variables).head(X4)
    )


def test_but_not_where_the_module_holds_something_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    model = nn.lazy(Critic)(keep=True)
    variables = model.init(KEY, X, X[:, :2])
    monkeypatch.setattr(sizing, "_solutions", {})  # as if another process had run `init`
    with pytest.raises(UnknownSize, match="neither the call nor the variables show"):
        model.apply(variables, X4, method="read")


class Memory(nnx.Module):
    """Its inputs are joined with the state, which is as wide as the field says."""

    def __init__(self, width: int = 4, *, x_features: int, a_features: int, rngs: nnx.Rngs):
        self.step = nnx.Linear(a_features, width, rngs=rngs)
        self.see = nnx.Linear(width + x_features + a_features, width, rngs=rngs)
        self.pairs = nnx.Linear(2 * x_features + 1, width, rngs=rngs)
        self.read = nnx.Linear(width, 2, rngs=rngs)

    def __call__(self, x, a):
        h = self.see(jnp.concatenate([self.step(a), x, a], -1))
        return self.read(h + self.pairs(jnp.concatenate([x, x, x[:, :1]], -1)))

    def dream(self, h):
        return self.read(h)


class Seeing(nnx.Module):
    """Only a sum with what the constructor knows shows its size."""

    def __init__(self, width: int = 4, *, x_features: int, rngs: nnx.Rngs):
        self.see = nnx.Linear(width + x_features // 2 * 2, width, rngs=rngs)

    def __call__(self, x):
        return self.see(jnp.concatenate([x, x], -1)[:, : self.see.in_features])

    def weigh(self, h):
        return h @ self.see.kernel[...]


def test_a_size_shows_in_an_axis_that_is_so_much_larger_or_so_many_times_as_large() -> None:
    model = nn.lazy(Memory)()
    variables = model.init(KEY, X, X[:, :2])
    given = {"params": {k: v for k, v in variables["params"].items() if k != "step"}}
    np.testing.assert_array_equal(
        model.apply(variables, X4, method="dream"), model.bind(variables).read(X4)
    )
    np.testing.assert_array_equal(
        model.apply(given, X4, method="dream"), model.bind(variables).read(X4)
    )


def test_but_not_where_halves_show_it() -> None:
    model = nn.lazy(Seeing)()
    variables = {"params": {"see": {"kernel": jnp.ones((9, 4)), "bias": jnp.ones(4)}}}
    with pytest.raises(UnknownSize, match="neither the call nor the variables show"):
        model.apply(variables, jnp.ones((2, 9)), method="weigh")


class Keyed(nnx.Module):
    """Keeps a key that its constructor computes from one it is given."""

    def __init__(self, key: Any, *, in_features: int, rngs: nnx.Rngs) -> None:
        self.key, _ = jax.random.split(key)
        self.layer = nnx.Linear(in_features, 3, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.layer(x) + jax.random.normal(self.key, (1, 3))


def test_what_a_constructor_computes_from_values_of_a_jitted_call_stays_in_its_trace() -> None:
    class Around(nn.Module):
        @nn.compact
        def __call__(self, x: jax.Array) -> jax.Array:
            key = jax.random.fold_in(KEY, x.sum().astype(int))
            return nn.lazy(Keyed)(key)(x)

    variables = jax.jit(Around().init)(KEY, X)
    found = jax.jit(Around().apply)(variables, X)
    np.testing.assert_allclose(found, Around().apply(variables, X), rtol=1e-6)


def test_a_decorator_is_given_the_lazy_class_and_the_explicit_one_stays() -> None:
    known: dict[str, Any] = {}

    @nn.lazily(lambda cls: known.update({cls.__name__: cls}), depth=nn.Size("x", 1))
    class Own(nnx.Module):
        def __init__(self, width: int, *, depth: int, rngs: nnx.Rngs):
            self.layer = nnx.Linear(depth, width, rngs=rngs)

        def __call__(self, x: jax.Array) -> jax.Array:
            return self.layer(x)

    assert not issubclass(Own, nn.Module)
    assert known["Own"] is nn.lazy(Own, depth=nn.Size("x", 1))
    assert known["Own"](5).init(KEY, X)["params"]["layer"]["kernel"].shape == (X.shape[1], 5)
