"""Classes whose submodules are built by what only the running program knows, and code that looks alike."""

from __future__ import annotations

import pytest

from tests.rewrite.classes.support import converted, refusal
from tests.rewrite.running import in_auto, lazy, printed_alike

HEADER = """\
import functools
from typing import Any, Callable

import flax.linen as nn
import jax.numpy as jnp
from elsewhere import Categorical

TABLE = {}
ACTS = {"relu": nn.relu, "tanh": nn.tanh}
INITS = {"zeros": nn.initializers.zeros, "ones": nn.initializers.ones}


class Registry:
    def __init__(self):
        self.classes = {}

    def get(self, name):
        return self.classes[name]

    def build(self, name, *args):
        return self.classes[name](*args)


REGISTRY = Registry()
LOGGER = Registry()


def register(cls):
    TABLE[cls.__name__] = cls
    return cls


class Part(nn.Module):
    width: int

    def setup(self):
        self.dense = nn.Dense(self.width)

    def __call__(self, x):
        return self.dense(x)

    def encode(self, x):
        return self.dense(x)

    def sample(self, x):
        return self.dense(x)


class Net(nn.Module):
    kinds: tuple[str, ...]
    width: int
    config: Any = None
    make: Callable = None

"""

SETUPS = {
    "dict filled in a loop": """\
        parts = {}
        for kind in self.kinds:
            parts[kind] = TABLE[kind](4)
        self.parts = parts
    """,
    "list that is added to": """\
        parts = []
        parts += [TABLE[kind](4) for kind in self.kinds]
        self.parts = parts
    """,
    "list that is extended": """\
        parts = []
        parts.extend(TABLE[kind](4) for kind in self.kinds)
        self.parts = parts
    """,
    "map": """\
        self.parts = tuple(map(lambda kind: TABLE[kind](4), self.kinds))
    """,
    "object": """\
        self.parts = [REGISTRY.build(kind, 4) for kind in self.kinds]
    """,
    "class of an object": """\
        self.parts = [REGISTRY.get(kind)(4) for kind in self.kinds]
    """,
    "partial": """\
        self.parts = [functools.partial(REGISTRY.get("a"), 4)() for _ in self.kinds]
    """,
    "layers in sequence": """\
        self.parts = nn.Sequential([REGISTRY.build(kind, 4) for kind in self.kinds])
    """,
    "what is given the module": """\
        self.parts = []
        REGISTRY.build_into(self, "a")
    """,
    "what is given a list": """\
        parts = []
        REGISTRY.fill(parts, "a")
        self.parts = parts
    """,
}


@pytest.mark.parametrize("setup", SETUPS.values(), ids=SETUPS)
@pytest.mark.parametrize("is_used", [True, False], ids=["used", "stored"])
def test_what_setup_builds_by_a_table_is_lazy_wherever_it_goes(setup: str, is_used: bool) -> None:
    call = "        for part in self.parts:\n            x = part(x)\n" if is_used else ""
    text = f"{HEADER}    def setup(self):\n{setup.rstrip()}\n\n    def __call__(self, x):\n{call}        return x\n"
    assert "may build a submodule of a class that is not known" in refusal(text).reason


@pytest.mark.parametrize(
    "body",
    [
        "        return REGISTRY.build('a', 4).encode(x)\n",
        "        part = REGISTRY.build('a', 4)\n        return part.encode(x)\n",
        "        return self.config.build(4)(x)\n",
        "        return self.make(4).encode(x)\n",
        "        return functools.reduce(lambda y, kind: TABLE[kind](4)(y), self.kinds, x)\n",
        "        parts = tuple(map(lambda kind: TABLE[kind](4), self.kinds))\n        return parts[0](x)\n",
        "        for part in [TABLE[kind](4) for kind in self.kinds][::-1]:\n            x = part.encode(x)\n",
        "        return TABLE.get(self.kinds[0])(4)(x)\n",
    ],
    ids=[
        "method of what an object makes",
        "method of a local",
        "method of a field",
        "what a field makes",
        "reduce",
        "map",
        "list that is turned round",
        "get",
    ],
)  # fmt: skip
def test_what_a_call_builds_by_a_table_is_lazy(body: str) -> None:
    text = f"{HEADER}    @nn.compact\n    def __call__(self, x):\n{body}"
    assert "may build a submodule of a class that is not known" in refusal(text).reason


@pytest.mark.parametrize(
    ("package", "is_known"),
    [
        ("tensorflow_probability.substrates.jax.bijectors", True),
        ("distrax", True),
        ("e3x.nn", False),
    ],
)
def test_objects_of_packages_without_layers_are_called(package: str, is_known: bool) -> None:
    text = (
        f"import flax.linen as nn\nimport {package} as tfb\n\n\nclass Net(nn.Module):\n"
        "    @nn.compact\n    def __call__(self, x):\n        mean = nn.Dense(4)(x)\n"
        "        return tfb.Shift(mean)(tfb.Scale(2.0))\n"
    )
    if is_known:
        assert "self.Dense_0 = nnx.Linear(" in converted(text)
    else:
        assert "may build a submodule of a class that is not known" in refusal(text).reason


BY_FIELD = """\
import functools
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp


class Net(nn.Module):
    kinds: tuple[int, ...] = (1, 2)
    layer: Any = {default}

    @nn.compact
    def __call__(self, x):
        parts = {parts}
        return parts[{first}](x)


def main():
    x = jnp.linspace(-1, 1, 8).reshape(2, 4)
    for model in (Net(), Net(layer=nn.DenseGeneral)):
        variables = model.init(jax.random.key(0), x)
        print(jax.tree.map(jnp.sum, variables))
        print(model.apply(variables, x))
"""
BY_DEFAULT = ["nn.Dense", "functools.partial(nn.Dense, use_bias=False)"]


@pytest.mark.parametrize("default", BY_DEFAULT)
def test_what_a_dict_comprehension_builds_by_a_field_is_left_to_its_first_call(
    default: str,
) -> None:
    parts = "{n: self.layer(4) for n in ('a', 'b')}"
    source = BY_FIELD.format(default=default, parts=parts, first="'a'")
    assert printed_alike(source) == {"m.Net": "explicit"}


@pytest.mark.parametrize("default", BY_DEFAULT)
def test_what_code_that_is_not_followed_builds_by_a_field_is_lazy(default: str) -> None:
    parts = "[self.layer(i + j) for i in self.kinds for j in self.kinds]"
    source = BY_FIELD.format(default=default, parts=parts, first="0")
    assert printed_alike(source) == {"m.Net": "lazy"}
    assert "self.layer may build a submodule" in lazy(source, "Net")


def test_what_such_code_computes_by_a_field_is_explicit() -> None:
    code = "        return {n: self.act(x) for n in ('a', 'b')}\n"
    text = f"{HEADER}    act: Callable = nn.relu\n\n    def __call__(self, x):\n{code}"
    assert "self.act(x) for n in" in converted(text)


def test_what_a_call_builds_by_a_table_is_lazy_when_a_list_is_filled() -> None:
    text = f"""{HEADER}\
    @nn.compact
    def __call__(self, x):
        parts = []
        for kind in self.kinds:
            parts.append(TABLE[kind](4))
        for part in parts:
            x = part(x)
        return x
"""
    assert "TABLE[kind] may build a submodule" in refusal(text).reason


@pytest.mark.parametrize(
    ("setup", "result"),
    [
        ("self.act = ACTS[self.kinds[0]]", "self.act(x)"),
        ("self.scale = self.param('scale', INITS[self.kinds[0]], (4,))", "x * self.scale"),
        ("self.scale = self.param('scale', REGISTRY.get('ones'), (4,))", "x * self.scale"),
        ("self.first = nn.Dense(4, kernel_init=self.make(0.1, 'fan_in'))", "self.first(x)"),
        ("self.heads = self.config.heads_of(self.width)", "x * self.heads"),
        ("self.names = sorted(self.config.names.items())", "x * len(self.names)"),
        ("self.distribution = Categorical(self.width)", "self.distribution.sample(x)"),
        ("LOGGER.warning_once('a' f'{self.width}', stacklevel=2)", "x"),
    ],
    ids=[
        "function of a table",
        "initialiser of a table",
        "initialiser of an object",
        "initialiser of a field",
        "number of a configuration",
        "entries of a configuration",
        "distribution of another package",
        "message that a logger is given",
    ],
)
def test_what_builds_no_unknown_module_may_be_explicit(setup: str, result: str) -> None:
    text = (
        f"{HEADER}    def setup(self):\n        {setup}\n        self.dense = nn.Dense(self.width)\n\n"
        f"    def __call__(self, x):\n        return self.dense({result})\n"
    )
    assert "class Net(nnx.Module):" in converted(text)


REVERSED = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Part(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.width)(x)


class Net(nn.Module):
    width: int = 4

    def setup(self):
        parts = [None] * 2
        for i in reversed(range(2)):
            parts[i] = Part(self.width + i)
        self.parts = parts

    def __call__(self, x):
        return self.parts[0](self.parts[1](x))


def main():
    x = jnp.linspace(-1, 1, 6).reshape(2, 3)
    variables = Net().init(jax.random.key(0), x)
    print(jax.tree.map(jnp.sum, variables))
    print(Net().apply(variables, x))
"""


def test_an_unknown_list_of_a_known_class_is_left_to_the_first_calls_of_its_items() -> None:
    assert printed_alike(REVERSED) == {"m.Part": "explicit", "m.Net": "explicit"}
    assert "parts[i] = lazy(Part)(self.width + i)\n" in in_auto(REVERSED)
