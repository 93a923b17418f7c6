"""Converted classes compute what their Linen originals compute, bit for bit."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pytest

from nnx_migrate.parity import ParityCase, check
from tests.rewrite.classes.support import converted, loaded

X = np.random.default_rng(0).normal(size=(3, 5, 6)).astype(np.float32)
IDS = np.random.default_rng(1).integers(0, 11, (2, 7)).astype(np.int32)

ATTENTION = """\
class Attention(nn.Module):
  def setup(self):
    self.q, self.k = nn.Dense(8), nn.Dense(8)

  def __call__(self, x, memory=None):
    keys = self.k(x) if memory is None else self.k(memory)
    return self.q(x) + keys.sum(1, keepdims=True)


class M(nn.Module):
  def setup(self):
    self.own = Attention()
    self.cross = Attention()
    self.either = Attention()

  def __call__(self, x, memory=None):
    x = self.own(x)
    if memory is not None:
      x = self.cross(x, memory)
    return self.either(x, memory)
"""
MEMORY = np.random.default_rng(2).normal(size=(3, 2, 4)).astype(np.float32)

CASES: dict[str, tuple[str, str, dict[str, Any], tuple[Any, ...], dict[str, Any]]] = {
    "carried width": (
        """\
        class M(nn.Module):
          sizes: Sequence[int]

          @nn.compact
          def __call__(self, x):
            for size in self.sizes:
              x = nn.relu(nn.Dense(size)(x))
            return nn.Dense(2)(x)
        """,
        "M(sizes=(4, 7, 5))",
        {"in_features": 6},
        (X,),
        {},
    ),
    "a local named like the size argument": (
        """\
        class M(nn.Module):
          sizes: Sequence[int]

          @nn.compact
          def __call__(self, x):
            in_features = 0
            for size in self.sizes:
              in_features += size
            return nn.Dense(in_features)(x)
        """,
        "M(sizes=(2, 5))",
        {"input_in_features": 6},
        (X,),
        {},
    ),
    "a size unpacked into a local of the argument's name": (
        """\
        class M(nn.Module):
          groups: int = 2

          @nn.compact
          def __call__(self, x):
            if x.ndim == 2:
              x = jnp.expand_dims(x, axis=0)
            batch, length, in_features = x.shape
            shape = (in_features // self.groups, 4)
            return x[..., :3] @ self.param("kernel", nn.initializers.normal(), shape)

          def twice(self, x):
            return self(x) * 2
        """,
        "M(groups=2)",
        {"in_features": 6},
        (X,),
        {},
    ),
    "setup list": (
        """\
        class Block(nn.Module):
          width: int

          def setup(self):
            self.norm = nn.LayerNorm()
            self.proj = nn.Dense(self.width)

          def __call__(self, x):
            return x + self.proj(self.norm(x))


        class M(nn.Module):
          depth: int

          def setup(self):
            self.blocks = [Block(6) for i in range(self.depth)]
            self.tail = {"a": nn.Dense(3), "b": nn.Dense(4)}

          def __call__(self, x):
            for block in self.blocks:
              x = block(x)
            return self.tail["a"](x).sum() * self.tail["b"](x)
        """,
        "M(depth=2)",
        {"in_features": 6},
        (X,),
        {},
    ),
    "attention": (
        """\
        class M(nn.Module):
          heads: int

          @nn.compact
          def __call__(self, x, deterministic):
            y = nn.MultiHeadDotProductAttention(num_heads=self.heads)(x, x)
            y = nn.Dropout(0.3)(y, deterministic=deterministic)
            scale = self.param("scale", nn.initializers.normal(1.0), (1, 1, x.shape[-1]))
            return nn.LayerNorm()(x + y) * scale
        """,
        "M(heads=2)",
        {"in_features": 6},
        (X, False),
        {"rngs": {"dropout": 3}},
    ),
    "tied head": (
        """\
        class M(nn.Module):
          size: int

          def setup(self):
            self.embed = nn.Embed(self.size, 8)
            self.head = nn.Dense(self.size, use_bias=False)

          def __call__(self, ids):
            h = self.embed(ids)
            table = self.embed.variables["params"]["embedding"]
            return self.head.apply({"params": {"kernel": table.T}}, h)
        """,
        "M(size=11)",
        {},
        (IDS,),
        {},
    ),
    "an input that may be None, given": (
        ATTENTION,
        "M()",
        {"x_features": 6, "memory_features": 4},
        (X, MEMORY),
        {},
    ),
    "an input that may be None, left out": (ATTENTION, "M()", {"x_features": 6}, (X,), {}),
}


@pytest.mark.parametrize("name", CASES)
def test_same_model(name: str) -> None:
    source, make, sizes, inputs, options = CASES[name]
    text = textwrap.dedent(source)
    with loaded(text, "before_model") as before, loaded(converted(text), "after_model") as after:
        report = check(
            ParityCase(
                linen=eval(make, vars(before)),
                nnx=lambda rngs: eval(
                    f"{make[:-1]}{'' if make.endswith('()') else ', '}**sizes, rngs=rngs)",
                    vars(after),
                    {"sizes": sizes, "rngs": rngs},
                ),
                inputs=inputs,
                **options,
            )
        )
    assert report.ok, report.to_json()
    assert report.verdict in ("identical", "equal_by_rules")
