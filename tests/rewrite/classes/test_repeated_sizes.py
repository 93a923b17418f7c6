"""A conditional size that the constructor would read several times becomes a local, and only there."""

from __future__ import annotations

import textwrap

import pytest

from tests.rewrite.classes.support import HEADER, converted
from tests.rewrite.running import net_alike

WIDE = """\
class Net(nn.Module):
    n: int = 3
    wide: bool = True

    @nn.compact
    def __call__(self, x):
        if self.wide:
            x = nn.Dense(4)(x)
"""


def net(*lines: str) -> str:
    """A class whose ``x`` is 4 or ``in_features`` wide."""
    return WIDE + "".join(f"        {line}\n" for line in lines) + "        return x\n"


def init(body: str) -> str:
    """The constructor that is written."""
    text = converted(body)
    return text[text.index("def __init__") : text.index("def __call__")]


def test_a_size_that_is_read_twice_is_a_local() -> None:
    found = init(net("x = x + nn.LayerNorm()(x)", "x = x * nn.Dense(x.shape[-1])(x)"))
    assert found.count(" if self.wide else ") == 1
    assert "        features = 4 if self.wide else in_features\n" in found
    assert "nnx.LayerNorm(features, rngs=rngs)" in found
    assert "nnx.Linear(features, features, rngs=rngs)" in found


def test_a_size_that_is_read_once_stays_where_it_is() -> None:
    found = init(net("x = x + nn.LayerNorm()(x)"))
    assert "nnx.LayerNorm(4 if self.wide else in_features, rngs=rngs)" in found
    assert "features =" not in found


@pytest.mark.parametrize(
    ("lines", "name"),
    [
        (("features = 2 * x", "x = nn.LayerNorm()(features)", "x = nn.RMSNorm()(x)"), "features_2"),
        (("x = nn.LayerNorm()(x)", "x = nn.RMSNorm()(x)"), "features"),
    ],
)
def test_the_local_has_a_name_that_nothing_else_has(lines: tuple[str, ...], name: str) -> None:
    assert f"        {name} = 4 if self.wide else in_features\n" in init(net(*lines))


def test_a_name_from_around_the_class_is_none_for_a_local() -> None:
    body = textwrap.indent(net("x = nn.LayerNorm()(x)", "x = nn.RMSNorm()(x)"), "    ")
    text = f"def make(features):\n{body}    return Net\n".replace(
        "= 3", "= dataclasses.field(default_factory=lambda: features)"
    )
    assert "features_2 = 4 if self.wide" in init(text)


def test_a_conditional_of_the_author_stays_as_it_is() -> None:
    text = net(
        "x = nn.Dense(self.n if self.wide else 7)(x)",
        "x = nn.Dense(self.n if self.wide else 7)(x)",
    )
    assert init(text).count("self.n if self.wide else 7") >= 2


def test_a_size_that_is_first_read_under_a_condition_is_not_computed_before_it() -> None:
    text = net("if self.n > 2:", "    x = x + nn.Dense(x.shape[-1])(x)")
    found = init(text)
    assert "features =" not in found
    assert found.count("4 if self.wide else in_features") == 2


def test_sizes_of_rounds_are_no_locals_of_all() -> None:
    text = net("for i in range(2):", "    x = x + nn.Dense(x.shape[-1])(x)")
    assert "        features =" not in init(text)


@pytest.mark.parametrize("wide", ["True", "False"])
def test_the_class_computes_what_it_did(wide: str) -> None:
    text = net("x = x + nn.LayerNorm()(x)", "x = x * nn.Dense(x.shape[-1])(x)")
    assert "features = 4" in init(text)
    source = HEADER + text.replace("wide: bool = True", f"wide: bool = {wide}")
    assert net_alike(source, "jnp.ones((2, 3))") == {"m.Net": "explicit"}
