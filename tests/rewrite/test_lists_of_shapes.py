"""A list that holds a part of a shape is one object in ``__init__``, too: every change of it is seen."""

from __future__ import annotations

import textwrap

import pytest

from tests.rewrite.running import net_alike

SOURCE = """\
from typing import Sequence

import flax.linen as nn
import jax
import jax.numpy as jnp


class Pair(nn.Module):
    widths: Sequence[int]

    @nn.compact
    def __call__(self, x):
        for width in self.widths:
            x = nn.Dense(width)(x)
        return x


class Net(nn.Module):
    grows: bool = True

    @nn.compact
    def __call__(self, x):
        ws = [x.shape[1], 3]
BODY
"""
BODIES = [
    "ws.extend([ws[1] // 2 + 1, x.shape[1]])\nreturn Pair(ws[:])(x)",
    "more = ws\nmore.append(2)\nreturn Pair(ws)(x)",
    "more = ws if x.shape[1] > 2 else [1]\nmore[0] = 5\nreturn Pair(ws)(x)",
    "ws += [x.shape[0]]\nws[-1] += 1\nreturn Pair(tuple(ws))(x)",
    "if self.grows:\n    ws.append(sorted(ws)[0])\nreturn Pair(tuple(ws))(x)",
    "kept = {'w': ws}\nkept['w'].append(4)\nreturn Pair(ws)(x)",
    "for w in (2, 4):\n    ws.append(w)\nfirst = ws[1:]\nws.pop()\nreturn Pair(ws)(Pair(first)(x))",
]


def form(body: str) -> str:
    source = SOURCE.replace("BODY", textwrap.indent(body, " " * 8))
    return net_alike(source, "jnp.ones((2, 3))")["m.Net"]


@pytest.mark.parametrize("body", BODIES)
def test_a_list_of_a_shape_changes(body: str) -> None:
    assert form(body) == "explicit"


def test_a_list_that_nothing_changes_stays_where_it_is_read() -> None:
    body = "shape = [x.shape[0], 1, x.shape[1]]\nreturn nn.Dense(ws[0])(x.reshape(shape))"
    assert form(body) == "explicit"
