"""Lists of pairs, and loops over them from the end: sizes and names are those of the rounds."""

from __future__ import annotations

import pytest

from tests.rewrite.running import printed_alike

SOURCE = """import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np


class Model(nn.Module):
    widths: tuple = (3, 5, 7)

    @nn.compact
    def __call__(self, x):
{body}        return nn.Dense(2)(x)


def main():
    model = Model()
    x = jnp.linspace(0.0, 1.0, 12).reshape(2, 6)
    variables = model.init(jax.random.key(0), x)
    for path, leaf in jax.tree_util.tree_leaves_with_path(variables):
        print(jax.tree_util.keystr(path), leaf.shape, np.asarray(leaf).tobytes().hex())
    print(np.asarray(model.apply(variables, x)).tobytes().hex())
"""

LOOPS = {
    "with its width": (
        "for i, w in reversed(list(enumerate(self.widths))):",
        "x = nn.Dense(w)(x)",
        "x = nn.Dense(x.shape[-1], name=f'next_{i}')(x)",
    ),
    "with the next width": (
        "for i, w in reversed(list(enumerate(self.widths))):",
        "x = nn.Dense(w)(x)",
        "if i:",
        "    x = nn.Dense(self.widths[i - 1])(x)",
    ),
    "what is left of its variables": (
        "for i, w in reversed(list(enumerate(self.widths))):",
        "x = nn.Dense(w)(x)",
        "x = nn.tanh(x)",
    ),
    "pairs": (
        "for w, v in reversed(tuple(zip(self.widths, self.widths[1:]))):",
        "x = nn.Dense(w)(x)",
        "x = nn.Dense(x.shape[-1] + v)(x)",
    ),
    "a list of pairs": (
        "for i, w in list(enumerate(self.widths)):",
        "x = nn.Dense(w, name=f'up_{i}')(x)",
        "x = nn.Dense(x.shape[-1])(x)",
    ),
    "numbers": (
        "for i in reversed(range(len(self.widths))):",
        "x = nn.Dense(self.widths[i])(x)",
        "x = nn.Dense(x.shape[-1])(x)",
    ),
}


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_a_loop_from_the_end_computes_what_linens_does(loop: tuple[str, ...]) -> None:
    head, *inner = loop
    lines = [head, *(f"    {one}" for one in inner)]
    body = "".join(f"        {line}\n" for line in lines)
    assert printed_alike(SOURCE.format(body=body)) == {"m.Model": "explicit"}


def test_skips_are_taken_from_the_end() -> None:
    lines = (
        "skips = [x]",
        "for w in self.widths:",
        "    x = nn.Dense(w)(x)",
        "    skips.append(x)",
        "for i, w in reversed(list(enumerate(self.widths))):",
        "    x = nn.Dense(w)(jnp.concatenate([x, skips.pop()], -1))",
        "    b, c = x.shape",
        "    x = nn.Dense(c)(x.reshape(b, c))",
    )
    body = "".join(f"        {line}\n" for line in lines)
    assert printed_alike(SOURCE.format(body=body)) == {"m.Model": "explicit"}
