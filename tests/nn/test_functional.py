"""``nnm.apply`` against Linen's ``apply``: same outputs, updates, masks and errors."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import errors, linen, nnx

from nnx_migrate import nn as nnm
from nnx_migrate import sharding as nnms


class LinenNet(linen.Module):
    features: int

    @linen.compact
    def __call__(self, x: Any, train: bool = True) -> Any:
        x = linen.Dense(self.features)(x)
        x = linen.BatchNorm(use_running_average=not train)(x)
        x = linen.Dropout(0.5, deterministic=not train)(x)
        x = linen.Dense(self.features)(x)
        x = linen.Dropout(0.3, deterministic=not train)(x)
        self.sow("intermediates", "out", x)
        return x


class Net(nnx.Module):
    def __init__(self, features: int, *, in_features: int, rngs: nnx.Rngs) -> None:
        self.features = features
        self.Dense_0 = nnx.Linear(in_features, features, rngs=rngs)
        self.BatchNorm_0 = nnx.BatchNorm(features, rngs=rngs, promote_dtype=nnm.keep_dtype)
        self.Dropout_0 = nnm.Dropout(0.5, rngs=rngs)
        self.Dense_1 = nnx.Linear(features, features, rngs=rngs)
        self.Dropout_1 = nnx.Dropout(0.3, rngs=rngs)

    def __call__(self, x: Any, train: bool = True) -> Any:
        x = self.Dense_0(x)
        x = self.BatchNorm_0(x, use_running_average=not train)
        x = self.Dropout_0(x, deterministic=not train)
        x = self.Dense_1(x)
        x = self.Dropout_1(x, deterministic=not train)
        nnm.sow(self, "intermediates", "out", x)
        return x

    def encode(self, x: Any) -> Any:
        return self.Dense_0(x)


X = jax.random.normal(jax.random.key(7), (4, 3))


@pytest.fixture(name="pair")
def _pair() -> tuple[LinenNet, Any, Net]:
    before = LinenNet(8)
    return (
        before,
        before.init(jax.random.key(0), X, train=False),
        Net(8, in_features=3, rngs=nnx.Rngs(0)),
    )


def same(left: Any, right: Any) -> None:
    assert jax.tree.structure(left) == jax.tree.structure(right)
    for one, other in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True):
        np.testing.assert_array_equal(one, other)
    assert jax.tree.leaves(left)


def test_variables_have_linens_layout(pair: Any) -> None:
    _, values, model = pair
    found = nnm.variables_of(model)
    assert jax.tree.map(jnp.shape, found) == jax.tree.map(jnp.shape, values)


def test_evaluation_is_linens(pair: Any) -> None:
    before, values, model = pair
    same(
        nnm.apply(model, values, X, train=False),
        before.apply(values, X, train=False),
    )


@pytest.mark.parametrize("legacy", [False, True])
def test_training_with_dropout_is_linens_bit_by_bit(pair: Any, legacy: bool) -> None:
    before, values, model = pair
    key = jax.random.PRNGKey(3) if legacy else jax.random.key(3)
    options: dict[str, Any] = {"rngs": {"dropout": key}, "mutable": ["batch_stats"]}
    same(nnm.apply(model, values, X, **options), before.apply(values, X, **options))


def test_streams_fall_back_to_params_and_one_key_is_params(pair: Any) -> None:
    before, values, model = pair
    for rngs in ({"params": jax.random.key(3)}, jax.random.key(3)):
        options: dict[str, Any] = {"rngs": rngs, "mutable": "batch_stats"}
        same(nnm.apply(model, values, X, **options), before.apply(values, X, **options))


@pytest.mark.parametrize("mutable", [True, [], ["params"], linen.DenyList("params"), False])
def test_mutable_returns_what_linen_returns(pair: Any, mutable: Any) -> None:
    before, values, model = pair
    same(
        nnm.apply(model, values, X, train=False, mutable=mutable),
        before.apply(values, X, train=False, mutable=mutable),
    )


def test_sown_values_come_with_their_collection(pair: Any) -> None:
    before, values, model = pair
    options: dict[str, Any] = {"train": False, "mutable": ["intermediates"]}
    same(nnm.apply(model, values, X, **options), before.apply(values, X, **options))


def test_abstract_models_apply(pair: Any) -> None:
    before, values, _ = pair
    model = nnm.abstract(Net, 8, in_features=3)
    key = jax.random.key(1)
    options: dict[str, Any] = {"rngs": {"dropout": key}, "mutable": ["batch_stats"]}
    same(nnm.apply(model, values, X, **options), before.apply(values, X, **options))


def test_apply_works_under_jit_and_grad(pair: Any) -> None:
    before, values, model = pair
    stats = {"batch_stats": values["batch_stats"]}

    def loss(apply: Any) -> Any:
        def function(params: Any, key: Any) -> Any:
            out, new = apply(
                {"params": params, **stats}, X, rngs={"dropout": key}, mutable=["batch_stats"]
            )
            return (out**2).sum(), new

        return jax.jit(jax.value_and_grad(function, has_aux=True))

    same(
        loss(functools.partial(nnm.apply, model))(values["params"], jax.random.key(2)),
        loss(before.apply)(values["params"], jax.random.key(2)),
    )


@pytest.mark.parametrize("method", ["encode", Net.encode, lambda net, x: net.Dense_0(x)])
def test_method_is_a_name_or_a_function_of_the_module(pair: Any, method: Any) -> None:
    _, values, model = pair
    layer = values["params"]["Dense_0"]
    expected = X @ layer["kernel"] + layer["bias"][None]
    same(nnm.apply(model, values, X, method=method), expected)
    same(nnm.apply(model, values, X, method=model.encode), expected)


def test_the_model_itself_never_changes(pair: Any) -> None:
    _, values, model = pair
    before = nnm.variables_of(model)
    nnm.apply(model, values, X, rngs={"dropout": 0}, mutable=["batch_stats"])
    same(before, nnm.variables_of(model))


def test_a_change_of_an_immutable_collection_is_an_error(pair: Any) -> None:
    _, values, model = pair
    with pytest.raises(ValueError, match=r"changed 'BatchNorm_0/mean'.*mutable=\['batch_stats'\]"):
        nnm.apply(model, values, X, rngs={"dropout": 0})


def test_a_missing_stream_is_an_error(pair: Any) -> None:
    _, values, model = pair
    with pytest.raises(errors.InvalidRngError, match="stream 'dropout'"):
        nnm.apply(model, values, X, mutable=["batch_stats"])


@pytest.mark.parametrize("collection", ["params", "batch_stats"])
def test_missing_variables_are_an_error(pair: Any, collection: str) -> None:
    _, values, model = pair
    left = {name: value for name, value in values.items() if name != collection}
    with pytest.raises(ValueError, match=f"in collection '{collection}', which the given"):
        nnm.apply(model, left, X, train=False)


class LinenPart(linen.Module):
    embed: Any

    @linen.compact
    def __call__(self, x: Any) -> Any:
        return linen.Dropout(0.5, deterministic=False)(linen.Dense(2)(self.embed(x)))


class LinenTied(linen.Module):
    def setup(self) -> None:
        self.shared = linen.Embed(5, 4)
        self.part = LinenPart(self.shared)

    def __call__(self, x: Any) -> Any:
        return self.part(x), self.shared.attend(jnp.ones((1, 4)))


class Part(nnx.Module):
    def __init__(self, embed: nnx.Embed, *, rngs: nnx.Rngs) -> None:
        self.embed = embed
        self.Dense_0 = nnx.Linear(4, 2, rngs=rngs)
        self.Dropout_0 = nnx.Dropout(0.5, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return self.Dropout_0(self.Dense_0(self.embed(x)))


class Tied(nnx.Module):
    """Its submodule ``part`` sorts before ``shared``, which it holds too."""

    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.shared = nnx.Embed(5, 4, embedding_init=linen.Embed.embedding_init, rngs=rngs)
        self.part = Part(self.shared, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return self.part(x), self.shared.attend(jnp.ones((1, 4)))


def test_a_shared_submodule_has_the_path_and_the_key_of_where_it_was_built() -> None:
    x = jnp.array([1, 2, 3])
    keys = {"params": jax.random.key(0), "dropout": jax.random.key(1)}
    before = LinenTied()
    values = before.init(keys, x)
    model = nnm.build(Tied, rngs={"params": jax.random.key(0)})
    same(nnm.variables_of(model, x), values)
    moved = jax.tree.map(lambda one: one + 1, values)
    streams = {"dropout": jax.random.key(2)}
    for one in (model, nnm.abstract(Tied)):
        same(nnm.apply(one, moved, x, rngs=streams), before.apply(moved, x, rngs=streams))


class Encoder(nnx.Module):
    """A part of `Translator` that is applied alone."""

    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.hidden = nnx.Linear(3, 4, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.hidden(x)


class Translator(nnx.Module):
    """Has variables that its method `encode` does not use."""

    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.encoder = Encoder(rngs=rngs)
        self.out = nnx.Linear(4, 2, rngs=rngs)
        self.scale = nnx.Param(jnp.ones(4))
        self.calls = nnm.variable("cache", jnp.array(0))

    def encode(self, x: jax.Array) -> jax.Array:
        return self.encoder(x)

    def scaled(self, x: jax.Array) -> jax.Array:
        return self.encoder(x) * self.scale

    def decode(self, x: jax.Array) -> jax.Array:
        return self.out(self.encoder(x))

    def count(self, x: jax.Array) -> jax.Array:
        self.calls.set_value(self.calls[...] + 1)
        return x


@pytest.mark.parametrize("is_abstract", [True, False])
@pytest.mark.parametrize("mutable", [False, ["cache"]])
def test_a_method_needs_only_the_variables_that_it_uses(is_abstract: bool, mutable: Any) -> None:
    model = nnm.abstract(Translator) if is_abstract else Translator(rngs=nnx.Rngs(0))
    kernel = jnp.arange(12.0).reshape(3, 4)
    values = {"params": {"encoder": {"hidden": {"kernel": kernel, "bias": jnp.ones(4)}}}}
    x = jnp.array([[1.0, 2.0, 3.0]])
    found = jax.jit(lambda v: nnm.apply(model, v, x, method="encode", mutable=mutable))(values)
    np.testing.assert_array_equal(found[0] if mutable else found, x @ kernel + 1)
    for method, name in (("scaled", "'scale'"), ("decode", "'out/kernel'")):
        with pytest.raises(ValueError, match=f"Translator has the variable {name} in collection"):
            nnm.apply(model, values, x, method=method, mutable=mutable)
    if not mutable:
        with pytest.raises(ValueError, match="Translator has the variable 'calls'"):
            nnm.apply(model, values, x, method="count")


def test_another_shape_is_an_error(pair: Any) -> None:
    _, values, _ = pair
    with pytest.raises(ValueError, match=r"Dense_0/kernel.* \(5, 8\), found \(3, 8\)"):
        nnm.apply(nnm.abstract(Net, 8, in_features=5), values, X, train=False)


class Running(nnx.Module):
    """A mean that has one more axis once a call has changed it."""

    def __init__(self) -> None:
        self.mean = nnm.variable("batch_stats", jnp.zeros(3))

    def __call__(self, x: jax.Array) -> jax.Array:
        self.mean.set_value(jnp.atleast_2d(self.mean[...]) + x.mean(0, keepdims=True))
        return x - self.mean[...]


def test_only_parameters_keep_their_shape_as_in_linen() -> None:
    state: Any = nnm.variables_of(Running())
    for _ in range(3):
        _, state = nnm.apply(Running(), state, X, mutable=["batch_stats"])
    found = state["batch_stats"]["mean"]
    np.testing.assert_allclose(found, 3 * X.mean(0, keepdims=True), rtol=1e-6)


class LinenDecoder(linen.Module):
    @linen.compact
    def __call__(self, x: Any) -> Any:
        return linen.MultiHeadDotProductAttention(2, decode=True, name="attend")(x, x)


class Decoder(nnx.Module):
    def __init__(self, *, in_features: int, rngs: nnx.Rngs) -> None:
        self.attend = nnm.MultiHeadDotProductAttention(
            2, decode=True, in_features=in_features, rngs=rngs
        )

    def __call__(self, x: Any) -> Any:
        return self.attend(x, x)


def test_caches_are_made_by_init_and_carried_by_apply() -> None:
    x = jax.random.normal(jax.random.key(0), (2, 5, 4))
    before = LinenDecoder()
    values = before.init(jax.random.key(1), x)
    model = Decoder(in_features=4, rngs=nnx.Rngs(1))
    made = nnm.variables_of(model, x)
    same(made["cache"], values["cache"])
    assert "cache" not in nnm.variables_of(model)
    left = right = values
    for position in range(3):
        token = x[:, position : position + 1]
        one, new = nnm.apply(nnm.abstract(Decoder, in_features=4), left, token, mutable=["cache"])
        other, old = before.apply(right, token, mutable=["cache"])
        same((one, new), (other, old))
        left, right = {**left, **new}, {**right, **old}


def test_attention_without_a_cache_makes_one_where_that_may_change() -> None:
    x = jax.random.normal(jax.random.key(0), (2, 3, 4))
    values = {"params": LinenDecoder().init(jax.random.key(1), x)["params"]}
    model = nnm.abstract(Decoder, in_features=4)
    same(
        nnm.apply(model, values, x, mutable=["cache"]),
        LinenDecoder().apply(values, x, mutable=["cache"]),
    )
    with pytest.raises(ValueError, match="needs a cache"):
        nnm.apply(model, values, x)


class Counter(nnx.Module):
    def __call__(self, x: Any) -> Any:
        known = nnm.has_variable(self, "seen", "sum")
        total = nnm.lazy_variable(self, "seen", "sum", jnp.zeros, x.shape)
        if known:
            total.set_value(total[...] + x)
        return total[...]


def test_variables_made_by_a_call_are_in_the_result_and_carried() -> None:
    model, x = Counter(), jnp.arange(3.0)
    values = nnm.variables_of(model, x)
    same(values, {"seen": {"sum": jnp.zeros(3)}})
    _, values = nnm.apply(model, values, x, mutable="seen")
    out, values = nnm.apply(model, values, x, mutable="seen")
    same((out, values), (2 * x, {"seen": {"sum": 2 * x}}))


def test_named_arrays_are_boxed_as_linens_init_boxes_them_and_changed_ones_return_in_their_box() -> (
    None
):
    class Counting(nnx.Module):
        def __init__(self, *, rngs: nnx.Rngs) -> None:
            ones = nnm.with_logical_partitioning(nnx.initializers.ones, ("embed",))
            self.scale = nnx.Param(ones(rngs.params(), (3,)))
            self.steps = nnm.variable("counts", nnm.with_partitioning(jnp.zeros, ("data",))((2,)))
            self.bias = nnx.Param(jnp.zeros(3))

        def __call__(self, x: Any) -> Any:
            self.steps[...] += 1
            return x * self.scale[...] + self.bias[...]

    model = nnm.build(Counting, rngs=jax.random.key(0))
    values = nnm.variables_of(model)
    scale, steps = values["params"]["scale"], values["counts"]["steps"]
    assert (type(scale), scale.names) == (nnms.LogicallyPartitioned, ("embed",))
    assert (type(steps), steps.names) == (nnms.Partitioned, ("data",))
    assert isinstance(values["params"]["bias"], jax.Array)
    doubled = jax.tree.map(lambda x: 2 * x, values)
    y, changed = nnm.apply(model, doubled, jnp.ones(3), mutable=["counts"])
    np.testing.assert_array_equal(y, 2 * np.ones(3))
    assert changed["counts"]["steps"].names == ("data",)
    np.testing.assert_array_equal(changed["counts"]["steps"].value, np.ones(2))


class Table:
    """What NNX does not look into."""

    def __init__(self, length: int) -> None:
        self.angles = jnp.arange(length)[None] * 0.5


class Held(nnx.Module):
    """Holds arrays that are no variables, in four ways, and one that hangs on a key."""

    def __init__(self, *, rngs: nnx.Rngs) -> None:
        angles = jnp.arange(3)[None] * 0.5
        self.table = Table(3)
        self.times = functools.partial(jnp.multiply, angles)
        self.plus = lambda x: x + angles
        self.shift = nnx.data({"a": [angles]})
        self.linear = nnx.Linear(3, 3, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        inner = self.plus(self.times(self.linear(x)))
        return inner * self.table.angles + self.shift["a"][0]


@pytest.mark.parametrize("jitted", [False, True])
def test_arrays_that_are_no_variables_have_their_values_in_abstract_models(jitted: bool) -> None:
    built = Held(rngs=nnx.Rngs(0))
    values = nnm.variables_of(built)

    def call(values: Any, x: jax.Array) -> Any:
        return nnm.apply(nnm.abstract(Held), values, x)

    for _ in range(2):  # what one trace leaves the next must not find
        found = (jax.jit(call) if jitted else call)(values, X)
        np.testing.assert_allclose(found, built(X), rtol=1e-6)


def test_variables_of_abstract_models_have_no_values() -> None:
    model = nnm.abstract(Held)
    assert isinstance(model.linear.kernel.get_raw_value(), jax.ShapeDtypeStruct)
    assert isinstance(model.table.angles, jax.Array)
