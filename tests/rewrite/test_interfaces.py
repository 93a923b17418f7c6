"""Base classes of abstract methods alone: explicit ones serve explicit and lazy classes."""

from __future__ import annotations

from pathlib import Path

import jax
import numpy as np
import pytest

from tests.rewrite.projects import dense, looped
from tests.rewrite.test_forms import auto, code, reason, said
from tests.rewrite.test_lazily import load

HEAD = "import abc\n\nimport flax.linen as nn\nimport jax\nimport jax.numpy as jnp\n\n\n"
BASE = '''class Base(abc.ABC, nn.Module):
    """What layers are called with."""

    @abc.abstractmethod
    def __call__(self, x):
        """The call."""
        raise NotImplementedError


'''
MAIN = "def main(key, x):\n    return A().init(key, x), B().init(key, x)\n"
A, B = dense("A", base="Base"), looped("B").replace("nn.Module", "Base")

PROGRAMS = {
    "a lazy class builds an explicit one": looped("B", body="A()(x)").replace("nn.Module", "Base")
    + MAIN,
    "what they are": B
    + "KINDS = {'a': A, 'b': B}\n\n\n"
    + "def main(key, x):\n    made = [one() for one in KINDS.values()]\n"
    + "    assert all(isinstance(one, Base) and isinstance(one, nn.Module) for one in made)\n"
    + "    assert all(issubclass(one, Base) for one in KINDS.values())\n"
    + "    assert [isinstance(one, A) for one in made] == [True, False]\n"
    + "    assert [isinstance(one, B) for one in made] == [False, True]\n"
    + "    return [one.apply(one.init(key, x), x) for one in made]\n",
    "a tower of them": B.replace("x = x\n", "x = nn.Dense(3)(x)\n")
    + "class Tower(Base):\n    depth: int = 2\n\n    @nn.compact\n    def __call__(self, x):\n"
    + "        for i in range(self.depth):\n            x = A(name=f'layer_{i}')(x)\n"
    + "        return x\n\n\n"
    + "def main(key, x):\n    tower, b = Tower(), B()\n    variables = tower.init(key, x)\n"
    + "    grads = jax.grad(lambda v: (tower.apply(v, x) ** 2).mean())(variables)\n"
    + "    return variables, grads, b.init(key, x)\n",
}


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
def test_a_lazy_class_inherits_from_an_explicit_interface(text: str, tmp_path: Path) -> None:
    text = HEAD + BASE + A + text
    result = auto({"m.py": text})
    assert said(result)["m.Base"] == said(result)["m.A"] == "explicit", reason(result, "m.A")
    assert said(result)["m.B"] == "lazy"
    after = code(result)
    assert "class Base(abc.ABC, nnx.Module):\n" in after
    assert "class B(Base, Module):\n" in after
    assert result.call_sites.refused == result.references.refused == 0
    key, x = jax.random.key(0), np.linspace(0.0, 1.0, 12).reshape(4, 3)
    before, found = (
        load(name, one, tmp_path).main(key, x) for name, one in (("before", text), ("after", after))
    )
    assert jax.tree.leaves(before)
    jax.tree.map(np.testing.assert_array_equal, before, found)
    assert code(auto({"m.py": after})) == ""


def test_an_interface_of_explicit_classes_asks_for_nothing() -> None:
    result = auto({"m.py": HEAD + BASE + A + "def main(key, x):\n    return A().init(key, x)\n"})
    assert said(result) == {"m.Base": "explicit", "m.A": "explicit"}
    assert code(result).count("def __init__") == 1


METHOD = "    def __call__(self, x):\n"
OTHERS = {
    "a field": BASE.replace("    @abc", "    width: int = 3\n\n    @abc"),
    "a method with a body": BASE + "    def half(self, x):\n        return x / 2\n\n\n",
    "a body below the abstract method": BASE.replace("raise NotImplementedError", "return x"),
    "a constant": BASE.replace("    @abc", "    kind = 'base'\n\n    @abc"),
    "a method that is not abstract": BASE.replace("    @abc.abstractmethod\n", ""),
    "no methods": "class Base(nn.Module):\n    pass\n\n\n",
    "another base": "class Mixin:\n    pass\n\n\n" + BASE.replace("abc.ABC", "Mixin"),
    "a decorator": "def kept(cls):\n    return cls\n\n\n@kept\n" + BASE,
    "an abstract property": BASE.replace("    @abc", "    @property\n    @abc"),
    "setup": BASE.replace("__call__", "setup").replace("return x", "pass")
    + "    def setup(self):\n        pass\n\n\n",
}


@pytest.mark.parametrize("base", OTHERS.values(), ids=OTHERS)
def test_a_base_that_does_more_is_lazy_with_its_lazy_subclass(base: str) -> None:
    base = base.replace("\n\n\n    def", "\n\n    def")
    result = auto({"m.py": HEAD + base + A + B + MAIN})
    assert said(result) == {"m.Base": "lazy", "m.A": "lazy", "m.B": "lazy"}


def test_a_class_that_is_kept_keeps_its_interface() -> None:
    kept = B.replace("class B(Base):\n", "class B(Base):  # nnx-migrate: keep\n")
    result = auto({"m.py": HEAD + BASE + A + kept + MAIN})
    assert "explicit" not in said(result).values()
    assert "class Base(abc.ABC, nnx.Module)" not in code(result)
