"""What methods call on ``super()`` is called on the module itself, and may be of a module with variables alone."""

from __future__ import annotations

import pytest

from tests.rewrite.running import printed_alike

SOURCE = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Base(nn.Module):
    width: int = 3

    @property
    def hidden(self):
        return self.width

    def grown(self):
        return self.width

    def before(self, x):
        return x * 2

    def setup(self):
        self.inner = nn.Dense(self.hidden)
        self.outer = nn.Dense(self.grown())

    def __call__(self, x):
        return self.outer(self.inner(self.before(x)))


class Model(Base):
    size: int = 2

BODY


class Last(Model):
    def grown(self):
        return super().grown() * 2


def main():
    x = jnp.sin(jnp.arange(12.0)).reshape(2, 6)
    for cls in (Base, Model, Last):
        variables = cls().init(jax.random.key(0), x)
        for path, leaf in jax.tree_util.tree_leaves_with_path(variables):
            print(jax.tree_util.keystr(path), leaf.shape, float(leaf.sum()))
        print(cls().apply(jax.tree.map(lambda v: v * 1.1, variables), x).tolist())
END
"""
CALLS = {
    "hook": "def before(self, x):\n    return super().before(x) + self.size",
    "size": "def grown(self):\n    return super().grown() + self.size",
    "property": "@property\ndef hidden(self):\n    return super().hidden + self.size",
    "call": "def __call__(self, x):\n    return super(Model, self).__call__(x) * 2",
    "call of a base by name": "def __call__(self, x):\n    return Base.__call__(self, x) * 2",
}


def forms(body: str, end: str = "") -> dict[str, str]:
    inside = "\n".join(f"    {line}" for line in body.splitlines())
    return printed_alike(SOURCE.replace("BODY", inside).replace("END", end))


@pytest.mark.parametrize("body", CALLS.values(), ids=CALLS)
def test_a_class_that_calls_its_base_is_explicit(body: str) -> None:
    assert set(forms(body).values()) == {"explicit"}


@pytest.mark.parametrize("name", ["before(x)", "grown()"])
def test_a_method_that_a_module_without_variables_runs_keeps_its_class_lazy(name: str) -> None:
    body = "\n".join(CALLS[one] for one in ("hook", "size"))
    assert forms(body, f"    print(Model().{name})")["m.Model"] == "lazy"
