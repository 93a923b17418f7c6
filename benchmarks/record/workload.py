"""A program like the tests of a model library: small modules built, called and trained a little.

Prints the seconds of processor time that this took, without the start of the process.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import flax.linen as nn
import jax
import jax.numpy as jnp


class Mlp(nn.Module):
    """Two layers and a norm."""

    hidden: int
    features: int

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """One pass."""
        x = nn.relu(nn.Dense(self.hidden)(x))
        return nn.LayerNorm()(nn.Dense(self.features)(x))


class ConvNet(nn.Module):
    """Convolutions, batch statistics, and a head."""

    widths: tuple[int, ...]

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """One pass."""
        for width in self.widths:
            x = nn.relu(nn.BatchNorm(use_running_average=False)(nn.Conv(width, (3, 3))(x)))
        return nn.Dense(5)(x.mean((1, 2)))


class Attention(nn.Module):
    """Blocks of attention and an Mlp."""

    layers: int
    heads: int

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """One pass."""
        for _ in range(self.layers):
            x = x + nn.MultiHeadDotProductAttention(self.heads)(x, x)
            x = x + Mlp(2 * x.shape[-1], x.shape[-1])(x)
        return x


def tests() -> Iterator[tuple[nn.Module, jax.Array]]:
    """What is tested: a module and its input."""
    for size in (4, 8, 12, 16, 24):
        yield Mlp(2 * size, size), jnp.ones((3, size + 1))
        yield ConvNet((size, 2 * size)), jnp.ones((2, 8, 8, 3))
        yield Attention(2, 2), jnp.ones((2, 7, size))


def run(module: nn.Module, x: jax.Array) -> None:
    """One test: initialise, call a few times, take some steps."""
    variables = module.init(jax.random.key(0), x)
    state = {name: value for name, value in variables.items() if name != "params"}

    def loss(params: object) -> jax.Array:
        out, _ = module.apply({"params": params, **state}, x, mutable=["batch_stats"])
        return jnp.mean(out**2)

    for _ in range(5):
        module.apply(variables, x, mutable=["batch_stats"])
    step = jax.jit(jax.value_and_grad(loss))
    for _ in range(3):
        jax.block_until_ready(step(variables["params"]))


def main() -> int:
    """Run every test."""
    started = time.process_time()
    for module, x in tests():
        run(module, x)
    sys.stdout.write(f"{time.process_time() - started:.6f}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
