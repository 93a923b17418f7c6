"""Programs whose explicit form had layers of another size than Linen's."""

from __future__ import annotations

import pytest

from tests.rewrite.running import printed_alike

HEAD = """
import jax
import jax.numpy as jnp
import flax.linen as nn


class Model(nn.Module):
    heads: int = 1

    @nn.compact
    def __call__(self, x, y):
"""
RUN = """

def main():
    x, y = jnp.linspace(-1, 1, 24).reshape(2, 3, 4), jnp.linspace(-1, 1, 30).reshape(2, 3, 5)
    variables = Model().init(jax.random.key(0), x, y)
    print(jax.tree.map(jnp.shape, variables), Model().apply(variables, x, y).sum())
"""

OWN = [
    f"return h + self.param('p', nn.initializers.normal(1.0), {shape})[None]"
    for shape in ("h.shape[1:]", "h.shape[1:-1] + (1,)")
]


@pytest.mark.parametrize(
    "made",
    [
        "jnp.cumsum(x)",
        "jnp.eye(4, 7)",
        "jnp.mean(x, -1, None, None, True)",
        "jax.nn.one_hot(jnp.argmax(x, -1), 5, axis=1)",
        "jnp.array_split(x, 3, axis=-1)[0]",
        "x[..., jnp.array([0, 2])]",
        "x[..., :1] * y",
        "nn.Dense(self.heads)(x) * y",
        "nn.Dense(x.shape[-1] // 4)(x) * y",
    ],
)
def test_a_layer_is_as_wide_as_in_linen(made: str) -> None:
    body = f"        h = {made}\n        return nn.Dense(h.shape[-1])(x).sum() + h\n"
    assert printed_alike(HEAD + body + RUN)["m.Model"] == "explicit"


@pytest.mark.parametrize(
    ("body", "form"),
    [
        (f"*lead, d = x.shape\nh = nn.Dense(6)(x).reshape(*lead, 2, 3)\n{OWN[0]}", None),
        (f"h = jnp.stack([x, x], -1)\nh = h.reshape(*h.shape[:-2], -1)\n{OWN[1]}", None),
        (
            "h = max(x[:, :1], x[:, 1:2], key=lambda a: a.sum())\nreturn nn.Dense(h.shape[-1])(x)",
            "lazy",
        ),
    ],
)
def test_shapes_of_starred_axes_and_of_values(body: str, form: str | None) -> None:
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    found = printed_alike(HEAD + lines + RUN)["m.Model"]
    assert form in (None, found)


@pytest.mark.parametrize(
    ("body", "x", "form"),
    [
        ("return nn.Dense(len(x))(x['a'])", "{'a': jnp.ones((3, 2))}", "lazy"),
        ("return nn.Dense(x['a'].shape[0])(x['a'])", "{'a': jnp.ones((3, 2))}", "lazy"),
        ("return sum(nn.Dense(len(x))(one) for one in x)", "[jnp.ones((3, 2))] * 2", "lazy"),
        ("return nn.Dense(len(x))(x)", "jnp.ones((3, 2))", "explicit"),
        ("return nn.Dense(len(x))(x * 2)", "jnp.ones((3, 2))", "explicit"),
    ],
)
def test_a_length_is_an_axis_only_of_arrays(body: str, x: str, form: str) -> None:
    run = RUN.replace("jnp.linspace(-1, 1, 24).reshape(2, 3, 4)", x)
    assert printed_alike(f"{HEAD}        {body}\n{run}")["m.Model"] == form
