"""What drawn classes find in their file: imports, functions and classes of fixed text."""

PRELUDE = """\
import bisect, collections, copy, dataclasses, functools, heapq, itertools, math, operator
from typing import Any, Callable, Optional, Sequence

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

WIDTHS = [3, 4, 5]
TABLE = {"a": 3, "b": 5}
ACTS = {"relu": nn.relu, "tanh": jnp.tanh}


@dataclasses.dataclass(frozen=True)
class Config:
    width: int = 4
    depth: int = 2
    widths: Sequence[int] = (3, 4)
    act: str = "relu"
    use_norm: bool = False


def grow(ws, n=4):
    ws.append(n)
    return ws


def pick(ws, i=0):
    return ws[i]


def put(d, key, n):
    d[key] = n
    return d


def double(n):
    return n * 2 % 7 + 1


def rotate(ws):
    ws.append(ws.pop(0))


def both(function, ws):
    return [function(w) for w in ws]


def table(n):
    return {"a": n, "b": n + 1}


def ranks(n=3):
    for i in range(2, n + 2):
        yield i


def norm_of(name):
    return nn.LayerNorm() if name == "tanh" else nn.RMSNorm()


def flat(x):
    return x.reshape((x.shape[0], -1))


class Count:
    def __init__(self, n=2):
        self.n = n
        self.seen = []

    def step(self):
        self.n += 1
        self.seen.append(self.n)
        return self.n

    def peek(self):
        return self.n


def use(count):
    return count.step()


class Block(nn.Module):
    width: int
    depth: int = 1
    act: Any = nn.relu

    @nn.compact
    def __call__(self, x):
        for i in range(self.depth):
            x = self.act(nn.Dense(self.width)(x))
        return x


class Pair(nn.Module):
    widths: Sequence[int] = (3, 4)

    def setup(self):
        self.layers = [nn.Dense(w) for w in self.widths]

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class Head(nn.Module):
    cfg: Config
    norm: Callable = nn.LayerNorm

    @nn.compact
    def __call__(self, x):
        for w in self.cfg.widths:
            x = ACTS[self.cfg.act](nn.Dense(w)(x))
        if self.cfg.use_norm:
            x = self.norm()(x)
        return nn.Dense(self.cfg.width)(x)


class Step(nn.Module):
    width: int

    @nn.compact
    def __call__(self, carry, _):
        carry = jnp.tanh(nn.Dense(self.width)(carry))
        return carry, carry.sum()


class Drop(nn.Module):
    width: int
    rate: float = 0.5

    @nn.compact
    def __call__(self, x, train: bool = False):
        x = nn.Dense(self.width)(x)
        return nn.Dropout(self.rate, deterministic=not train)(x)
"""
