"""Parameters that ``setup`` keeps in a list, tuple or dict."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from nnx_migrate import nn as nnm
from nnx_migrate.parity import ParityCase, check
from tests.rewrite.classes.support import converted, loaded, refusal

LISTED = """\
class M(nn.Module):
  n: int = 3

  def setup(self):
    {parts}

  def __call__(self, x):
    {use}
"""
INIT = "nn.initializers.normal(), (4,)"
NUMBERED = f"self.parts = [self.param(f'part_{{i}}', {INIT}) for i in range(self.n)]"


@pytest.mark.parametrize(
    ("parts", "use"),
    [
        (NUMBERED, "return sum((x * one for one in self.parts), x)"),
        (NUMBERED, "return x * self.parts[0] + self.parts[-1].sum()"),
        (
            f"self.parts = {{str(i): self.param(f'b_{{i}}', {INIT}) for i in range(self.n)}}",
            "return x * self.parts['2'] - self.parts['0']",
        ),
        (
            f"self.parts = (self.param('a', {INIT}), None, self.param('b', {INIT}))",
            "return x * self.parts[0] - self.parts[2]",
        ),
        (
            f"self.parts = {{'k': self.param('a', {INIT}), 'l': nn.Dense(4)}}",
            "return self.parts['l'](x) * self.parts['k']",
        ),
    ],
)
def test_they_have_linens_names_and_values(parts: str, use: str) -> None:
    source, x = LISTED.format(parts=parts, use=use), np.ones((4,), np.float32)
    with (
        loaded(source, "listed_before") as before,
        loaded(converted(source), "listed_after") as after,
    ):
        text = converted(source)
        sizes = {name: 4 for name in ("in_features",) if f"{name}: int" in text}
        report = check(
            ParityCase(linen=before.M(), nnx=lambda rngs: after.M(**sizes, rngs=rngs), inputs=(x,))
        )
    assert report.verdict in ("identical", "equal_by_rules")


@pytest.mark.parametrize(
    "parts",
    [
        f"self.parts = [2 * self.param(f'p_{{i}}', {INIT}) for i in range(3)]",
        f"self.parts = [[self.param(f'p_{{i}}', {INIT})] for i in range(3)]",
        f"self.parts = [self.param(f'p_{{i}}', {INIT}) for i in range(3)][:2]",
        f"self.parts = tuple(self.param(f'p_{{i}}', {INIT}) for i in range(3))",
        "self.parts = [self.variable('s', f'p_{i}', jnp.ones, (4,)) for i in range(3)]",
        f"self.parts = list(map(lambda i: self.param(f'p_{{i}}', {INIT}), range(3)))",
    ],
)
def test_what_is_deeper_inside_is_refused(parts: str) -> None:
    assert refusal(LISTED.format(parts=parts, use="return x * self.parts[0]")).reason


def test_a_name_that_is_taken_when_the_list_is_made_is_an_error() -> None:
    class Owner(nnx.Module):
        def part_0(self) -> None: ...

    with pytest.raises(ValueError, match="'part_0' to be free in Owner"):
        nnm.set_submodules(Owner(), "parts", [nnm.named("part_0", nnx.Param(jnp.ones(2)))])


def test_a_parameter_is_read_anew() -> None:
    owner = nnx.Module()
    nnm.set_submodules(owner, "parts", [nnm.named("a", nnx.Param(jnp.ones(2)))])
    nnx.update(owner, jax.tree.map(lambda one: 2 * one, nnx.state(owner)))
    assert nnm.get_submodules(owner, "parts")[0].tolist() == [2, 2]
