"""Layers whose width only their first call tells, built through another name of theirs: ``conv = nn.Conv``."""

from __future__ import annotations

import pytest

from tests.rewrite.running import net_alike

SOURCE = """\
import flax.linen as nn
import jax
import jax.numpy as jnp
{around}

class Net(nn.Module):
    widths: tuple = (4, 8)
    rounds: int = 2

    @nn.compact
    def __call__(self, x):
        {local}
        for i in range(len(self.widths)):
            width = self.widths[i]
            for _ in range(self.rounds):
                x = {name}(width, use_bias=False)(x)
        for _ in range(self.rounds):
            x = {name}(width)(x)
        return {name}(3, name="last")(x)
"""
NAMES = {
    "a local": ("", "dense = nn.Dense", "dense"),
    "a local that others get": ("", "dense = nn.Dense\n        kinds = [dense]", "dense"),
    "a global": ("\nLinear = nn.Dense\n", "pass", "Linear"),
    "an import": ("from flax.linen import Dense\n", "pass", "Dense"),
    "its own": ("", "pass", "nn.Dense"),
}


@pytest.mark.parametrize(("around", "local", "name"), NAMES.values(), ids=NAMES)
def test_the_layer_takes_its_width_in_its_first_call(around: str, local: str, name: str) -> None:
    source = SOURCE.format(around=around, local=local, name=name)
    assert net_alike(source, "jnp.ones((2, 3))")["m.Net"] == "explicit"
