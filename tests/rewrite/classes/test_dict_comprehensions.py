"""Dicts of submodules and parameters that a comprehension makes."""

from __future__ import annotations

import pytest

from tests.rewrite.running import printed_alike

PROGRAM = """\
import flax.linen as nn
import jax
import jax.numpy as jnp

NAMES = ("x", "y")


class Model(nn.Module):
    heads: dict

{body}


def main():
    x = jnp.linspace(-1, 1, 6).reshape(2, 3)
    model = Model({{"x": 3, "y": 3}})
    variables = model.init(jax.random.key(0), x)
    for path, value in jax.tree_util.tree_leaves_with_path(variables):
        print(jax.tree_util.keystr(path), value.tobytes().hex())
    print(jax.tree.map(lambda one: one.tobytes().hex(), model.apply(variables, x)))
"""


def program(*lines: str, setup: str = "") -> str:
    body = ["    @nn.compact"] if not setup else ["    def setup(self):", f"        {setup}", ""]
    body += ["    def __call__(self, x):", *(f"        {line}" for line in lines)]
    return PROGRAM.format(body="\n".join(body))


LAYERS = "self.parts = {k: nn.Dense(3) for k in NAMES}"


@pytest.mark.parametrize(
    "source",
    [
        program("return {k: part(x) for k, part in self.parts.items()}", setup=LAYERS),
        program("return sum(part(x) for part in self.parts.values())", setup=LAYERS),
        program(
            "parts = {k: nn.Dense(3) for k in NAMES}",
            "return {k: part(x) for k, part in parts.items()}",
        ),
        program('return {k: nn.Dense(3, name=f"head_{k}")(x) for k in NAMES}'),
        program('return {k: nn.Dense(n, name=f"head_{k}")(x) for k, n in self.heads.items()}'),
        program(
            "w = {k: self.param(k, nn.initializers.normal(), (1, 3)) for k in NAMES}",
            'return x * w["x"] + w["y"]',
        ),
        program(
            "x = [part(x) for part in self.parts.values()]",
            "return jnp.concatenate(x, -1)",
            setup="self.parts = {f'l{i}': nn.Dense(i + 1) for i in range(len(self.heads))}",
        ),
    ],
)
def test_one_whose_entries_a_loop_goes_through_is_explicit(source: str) -> None:
    assert printed_alike(source) == {"m.Model": "explicit"}


@pytest.mark.parametrize(
    "source",
    [
        program('return self.parts["y"](self.parts["x"](x))', setup=LAYERS),
        program(
            "for k, part in self.parts.items():",
            '    if k == "x":',
            "        continue",
            "    x = part(x)",
            "return x",
            setup=LAYERS,
        ),
        program(
            "for k in self.parts:",
            "    x = self.parts[k](x)",
            "return x",
            setup=LAYERS,
        ),
    ],
)
def test_one_of_which_a_key_is_read_keeps_its_class_lazy(
    source: str,
) -> None:
    assert printed_alike(source) == {"m.Model": "lazy"}


def test_one_of_which_one_key_alone_is_read_is_left_to_its_first_calls() -> None:
    source = program('return self.parts["x"](x)', setup=LAYERS)
    assert printed_alike(source) == {"m.Model": "explicit"}
