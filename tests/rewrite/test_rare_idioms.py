"""Rare idioms have no explicit form: their classes are lazy, for a reason in a line, and give the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.rewrite.running import lazy, same_in_auto

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
IMPORTS = "from typing import Any\nimport flax.linen as nn\nimport jax\nimport jax.numpy as jnp\n"

LAMBDA = """
class Block(nn.Module):
    make: Any

    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(self.make()(x))


class Model(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return Block(make=lambda: nn.Dense(self.width))(x)
"""

LAYER = """
class Model(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.width)(x)
"""

APPLY = f"""{LAYER}
    def both(self, variables, x):
        return self.apply(variables, x)
"""

MAKER = f"""{LAYER}
    @classmethod
    def double(cls, width):
        return cls(2 * width)
"""

UNBOUND = f"""{LAYER.replace("Model", "Step")}

class Model(nn.Module):
    width: int

    def setup(self):
        self.step = Step(self.width)

    def __call__(self, x):
        x = self.step(x)
        module, variables = self.step.unbind()
        return jax.vmap(lambda one: module.apply(variables, one))(x)
"""

CLASS_METHOD = f"""{MAKER.replace("Model", "Block")}

class Model(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return Block.double(self.width)(x)
"""

BLOCK = LAYER.replace("Model", "Block")
USER = """
class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        return {value}
"""
REBOUND = f"{BLOCK}\nBlock = nn.remat(Block)\n\n{USER.format(value='Block(3)(x)')}"
DECORATED = f"@nn.remat{BLOCK}\n{USER.format(value='Block(3)(x)')}"
REMAT = USER.format(value="nn.remat(lambda m, x: m(x) * 2)(nn.Dense(4), x)")
VMAP = USER.format(
    value="nn.vmap(lambda m, x: m(x), variable_axes={'params': None}, split_rngs={'params': False})(nn.Dense(4), x)"
)
LIFTED_LAYER = USER.format(value="nn.remat(nn.Dense)(4)(x)")
STACKED = f"""{BLOCK}
{USER.format(value="nn.vmap(Block, variable_axes={'params': 0}, split_rngs={'params': True})(3)(x)")}"""

DTYPE = USER.format(value="x * self.param('scale', nn.initializers.normal(1.0), (1, 4), x.dtype)")

IDIOMS: list[tuple[str, str, tuple[Any, ...], str]] = [
    (LAMBDA, "Model(3)", (X,), "something is built inside a lambda"),
    (APPLY, "Model(3)", (X,), "self.apply has no NNX counterpart"),
    (MAKER, "Model.double(3)", (X,), "its class method double builds it"),
    (CLASS_METHOD, "Model(3)", (X,), "a function outside the class builds cls for it"),
    (REBOUND, "Model()", (X,), "Block may build a submodule of a class that is not known"),
    (DECORATED, "Model()", (X,), "Block is lazy, and is decorated"),
    (REMAT, "Model()", (X,), "nn.remat of something else than a module class of the project"),
    (VMAP, "Model()", (X,), "nn.vmap of something else than a module class of the project"),
    (
        LIFTED_LAYER,
        "Model()",
        (X,),
        "nn.remat of something else than a module class of the project",
    ),
    (STACKED, "Model()", (X,), "vmap that stacks variables without axis_size="),
    (DTYPE, "Model()", (X,), "what is built here depends on 'x', which is only known in the call"),
    (UNBOUND, "Model(4)", (X,), "it calls unbind, for pure functions of a submodule's variables"),
]


@pytest.mark.parametrize(("program", "model", "inputs", "reason"), IDIOMS)
def test_it_is_lazy_and_gives_linens_bits(
    program: str, model: str, inputs: tuple[Any, ...], reason: str
) -> None:
    assert lazy(IMPORTS + program, "Model") == reason
    same_in_auto(IMPORTS + program, model, *inputs)
