"""Lifts as real code bases use them: one test for each idiom of the corpora that involves a lift."""

from __future__ import annotations

from tests.linen.side_by_side import paths, same_model, same_run


def test_scan_between_views_that_split_parameters_by_submodule() -> None:
    found = same_model(
        """
class Block(nn.Module):
    @nn.compact
    def __call__(self, x, _):
        x = Linear(4, name="shared_proj")(x)
        return jnp.tanh(Linear(4, name="own")(x)), None

def split(tree):
    params = dict(tree.get("params", {}))
    shared = {k: params.pop(k) for k in list(params) if k.startswith("shared")}
    return {"params": params, "params_shared": shared}

def join(tree):
    return {"params": {**tree.get("params", {}), **tree.get("params_shared", {})}}

class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        collections = ["params", "params_shared"]
        inner = nn.map_variables(Block, collections, join, split, mutable=True)
        scanned = nn.scan(
            inner,
            variable_axes={"params": 0},
            variable_broadcast="params_shared",
            split_rngs={"params": False},
            length=3,
        )
        outer = nn.map_variables(scanned, collections, split, join, mutable=True)
        return outer(name="layers")(x, None)[0]

model, inputs = Net(), (jnp.ones((2, 4)),)
"""
    )
    params = found["variables"]["params"]["layers"]
    assert params["shared_proj"]["kernel"].shape == (4, 4)
    assert params["own"]["kernel"].shape == (3, 4, 4)


def test_one_branch_at_init_and_cond_otherwise() -> None:
    same_model(
        """
class Net(nn.Module):
    def setup(self):
        self.linear, self.mean = Linear(4), Mean()

    def skip(self, x):
        return x

    def take(self, x):
        return self.linear(self.mean(x))

    def __call__(self, x, pred):
        if self.is_mutable_collection("params"):
            return self.take(x)
        return nn.cond(pred, Net.take, Net.skip, self, x)

    def bound(self, x, pred):
        if self.is_mutable_collection("params"):
            return self.take(x)
        return nn.cond(pred, self.take, self.skip, self, x)

class Both(nn.Module):
    @nn.compact
    def __call__(self, x, pred):
        return Net().bound(Net()(x, pred), ~pred)

model, inputs = Both(), (jnp.ones((2, 4)), jnp.array(True))
"""
    )


def test_a_compact_helper_of_two_lifted_methods_and_a_scan_over_a_closure() -> None:
    same_model(
        """
class Flow(nn.Module):
    @nn.compact
    def networks(self):
        return Linear(4, name="scale"), Linear(4, name="shift")

    def forward(self, x):
        scale, shift = self.networks()
        return x * jnp.exp(scale(jnp.ones_like(x))) + shift(jnp.ones_like(x))

    def inverse(self, y):
        scale, shift = self.networks()
        return (y - shift(jnp.ones_like(y))) * jnp.exp(-scale(jnp.ones_like(y)))

class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        flow = nn.remat(Flow, methods=("forward", "inverse"))()
        x = flow.inverse(flow.forward(x) + 1)

        def step(module, carry, _):
            return module(carry), carry.sum()

        scanned = nn.scan(
            step, variable_broadcast="params", split_rngs={"params": False}, length=3
        )
        return scanned(Linear(4), x, None)

model, inputs = Net(), (jnp.ones((2, 4)),)
"""
    )


def test_many_collections_on_axes_of_their_own_read_only_where_they_are() -> None:
    found = same_model(
        """
from flax.typing import In as ScanIn

class Layer(nn.Module):
    @nn.compact
    def __call__(self, x, mask):
        init = jax.nn.initializers.lecun_normal()
        boxed = lambda *args: meta.Partitioned(init(*args), names=("in", "out"))
        x = x @ self.param("kernel", boxed, (4, 4)) + mask
        cached = self.variable("cache", "x", jnp.zeros, x.shape)
        cached.value = x
        self.variable("overwrite", "scale", jnp.ones, (2,))
        self.sow("intermediates", "x", x)
        return Mean()(x), None

class Net(nn.Module):
    @nn.compact
    def __call__(self, x, mask):
        params = 1 if self.is_initializing() else ScanIn(1)
        scanned = nn.scan(
            Layer,
            variable_axes={
                "params": params, "cache": 0, "intermediates": 0, "stats": -1, "overwrite": 1
            },
            split_rngs={"params": True},
            in_axes=(nn.broadcast,),
            length=3,
            metadata_params={meta.PARTITION_NAME: "layers"},
        )
        return scanned(name="layers")(x, mask)[0]

model, inputs = Net(), (jnp.ones((2, 4)), jnp.ones((2, 4)))
""",
        mutable=("cache", "stats", "intermediates"),
    )
    assert found["variables"]["params"]["layers"]["kernel"].names == ("in", "layers", "out")
    assert found["state"]["intermediates"]["layers"]["x"][0].shape == (3, 2, 4)


def test_weights_gathered_per_stage_of_a_pipeline_with_init_inside_the_module() -> None:
    same_model(
        """
class Stage(nn.Module):
    @nn.compact
    def __call__(self, x):
        init = jax.nn.initializers.lecun_normal()
        boxed = lambda *args: meta.Partitioned(init(*args), names=("in", "out"))
        return jnp.tanh(x @ self.param("kernel", boxed, (4, 4)))

class Pipeline(nn.Module):
    def setup(self):
        self.stages = nn.vmap(
            Stage,
            variable_axes={"params": 0},
            split_rngs={"params": True},
            metadata_params={meta.PARTITION_NAME: "stage"},
        )()

    def gathered(self, tree):
        strip = lambda x: x.remove_axis(0, {meta.PARTITION_NAME: "repeats"})
        take = lambda x: jax.tree.map(lambda w: w[jnp.array([2, 0, 1])], x)
        is_box = lambda x: isinstance(x, meta.Partitioned)
        add = lambda x: x.add_axis(0, {meta.PARTITION_NAME: "repeats"})
        tree = jax.tree.map(add, tree, is_leaf=is_box)
        return take(jax.tree.map(strip, tree, is_leaf=is_box))

    def __call__(self, x):
        if self.is_initializing():
            return self.stages(x)

        def body(module, carry):
            one = nn.map_variables(
                lambda module, x: module.stages(x), "params", module.gathered, mutable=False
            )
            return jnp.roll(one(module, carry), 1, axis=0), None

        loop = nn.remat(body, prevent_cse=False)
        for _ in range(2):
            x, _ = loop(self, x)
        return x

class Outer(nn.Module):
    @nn.compact
    def __call__(self, x):
        pipeline = Pipeline()
        y = pipeline(x)
        shapes = jax.eval_shape(Pipeline(parent=None).init, jax.random.key(0), x)
        return y * len(jax.tree.leaves(shapes))

model, inputs = Outer(), (jnp.ones((3, 2, 4)),)
"""
    )


def test_custom_vjp_of_all_variables_with_an_injected_module() -> None:
    same_model(
        """
class Quantized(nn.Module):
    bits: int = 8

    @nn.compact
    def __call__(self, lhs, rhs, dims, precision=None, preferred_element_type=None):
        count = self.variable("stats", "count", lambda: jnp.zeros(()))

        def f(module, lhs, rhs):
            return jax.lax.dot_general(jnp.round(lhs * 8) / 8, rhs, dims)

        def forward(module, lhs, rhs):
            return f(module, lhs, rhs), (lhs, rhs)

        def backward(kept, g):
            lhs, rhs = kept
            _, back = jax.vjp(lambda lhs, rhs: jax.lax.dot_general(lhs, rhs, dims), lhs, rhs)
            return ({"stats": {"count": jnp.zeros(())}}, *back(g))

        lifted = nn.custom_vjp(f, forward, backward, grad_vars="stats")
        return lifted(self, lhs, rhs)

class Net(nn.Module):
    dot_general_cls: Any = Quantized

    @nn.compact
    def __call__(self, x):
        dense = nn.Dense(4, dot_general_cls=self.dot_general_cls)
        return nn.remat(nn.Dense)(3, dot_general_cls=functools.partial(Quantized, bits=4))(dense(x))

model, inputs = Net(), (jnp.ones((2, 4)),)
"""
    )


def test_an_unbound_module_applied_in_a_scan_of_jax() -> None:
    same_model(
        """
class Net(nn.Module):
    def setup(self):
        self.cell = nn.GRUCell(4)

    def __call__(self, carry, xs):
        if self.is_initializing():
            return self.cell(carry, xs[0])
        module, variables = self.cell.unbind()
        return jax.lax.scan(lambda c, x: module.apply(variables, c, x), carry, xs)

model, inputs = Net(), (jnp.ones((2, 4)), jnp.ones((3, 2, 4)))
"""
    )


def test_members_of_an_ensemble_sliced_by_its_automatic_name() -> None:
    same_run(
        """
class Critic(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(1)(jnp.tanh(nn.Dense(4)(x)))

class Ensemble(nn.Module):
    size: int

    @nn.compact
    def __call__(self, x):
        return nn.vmap(
            Critic,
            variable_axes={"params": 0},
            split_rngs={"params": True},
            in_axes=None,
            out_axes=0,
            axis_size=self.size,
        )()(x)

class Agent(nn.Module):
    size: int

    @nn.compact
    def __call__(self, x):
        return Ensemble(self.size)(x)

def run():
    x = jnp.ones((2, 3))
    params = jax.jit(Agent(5).init)(jax.random.key(0), x)["params"]
    some = jax.tree.map(lambda p: p[jnp.array([3, 1])], params["Ensemble_0"])
    return params, jax.jit(Agent(2).apply)({"params": {"Ensemble_0": some}}, x)
"""
    )


def test_a_class_name_bound_to_its_lifted_version_and_lifted_again() -> None:
    found = same_model(
        """
def clone_layer(layer):
    return nn.vmap(
        layer, variable_axes={"params": 1}, split_rngs={"params": True}, in_axes=1, out_axes=1
    )

class Layer(nn.Module):
    @nn.compact
    def __call__(self, x):
        return jnp.tanh(nn.Dense(4)(x))

Layer = clone_layer(Layer)

class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return Layer()(Layer()(x))

Model = nn.vmap(Net, variable_axes={"params": 0}, split_rngs={"params": True})
model, inputs = Model(), (jnp.ones((5, 2, 3, 4)),)
"""
    )
    assert found["variables"]["params"]["VmapLayer_0"]["Dense_0"]["kernel"].shape == (5, 4, 3, 4)


def test_a_first_value_computed_from_a_parameter_made_before_in_a_lift() -> None:
    same_model(
        """
class Tied(nn.Module):
    @nn.compact
    def __call__(self, x):
        v = self.param("v", jax.nn.initializers.normal(), (4, 4))
        g = self.param("g", lambda _: jnp.linalg.norm(v, axis=0))
        return x @ (v * g[None])

class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        step = nn.scan(
            lambda m, c, _: (m(c), None),
            variable_axes={"params": 0},
            split_rngs={"params": True},
            length=2,
        )
        return step(nn.remat(Tied)(), x, None)[0]

model, inputs = Net(), (jnp.ones((2, 4)),)
"""
    )


def test_a_recurrent_cell_scanned_by_a_decorator_over_resets() -> None:
    same_model(
        """
class ScannedRNN(nn.Module):
    @functools.partial(
        nn.scan,
        variable_broadcast="params",
        in_axes=0,
        out_axes=0,
        split_rngs={"params": False},
    )
    @nn.compact
    def __call__(self, carry, x):
        ins, resets = x
        fresh = self.initialize_carry(ins.shape[0], ins.shape[1])
        carry = jnp.where(resets[:, None], fresh, carry)
        return nn.GRUCell(features=ins.shape[1])(carry, ins)

    @staticmethod
    def initialize_carry(batch, features):
        cell = nn.GRUCell(features, parent=None)
        return cell.initialize_carry(jax.random.PRNGKey(0), (batch, features))

class Net(nn.Module):
    @nn.compact
    def __call__(self, xs, resets):
        carry = ScannedRNN.initialize_carry(2, 4)
        return ScannedRNN()(carry, (nn.relu(nn.Dense(4)(xs)), resets))

model, inputs = Net(), (jnp.ones((3, 2, 4)), jnp.array([[True, False]] * 3))
"""
    )


def test_modules_as_defaults_of_fields_names_from_names_and_closures() -> None:
    found = same_model(
        """
class Block(nn.Module):
    norm: nn.Module = nn.LayerNorm()

    @nn.compact
    def __call__(self, x):
        return nn.Dense(4, name=f"{self.name}_dense")(self.norm(x))

class Net(nn.Module):
    act: nn.Module = nn.Dense(4)

    @nn.compact
    def __call__(self, x):
        x = nn.remat_scan(Block, lengths=(2, 2))(name="blocks")(self.act(x))
        return nn.remat(Block)(norm=nn.LayerNorm(use_bias=False))(x)

model, inputs = Net(), (jnp.ones((2, 4)),)
"""
    )
    kernel = "params/blocks/blocks_dense/kernel"
    assert kernel in paths(found["variables"])


def test_a_closure_over_a_whole_model_lifted_through_init() -> None:
    same_run(
        """
class Net(nn.Module):
    def setup(self):
        self.a, self.b = nn.Dense(4), nn.Dense(2)

    def encode(self, x):
        return self.a(x)

    def decode(self, x):
        return self.b(x)

def run():
    x = jnp.ones((2, 3))

    @functools.partial(nn.remat, policy=jax.checkpoint_policies.dots_saveable)
    def decode(model, y):
        return model.decode(y)

    def whole(model, x):
        return decode(model, model.encode(x))

    variables = jax.jit(lambda key: nn.init(whole, Net())(key, x))(jax.random.key(0))
    return variables, jax.jit(nn.apply(whole, Net()))(variables, x)
"""
    )
