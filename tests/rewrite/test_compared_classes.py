"""Classes of modules in fields that code around the classes compares, or gives anew."""

from __future__ import annotations

import pytest

from tests.rewrite.projects import LINEN
from tests.rewrite.running import printed_alike
from tests.rewrite.test_forms import auto, reason

HEAD = (
    LINEN + "import dataclasses\nfrom typing import Any\nimport jax\nimport jax.numpy as jnp\n\n\n"
)
MODEL = """\
class A(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(4)(x)


class B(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(4)(x) + 1


class Net(nn.Module):
    block: Any = A
    norm: Any = nn.LayerNorm

    @nn.compact
    def __call__(self, x):
        return self.norm()(self.block()(x))


"""
MAIN = """\
def main():
    x = jnp.ones((2, 4))
    net = Net()
    print(net.init(jax.random.key(0), x))
    {}
"""
COMPARED = [
    "print(net.norm is nn.LayerNorm, net.norm == nn.RMSNorm)",
    "print(net.norm in (nn.LayerNorm, nn.RMSNorm))",
    "print({nn.LayerNorm: 'layer', nn.RMSNorm: 'rms'}.get(net.norm))",
    "print(net.block is A)",
    "block = net.block\n    print('a' if block is A else 'b')",
    "print(issubclass(net.norm, nn.Module))",
]
REPLACED = [
    "print(net.clone(block=B).init(jax.random.key(0), x))",
    "print(Net().clone(norm=nn.RMSNorm).init(jax.random.key(0), x))",
    "print(dataclasses.replace(net, block=B).init(jax.random.key(0), x))",
    "options = dict(block=B)\n    print(net.clone(**options).init(jax.random.key(0), x))",
]
PROVEN = [
    "print(Net(block=B).init(jax.random.key(0), x))",
    "print(x.shape == (2, 4), net.name is None)",
    "print({'a': A, 'b': B}['b']().init(jax.random.key(0), x))",
    "print(isinstance(net, Net), type(net) is Net)",
    "print(jax.tree.map(lambda one: one, {'block': 1}).copy())",
]


@pytest.mark.parametrize("line", [*COMPARED, *REPLACED])
def test_who_holds_them_is_lazy(line: str) -> None:
    result = auto({"m.py": HEAD + MODEL + MAIN.format(line)})
    assert "holds a" in reason(result, "m.Net")


@pytest.mark.parametrize("line", PROVEN)
def test_other_uses_say_nothing(line: str) -> None:
    assert reason(auto({"m.py": HEAD + MODEL + MAIN.format(line)}), "m.Net") == ""


def test_a_class_may_compare_its_own() -> None:
    own = MODEL.replace(
        "return self.norm()",
        "x = x if self.norm is nn.LayerNorm else -x\n        return self.norm()",
    )
    assert reason(auto({"m.py": HEAD + own + MAIN.format("print(net.block)")}), "m.Net") == ""


@pytest.mark.slow
@pytest.mark.parametrize("line", [*COMPARED, *REPLACED, *PROVEN])
def test_the_program_prints_the_same(line: str) -> None:
    printed_alike(HEAD + MODEL + MAIN.format(line))
