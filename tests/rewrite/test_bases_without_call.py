"""Bases that build in ``setup`` what a method of theirs calls, and leave ``__call__`` to others."""

from __future__ import annotations

from tests.rewrite.running import net_alike

IMPORTS = "import flax.linen as nn\nimport jax\nimport jax.numpy as jnp"
LEVELS = f"""{IMPORTS}


class Base(nn.Module):
    def setup(self):
        self.inp = nn.Dense(3)

    def stem(self, x):
        return self.inp(x)


class Middle(Base):
    n: int = 2

    def setup(self):
        super().setup()
        self.layers = [nn.Dense(2) for _ in range(self.n)]

    def __call__(self, x):
        x = self.stem(x)
        for layer in self.layers:
            x = layer(x)
        return x


class Last(Middle):
    def setup(self):
        super().setup()
        self.norm = nn.LayerNorm()

    def __call__(self, x):
        return self.norm(super().__call__(x))


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return Last(n=1)(Middle()(nn.Dense(5)(x)))
"""


def test_what_a_base_without_a_call_builds_has_its_size_from_the_class_that_calls_it() -> None:
    assert set(net_alike(LEVELS, "jnp.ones((2, 4))").values()) == {"explicit"}


COMPUTED = f"""{IMPORTS}


class Scale(nn.Module):
    @nn.compact
    def __call__(self, x):
        return self.param("s", nn.initializers.normal(), (x.shape[-1],)).sum() + x


class Base(nn.Module):
    def setup(self):
        self.scale = Scale()

    def features(self, x):
        return self.scale(x)


class Net(Base):
    @nn.compact
    def __call__(self, x, y):
        return nn.Dense(2)(self.features(jnp.concatenate([x, y], -1)))
"""


def test_its_size_is_that_of_what_its_method_is_given() -> None:
    assert set(net_alike(COMPUTED, "jnp.ones((2, 4))", "jnp.ones((2, 3))").values()) == {"explicit"}
