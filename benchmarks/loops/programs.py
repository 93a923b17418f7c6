"""Training programs in Linen, small and large."""

from __future__ import annotations

from dataclasses import dataclass

_HEAD = """\
import time

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training.train_state import TrainState


"""
_SMALL = """\
class Net(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.Dense(self.width)(x))
        x = nn.relu(nn.Dense(self.width)(x))
        return nn.Dense(1)(x)


SHAPE = (8, 16)
model = Net(32)
"""
_LARGE = """\
class Block(nn.Module):
    heads: int

    @nn.compact
    def __call__(self, x):
        y = nn.LayerNorm()(x)
        x = x + nn.MultiHeadDotProductAttention(self.heads)(y, y)
        y = nn.Dense(4 * 256)(nn.LayerNorm()(x))
        return x + nn.Dense(256)(nn.gelu(y))


class Net(nn.Module):
    depth: int

    @nn.compact
    def __call__(self, x):
        for _ in range(self.depth):
            x = Block(8)(x)
        return nn.Dense(1)(nn.LayerNorm()(x).mean(1))


SHAPE = (8, 64, 256)
model = Net(6)
"""
_LOOP = """

def create(key):
    params = model.init(key, jnp.ones(SHAPE))["params"]
    return TrainState.create(apply_fn=model.apply, params=params, tx=optax.adamw(1e-3))


@jax.jit
def step(state, x, y):
    def loss_fn(params):
        return jnp.mean((state.apply_fn({"params": params}, x) - y) ** 2)

    loss, grads = jax.value_and_grad(loss_fn)(state.params)
    return state.apply_gradients(grads=grads), loss


def train(steps):
    x = jax.random.normal(jax.random.key(1), SHAPE)
    y = jnp.sin(x.reshape(SHAPE[0], -1)[:, :1])
    state = create(jax.random.key(0))
    losses = []
    for _ in range(2):
        state, loss = step(state, x, y)
        losses.append(loss)
    jax.block_until_ready(loss)
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(steps):
        state, loss = step(state, x, y)
        losses.append(loss)
    jax.block_until_ready(loss)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return wall / steps, cpu / steps, losses
"""


@dataclass(frozen=True)
class Program:
    """The text of a module with a function ``train(steps)``, and how many steps are a turn."""

    name: str
    description: str
    text: str
    steps: int


PROGRAMS = (
    Program("small", "three dense layers", _HEAD + _SMALL + _LOOP, 200),
    Program("large", "six blocks of width 256", _HEAD + _LARGE + _LOOP, 3),
)
