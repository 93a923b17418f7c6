"""Keys drawn inside of functions that jax traces apart: Linen counts them in Python, a stream of NNX cannot."""

from __future__ import annotations

import pytest

from tests.rewrite.projects import rewrite_in_form
from tests.rewrite.running import printed_alike

SOURCE = """\
import functools
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import lax


def over_rows(function, x):
    return jax.vmap(function)(x)


def dropped(drop, x):
    return jax.nn.softmax(drop(jax.lax.stop_gradient(x)))


class Plain(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(6)(x)


class Part(nn.Module):
    @nn.compact
    def __call__(self, x, scale=1.0):
        return nn.Dropout(0.3, deterministic=False)(nn.Dense(6)(x)) * scale


class Holder(nn.Module):
    def setup(self):
        self.part = Part()

    def __call__(self, x):
        return self.part(x)


class Model(nn.Module):
    block: Any = Part

    def setup(self):
        self.drop = nn.Dropout(0.4, deterministic=False)
        self.part = Part()
        self.holder = Holder()
        self.plain = Plain()
        self.parts = [Part(), Plain()]
        self.made = self.block()

    def one(self, row):
        return self.drop(row)

    def noise(self, row):
        return row + jax.random.normal(self.make_rng("noise"), row.shape)

    def same(self, row):
        return self.plain(row) * 2

    def __call__(self, x):
        x = self.plain(self.made(self.holder(self.part(x))))
        x = self.parts[1](self.parts[0](x)) + self.drop(x)
BODY


def main():
    x = jnp.sin(jnp.arange(12.0)).reshape(2, 6)
    keys = {name: jax.random.key(i) for i, name in enumerate(("params", "dropout", "noise"))}
    variables = Model().init(keys, x)
    for path, leaf in jax.tree_util.tree_leaves_with_path(variables):
        print(jax.tree_util.keystr(path), leaf.shape, float(leaf.sum()))
    print(jax.tree.map(lambda v: v.tolist(), Model().apply(variables, x, rngs=keys)))
"""
DRAWING = {
    "submodule": "return jax.vmap(self.drop)(x)",
    "lambda": "return jax.checkpoint(lambda v: self.drop(v))(x)",
    "method": "return jax.vmap(self.one)(x)",
    "method of a local name": "f = self.one\nreturn jax.vmap(f)(x)",
    "key": "return lax.scan(lambda c, _: (self.noise(c), None), x, None, length=2)[0]",
    "class of the project": "return jax.jit(lambda v: self.part(v))(x)",
    "class that holds one": "return jax.vmap(self.holder)(x)",
    "partial": "return jax.vmap(functools.partial(self.part, scale=2.0))(x)",
    "item of a list": "return jax.vmap(self.parts[0])(x)",
    "item of a loop": "for part in self.parts:\n    x = jax.vmap(part)(x)\nreturn x",
    "class of a field": "return jax.vmap(self.made)(x)",
    "decorated": "@jax.jit\ndef run(v):\n    return self.drop(v)\nreturn run(x)",
    "decorated by a partial": (
        "@functools.partial(jax.jit, static_argnums=1)\ndef run(v, n):\n    return self.drop(v) * n\n"
        "return run(x, 2)"
    ),
    "function of the project": "return over_rows(self.drop, x)",
    "numpy": "return jnp.vectorize(lambda r: self.drop(r), signature='(n)->(n)')(x)",
    "branch": "return lax.cond(True, lambda v: self.one(v), lambda v: v, x)",
}
KEPT = {
    "nothing drawn": "return jax.vmap(self.plain)(x)",
    "method that draws nothing": "return jax.vmap(self.same)(x)",
    "what was drawn before": "y = self.drop(x)\nreturn jax.vmap(lambda row: row * y.mean())(x)",
    "keys drawn before": (
        "keys = jax.random.split(self.make_rng('noise'), x.shape[0])\n"
        "return jax.vmap(lambda row, key: row + jax.random.normal(key, row.shape))(x, keys)"
    ),
    "argument": "return jax.vmap(lambda row: row * 2)(self.drop(x))",
    "tree": "return jax.tree.map(self.drop, (x, x * 2))",
    "function that calls it": "return dropped(self.drop, x)",
    "function": "return jax.nn.relu(self.drop(x))",
}


def forms(body: str) -> dict[str, str]:
    inside = "\n".join(f"        {line}" for line in body.splitlines())
    return printed_alike(SOURCE.replace("BODY", inside))


@pytest.mark.parametrize("body", DRAWING.values(), ids=DRAWING)
def test_a_draw_in_what_jax_transforms_keeps_its_class_lazy(body: str) -> None:
    assert forms(body)["m.Model"] == "lazy"


@pytest.mark.parametrize("body", KEPT.values(), ids=KEPT)
def test_a_draw_elsewhere_is_explicit(body: str) -> None:
    assert forms(body)["m.Model"] == "explicit"


FIELD = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Model(nn.Module):
    module: nn.Module

    @nn.compact
    def __call__(self, x):
        y = self.module(x)
        return y + jax.checkpoint(lambda rows: self.module(rows) * 2)(x)


def main():
    x = jnp.sin(jnp.arange(12.0)).reshape(2, 6)
    model = Model(nn.Dense(6))
    keys = {"params": jax.random.key(0), "dropout": jax.random.key(1)}
    variables = model.init(keys, x)
    print(jax.tree.map(jnp.shape, variables), model.apply(variables, x))
"""
DROPOUT = """\


class Other(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dropout(0.5)(x, deterministic=False)
"""


@pytest.mark.parametrize(("more", "form"), [("", "explicit"), (DROPOUT, "lazy")])
def test_a_module_of_any_class_may_draw_where_one_of_the_project_does(more: str, form: str) -> None:
    result = rewrite_in_form({"m.py": FIELD + more}, "auto")
    forms = {one.name: one.reason for one in result.classes}
    told = "it draws keys inside a function that jax transforms, where a stream cannot count"
    assert (forms["m.Model"] == told) == (form == "lazy")
    printed_alike(FIELD + more)
