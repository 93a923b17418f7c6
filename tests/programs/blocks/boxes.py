"""A training script that handles boxed variables by Linen's functions."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax


class Scale(nn.Module):
    @nn.compact
    def __call__(self, x):
        def boxed(key, shape):
            return nn.LogicallyPartitioned(nn.initializers.ones(key, shape), ("embed",))

        return x * self.param("scale", boxed, x.shape[-1:])[None]


class Layer(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x, _):
        init = nn.initializers.lecun_normal()
        up = nn.with_logical_partitioning(init, ("embed", "mlp"))
        down = nn.with_logical_partitioning(init, ("mlp", "embed"))
        h = nn.relu(nn.Dense(self.width, kernel_init=up)(Scale(name="norm")(x)))
        return x + nn.Dense(x.shape[-1], kernel_init=down)(h), None


class Model(nn.Module):
    width: int
    depth: int

    @nn.compact
    def __call__(self, x):
        layers = nn.scan(
            nn.remat(Layer),
            variable_axes={"params": 0},
            split_rngs={"params": True},
            length=self.depth,
            metadata_params={nn.PARTITION_NAME: "layers"},
        )(self.width, name="layers")
        x, _ = layers(x, None)
        init = nn.with_partitioning(nn.initializers.lecun_normal(), (None, "tensor"))
        return nn.Dense(4, kernel_init=init, name="head")(x)


def is_box(node):
    return isinstance(node, nn.LogicallyPartitioned)


def train(key, x, mesh, rules):
    model = Model(16, 3)
    tx = optax.adamw(0.1)

    def start(key, x):
        params = model.init(key, x)["params"]
        return params, tx.init(params)

    boxed = jax.eval_shape(start, key, x)
    names = nn.get_partition_spec(boxed)
    shardings = nn.logical_to_mesh_sharding(names, mesh, rules)
    params, moments = nn.unbox(jax.jit(start, out_shardings=shardings)(key, x))

    def step(params, moments, x):
        loss, grads = jax.value_and_grad(
            lambda params: jnp.mean(model.apply({"params": params}, x) ** 2)
        )(params)
        updates, moments = tx.update(grads, moments, params)
        return optax.apply_updates(params, updates), moments, loss

    after = jax.jit(step)(params, moments, x)
    boxes = jax.tree.leaves(jax.tree.map(is_box, boxed, is_leaf=is_box))
    return names, params, after, sum(boxes)


def boxed_forward(key, x, mesh, rules):
    model = Model(16, 3)
    variables = model.init(key, x)
    with nn.logical_axis_rules(rules):
        return model.apply(variables, x)
