"""Names that ``setup`` gives, and lists that it takes apart: explicit where they are followed, else lazy."""

from __future__ import annotations

import pytest

from tests.rewrite.running import lazy, net_alike

SOURCE = """\
from typing import Sequence

import flax.linen as nn
import jax
import jax.numpy as jnp


class Net(nn.Module):
    deep: bool = True
    widths: Sequence[int] = (3, 4)

    def setup(self):
        {setup}

    def __call__(self, x):
        {call}


"""
ONE = "return self.first(x)"
TWO = "return self.second(self.first(x))"
ALL = "for layer in self.layers:\n            x = layer(x)\n        return x"
REST = (
    "x = self.first(x)\n        for layer in self.rest:\n            x = layer(x)\n        return x"
)
EXPLICIT = {
    "an attribute": ("self.first = nn.Dense(3, name='a')", ONE),
    "a pair": ("self.first, self.second = nn.Dense(3, name='a'), nn.Dense(4)", TWO),
    "a list": ("self.layers = [nn.Dense(w, name=f'd{w}') for w in self.widths]", ALL),
    "the attribute's own name": (
        "self.first = nn.Dense(3, name='first') if self.deep else nn.Dense(4, name='first')",
        ONE,
    ),
    "no name in branches": ("self.first = nn.Dense(3) if self.deep else nn.Dense(4)", ONE),
    "locals in a list": (
        "a, b = [nn.Dense(w) for w in (3, 3)]\n        self.layers = [b, a]",
        ALL,
    ),
}
NAMED = "a submodule is given a name inside a larger expression"
REARRANGED = "a list of submodules is built and changed in one expression"
STARRED = "some of a list of submodules are unpacked into one"
LAZY = {
    "a condition": (
        "self.first = nn.Dense(3, name='a') if self.deep else nn.Dense(4, name='b')",
        ONE,
        NAMED,
    ),
    "an alternative": ("self.first = nn.Dense(3, name='a') or None", ONE, NAMED),
    "an unpacked comprehension": (
        "self.first, self.second = [nn.Dense(w, name=f'd{w}') for w in self.widths]",
        TWO,
        NAMED,
    ),
    "one of a list": ("self.first = [nn.Dense(w, name='a') for w in (3,)][0]", ONE, NAMED),
    "a dict of arguments": (
        "self.first = nn.Dense(**{'features': 3, 'name': 'a'})",
        ONE,
        "given its name in a dict",
    ),
    "a dict of arguments that has a name later": (
        "kw = {'features': 3}\n        kw.update(name='a')\n        self.first = nn.Dense(**kw)",
        ONE,
        "given its name in a dict",
    ),
    "a dict that is made by name": (
        "kw = dict(features=3, name='a')\n        self.first = nn.Dense(**kw)",
        ONE,
        "given its name in a dict",
    ),
    "another in each branch": (
        (
            "if self.deep:\n            self.first = nn.Dense(3, name='a')\n"
            "        else:\n            self.first = nn.Dense(4, name='b')"
        ),
        ONE,
        "the submodule self.first has another name here",
    ),
    "one of a local list, and the list": (
        (
            "parts = [nn.Dense(w, name=f'd{w}') for w in self.widths]\n"
            "        self.first = parts[0]\n        self.rest = parts[1:]"
        ),
        REST,
        "a submodule with a name of its own is stored by itself and in a list",
    ),
    "a slice": ("self.layers = [nn.Dense(w) for w in self.widths][::-1]", ALL, REARRANGED),
    "a sorted list": (
        "self.layers = sorted([nn.Dense(3), nn.Dense(4)], key=lambda d: -d.features)",
        ALL,
        REARRANGED,
    ),
    "a reversed list": (
        "self.layers = list(reversed([nn.Dense(w) for w in self.widths]))",
        ALL,
        REARRANGED,
    ),
    "zipped lists": (
        "self.layers = list(zip([nn.Dense(w) for w in self.widths], [nn.LayerNorm(), nn.LayerNorm()]))",
        "for a, b in self.layers:\n            x = b(a(x))\n        return x",
        REARRANGED,
    ),
    "a list or another": (
        "self.layers = (self.widths and [nn.Dense(3)]) or [nn.Dense(4)]",
        ALL,
        REARRANGED,
    ),
    "the rest of a list": (
        "self.first, *self.rest = [nn.Dense(w) for w in self.widths]",
        REST,
        STARRED,
    ),
    "the rest of a local list": (
        (
            "layers = []\n        for w in self.widths:\n            layers.append(nn.Dense(w))\n"
            "        self.first, *self.rest = layers"
        ),
        REST,
        STARRED,
    ),
    "the last of a list": (
        "rest = [nn.Dense(w) for w in (3, 5)]\n        self.first = rest.pop()\n        self.rest = rest",
        REST,
        "a submodule is taken out of a list",
    ),
}


def net(setup: str, call: str) -> str:
    return SOURCE.format(setup=setup, call=call)


@pytest.mark.parametrize(("setup", "call"), EXPLICIT.values(), ids=EXPLICIT)
def test_what_is_followed_is_explicit(setup: str, call: str) -> None:
    assert net_alike(net(setup, call), "jnp.ones((2, 5))") == {"m.Net": "explicit"}


@pytest.mark.parametrize(("setup", "call", "reason"), LAZY.values(), ids=LAZY)
def test_what_is_not_is_lazy_and_its_variables_are_linens(
    setup: str, call: str, reason: str
) -> None:
    assert net_alike(net(setup, call), "jnp.ones((2, 5))") == {"m.Net": "lazy"}
    assert reason in lazy(net(setup, call), "Net")


@pytest.mark.parametrize(
    ("held", "form"), [("nn.Dense(w)", "lazy"), ("x", "explicit")], ids=["submodules", "arrays"]
)
def test_a_list_that_a_compact_method_takes_from(held: str, form: str) -> None:
    body = (
        f"kept = [{held} for w in self.widths]\n        last = kept.pop()\n"
        "        return nn.Dense(3)(last(x) if callable(last) else last)"
    )
    source = net("pass", body).replace("    def __call__", "    @nn.compact\n    def __call__")
    assert net_alike(source, "jnp.ones((2, 5))") == {"m.Net": form}


def test_a_name_in_a_dict_of_arguments_keeps_a_compact_class_lazy() -> None:
    layer = "nn.Dense(**{'features': 3, 'name': 'a'})(x)"
    source = net("pass", f"return {layer}").replace(
        "    def __call__", "    @nn.compact\n    def __call__"
    )
    assert net_alike(source, "jnp.ones((2, 5))") == {"m.Net": "lazy"}


def test_a_name_in_a_dict_that_a_field_gets_keeps_the_class_lazy() -> None:
    source = (
        "import flax.linen as nn\nimport jax\nimport jax.numpy as jnp\n\n\n"
        "class Inner(nn.Module):\n    options: dict\n\n    @nn.compact\n    def __call__(self, x):\n"
        "        return nn.Dense(**self.options)(x)\n\n\n"
        "class Net(nn.Module):\n    @nn.compact\n    def __call__(self, x):\n"
        "        return Inner({'features': 3, 'name': 'a'})(x)\n\n\n"
    )
    assert net_alike(source, "jnp.ones((2, 5))")["m.Inner"] == "lazy"


def test_a_factory_may_hand_on_a_name() -> None:
    source = (
        "import flax.linen as nn\nimport jax\nimport jax.numpy as jnp\n\n\n"
        "def dense(width, **options):\n    return nn.Dense(width, **options)\n\n\n"
        "class Net(nn.Module):\n"
        "    def make(self, width, **options):\n        return nn.Dense(width, **options)\n\n"
        "    @nn.compact\n    def __call__(self, x):\n"
        "        return self.make(3, name='a')(dense(2, name='b')(self.make(4)(x)))\n\n\n"
    )
    assert net_alike(source, "jnp.ones((2, 5))") == {"m.Net": "explicit"}


@pytest.mark.parametrize("built", ["self.make", "(nn.Dense if self.wide else nn.DenseGeneral)"])
def test_a_name_in_a_dict_keeps_a_class_lazy_whatever_class_is_built(built: str) -> None:
    source = (
        "import flax.linen as nn\nimport jax\nimport jax.numpy as jnp\nfrom typing import Any\n\n\n"
        "class Net(nn.Module):\n    make: Any = nn.Dense\n    wide: bool = True\n\n"
        "    @nn.compact\n    def __call__(self, x):\n        options = {'name': 'a'}\n"
        f"        return {built}(3, **options)(x)\n\n\n"
    )
    assert net_alike(source, "jnp.ones((2, 5))") == {"m.Net": "lazy"}
