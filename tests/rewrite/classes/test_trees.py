"""Parameters whose value is a tree of arrays, or a number."""

from __future__ import annotations

import pytest

from tests.rewrite.classes.support import converted, refusal

MODEL = """\
import functools
import math


def pair(key, width):
  a, b = jax.random.split(key)
  return {{"w": jax.random.normal(a, (width,)), "b": jax.random.normal(b, (width,))}}


def named(key):
  out = {{}}
  out["w"] = jax.random.normal(key, (3,))
  return out


def twice():
  return (1, 2), jnp.ones(3)


def twice_or_not(row):
  table = halved(row)
  return table


def halved(row):
  row = jnp.ones(3) if row else (row, 2)
  if row is None:
    return row, row
  return row / 2


NUMBER = 0.5
TABLE = jnp.ones(3)


def plain(key, shape=(3,)):
  shape = tuple(shape)
  return jax.random.normal(key, shape)


def weight_norm(init):
  def start(key, shape):
    w = init(key, shape)
    return jnp.exp(w[0]), w / 2
  return start


def scaled(init):
  def pairs(key):
    return 1, 2

  def start(key, shape):
    return init(key, shape) * 2
  return start


def of_pair(width):
  return lambda key: pair(key, width)


def outer(init):
  return weight_norm(init)


class M(nn.Module):
  scale: float = 2.0
  table: jax.Array = None
  given: Any = None

  def start(self, key):
    return (jnp.ones(3), jnp.zeros(3)) if key is None else [jnp.ones(3)]

  @nn.compact
  def __call__(self, x):
    def local(key):
      return pair(key, 3)
    numbers = jnp.ones(3), jnp.zeros(3)
    first, second = twice()
    row = jnp.ones(3)
    p = self.param("p", {init})
    return x, p
"""


@pytest.mark.parametrize(
    "init",
    [
        "pair, 3",
        "named",
        "self.start",
        "local",
        "lambda key: (jnp.ones(3), jnp.zeros(3))",
        "lambda key: dict(w=jnp.ones(3))",
        "lambda key: 0.5",
        "lambda key: math.log(self.scale)",
        "lambda key: self.scale * 2",
        "lambda key: self.given",
        "lambda key: numbers",
        "lambda key: first",
        "lambda key: NUMBER",
        "lambda key: x",
        "lambda key: outside",
        "lambda key: float(self.scale)",
        "lambda key: {name: jnp.ones(3) for name in 'ab'}",
        "lambda key: jax.tree.map(jnp.zeros, {'w': 3})",
        "lambda key: nn.Dense(3, parent=None).init(key, x)['params']",
        "weight_norm(nn.initializers.ones), (2, 3)",
        "outer(nn.initializers.ones), (2, 3)",
        "of_pair(3)",
        "functools.partial(pair, width=3)",
        "functools.partial(weight_norm(nn.initializers.ones), shape=(2, 3))",
    ],
)
def test_a_tree_of_arrays_or_a_number_is_no_parameter_of_nnx(init: str) -> None:
    found = refusal(MODEL.format(init=init))
    assert found.reason == "the initialiser of this parameter gives something else than one array"


@pytest.mark.parametrize(
    "init",
    [
        "plain",
        "lambda key: plain(key, (2, 3))",
        "nn.initializers.ones, (3,)",
        "lambda key: jnp.ones((3,))",
        "lambda key: row",
        "lambda key: key",
        "lambda key: TABLE",
        "lambda key: twice_or_not(True)",
        "lambda key: second",
        "lambda key: self.table",
        "lambda key: self.scale * jnp.ones(3)",
        "lambda key: -jnp.log(row) / 2",
        "scaled(nn.initializers.ones), (2, 3)",
        "functools.partial(plain, shape=(2, 3))",
        "nn.initializers.normal(0.1), (2, 3)",
    ],
)
def test_an_array_is_one(init: str) -> None:
    assert "self.p = nnx.Param(" in converted(MODEL.format(init=init))


GIVEN = """\
class M(nn.Module):
  start: Any = nn.initializers.ones
  kept: Any = 1.0

  @nn.compact
  def __call__(self, x):
    state = self.variable("state", "state", lambda: self.kept)
    return self.param("p", self.start) + state.value


def main():
  return M(start={start}, kept={kept})
"""


@pytest.mark.parametrize(
    ("start", "kept"),
    [("lambda key: (jnp.ones(3), 2)", "1.0"), ("lambda key: 0.5", "1.0")],
)
def test_a_field_may_be_given_what_makes_a_tree(start: str, kept: str) -> None:
    found = refusal(GIVEN.format(start=start, kept=kept))
    assert found.reason == "the initialiser of this parameter gives something else than one array"


STATE = """\
class M(nn.Module):
  @nn.compact
  def __call__(self, x):
    v = self.variable("stats", "v", {start})
    v.value = {value}
    return x * v.value["n"]
"""


@pytest.mark.parametrize(
    ("start", "value"),
    [
        ('lambda: {"n": 1.0, "w": x}', '{"n": x}'),
        ('lambda: {"n": 1.0}', '{"n": x, "w": x}'),
        ('lambda: {"n": 1.0, "w": x}', "dict(n=x)"),
        ('lambda: {"n": 1.0, "w": x}', '{name: x for name in ("n",)}'),
        ('lambda: {"n": 1.0, "w": x}', '{**v.value, "n": x}'),
        ("start", '{"n": x}'),
    ],
)
def test_state_that_is_assigned_a_dict_which_may_have_other_keys_is_linens(
    start: str, value: str
) -> None:
    found = refusal(STATE.format(start=start, value=value))
    assert found.reason == "Linen keeps what v holds under keys that are not assigned here"


@pytest.mark.parametrize(
    ("start", "value"),
    [
        ('lambda: {"n": 1.0, "w": x}', '{"w": x, "n": x}'),
        ('lambda: {"n": 1.0, "w": x}', "dict(n=x, w=x)"),
        ('lambda: {"n": 1.0}', "jax.tree.map(jnp.negative, v.value)"),
        ("lambda: dict(n=1.0)", '{"n": v.value["n"] + 1}'),
    ],
)
def test_state_that_is_assigned_all_of_its_keys_becomes_nnx(start: str, value: str) -> None:
    assert "v.set_value(" in converted(STATE.format(start=start, value=value))
