"""A built module is an NNX module with Linen's paths and values."""

import copy
import pickle
from typing import Any

import flax.linen
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import errors, nnx
from flax.core import meta

import nnx_migrate.linen as nn
from tests.linen.core.models import KEY, X, dense

Layer = dense(nn)


class Net(nn.Module):
    inner: Any
    width: int = 4

    def setup(self):
        self.layers = [Layer(self.width), Layer(self.width)]
        self.heads = {"a": Layer(2)}

    def encode(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

    def __call__(self, x):
        return self.heads["a"](self.inner(self.encode(x)))

    @property
    def head_features(self):
        return self.heads["a"].features


def built() -> Net:
    return nn.build(Net(Layer(5)), X, rngs=KEY)


def assert_trees_equal(a: Any, b: Any) -> None:
    assert jax.tree.structure(a) == jax.tree.structure(b)
    leaves = jax.tree.leaves(a)
    assert leaves
    for one, other in zip(leaves, jax.tree.leaves(b), strict=True):
        np.testing.assert_array_equal(one, other)


def test_values_and_paths_are_those_of_init():
    assert_trees_equal(nn.variables(built()), Net(Layer(5)).init(KEY, X))


def test_children_and_variables_are_attributes():
    model = built()
    assert isinstance(model, Net)
    assert isinstance(model, nnx.Module)
    assert isinstance(model.layers_0.kernel, nnx.Param)
    assert type(model.inner.calls).__name__ == "stats"
    assert model.inner.features == 5


def test_paths_of_nnx_are_linens():
    paths = {"/".join(path) for path, _ in nnx.to_flat_state(nnx.state(built(), nnx.Param))}
    assert paths == {"layers_0/kernel", "layers_1/kernel", "heads_a/kernel", "inner/kernel"}


def test_a_call_is_apply_and_changes_state():
    model = built()
    expected, changed = Net(Layer(5)).apply(nn.variables(model), X, mutable=["stats"])
    np.testing.assert_array_equal(model(X), expected)
    assert_trees_equal(nn.variables(model)["stats"], changed["stats"])


def test_other_methods_and_properties_run_too():
    model = built()
    variables = nn.variables(model)
    np.testing.assert_array_equal(
        model.encode(X), Net(Layer(5)).apply(variables, X, method="encode")
    )
    assert model.head_features == 2


def test_children_can_be_called_alone():
    model = built()
    expected = Layer(4).apply(
        {"params": {"kernel": model.layers_0.kernel[...]}, "stats": {"calls": 0.0}}, X
    )
    np.testing.assert_array_equal(model.layers_0(X), expected)


def test_split_and_merge_give_the_same_model():
    model = built()
    graphdef, state = nnx.split(model)
    merged = nnx.merge(graphdef, state)
    assert nnx.split(merged)[0] == graphdef
    assert hash(nnx.split(merged)[0]) == hash(graphdef)
    assert_trees_equal(nn.variables(merged), nn.variables(model))


def test_a_built_module_is_a_pytree():
    model = built()
    leaves, structure = jax.tree.flatten(model)
    assert len(leaves) == 8
    assert_trees_equal(nn.variables(structure.unflatten(leaves)), nn.variables(model))


def test_a_definition_is_a_leaf_as_linens_modules_are():
    layer = Layer(3)
    assert jax.tree.leaves({"layer": layer}) == [layer]


def test_jit_compiles_once_and_keeps_state():
    model, traces = built(), 0

    @nnx.jit
    def step(model, x):
        nonlocal traces
        traces += 1
        return model(x)

    step(model, X)
    step(model, X)
    assert traces == 1
    assert model.inner.calls[...] == 2


def test_gradients_and_an_optimizer_step_are_linens():
    model = built()
    params = nn.variables(model)["params"]
    rest = {"stats": nn.variables(model)["stats"]}

    def loss(params):
        return Net(Layer(5)).apply({"params": params, **rest}, X).sum()

    expected = jax.jit(jax.grad(loss))(params)
    found = nnx.jit(nnx.grad(lambda model: model(X).sum()))(model)
    assert_trees_equal(nnx.to_pure_dict(found), expected)
    optimizer = nnx.Optimizer(model, optax.sgd(0.5), wrt=nnx.Param)
    optimizer.update(model, found)
    wanted = optax.apply_updates(params, jax.tree.map(lambda g: -0.5 * g, expected))
    assert_trees_equal(nn.variables(model)["params"], wanted)


def test_streams_stay_with_the_module_and_move_on():
    class Noise(nn.Module):
        @nn.compact
        def __call__(self, x):
            return x + jax.random.normal(self.make_rng("noise"), x.shape)

    rngs = {"params": KEY, "noise": jax.random.key(1)}
    model = nn.build(Noise(), X, rngs=rngs)
    assert not np.array_equal(model(X), model(X))
    again = nn.build(Noise(), X, rngs=nnx.Rngs(params=0, noise=1))
    assert not np.array_equal(again(X), again(X))


def test_a_missing_stream_is_linens_error():
    class Noise(nn.Module):
        @nn.compact
        def __call__(self, x):
            return x + jax.random.normal(self.make_rng("noise"), x.shape)

    model = nn.build(Noise(), X, rngs=KEY)
    with pytest.raises(errors.InvalidRngError, match="noise"):
        model(X)


def test_names_taken_twice_keep_their_paths():
    class Clash(nn.Module):
        scale: float

        @nn.compact
        def __call__(self, x):
            scale = self.param("scale", jax.nn.initializers.ones, (1, 3))
            count = self.variable("stats", "scale", jnp.zeros, (1, 3))
            decode = self.param("decode", jax.nn.initializers.ones, (1, 3))
            return x * scale * self.scale + count.value + decode

        def decode(self, x):
            return self(x)

    model = nn.build(Clash(2.0), X, rngs=KEY)
    assert model.scale == 2.0
    assert_trees_equal(nn.variables(model), Clash(2.0).init(KEY, X))
    keys = {path[-1] for path, _ in nnx.to_flat_state(nnx.state(model))}
    assert keys == {"scale", "scale_stats", "decode"}
    merged = nnx.merge(*nnx.split(model))
    np.testing.assert_array_equal(merged.decode(X), model(X))


def test_a_shared_module_has_the_path_of_who_made_it():
    class Decoder(nn.Module):
        shared: Any

        @nn.compact
        def __call__(self, x):
            return Layer(3)(self.shared(x))

    class Both(nn.Module):
        def setup(self):
            self.shared = Layer(3)
            self.decoder = Decoder(self.shared)

        def __call__(self, x):
            return self.decoder(self.shared(x))

    model = nn.build(Both(), X, rngs=KEY)
    paths = {"/".join(path) for path, _ in nnx.to_flat_state(nnx.state(model, nnx.Param))}
    assert paths == {"shared/kernel", "decoder/Layer_0/kernel"}
    assert model.shared.calls[...] == 0
    model(X)
    assert model.shared.calls[...] == 2


def test_boxes_come_back_and_their_names_are_seen():
    class Boxed(nn.Module):
        @nn.compact
        def __call__(self, x):
            def init(key, shape):
                return meta.Partitioned(jnp.ones(shape), names=("in", "out"))

            return x @ self.param("kernel", init, (3, 4))

    model = nn.build(Boxed(), X, rngs=KEY)
    assert model.kernel.get_metadata()["logical_axes"] == ("in", "out")
    assert_trees_equal(nn.variables(model), Boxed().init(KEY, X))
    model(X)
    assert nn.variables(model)["params"]["kernel"].names == ("in", "out")


def test_fields_of_any_kind_are_static():
    class Any_(nn.Module):
        array: Any
        mapping: dict
        function: Any = jnp.tanh
        sequence: Any = ()

        @nn.compact
        def __call__(self, x):
            return self.function(Layer(self.mapping["width"])(x)) + self.array[None]

    model = nn.build(Any_(jnp.ones(4), {"width": 4, "of": [1]}, sequence=[1, 2]), X, rngs=KEY)
    assert len(jax.tree.leaves(nnx.state(model))) == 2
    traces = 0

    @nnx.jit
    def step(model, x):
        nonlocal traces
        traces += 1
        return model(x)

    step(model, X)
    step(nnx.merge(*nnx.split(model)), X)
    assert traces == 1


def test_what_a_call_sows_does_not_stay():
    class Sows(nn.Module):
        @nn.compact
        def __call__(self, x):
            self.sow("losses", "size", x.sum())
            return Layer(3)(x)

    model = nn.build(Sows(), X, rngs=KEY)
    model(X)
    model(X)
    assert nn.variables(model).keys() == {"params", "stats"}
    _, sown = Sows().apply(nn.variables(model), X, mutable=["losses"])
    assert len(sown["losses"]["size"]) == 1


def test_variables_that_only_a_call_makes_are_attached():
    class Decodes(nn.Module):
        @nn.compact
        def __call__(self, x, decode=False):
            if decode:
                exists = self.has_variable("cache", "index")
                index = self.variable("cache", "index", lambda: jnp.array(0))
                if exists:
                    index.value += 1
            return x

    model = nn.build(Decodes(), X, rngs=KEY)
    assert not nn.variables(model)
    model(X, True)
    model(X, True)
    assert isinstance(model.index, nnx.Cache)
    assert model.index[...] == 1


def test_a_call_that_raises_changes_nothing():
    class Raises(nn.Module):
        @nn.compact
        def __call__(self, x, fail=False):
            count = self.variable("stats", "count", jnp.zeros, ())
            count.value += 1
            if fail:
                raise KeyError("on purpose")
            return x

    model = nn.build(Raises(), X, rngs=KEY)
    before = dict(vars(model))
    with pytest.raises(KeyError):
        model(X, True)
    assert model.count[...] == 1
    assert vars(model) == before


def test_copies_are_models_of_their_own():
    model = built()
    for copied in (copy.deepcopy(model), nnx.clone(model)):
        np.testing.assert_array_equal(copied.encode(X), model.encode(X))
        assert copied.inner.kernel is not model.inner.kernel
        assert copied != model


class Picklable(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return x @ self.param("kernel", jax.nn.initializers.ones, (3, self.width))


def test_modules_are_pickled_built_or_not():
    assert pickle.loads(pickle.dumps(Picklable(3))) == Picklable(3)
    model = nn.build(Picklable(3), X, rngs=KEY)
    loaded = pickle.loads(pickle.dumps(model))
    assert isinstance(loaded, Picklable)
    np.testing.assert_array_equal(loaded(X), model(X))


def test_update_takes_a_tree_of_linens():
    model, other = built(), Net(Layer(5)).init(jax.random.key(3), X)
    nn.update(model, other)
    assert_trees_equal(nn.variables(model), other)


@pytest.mark.parametrize(
    ("tree", "error", "words"),
    [
        ({"params": {"inner": {"weight": jnp.ones(3)}}}, KeyError, "params/inner/weight"),
        ({"params": {"inner": {"kernel": jnp.ones(3)}}}, ValueError, "expected .4, 5., found .3,."),
    ],
)
def test_update_refuses_what_does_not_fit(tree, error, words):
    with pytest.raises(error, match=words):
        nn.update(built(), tree)


@pytest.mark.parametrize(
    ("use", "error", "words"),
    [
        (lambda: Layer(3)(X), errors.CallCompactUnboundModuleError, "unbound"),
        (lambda: Net(Layer(5)).encode(X), AttributeError, "build"),
        (lambda: nn.build(built(), X, rngs=KEY), ValueError, "built already"),
        (lambda: nn.build(3, X, rngs=KEY), TypeError, "expected a module"),
        (lambda: built()(X[:, :2]), errors.ScopeParamShapeError, "kernel"),
        (lambda: nn.build(Layer(3), X, rngs={"dropout": KEY}), errors.InvalidRngError, "params"),
    ],
    ids=["unbuilt", "unbuilt method", "twice", "no module", "shape", "no params stream"],
)
def test_bad_use_is_told_in_one_error(use, error, words):
    with pytest.raises(error, match=words):
        use()


def test_the_error_of_an_unbuilt_module_names_the_fix():
    with pytest.raises(errors.CallCompactUnboundModuleError) as caught:
        Layer(3)(X)
    assert "build(module, *inputs, rngs=...)" in caught.value.__notes__[0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda model: setattr(model.inner, "features", 7), "Layer.features cannot be set"),
        (lambda model: setattr(nnx.clone(model).inner, "features", 7), "Layer.features"),
        (lambda model: model.set_attributes(features=7), "Layer.features cannot be set"),
        (lambda model: setattr(model, "layers_0", nnx.Dropout(0.1)), "replaced by a Dropout"),
    ],
    ids=["a field", "a field of a copy", "set_attributes", "another module"],
)
def test_what_calls_would_not_see_cannot_be_set(change, words):
    with pytest.raises(AttributeError, match=words):
        change(built())


def test_fields_of_the_outermost_module_can_be_set():
    model = nn.build(Layer(4), X, rngs=KEY)
    model.features = 5
    with pytest.raises(errors.ScopeParamShapeError):
        model(X)


def test_tabulate_of_nnx_shows_a_built_module():
    class Noisy(nn.Module):
        @nn.compact
        def __call__(self, x):
            return Layer(5)(x) + jax.random.normal(self.make_rng("noise"))

    model = nn.build(Noisy(), X, rngs={"params": KEY, "noise": KEY})
    table = nnx.tabulate(model, X, console_kwargs={"width": 120, "no_color": True})
    assert "Noisy Summary" in table
    assert "[2,5]" in table


class Holder(nn.Module):
    inner: Any

    @nn.compact
    def __call__(self, x):
        return self.inner(x) + Layer(4)(x)


@pytest.mark.parametrize(
    "inner",
    [
        lambda: flax.linen.Dense(4),
        lambda: flax.linen.Sequential([flax.linen.Dense(5), jnp.tanh, flax.linen.Dense(4)]),
        lambda: dense(flax.linen)(4),
    ],
    ids=["a layer", "a list in a layer", "a class"],
)
def test_a_built_module_keeps_a_linen_module_in_a_field(inner):
    model = nn.build(Holder(inner()), X, rngs=KEY)
    again = nn.build(Holder(inner()), X, rngs=KEY)
    graphdef, state = nnx.split(model)
    np.testing.assert_array_equal(nnx.merge(graphdef, state)(X), again(X))
    assert jax.tree.leaves(nnx.grad(lambda model: model(X).sum())(model))
    assert_trees_equal(nn.variables(again)["params"], Holder(inner()).init(KEY, X)["params"])


def test_sow_says_whether_somebody_keeps_the_value() -> None:
    class Model(nn.Module):
        @nn.compact
        def __call__(self, x):
            return x + 1 if self.sow("losses", "size", x.max()) else x

    model = nn.build(Model(), X, rngs=KEY)
    np.testing.assert_array_equal(model(X), X)
    with nn.sown("losses") as values:
        np.testing.assert_array_equal(model(X), X + 1)
    assert values["losses"]["size"] == (X.max(),)


class Listed(nn.Module):
    width: Any = 4

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.width if isinstance(self.width, int) else self.width[0])(x)


def test_a_field_that_changes_is_another_graph():
    model = nn.build(Listed(), X, rngs=KEY)
    graph = nnx.split(model)[0]
    assert nnx.split(model)[0] == graph
    model.width = 5
    assert nnx.split(model)[0] != graph


def test_a_list_in_a_field_that_changes_in_place_is_another_graph():
    model = nn.build(Listed([4]), X, rngs=KEY)
    graph = nnx.split(model)[0]
    model.width.append(5)
    assert nnx.split(model)[0] != graph


def test_a_variable_that_is_added_or_taken_away_is_another_graph():
    model = nn.build(Listed(), X, rngs=KEY)
    graph, state = nnx.split(model)
    model.more = nnx.Param(X)
    assert set(nnx.split(model)[1]) == {*state, "more"}
    del model.more
    assert nnx.split(model)[0] == graph


class Deep(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(2, parent=self.scope.push("a").push("b"))(x)


def test_a_place_without_a_module_of_its_own_is_a_node():
    model = nn.build(Deep(), X, rngs=KEY)
    variables = Deep().init(KEY, X)
    np.testing.assert_array_equal(model(X), Deep().apply(variables, X))
    np.testing.assert_array_equal(model.a.b.kernel[...], variables["params"]["a"]["b"]["kernel"])
