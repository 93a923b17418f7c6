"""``self.has_variable`` where ``__init__`` asks, too: it is answered as Linen's ``init`` answers."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

from nnx_migrate import nn as nnm
from tests.rewrite.classes.support import convert, converted, loaded

ASKING = """\
class M(nn.Module):
  def setup(self):
    {setup}

  @nn.compact
  def __call__(self, x):
    {before}
    if self.has_variable("state", "v"):
      x = nn.Dense(3, name="more")(x)
    {after}
    return x
"""
MAKE = 'self.variable("state", "v", jnp.zeros, ())'

AT_INIT = """if self.is_initializing():
      self.put_variable("state", "{name}", jnp.zeros(2))"""


def asking(setup: str = "pass", before: str = "pass", after: str = "pass") -> str:
    return ASKING.format(setup=setup, before=before, after=after)


@pytest.mark.parametrize(
    "source",
    [
        asking(),
        asking(setup=f"self.v = {MAKE}"),
        asking(setup=AT_INIT.format(name="v")),
        asking(setup=AT_INIT.format(name="w")),
        asking(setup='self.v = self.variable("other", "v", jnp.zeros, ())'),
        asking(after=f"x = x + {MAKE}.value"),
        asking(before='self.sow("intermediates", "v", x)'),
    ],
)
def test_what_is_built_is_what_linens_init_builds(source: str) -> None:
    x = jnp.ones((2, 3))
    with (
        loaded(source, "asked_before") as before,
        loaded(converted(source), "asked_after") as after,
    ):
        variables = before.M().init(jax.random.key(0), x)
        sizes = {"in_features": 3} if "in_features" in converted(source) else {}
        made = nnm.build(after.M, **sizes, rngs=jax.random.key(0))
        found = nnm.variables_of(made)
    assert jax.tree.map(jnp.shape, found) == jax.tree.map(jnp.shape, dict(variables))


@pytest.mark.parametrize(
    "source",
    [
        asking(before=MAKE),
        asking(before='self.put_variable("state", "v", x)'),
        asking(before='self.put_variable(name="v", col="state", value=x)'),
        asking(before='self.sow("state", "v", x)'),
        asking(before='self.perturb("v", x, "state")'),
        asking(before='self.perturb("v", x, collection="state")'),
        asking(before="self.make(x)") + '\n  def make(self, x):\n    self.sow("state", "v", x)\n',
    ],
)
def test_a_variable_that_the_call_may_have_made_before_is_refused(source: str) -> None:
    assert "variable that" in getattr(convert(source)["M"], "reason", "")


@pytest.mark.parametrize("arguments", ['"state", str(x.ndim)', '*["state", "v"]'])
def test_a_name_that_is_not_written_may_be_that_of_a_submodule_where_there_are_any(
    arguments: str,
) -> None:
    source = asking(before=f"self.put_variable({arguments}, x)")
    assert "the name of a submodule" in getattr(convert(source)["M"], "reason", "")
    alone = source.replace('nn.Dense(3, name="more")(x)', "x + 1")
    assert f"nnm.put_variable(self, {arguments}, x)".replace("'", '"') in converted(alone)


def test_setup_asks_for_what_it_has_put_there() -> None:
    source = """\
class M(nn.Module):
  def setup(self):
    if self.is_initializing():
      self.put_variable("state", "v", jnp.ones(2))
    assert self.has_variable("state", "v")
    assert not self.has_variable("state", "w")

  def __call__(self):
    return self.get_variable("state", "v")
"""
    with loaded(converted(source), "asked_after") as after:
        assert nnm.build(after.M, rngs=jax.random.key(0))().tolist() == [1, 1]
