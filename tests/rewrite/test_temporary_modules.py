"""Explicit classes that read code which runs others on variables: in Linen's style, by their lazy form."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from flax.core.meta import unbox

from nnx_migrate.model import RewriteResult
from tests.rewrite.projects import rewrite_in_form, texts
from tests.rewrite.running import module_of, same_bits
from tests.rewrite.test_forms import auto, code, reason, said

HEAD = """\
from typing import Callable

import flax.linen as nn
import jax
import jax.numpy as jnp

"""
X = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)

SHAPES_AND_ROWS = """
class Block(nn.Module):
    width: int = 4

    @nn.compact
    def __call__(self, x):
        x = nn.Dense(self.width)(x)
        if self.is_initializing():
            x = x * 7
        self.sow("intermediates", "mid", x)
        return nn.tanh(x)


def count(width: int, x):
    shapes = jax.eval_shape(Block(width, parent=None).init, jax.random.key(0), x)
    return sum(one.size for one in jax.tree.leaves(shapes["params"]))


def run(width: int, weights, x):
    return Block(width, parent=None).apply({"params": weights}, x)


class Net(nn.Module):
    width: int = 4

    @nn.compact
    def __call__(self, x):
        block = Block(self.width)
        x = block(x)
        weights = block.variables["params"]
        if self.is_initializing():
            return x
        rows = jax.vmap(lambda row: run(self.width, weights, row))(x)
        return run(self.width, weights, x) * count(self.width, x) + rows


def model():
    return Net()
"""
WEIGHTS_THAT_A_NETWORK_GIVES = """
class Target(nn.Module):
    hidden: int
    out: int

    @nn.compact
    def __call__(self, x, train: bool = False):
        x = nn.Dropout(0.5, deterministic=not train)(nn.relu(nn.Dense(self.hidden)(x)))
        return nn.Dense(self.out)(x)


def first(hidden: int, out: int, x):
    return Target(hidden, out, parent=None).init(jax.random.key(1), x)["params"]


def predict(hidden: int, out: int, weights, x):
    def loss(weights):
        streams = {"dropout": jax.random.key(2)}
        y = Target(hidden, out, parent=None).apply({"params": weights}, x, True, rngs=streams)
        return (y**2).mean()

    slope = jax.jit(jax.grad(loss))(weights)
    weights = jax.tree.map(lambda one, other: one - other, weights, slope)
    return Target(hidden, out, parent=None).apply({"params": weights}, x)


class Hyper(nn.Module):
    hidden: int = 5

    @nn.compact
    def __call__(self, x):
        scale = nn.sigmoid(nn.Dense(1)(x.mean(0)))[0]
        weights = jax.tree.map(lambda one: one * scale, first(self.hidden, 2, x))
        return predict(self.hidden, 2, weights, x) + nn.Dense(2)(x)


def model():
    return Hyper()
"""
NAMES_AND_STATISTICS = """
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Config:
    width: int = 4
    dtype: Any = jnp.float32


class Cell(nn.Module):
    config: Config
    dtype: Any = None

    @nn.compact
    def __call__(self, x):
        x = nn.BatchNorm(use_running_average=True, dtype=self.dtype)(x)
        init = nn.with_partitioning(nn.initializers.lecun_normal(), ("a", None))
        return x @ self.param("w", init, (x.shape[-1], self.config.width))


class Pair(nn.Module):
    config: Config

    @nn.compact
    def __call__(self, x):
        x = Cell(self.config, name="first")(x)
        return Cell(self.config, name="second")(nn.relu(x))


def thrice(config: Config, variables, x):
    def again(x, _):
        return Pair(config, parent=None).apply(variables, x), None

    return jax.lax.scan(again, x, None, length=3)[0]


def names(config: Config, x):
    boxes = jax.eval_shape(Cell(config, config.dtype, parent=None).init, jax.random.key(0), x)
    return nn.get_partition_spec(boxes)["params"]["w"]


class Outer(nn.Module):
    config: Config

    @nn.compact
    def __call__(self, x):
        pair = Pair(self.config)
        y = pair(x)
        if self.is_initializing():
            return y
        return y + thrice(self.config, pair.variables, x) * len(names(self.config, x))


def model():
    return Outer(Config())
"""
PROGRAMS = {
    "shapes, and row by row": SHAPES_AND_ROWS,
    "weights that a network gives": WEIGHTS_THAT_A_NETWORK_GIVES,
    "axis names, statistics, a loop": NAMES_AND_STATISTICS,
}


def results(text: str, name: str) -> Any:
    """First variables, outputs with others, compiled too, and gradients."""
    with module_of(name, text) as module:
        model = module.model()
        first = model.init(jax.random.key(0), X)
        others = jax.tree.map(lambda one: one * 1.5 + 0.1, first)
        rest = {name: one for name, one in others.items() if name != "params"}

        def loss(params: Any) -> Any:
            return (model.apply({**rest, "params": params}, X) ** 2).sum()

        slopes = jax.grad(loss)(others["params"])
        assert all((one != 0).any() for one in jax.tree.leaves(slopes))
        sown = model.apply(others, X, mutable=["intermediates"])
        made = first, sown, jax.jit(model.apply)(others, X), slopes
    return unbox(made)


@pytest.mark.parametrize("form", ["auto", "lazy"])
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_every_form_computes_linens_bits(program: str, form: str) -> None:
    files = {"m.py": HEAD + program}
    result = rewrite_in_form(files, form)
    wanted = {"auto": "explicit", "lazy": "lazy"}[form]
    assert {*said(result).values()} == {wanted}, [one.reason for one in result.classes]
    text = texts(result, files)["m.py"]
    assert ", parent=None).init" in text
    assert ", parent=None).apply" in text
    assert ("lazy(" in text) is (form == "auto")
    same_bits(results(files["m.py"], "linen_side"), results(text, "other_side"))


BLOCK = """
class Block(nn.Module):
    width: int
    {field}

    {compact}
    def __call__(self, x{parameter}):
        return {call}


def run(width: int, weights, x, other):
    {run}


class Net(nn.Module):
    width: int = 4

    @nn.compact
    def __call__(self, x):
        return run(self.width, {{"Dense_0": {{"kernel": x.T @ x, "bias": x[0]}}}}, x, {other})
"""
PLAIN = {
    "field": "bias: bool = True",
    "compact": "@nn.compact",
    "parameter": "",
    "call": "nn.Dense(self.width)(x)",
    "other": "3",
    "run": 'return Block(width, parent=None).apply({"params": weights}, x)',
}


def net(**changed: str) -> RewriteResult:
    return auto({"m.py": HEAD + BLOCK.format(**{**PLAIN, **changed})})


APPLIED = '.apply({"params": weights}, x)'
FINE = {
    "as it is": {},
    "data that its field says": {"run": f"return Block(width, other > 2, parent=None){APPLIED}"},
    "a function by its name": {
        "field": "act: Callable = nn.relu",
        "call": "self.act(nn.Dense(self.width)(x))",
        "run": f"return Block(width, jnp.tanh, parent=None){APPLIED}",
    },
    "given to a function of jax's": {
        "run": "return jax.eval_shape(Block(width, parent=None).init, jax.random.key(0), x)"
    },
}
MISSED = {
    "another method": {
        "run": f"return Block(width, parent=None){APPLIED[:-1]}, method=other)",
    },
    "options that are unpacked": {
        "run": f"return Block(width, parent=None){APPLIED[:-1]}, **other)",
    },
    "a run that is kept": {
        "run": "first = Block(width, parent=None).init\n    return first(jax.random.key(0), x)"
    },
    "a run that is handed on": {
        "run": "return use(Block(width, parent=None).init, jax.random.key(0), x)"
    },
    "a call that gives a part": {
        "call": "self.part, self.part(x)",
        "compact": "",
        "field": "def setup(self):\n        self.part = nn.Dense(self.width)",
    },
    "a call that calls what it is given": {
        "parameter": ", act",
        "call": "act(nn.Dense(self.width)(x))",
        "run": f"return Block(width, parent=None){APPLIED[:-1]}, other)",
        "other": "nn.Dense(4)",
    },
    "a field for a function": {
        "field": "act: Callable = nn.relu",
        "call": "self.act(nn.Dense(self.width)(x))",
        "run": f"return Block(width, other, parent=None){APPLIED}",
        "other": "nn.Dense(4)",
    },
    "fields that are unpacked": {"run": f"return Block(width, *other, parent=None){APPLIED}"},
    "a module that may get a parent": {"run": f"return Block(width){APPLIED}"},
    "a module under a name": {
        "run": f"block = Block(width, parent=None)\n    return block{APPLIED}"
    },
    "a module": {"run": "return Block(width, parent=None)"},
    "a bound module": {
        "run": 'return Block(width, parent=None).bind({"params": weights})',
    },
}


@pytest.mark.parametrize("changed", FINE.values(), ids=FINE)
def test_a_class_that_reads_such_code_is_explicit(changed: dict[str, str]) -> None:
    result = net(**changed)
    assert said(result) == {"m.Block": "explicit", "m.Net": "explicit"}, reason(result, "m.Net")
    assert "lazy(Block)(width" in code(result)


@pytest.mark.parametrize("changed", MISSED.values(), ids=MISSED)
def test_where_a_module_may_get_out_or_in_the_class_is_lazy(changed: dict[str, str]) -> None:
    assert said(net(**changed))["m.Net"] == "lazy"
