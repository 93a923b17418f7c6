"""Methods of another class that run on the class under analysis: ``Other.__call__(self, x)``."""

from __future__ import annotations

import pytest

from tests.sizes.inference import sizes_of

SOURCE = """
class Other(nn.Module):
    @nn.compact
    def __call__(self, x):
        {there}
        return x

class Model(nn.Module):
    @nn.compact
    def update(self, x):
        {here}
        return x

    def __call__(self, x):
        return Other.__call__(self, x)
"""
PARAM = 'self.param("kernel", nn.initializers.ones, (3,))'
CACHE = 'self.variable("cache", "kernel", jnp.zeros, (3,))'


def problems(there: str, here: str) -> list[str]:
    return [reason for _, reason in sizes_of(SOURCE.format(there=there, here=here)).problems]


@pytest.mark.parametrize(
    ("there", "here"),
    [(PARAM, PARAM), (CACHE, CACHE), ("pass", PARAM), (PARAM, f"{PARAM}; {CACHE}")],
)
def test_a_method_that_reads_what_the_class_makes_is_no_problem(there: str, here: str) -> None:
    assert problems(there, here) == []


@pytest.mark.parametrize(
    ("there", "here", "what"),
    [
        (PARAM, "pass", "self.param('kernel',)"),
        (PARAM, PARAM.replace("kernel", "scale"), "self.param('kernel',)"),
        (PARAM, CACHE, "self.param('kernel',)"),
        (CACHE, PARAM, "self.variable('cache', 'kernel')"),
        (PARAM.replace('"kernel"', "name"), PARAM, "a variable of unknown name"),
    ],
)
def test_a_method_that_makes_more_than_the_class_is_a_problem(
    there: str, here: str, what: str
) -> None:
    text = f"it calls a method of Other that makes {what}, which it does not"
    assert problems(there, here) == [text]
