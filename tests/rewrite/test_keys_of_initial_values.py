"""Variables that start at a key of a stream: Linen draws it where the call does, and again in ``apply``."""

from __future__ import annotations

import pytest

from tests.rewrite.projects import LINEN
from tests.rewrite.running import printed_alike

PROGRAM = (
    LINEN
    + """\
import jax
import jax.numpy as jnp


class Net(nn.Module):
    def started(self):
        return jax.random.normal(self.make_rng("{stream}"), (1, 3))

{body}

rngs = {{"params": jax.random.key(0), "noise": jax.random.key(1)}}
x = jnp.ones((2, 3))


def main():
    variables = Net().init(rngs, x)
    print(variables, Net().apply(variables, x, rngs=rngs))
"""
)
NOISE = 'jax.random.normal(self.make_rng("noise"), x.shape)'
BODIES = {
    "of a local": f"""\
    @nn.compact
    def __call__(self, x):
        key = self.make_rng("{{stream}}")
        start = self.variable("state", "start", nn.initializers.normal(1.0), key, (1, 3))
        return x * start.value + {NOISE}
""",
    "behind another draw": f"""\
    @nn.compact
    def __call__(self, x):
        x = x + {NOISE}
        draw = lambda: jax.random.normal(self.make_rng("{{stream}}"), (1, 3))
        return x * self.variable("state", "start", draw).value
""",
    "in setup": f"""\
    def setup(self):
        self.start = self.variable("state", "start", lambda: self.started())

    def __call__(self, x):
        return x * self.start.value + {NOISE}
""",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_class_whose_variable_starts_at_a_key_of_a_stream_is_lazy(body: str) -> None:
    program = PROGRAM.format(body=body.format(stream="noise"), stream="noise")
    assert printed_alike(program)["m.Net"] == "lazy"


def test_a_key_of_the_parameters_keeps_it_explicit() -> None:
    draw = 'jax.random.normal(self.make_rng("params"), (1, 3))'
    body = BODIES["in setup"].format(stream="params").replace("self.started()", draw)
    assert printed_alike(PROGRAM.format(body=body, stream="params"))["m.Net"] == "explicit"
