"""Layers that one expression builds and names tell apart: their inputs need not be of one width."""

from __future__ import annotations

import pytest

from tests.rewrite.running import net_alike

SOURCE = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Scale(nn.Module):
    @nn.compact
    def __call__(self, x, context):
        return x + self.param("s", nn.initializers.normal(), (context.shape[-1],)).sum()


class Mix(nn.Module):
    @nn.compact
    def __call__(self, x, context):
        return nn.Dense(x.shape[-1])(x) + nn.Dense(x.shape[-1])(context).mean(1, keepdims=True)


class Net(nn.Module):
BODY
"""
PAIR = "jnp.ones((2, 3)), jnp.ones((2, 2))"
UNPACKED = "    def setup(self):\n        {targets} = {layers}\n\n    def __call__(self, {inputs}):\n        return {out}\n"
GENERATOR, LIST = "(nn.Dense(4) for _ in range(2))", "[nn.Dense(4) for _ in range(2)]"
SUM, CHAIN = "self.q(q) + self.k(k)", "self.k(self.q(q))"
LOOP = """\
    @nn.compact
    def __call__(self, data):
        x = jnp.ones((2, 3, 4))
        data = data.reshape(2, 5, -1)
        for i in range(2):
            x = {child}(name=f"cross_{{i}}")(x, data)
        return x
"""


def form(body: str, inputs: str) -> str:
    return net_alike(SOURCE.replace("BODY", body), inputs)["m.Net"]


@pytest.mark.parametrize("layers", [GENERATOR, LIST], ids=["generator", "list"])
@pytest.mark.parametrize(
    ("out", "inputs"),
    [(SUM, PAIR), (CHAIN, "jnp.ones((2, 3)), 0")],
    ids=["two inputs", "one behind the other"],
)
def test_layers_of_two_widths_take_them_in_the_call(layers: str, out: str, inputs: str) -> None:
    body = UNPACKED.format(targets="self.q, self.k", layers=layers, inputs="q, k", out=out)
    assert form(body, inputs) == "explicit"


@pytest.mark.parametrize("layers", [GENERATOR, LIST], ids=["generator", "list"])
def test_layers_of_one_width_are_explicit(layers: str) -> None:
    body = UNPACKED.format(
        targets="self.q, self.k", layers=layers, inputs="q", out="self.q(q) * self.k(q)"
    )
    assert form(body, "jnp.ones((2, 3))") == "explicit"


@pytest.mark.parametrize("child", ["Scale", "Mix"])
def test_the_second_input_of_what_a_loop_builds_has_its_own_size(child: str) -> None:
    assert form(LOOP.format(child=child), "jnp.ones((2, 5, 3, 2))") == "explicit"


LISTED = """\
    n: int = 2

    def setup(self):
        self.parts = [Own() for _ in range(self.n)]

    def __call__(self, xs):
        return {out}
"""
OWN = """\
class Own(nn.Module):
    @nn.compact
    def __call__(self, x):
        return self.param("s", nn.initializers.normal(), (x.shape[-1],)).sum() + x.mean()


class Net"""


@pytest.mark.parametrize(
    "out",
    [
        "sum(part(xs[i]) for i, part in enumerate(self.parts))",
        "sum(self.parts[i](xs[i]) for i in range(self.n))",
    ],
)
@pytest.mark.parametrize("wide", [6, 4], ids=["two widths", "one width"])
def test_a_list_of_inputs_may_hold_several_widths(out: str, wide: int) -> None:
    body = LISTED.format(out=out)
    source = SOURCE.replace("class Net", OWN).replace("BODY", body)
    inputs = f"[jnp.ones((2, 4)), jnp.ones((2, {wide}))]"
    assert net_alike(source, inputs)["m.Net"] == "explicit"


@pytest.mark.parametrize(
    "out",
    [
        "sum(part(x) for part, x in zip(self.parts, xs))",
        "sum(self.parts[i](x) for i, x in enumerate(xs))",
    ],
)
def test_layers_beside_inputs_that_may_be_fewer_are_left_to_their_first_calls(out: str) -> None:
    source = SOURCE.replace("class Net", OWN).replace("BODY", LISTED.format(out=out))
    assert net_alike(source, "[jnp.ones((2, 4))]")["m.Net"] == "explicit"
