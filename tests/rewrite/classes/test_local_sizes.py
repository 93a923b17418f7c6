"""A conditional size that the constructor would read several times becomes a local, and only there."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Collection

import libcst as cst
import pytest

from nnx_migrate.edit.page import Page
from nnx_migrate.rewrite.classes.writing.layout import Layout
from nnx_migrate.rewrite.classes.writing.local_sizes import with_local_sizes
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


LOCAL = """\
class Net(nn.Module):
    cfg: Any

    @nn.compact
    def __call__(self, x):
        cfg = self.cfg
        inner = cfg.dim * 2
        x = nn.Dense(inner)(x)
        return nn.Dense(3)(nn.Dense(cfg.dim)(nn.LayerNorm()(x)))
"""


def test_a_size_is_read_by_the_name_that_the_author_gave_it() -> None:
    found = init(LOCAL)
    assert "nnx.LayerNorm(inner, rngs=rngs)" in found
    assert "nnx.Linear(inner, cfg.dim, rngs=rngs)" in found
    assert "nnx.Linear(cfg.dim, 3, rngs=rngs)" in found


def written(text: str, own: str = "", taken: Collection[str] = ()) -> str:
    """The statements of a constructor with local sizes, of a class with this text of its own."""
    body = list(cst.parse_module(text).body)
    layout = Layout("\n", 0, Page("    "))
    return cst.Module(with_local_sizes(body, ast.parse(own), taken, layout)).code


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n = self.a * 2\nf(self.a * 2, 1)\n", "n = self.a * 2\nf(n, 1)\n"),
        ("n = self.a * 2\nf(3 * (self.a * 2))\n", "n = self.a * 2\nf(3 * n)\n"),
        ("c = self.cfg\nn = c.d\nf(self.cfg.d)\n", "c = self.cfg\nn = c.d\nf(n)\n"),
        (
            'm = self.c["m"]\nn = m["d"]\nf(self.c["m"]["d"])\n',
            'm = self.c["m"]\nn = m["d"]\nf(n)\n',
        ),
        ("n = self.ws[self.i]\nf(self.ws[self.i] * 2)\n", "n = self.ws[self.i]\nf(n * 2)\n"),
        ("n = self.a\nfor i in x:\n    f(self.a, i)\n", "n = self.a\nfor i in x:\n    f(n, i)\n"),
        ("f(a if b else c, a if b else c)\n", "features = a if b else c\nf(features, features)\n"),
        (
            "f(a if b else c)\nif d:\n    g(a if b else c)\n",
            "features = a if b else c\nf(features)\nif d:\n    g(features)\n",
        ),
        (
            "f(a if b else c, d if b else c)\ng(a if b else c, d if b else c)\n",
            "features = a if b else c\nfeatures_2 = d if b else c\nf(features, features_2)\ng(features, features_2)\n",
        ),
    ],
)
def test_sizes_are_read_by_names(text: str, expected: str) -> None:
    assert written(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "n = self.a * 2\nn = n + 1\nf(self.a * 2)\n",
        "n = self.a * 2\nself.a = 3\nf(self.a * 2)\n",
        "n = m * 2\nm = 3\nf(m * 2)\n",
        "n = self.a * 2\nfor n in x:\n    f(self.a * 2)\n",
        "n = self.a * 2\ng = lambda n: f(self.a * 2)\n",
        "n = self.a * 2\ng = [self.a * 2 for a in x]\n",
        "n = g(m)\nf(g(m))\n",
        "n = self.ws[0] * 2\nself.ws[0] = 3\nf(self.ws[0] * 2)\n",
        "n = self.ws[0] * 2\nself.ws.append(3)\nf(self.ws[0] * 2)\n",
        "n = ws[-1]\nws.append(3)\nf(ws[-1])\n",
        "n = ws[:2]\nf(ws[:2])\n",
        "if d:\n    n = self.a * 2\nf(self.a * 2)\n",
        "f(a if b else c)\n",
        "x = a if b else c\nf(a if b else c)\n",
        "if d:\n    f(a if b else c, a if b else c)\n",
        "f(d and (a if b else c), a if b else c)\n",
        "f(a if b else c)\na = 3\nf(a if b else c)\n",
        "f(g() if b else c, g() if b else c)\n",
        "h(lambda: a if b else c, lambda: a if b else c)\n",
    ],
)
def test_a_size_that_is_not_surely_the_same_everywhere_is_written_out(text: str) -> None:
    assert written(text) == text


def test_what_the_author_wrote_out_stays() -> None:
    text = "n = self.a * 2\nf(self.a * 2)\n"
    assert written(text, "n = self.a * 2\nf(self.a * 2)\n") == text
    assert written("f(a if b else c, a if b else c)\n", "a if b else c").startswith("f(a if")


def test_a_parameter_is_read_where_the_author_gave_the_field_its_name() -> None:
    text = "self.cfg = cfg\nf(self.cfg.d)\n"
    assert written(text, "cfg = self.cfg") == "self.cfg = cfg\nf(cfg.d)\n"
    assert written(text, "pass") == text


def test_names_that_are_taken_are_none_for_a_local() -> None:
    found = written("f(a if b else c, a if b else c)\n", taken={"features"})
    assert found.startswith("features_2 = a if b else c\n")
