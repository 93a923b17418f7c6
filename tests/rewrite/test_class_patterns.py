"""Classes of modules in the patterns of `match`."""

from __future__ import annotations

import pytest

from tests.rewrite.running import lazy, printed_alike

SOURCE = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Net(nn.Module):
    width: int = 3

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.width)(x)


class Other(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.LayerNorm()(x)


def main():
    for module in (Net(), Net(2), Other(), None):
        match module:
CASES
            case _:
                print("nothing")
        if module is not None:
            print(module.init_with_output(jax.random.key(0), jnp.ones((2, 3))))
"""
PATTERNS = {
    "bare": "Net()",
    "with a field": "Net(width=3)",
    "one of several": "None | Net()",
    "with a name": "Net() as found",
    "inside another": "object(width=int()) | Net(width=2 | 3)",
}


def program(pattern: str) -> str:
    """The program with a case of the pattern."""
    case = f'            case {pattern}:\n                print("found", module is None)'
    return SOURCE.replace("CASES", case)


@pytest.mark.parametrize("pattern", PATTERNS.values(), ids=PATTERNS)
def test_a_class_that_a_pattern_names_is_lazy(pattern: str) -> None:
    forms = printed_alike(program(pattern))
    assert forms == {"m.Net": "lazy", "m.Other": "explicit"}


def test_the_reason_names_the_pattern() -> None:
    reason = lazy(program("Net()"), "Net")
    assert "a pattern names the class here" in reason


@pytest.mark.parametrize("pattern", ["str()", "jax.Array()", "[*_]"])
def test_other_patterns_keep_no_class_lazy(pattern: str) -> None:
    assert {*printed_alike(program(pattern)).values()} == {"explicit"}
