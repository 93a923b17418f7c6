"""What lazy modules cost at run time, as ratios to Linen and to plain NNX in one run.

    python -m benchmarks.lazy --runtime [--depth 48] [--repeats 5]

Tracing of `init` and of a jitted training step of a transformer of unrolled blocks, the text of the
step's program, an eager call of a small built module against Linen's `apply`, and `nnx.split` and
`nnx.merge` against the same model written in NNX.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

import flax.linen
import jax
import jax.numpy as jnp
from flax import nnx

import nnx_migrate.linen
from nnx_migrate.parity.programs.canonical import canonical

SIDES: dict[str, ModuleType] = {"linen": flax.linen, "lazy": nnx_migrate.linen}


def transformer(nn: Any, depth: int) -> Any:
    """A small encoder of ``depth`` blocks that are written out one after the other."""

    class Block(nn.Module):  # type: ignore[misc]
        heads: int

        @nn.compact  # type: ignore[untyped-decorator]
        def __call__(self, x: jax.Array, train: bool) -> jax.Array:
            y = nn.LayerNorm()(x)
            y = nn.MultiHeadDotProductAttention(self.heads)(y, y)
            x = x + nn.Dropout(0.1, deterministic=not train)(y)
            y = nn.LayerNorm()(x)
            y = nn.Dense(4 * x.shape[-1])(y)
            y = nn.Dense(x.shape[-1])(nn.gelu(y))
            return x + nn.Dropout(0.1, deterministic=not train)(y)

    class Encoder(nn.Module):  # type: ignore[misc]
        @nn.compact  # type: ignore[untyped-decorator]
        def __call__(self, x: jax.Array, train: bool = True) -> jax.Array:
            for _ in range(depth):
                x = Block(4)(x, train)
            return nn.Dense(10)(nn.LayerNorm()(x).mean(1))

    return Encoder()


def small(nn: Any) -> Any:
    """Two layers."""

    class Small(nn.Module):  # type: ignore[misc]
        @nn.compact  # type: ignore[untyped-decorator]
        def __call__(self, x: jax.Array) -> jax.Array:
            return nn.Dense(8)(nn.relu(nn.Dense(16)(x)))

    return Small()


class PlainSmall(nnx.Module):
    """The same in NNX."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.Dense_0 = nnx.Linear(8, 16, rngs=rngs)
        self.Dense_1 = nnx.Linear(16, 8, rngs=rngs)


def seconds(run: Callable[[], Any], repeats: int) -> float:
    """The shortest CPU time of some runs."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def measure(depth: int, repeats: int) -> dict[str, float | bool]:
    """All ratios, and whether the programs are the same."""
    x, key = jnp.ones((2, 8, 32)), jax.random.key(0)
    rngs = {"params": key, "dropout": jax.random.key(1)}
    init, step, texts = {}, {}, {}
    for name, nn in SIDES.items():
        model = transformer(nn, depth)
        make = lambda model=model: jax.eval_shape(lambda: model.init(rngs, x))
        variables = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), make())

        def loss(variables: Any, x: Any, key: Any, model: Any = model) -> Any:
            return model.apply(variables, x, rngs={"dropout": key}).sum()

        def trace(loss: Any = loss, variables: Any = variables) -> Any:
            jax.clear_caches()
            return jax.jit(jax.value_and_grad(loss)).trace(variables, x, key)

        texts[name] = canonical(trace().lower().as_text())
        init[name], step[name] = seconds(make, repeats), seconds(trace, repeats)
    return {
        "trace of init": init["lazy"] / init["linen"],
        "trace of a step": step["lazy"] / step["linen"],
        "program the same text": texts["lazy"] == texts["linen"],
        **_small(repeats),
    }


def _small(repeats: int) -> dict[str, float | bool]:
    x, key, rounds = jnp.ones((4, 8)), jax.random.key(0), 200
    definition = small(flax.linen)
    variables = definition.init(key, x)
    built = nnx_migrate.linen.build(small(nnx_migrate.linen), x, rngs=key)
    plain = PlainSmall(nnx.Rngs(0))

    def often(run: Callable[[], Any]) -> float:
        run()
        return seconds(lambda: [run() for _ in range(rounds)], repeats)

    linen = often(lambda: definition.apply(variables, x))
    return {
        "eager call of a built module": often(lambda: built(x)) / linen,
        "nnx.split": often(lambda: nnx.split(built)) / often(lambda: nnx.split(plain)),
        "nnx.merge": often(lambda: nnx.merge(*nnx.split(built)))
        / often(lambda: nnx.merge(*nnx.split(plain))),
    }
