"""Layers that a compact method builds and never calls have no parameters in Linen."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nnx_migrate import nn as nnm
from tests.rewrite.classes.support import HEADER, converted, loaded, refusal
from tests.rewrite.running import in_auto, printed_alike

CELL = """\
class M(nn.Module):
  sizes: tuple = (4, 4)

  @nn.compact
  def __call__(self, x):
    {body}
    return x
"""
CARRY = "initialize_carry(jax.random.key(0), x.shape)"
HELPER = f"""\
  @staticmethod
  def zeros(x):
    cell = nn.LSTMCell(4)
    return cell.{CARRY}
"""
LOOP = f"""\
for _ in range(2):
      carry = nn.LSTMCell(4).{CARRY}
      carry, x = nn.LSTMCell(4)(carry, x)"""


@pytest.mark.parametrize(
    "body",
    [
        f"carry, x = nn.LSTMCell(4)(nn.LSTMCell(4).{CARRY}, x)",
        f"carry = nn.GRUCell(4).{CARRY}\n    carry, x = nn.GRUCell(4)(carry, x)",
        f"carry = nn.LSTMCell(4, parent=None).{CARRY}\n    carry, x = nn.LSTMCell(4)(carry, x)",
        f"carry = nn.LSTMCell(4, name='a').{CARRY}\n    carry, x = nn.LSTMCell(4)(carry, x)",
        LOOP,
        f"for _ in range(2):\n      x = x + nn.LSTMCell(4).{CARRY}[0]\n    x = nn.Dense(4)(x)",
        f"cell = nn.LSTMCell(4)\n    carry = cell.{CARRY}\n    carry, x = nn.LSTMCell(4)(carry, x)",
        f"n = 4\n    cell = nn.LSTMCell(n)\n    x = cell.{CARRY}[1] + cell.{CARRY}[0]",
        "carry, x = nn.LSTMCell(4)(self.zeros(x), x)",
        "carry, x = nn.LSTMCell(4)(self.zeros(self.zeros(x)[0]), x)",
        "for _ in range(2):\n      carry, x = nn.LSTMCell(4)(self.zeros(x), x)",
        "if len(self.sizes) == 2:\n      carry, x = nn.LSTMCell(4)(self.zeros(x), x)",
    ],
)
def test_a_cell_that_is_built_for_its_carry_counts_and_is_not_built(body: str) -> None:
    source, x = CELL.format(body=body) + HELPER, jnp.ones((2, 4))
    with (
        loaded(source, "carry_before") as before,
        loaded(converted(source), "carry_after") as after,
    ):
        variables = before.M().init(jax.random.key(0), x)
        text = converted(source)
        wanted = ("in_features", "x_features", "input_x_features")
        sizes = {name: 4 for name in wanted if f" {name}: int," in text}
        made = nnm.build(after.M, **sizes, rngs=jax.random.key(0))
        found = nnm.variables_of(made)
        assert jax.tree.map(jnp.shape, found) == jax.tree.map(jnp.shape, dict(variables))
        np.testing.assert_array_equal(nnm.apply(made, variables, x), before.M().apply(variables, x))


MORE_THAN_CALLED = "a lazy submodule is more than called here"
CELL_MAIN = """

def main():
    x = jnp.linspace(-1, 1, 8).reshape(2, 4)
    variables = M().init(jax.random.key(0), x)
    print(jax.tree.map(jnp.sum, variables))
    print(M().apply(variables, x))
"""


def test_a_layer_that_is_only_asked_is_refused() -> None:
    source = CELL.format(body="dense = nn.Dense(4)\n    x = x * dense.features")
    assert refusal(source).reason == MORE_THAN_CALLED


@pytest.mark.parametrize("more", ["", "x = nn.Dense(4)(x)", "x = nn.LayerNorm()(x)"])
def test_a_layer_that_nothing_reads_is_left_to_a_first_call(more: str) -> None:
    source = CELL.format(body=f"dense = nn.Dense(4)\n    {more}")
    assert "self.Dense_0 = nn.Dense(4)\n" in converted(source)
    printed_alike(HEADER + source + CELL_MAIN)


@pytest.mark.parametrize("handed", ["jax.checkpoint(dense.__call__)(x)", "twice(dense, x)"])
def test_a_layer_that_is_handed_on_and_may_be_called_is_refused(handed: str) -> None:
    body = f"dense = nn.Dense(4)\n    x = {handed}"
    assert refusal(CELL.format(body=body)).reason == MORE_THAN_CALLED


def test_a_cell_for_a_carry_among_cells_without_numbers_is_refused() -> None:
    body = f"""\
for size in self.sizes:
      if size > 3:
        carry = nn.LSTMCell(size).{CARRY}
        carry, x = nn.LSTMCell(size)(carry, x)"""
    assert "it is never called" in refusal(CELL.format(body=body)).reason


@pytest.mark.parametrize(
    ("body", "helper", "reason"),
    [
        (
            "if x.ndim > self.sizes[0]:\n      x = self.zeros(x)[0]\n    x = nn.LSTMCell(4)(self.zeros(x), x)[1]",
            HELPER,
            "how many of its class",
        ),
        ("x = M.zeros(x)[0]", HELPER, "how often Linen counts the cell of 'zeros'"),
        ("x = jax.tree.map(self.zeros, x)[0]", HELPER, "a submodule is built inside jax.tree.map"),
        (
            "x = self.zeros(x)[0]",
            HELPER.replace("return cell", "return x.ndim > 1 and nn.LSTMCell(4)").replace(
                "cell =", "# "
            ),
            "how often Linen counts the cell of 'zeros'",
        ),
        (
            "x = self.zeros(x)[0]",
            HELPER.replace("cell =", "if x.ndim > 1:\n      return x\n    cell ="),
            "how often Linen counts the cell of 'zeros'",
        ),
        (
            "if self.sizes[0] > 3:\n      x = self.zeros(x)[0]\n    x = nn.LSTMCell(4)(self.zeros(x), x)[1]",
            HELPER,
            "how many of its class",
        ),
    ],
)
def test_a_helper_that_builds_a_cell_where_its_number_is_not_known_is_refused(
    body: str, helper: str, reason: str
) -> None:
    assert reason in refusal(CELL.format(body=body) + helper).reason


def test_a_cell_whose_arguments_change_before_it_is_asked_is_refused() -> None:
    body = f"n = 4\n    cell = nn.LSTMCell(n)\n    n = 5\n    x = cell.{CARRY}[n - 5]"
    assert refusal(CELL.format(body=body)).reason == MORE_THAN_CALLED


# Without the size of the first part the counter of ``__init__`` would give the second its number.
COUNTED = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Part(nn.Module):
    layers: tuple = ()

    @nn.compact
    def __call__(self, x):
        for one in self.layers:
            x = one(x)
        return nn.GroupNorm(num_groups=2)(x)


def twice(layer, x):
    return layer(layer(x))


class M(nn.Module):
    flag: bool = False

    @nn.compact
    def __call__(self, x):
        if x.ndim == 2:
            x = Part()(jnp.fft.fft(x).real)
        x = jnp.fft.fft(nn.Dense(4)(x)).real
        if not self.flag:
            part = Part()
            x = twice(part, x)
        return x


class Net(nn.Module):
    flag: bool = False

    @nn.compact
    def __call__(self, x):
        x = jnp.where(x[1][:, None] > 0, x[0], 0.0)
        return M(flag=self.flag)(x)


def main():
    x = (jnp.ones((2, 4)), jnp.ones((2,)))
    print(jax.tree.map(jnp.shape, Net().init(jax.random.key(0), x)))
"""


def test_a_layer_that_a_counter_names_is_not_left_out_for_want_of_a_size() -> None:
    assert printed_alike(COUNTED) == {"m.Part": "explicit", "m.M": "lazy", "m.Net": "explicit"}


UNCALLED = """\
class Part(nn.Module):
  @nn.compact
  def __call__(self, x):
    return nn.Dense(3)(x)

class M(nn.Module):
  @nn.compact
  def __call__(self, x):
    part = Part()
    {body}
"""


@pytest.mark.parametrize(
    "body",
    [
        "return Part()(x)",
        "parts = [part]\n    parts.append(nn.LayerNorm())\n    return parts[-1](x)",
    ],
)
def test_a_module_that_is_never_called_is_left_to_a_first_call(body: str) -> None:
    source = HEADER + UNCALLED.format(body=body) + CELL_MAIN
    assert printed_alike(source) == {"m.Part": "explicit", "m.M": "explicit"}
    assert "self.Part_0 = lazy(Part)()\n" in in_auto(source)


def test_a_module_that_is_asked_for_its_name_is_refused() -> None:
    source = UNCALLED.format(body="return x * part.name.count('a')")
    assert refusal(source).reason == MORE_THAN_CALLED


def test_a_module_of_a_list_that_is_called_is_built() -> None:
    body = "parts = [nn.LayerNorm(), part]\n    return parts[-1](parts[0](x))"
    assert "self.Part_0 = Part(in_features" in converted(UNCALLED.format(body=body))


SIZELESS = """\
import jax
import jax.numpy as jnp
from flax import linen as nn


class Alpha(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.PReLU()(x)


class M(nn.Module):
    @nn.compact
    def __call__(self, x):
        {body}


def main():
    model, x = M(), jnp.ones((2, 4))
    variables = model.init(jax.random.key(0), x)
    print(jax.tree.map(jnp.shape, variables))
"""


@pytest.mark.parametrize(
    ("body", "form"),
    [
        (
            (
                "first = {0}\n        layers = [first]\n        layers.append(nn.LayerNorm())\n"
                "        return layers[-1](x)"
            ),
            "explicit",
        ),
        (
            "layers = [{0}, nn.LayerNorm()]\n        layers.pop(0)\n        return layers[0](x)",
            "lazy",
        ),
        (
            (
                "first, second = {0}, nn.LayerNorm()\n        for one in (second,):\n"
                "            x = one(x)\n        return x"
            ),
            "explicit",
        ),
        ("named = dict(a={0}, b=nn.LayerNorm())\n        return named['b'](x)", "lazy"),
    ],
)
@pytest.mark.parametrize("built", ["Alpha()", "nn.PReLU()", "nn.Embed(4, 4)"])
def test_what_a_list_holds_and_nothing_calls_has_no_parameters(
    body: str, form: str, built: str
) -> None:
    source = SIZELESS.format(body=body.format(built))
    assert printed_alike(source) == {"m.Alpha": "explicit", "m.M": form}
