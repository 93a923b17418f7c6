"""Submodules of ``setup`` that only other methods than ``__call__`` reach."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from tests.rewrite.projects import LINEN
from tests.rewrite.running import module_of, printed_alike
from tests.rewrite.test_forms import auto, code, reason, said

DECODER = """\
class Decoder(nn.Module):
    deep: bool = True

    def setup(self):
        self.body = nn.Dense(3)
        self.head = nn.Dense(10)

    def __call__(self, x):
        return self.body(x)

    def logits(self, x):
        return self.head(x)

    def some(self, x):
        return self.head(x) if self.deep else x


"""
MODEL = """\
class Model(nn.Module):
    tied: bool = True

    def setup(self):
        self.decoder = {built}

    def __call__(self, x, train=True):
{body}

    def later(self, x):
        return self.decoder.logits(x)
"""
REACHED = {
    "always": "return self.decoder.logits(self.decoder(x))",
    "by the name of a local": "decoder = self.decoder\nreturn decoder.logits(decoder(x))",
    "in a helper": "return self.later(self.decoder(x))",
}
NOT_REACHED = {
    "never": "return self.decoder(x)",
    "by a field": "x = self.decoder(x)\nif self.tied:\n    x = self.decoder.logits(x)\nreturn x",
    "by an argument": "x = self.decoder(x)\nif train:\n    x = self.decoder.logits(x)\nreturn x",
    "by a method that may not reach it": "return self.decoder.some(self.decoder(x))",
}
OUTSIDE = {
    "built in a program": "\n\ndef program(x):\n    return Decoder().init(0, x)\n",
    "handed to a function": "\n\nbuild(Decoder)\n",
    "built by another class that never calls it": "\n\nclass Other(nn.Module):\n"
    "    @nn.compact\n    def __call__(self, x):\n        return Decoder()(x)\n",
}


def program(body: str, built: str = "Decoder()", decoder: str = DECODER) -> str:
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    return LINEN + decoder + MODEL.format(built=built, body=lines.rstrip())


@pytest.mark.parametrize("body", REACHED.values(), ids=REACHED)
def test_what_every_builder_calls_is_built(body: str) -> None:
    result = auto({"m.py": program(body)})
    assert said(result) == {"m.Decoder": "explicit", "m.Model": "explicit"}, reason(
        result, "m.Decoder"
    )


LEFT = "self.head = nn.Dense(10)"
MAIN = """

def main():
    import jax
    import jax.numpy as jnp

    x = jnp.ones((2, 3))
    for net in (Model(), Model(tied=False), Decoder()):
        made = net.init(jax.random.key(0), x)
        print([(jax.tree_util.keystr(path), leaf.sum()) for path, leaf in jax.tree.leaves_with_path(made)])
        print(net.apply(made, x))
    made = Decoder().init(jax.random.key(0), x, method="logits")
    print(jax.tree.map(jnp.shape, made), Decoder().apply(made, x, method="logits"))
"""


@pytest.mark.parametrize("body", NOT_REACHED.values(), ids=NOT_REACHED)
def test_what_a_builder_may_never_call_is_left_to_its_first_call(body: str) -> None:
    text = program(body)
    result = auto({"m.py": text})
    assert said(result)["m.Decoder"] == "explicit"
    assert LEFT in code(result)
    printed_alike(text + MAIN)


@pytest.mark.parametrize("outside", OUTSIDE.values(), ids=OUTSIDE)
def test_so_is_what_others_build_without_calling_it(outside: str) -> None:
    result = auto({"m.py": program(REACHED["always"]) + outside})
    assert said(result)["m.Decoder"] == "explicit"
    assert LEFT in code(result)


def test_so_is_that_of_a_class_that_nothing_builds() -> None:
    result = auto({"m.py": LINEN + DECODER})
    assert said(result)["m.Decoder"] == "explicit"
    assert LEFT in code(result)


def test_a_lifted_class_is_not_the_class_that_is_built() -> None:
    result = auto({"m.py": program(REACHED["always"], "nn.remat(Decoder)()")})
    assert said(result)["m.Decoder"] == "explicit"
    assert LEFT in code(result)


def test_a_method_that_reaches_it_by_a_condition_is_no_proof() -> None:
    decoder = DECODER.replace("        return self.head(x)\n", "        return self.some(x)\n")
    result = auto({"m.py": program(REACHED["always"], decoder=decoder)})
    assert said(result)["m.Decoder"] == "explicit"
    assert LEFT in code(result)


def test_the_parameters_are_those_that_linen_made() -> None:
    run = "\n\ndef run(x):\n    return Model().init(jax.random.key(0), x)\n"
    text = "import jax\n" + program(REACHED["always"]) + run
    result = auto({"m.py": text})
    assert said(result)["m.Decoder"] == "explicit"
    x = np.ones((2, 3), np.float32)
    with module_of("before", text) as before, module_of("after", code(result)) as after:
        one, two = (jax.tree.map(np.asarray, made.run(x)) for made in (before, after))
    assert jax.tree.structure(one) == jax.tree.structure(two)
    jax.tree.map(np.testing.assert_array_equal, one, two)
