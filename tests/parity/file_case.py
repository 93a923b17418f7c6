"""A package of the same name on both sides, Linen before and hand-written NNX after."""

from __future__ import annotations

from pathlib import Path

CONFIG = """
import dataclasses, enum
import jax.numpy as jnp

class Act(enum.Enum):
    RELU = "relu"
    TANH = "tanh"

@dataclasses.dataclass(frozen=True)
class Config:
    hidden: int
    act: Act = Act.TANH
    dtype: object = jnp.float32
"""

LINEN = """
from typing import Any
import flax.linen as nn
import jax.numpy as jnp
from pkg.config import Act, Config

class Mlp(nn.Module):
    config: Config
    head: nn.Module
    layer: Any = nn.Dense
    rate: float = 0.0

    @nn.compact
    def __call__(self, x, train=False):
        x = self.layer(self.config.hidden)(x)
        x = jnp.tanh(x) if self.config.act is Act.TANH else nn.relu(x)
        x = nn.Dropout(self.rate, deterministic=not train)(x)
        return self.head(x)

    def encode(self, x):
        return self.head(x)
"""

NNX = """
from typing import Any
import jax.numpy as jnp
from flax import nnx
from nnx_migrate.nn import factory
from pkg.config import Act, Config

class Mlp(nnx.Module):
    def __init__(self, config: Config, head: nnx.Module, layer: Any = factory.Dense,
                 rate: float = 0.0, *, in_features: int, rngs: nnx.Rngs):
        self.config = config
        self.Dense_0 = layer(config.hidden, in_features=in_features, rngs=rngs)
        self.Dropout_0 = nnx.Dropout(rate, rngs=rngs)
        self.head = head

    def __call__(self, x, train=False):
        x = self.Dense_0(x)
        x = jnp.tanh(x) if self.config.act is Act.TANH else nnx.relu(x)
        x = self.Dropout_0(x, deterministic=not train)
        return self.head(x)

    def encode(self, x):
        return self.head(x)
"""

CASE = """
from functools import partial
import numpy as np

def linen():
    import flax.linen as nn
    from pkg.config import Act, Config
    from pkg.models import Mlp
    head = nn.Dense(3, kernel_init=nn.initializers.normal(0.1))
    return Mlp(Config(5, act=Act.RELU), head, layer=partial(nn.Dense, use_bias=False), rate=0.5)

def inputs():
    x = np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32)
    return (x,), {"train": True}

CASE = dict(rngs={"dropout": 1})
"""


def write_trees(root: Path, *, before: str = LINEN, after: str = NNX, case: str = CASE) -> Path:
    """Write ``before/``, ``after/`` and ``case.py`` below ``root``; return the case file."""
    for tree, models in (("before", before), ("after", after)):
        package = root / tree / "pkg"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("")
        (package / "config.py").write_text(CONFIG)
        (package / "models.py").write_text(models)
    path = root / "case.py"
    path.write_text(case)
    return path
