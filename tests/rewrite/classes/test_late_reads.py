"""Functions in a constructor's arguments that read locals of the method."""

from __future__ import annotations

import textwrap

import pytest

from tests.rewrite.classes.support import converted, refusal

MODEL = """\
class M(nn.Module):
  width: int

  @nn.compact
  def __call__(self, x):
{body}
"""


def _model(body: str) -> str:
    return MODEL.format(body=textwrap.indent(body, "    "))


@pytest.mark.parametrize(
    "body",
    [
        "s = 2\nlayer = nn.Dense(4, kernel_init=lambda *a: jnp.full(a[1], s))\ns = 3\nreturn layer(x)",
        (
            "s = 2\ndef init(*a):\n  return jnp.full(a[1], s)\n"
            "layer = nn.Dense(4, kernel_init=init)\ns += 1\nreturn layer(x)"
        ),
        (
            "s = 2\nlayer = nn.Dense(4, kernel_init=lambda *a: jnp.full(a[1], s))\n"
            "for i in (1, 2):\n  s = i\nreturn layer(x)"
        ),
    ],
)
def test_a_function_that_reads_what_is_bound_again_is_refused(body: str) -> None:
    assert "reads 's', which is bound again later" in refusal(_model(body)).reason


@pytest.mark.parametrize(
    "body",
    [
        "s = 2\nreturn nn.Dense(4, kernel_init=lambda *a: jnp.full(a[1], s))(x)",
        "s = 1\ns = 2\nreturn nn.Dense(4, kernel_init=lambda *a: jnp.full(a[1], s))(x)",
        "x = 2 * x\nreturn nn.Dense(4, kernel_init=lambda *x: jnp.full(x[1], self.width))(x)",
    ],
)
def test_a_function_that_reads_what_stays_is_moved(body: str) -> None:
    assert "jnp.full(" in converted(_model(body))


def test_an_initialiser_reads_what_a_name_holds_when_it_is_made() -> None:
    body = (
        "s = 2\ns = self.param('s', lambda *_: jnp.full(4, s))\n"
        "t = 3\nm = self.variable('stats', 't', lambda: jnp.full(4, t))\n"
        "t = 2 * x\nreturn x * s + t * m.value"
    )
    text = converted(_model(body))
    assert "self.s = nnx.Param((lambda *_: jnp.full(4, s))(rngs.params()))" in text
    assert "jnp.full(4, t)" in text
