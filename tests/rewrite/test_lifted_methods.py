"""``methods=`` of nn.scan and nn.vmap: which methods are loops, and with which options."""

from __future__ import annotations

import functools

import jax
import numpy as np
import pytest
from flax import nnx

from nnx_migrate import nn as nnm
from tests.rewrite.running import compare, migrated, module_of, refused

HEADER = """\
import flax.linen as nn
import jax.numpy as jnp


"""
BLOCK = """\
class Block(nn.Module):
    width: int

    def setup(self):
        self.up = nn.Dense(self.width)
        self.down = nn.Dense(self.width)
        self.seen = self.variable("stats", "seen", jnp.zeros, ())

    def encode(self, x):
        return nn.tanh(self.up(x)), x

    def decode(self, x, y):
        self.seen.value += y.sum()
        return self.twice(self.down(x)) + y, None

    def twice(self, x):
        return 2.0 * x


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
"""
SCAN = """\
        stack = nn.scan(
            Block,
            methods={
                "encode": dict(
                    variable_axes={"params": 0, "stats": 0}, split_rngs={"params": True},
                    in_axes=nn.broadcast, out_axes=1, length=3,
                ),
                "decode": dict(
                    variable_axes={"params": 0, "stats": 0}, split_rngs={"params": True},
                    in_axes=1, length=3, reverse=True,
                ),
            },
        )(x.shape[-1])
        y, ys = stack.encode(x)
        z, _ = stack.decode(y, ys)
        return nn.Dense(2)(z)
"""
VMAP = """\
        heads = nn.vmap(
            Critics, variable_axes={"params": 0}, split_rngs={"params": True},
            in_axes=None, out_axes=-1, axis_size=3, methods=["value", "best"],
        )(name="heads")
        return heads.value(x), heads.best(x), heads(x)
"""
CRITICS = """\
class Critics(nn.Module):
    def setup(self):
        self.out = nn.Dense(4)

    def value(self, x):
        return self.out(x).mean(-1)

    def best(self, x):
        return self.out(x).max(-1) - self.value(x)  # not mapped once more

    def __call__(self, x):
        return self.best(x) + 1.0  # mapped: the class calls it from outside


"""
X = np.random.default_rng(0).normal(size=(2, 5)).astype(np.float32)
MODEL = "class Model" + BLOCK.partition("class Model")[2]
Sizes = dict[str, int]
BRANCHES = """\
class Noisy(nn.Module):
    def setup(self):
        self.drop = nn.Dropout(0.5, deterministic=False)
        self.dense = nn.Dense(5)

    def __call__(self, x, _):
        return self.half(x), None

    def half(self, x):
        return self.drop(self.dense(x))

    def again(self, x, _):
        return self.half(x) + self.drop(x), None


Stack = nn.scan(
    Noisy, variable_axes={"params": 0}, split_rngs={"params": True, "dropout": True},
    length=3, methods=("__call__", "again"),
)


"""
NOISE = """\
        stack = Stack(name="stack")
        x, _ = stack(x, None)
        x, _ = stack.again(x, None)
        return stack(x, None)[0]
"""
SOURCES = {
    "dropout": (HEADER + BRANCHES + MODEL + NOISE, {"in_features": 5}, ()),
    "scan": (HEADER + BLOCK + SCAN, {"x_features": 5, "Dense_0_in_features": 5}, ("stats",)),
    "vmap": (HEADER + CRITICS + MODEL + VMAP, {"in_features": 5}, ()),
}


@pytest.mark.parametrize(("source", "sizes", "collections"), SOURCES.values(), ids=SOURCES)
def test_paths_values_updates_and_programs_are_linens(
    source: str, sizes: Sizes, collections: tuple[str, ...]
) -> None:
    report = compare(source, "Model()", sizes, (X,), collections=collections, rngs={"dropout": 0})
    assert report.verdict == "identical", report


@pytest.mark.parametrize(("source", "sizes", "collections"), SOURCES.values(), ids=SOURCES)
@pytest.mark.optimized
def test_a_seed_gives_linens_values(
    source: str, sizes: Sizes, collections: tuple[str, ...]
) -> None:
    with module_of("old", source) as old, module_of("new", migrated(source)) as new:
        theirs = jax.jit(old.Model().init)(jax.random.key(3), X)
        make = functools.partial(nnm.build, new.Model, **sizes)
        ours = jax.jit(lambda key: nnm.variables_of(make(rngs=key)))(jax.random.key(3))
        assert theirs.keys() == {"params", *collections}
        jax.tree.map(np.testing.assert_array_equal, ours["params"], theirs["params"])


def test_methods_that_stack_differently_are_an_error() -> None:
    class Block(nnx.Module):
        def encode(self, x: jax.Array) -> tuple[jax.Array, None]:
            return x, None

    methods = {"encode": {"length": 2}, "__init__": {"length": 3}}
    with pytest.raises(ValueError, match="stack the same variables"):
        nnm.scan(Block, methods=methods)
    with pytest.raises(TypeError, match=r"nnx\.Module class"):
        nnm.vmap(lambda module, x: x, methods=["encode"])


OPTIONS = 'variable_axes={"params": 0, "stats": 0}, split_rngs={"params": True}'
SAME = f"dict({OPTIONS}, length=3)"
REFUSED = {
    "names of a variable": (
        f"nn.scan(Block, {OPTIONS}, length=3, methods=NAMES)",
        "not written out",
    ),
    "other lengths": (
        f'nn.scan(Block, methods={{"encode": {SAME}, "decode": dict({OPTIONS}, length=4)}})',
        "lift the variables differently",
    ),
    "other streams": (
        f'nn.scan(Block, methods={{"encode": {SAME}, "decode": dict(length=3)}})',
        "lift the variables differently",
    ),
    "options that Linen leaves out": (
        f'nn.scan(Block, reverse=True, methods={{"encode": {SAME}, "decode": {SAME}}})',
        "options beside those of the methods",
    ),
    "an unknown option": (
        f'nn.scan(Block, methods={{"encode": dict({OPTIONS}, length=3, size=2)}})',
        "of a method with size=",
    ),
    "no length": (f'nn.scan(Block, methods={{"encode": dict({OPTIONS})}})', "without length="),
    "computed options": (
        f'nn.scan(Block, methods={{"encode": dict(**{SAME})}})',
        "not written out",
    ),
    "a computed name": (f"nn.scan(Block, methods={{NAMES[0]: {SAME}}})", "not written out"),
    "a name twice": (f'nn.scan(Block, {OPTIONS}, length=3, methods=["f", "f"])', "not written out"),
    "a function": (
        f'nn.scan(lambda m, c, x: (c, x), {OPTIONS}, length=3, methods=["encode"])',
        "not written out for a class",
    ),
    "a built-in layer": (
        'nn.vmap(nn.Dense, variable_axes={"params": 0}, axis_size=2, methods=["__call__"])',
        "not written out for a class",
    ),
}


@pytest.mark.parametrize(("lift", "reason"), REFUSED.values(), ids=REFUSED)
def test_refused(lift: str, reason: str) -> None:
    body = f"        stack = {lift}(5)\n        y, ys = stack.encode(x)\n        return y\n"
    assert reason in refused(f'{HEADER}NAMES = ["encode"]\n\n\n{BLOCK}{body}')


def test_another_dict_is_refused() -> None:
    shadowed = HEADER + "def dict(**options):\n    return options\n\n\n" + BLOCK + SCAN
    assert "not written out" in refused(shadowed)


def test_methods_of_lifts_that_name_their_axis_are_refused() -> None:
    lift = f'partitioning.scan_with_axes(Block, {OPTIONS}, length=3, methods=["encode"])'
    body = f"        return {lift}(5).encode(x)\n"
    assert "methods" in refused(f"from flax.linen import partitioning\n{HEADER}{BLOCK}{body}")
