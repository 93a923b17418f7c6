"""Code that changes what flax.linen itself has: explicit classes are of NNX's, so all are lazy."""

import pytest

from tests.rewrite.projects import LINEN, dense
from tests.rewrite.running import printed_alike
from tests.rewrite.test_forms import auto, reason, said

MODEL = LINEN + dense("A") + "def main(k, x):\n    return A().init(k, x)\n"
HEAD = "from unittest import mock\n\nimport flax\nimport flax.linen as nn\n\n\n"
FAKE = "def fake(self, x):\n    return x\n\n\n"

CHANGING = {
    "an attribute": "nn.Dense.__call__ = fake\n",
    "in a function": "def install():\n    nn.Dense.__call__ = fake\n",
    "a function of the module": "flax.linen.relu = fake\n",
    "setattr": "setattr(nn.Module, 'param', fake)\n",
    "del": "del nn.Dense.bias_init\n",
    "a fixture of pytest": "def test(monkeypatch):\n    monkeypatch.setattr(nn.Dense, '__call__', fake)\n",
    "a fixture of pytest, by the name": (
        "def test(monkeypatch):\n    monkeypatch.setattr('flax.linen.Dense.__call__', fake)\n"
    ),
    "a mock": "with mock.patch.object(nn.Module, 'param', fake):\n    pass\n",
    "a mock by its name": "with mock.patch('flax.linen.Module.param', fake):\n    pass\n",
    "a function that sets one": "def put(cls, call):\n    cls.__call__ = call\n\n\nput(nn.Dense, fake)\n",
    "a loop over layers": "for cls in (nn.Dense, nn.Conv):\n    cls.__call__ = fake\n",
    "a local name": "def test():\n    cls = nn.Dense\n    cls.__call__ = fake\n",
}


@pytest.mark.parametrize("text", CHANGING.values(), ids=CHANGING)
def test_no_class_is_explicit_where_a_layer_is_changed(text: str) -> None:
    result = auto({"m.py": MODEL, "f.py": HEAD + FAKE + text})
    assert said(result) == {"m.A": "lazy"}
    assert "flax.linen itself" in reason(result, "m.A")


HARMLESS = {
    "a layer is called": "dense = nn.Dense(3)\n",
    "a layer is read": "print(nn.Dense.__name__, getattr(nn, 'relu'))\n",
    "a layer is handed to a function": "def show(cls):\n    return cls(3)\n\n\nshow(nn.Dense)\n",
    "another class is changed": "class B:\n    pass\n\n\nB.layer = nn.Dense\n",
    "a mock of something else": "with mock.patch('os.path.exists', fake):\n    pass\n",
    "a text": "print('flax.linen.Dense is patched')\n",
}


@pytest.mark.parametrize("text", HARMLESS.values(), ids=HARMLESS)
def test_what_leaves_layers_as_they_are_leaves_classes_explicit(text: str) -> None:
    assert said(auto({"m.py": MODEL, "f.py": HEAD + FAKE + text})) == {"m.A": "explicit"}


def test_a_program_that_changes_what_param_draws_prints_the_same() -> None:
    source = (
        "import flax.linen as nn\nimport jax\nimport jax.numpy as jnp\n\nparam = nn.Module.param\n\n\n"
        "def shifted(self, name, init, *args):\n"
        "    return param(self, name, lambda *given: init(*given) + 1, *args)\n\n\n"
        "class Net(nn.Module):\n    @nn.compact\n    def __call__(self, x):\n"
        "        return x * self.param('w', nn.initializers.normal(), (1, 3))\n\n\n"
        "def main():\n    nn.Module.param = shifted\n    try:\n"
        "        x = jnp.ones((2, 3))\n        made = Net().init(jax.random.key(0), x)\n"
        "        print(made, Net().apply(made, x))\n"
        "    finally:\n        nn.Module.param = param\n"
    )
    assert printed_alike(source) == {"m.Net": "lazy"}
