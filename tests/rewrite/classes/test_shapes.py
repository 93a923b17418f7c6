"""Structure that follows from the whole shape of an input."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from nnx_migrate import nn as nnm
from nnx_migrate.model import Outcome
from tests.rewrite.classes.support import HEADER, loaded
from tests.rewrite.projects import one_line, only, rewrite


def module(body: str, arguments: str = "x", fields: str = "    n: int = 3\n") -> str:
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    return f"class M(nn.Module):\n{fields}\n    @nn.compact\n    def __call__(self, {arguments}):\n{lines}"


PER_AXIS = module(
    "shape = list(x.shape[1:])\n"
    "for axis in range(self.n - 2):\n"
    "    shape[axis] = 1\n"
    'scale = self.param("scale", nn.initializers.normal(), tuple(shape))\n'
    "return x.mean() * scale"
)
IN_INITIALIZER = module(
    'pos = self.param("pos", lambda key: jax.random.normal(key, x.shape[1 - self.n:]))\n'
    "return x.mean() + pos"
)
ANY_RANK = module(
    "single = x.ndim == 2\n"
    "if single:\n"
    "    x = jnp.expand_dims(x, axis=0)\n"
    "batch, size, features = x.shape\n"
    "x = x.reshape((batch, size * features))\n"
    'kernel = self.param("kernel", nn.initializers.normal(), (size * features, self.n))\n'
    "y = x @ kernel\n"
    "return y[0] if single else y"
)
OF_A_VALUE = module(
    "middle = jnp.swapaxes(x, -1, -2)\n"
    'w = self.param("w", nn.initializers.normal(), (middle[:, 0].shape[-1], len(x[0])))\n'
    "return w * x.mean()"
)
WIDENED = module(
    "x = jnp.atleast_3d(x)\n"
    'w = self.param("w", nn.initializers.normal(), x.shape[self.n - 2 :])\n'
    "return x.mean() * w"
)
OF_LENGTHS = module(
    "rank = len(x.shape) - 1\n"
    "parts = len(x.shape[1:]) + len(jnp.shape(x)[:1]) + len((*x.shape, 1)) + len(x)\n"
    'w = self.param("w", nn.initializers.normal(), (rank, parts, x.shape[-rank]))\n'
    "return x.mean() * w"
)
AT_LEAST = module(
    "flat = jnp.ravel(x) if self.n else x\n"
    'return self.param("w", nn.initializers.normal(), (jnp.ndim(flat), *flat.shape[1:])) + x[0, 0, 0]'
)
# What a list or dict gains and loses on the way; what these calls give (None, a size) says nothing of it.
GATHERED = module(
    "shape, sizes = [], {}\n"
    "for axis in tuple(range(x.ndim))[-self.n + 1 :]:\n"
    "    shape.append(x.shape[axis])\n"
    "    sizes = {**sizes, f'b{axis}': x.shape[axis]}\n"
    "for name, size in sizes.items():\n"
    "    x = x + self.param(name, nn.initializers.normal(), (size, 1)).mean()\n"
    "last = shape.pop()\n"
    'w = self.param("w", nn.initializers.normal(), (last, *shape))\n'
    "return x.mean() * w"
)

# As many parameters as an axis says of what a submodule returns.
DEPTH = (
    "for index in range(y.shape[1] // 2):\n"
    '    y = y + self.param(f"w{index}", nn.initializers.normal(), y.shape)\n'
    "return y"
)
AFTER_A_LAYER = module(
    "y = nn.Conv(3, (2,), strides=2)(x) if self.n else x\ny = jnp.swapaxes(y, 1, 2)\n" + DEPTH
)
AFTER_A_HELD_LAYER = module(
    "norm = nn.BatchNorm(use_running_average=False)\ny = jnp.swapaxes(norm(x), 1, 2)\n" + DEPTH
)
AFTER_AN_UNPACKED_LAYER = module(
    "first, second = jnp.split(nn.Dense(6)(x), 2, axis=-1)\n"
    "y = jnp.concatenate([first, second], axis=1)\n" + DEPTH
)
AFTER_A_CLASS = (
    "class Both(nn.Module):\n    @nn.compact\n    def __call__(self, x, axes):\n"
    "        y = nn.Dropout(0.5, deterministic=True)(nn.Dense(8)(x))\n"
    "        return y, jnp.swapaxes(y, *axes)\n\n\n"
) + module("_, y = Both()(x, axes=(1, 2))\n" + DEPTH)

TILED = "x = jnp.tile(x, (1, 2, 1))\nreturn x + self.param('b', nn.initializers.ones, x.shape[1:])[None]"
NAMED_IN_CONSTRUCTORS = [
    module(f"{lines}\n{TILED}")
    for lines in (
        "skip = x\nx = nn.Dense(skip.shape[-1] + 1)(x)",
        "skip = x\nx = x @ self.param('w', nn.initializers.normal(), (skip.shape[-1], 4))",
        "skip, n = x, 4\nx = nn.Dense(n, kernel_init=nn.initializers.normal(1 / skip.shape[-1]))(x)",
    )
]

FLAGGED = """\
class Part(nn.Module):
    @nn.compact
    def __call__(self, x, train, deterministic=None):
        return nn.Dropout(0.5)(nn.Dense(6)(x), deterministic) * (2 if train else 3)


"""
WITH_FLAGS = FLAGGED + module(
    'off = nn.merge_param("off", self.off, off)\n'
    "y = jnp.fft.rfft(Part()(x, train, deterministic=off)).real\n" + DEPTH,
    "x, train: bool = False, off=None",
    "    off: bool = True\n",
)


def rewritten(source: str) -> str:
    result = rewrite({"m.py": HEADER + source})
    assert [one.outcome for one in result.classes] == [Outcome.REWRITTEN] * len(result.classes), [
        one.reason for one in result.classes
    ]
    return (only(result) or "").partition("\n\n\n")[2]


@pytest.mark.parametrize(
    "source",
    [
        PER_AXIS,
        IN_INITIALIZER,
        ANY_RANK,
        OF_A_VALUE,
        WIDENED,
        OF_LENGTHS,
        AT_LEAST,
        GATHERED,
        AFTER_A_LAYER,
        AFTER_A_HELD_LAYER,
        AFTER_AN_UNPACKED_LAYER,
        AFTER_A_CLASS,
        WITH_FLAGS,
        *NAMED_IN_CONSTRUCTORS,
    ],
)
def test_parameters_and_outputs_are_linens(source: str) -> None:
    x = jax.random.normal(jax.random.key(1), (2, 4, 5))
    with loaded(source, "shapes_before") as before, loaded(rewritten(source), "shapes") as after:
        variables = before.M().init(jax.random.key(0), x)
        expected = before.M().apply(variables, x, mutable=["batch_stats"])[0]
        made = nnm.build(after.M, x_shape=x.shape, rngs=jax.random.key(0))
        given: dict[str, Any] = jax.tree.map(np.asarray, nnm.variables_of(made))
        found = made(x)
    assert jax.tree.structure(given) == jax.tree.structure(dict(variables))
    for one, other in zip(jax.tree.leaves(given), jax.tree.leaves(variables), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(found, expected)


def test_the_input_is_a_shape_and_arrays_are_computed_abstractly() -> None:
    text = rewritten(WIDENED)
    assert "x = nnm.abstract_array(x_shape)" in text
    assert "x = nnm.abstractly(lambda x: jnp.atleast_3d(x), x)" in text


def test_a_caller_that_knows_the_whole_shape_passes_it() -> None:
    caller = "\n\n" + module("return M()(jnp.zeros((2, 4, 5)))").replace("class M", "class Outer")
    assert "self.M_0 = M(x_shape=(2, 4, 5), rngs=rngs)" in rewritten(PER_AXIS + caller)


def test_a_caller_that_does_not_know_it_gets_an_argument() -> None:
    caller = "\n\n" + module("return M()(nn.Dense(4)(x))").replace("class M", "class Outer")
    text = rewritten(PER_AXIS + caller)
    assert "M_0_x_shape: tuple[int, ...]" in text
    assert "self.M_0 = M(x_shape=M_0_x_shape, rngs=rngs)" in text


def test_what_expressions_over_sizes_say_needs_no_shape() -> None:
    text = rewritten(module('return x + self.param("b", nn.initializers.ones, (x.shape[-1],))'))
    assert "abstract_array" not in text


def test_a_flag_of_the_call_may_be_either() -> None:
    assert (
        "lambda off, train, x: jnp.fft.rfft(nnm.copied(self.Part_0)(x, train, deterministic=off)).real,"
        " nnm.EITHER, nnm.EITHER, x)"
    ) in one_line(rewritten(WITH_FLAGS))


REFUSED = {
    "a value decides": 'if x.sum() > 0:\n    x = nn.Dense(3)(x)\nreturn x + self.param("b", f, x.shape)',
    "a value decides what the array is": (
        "y = x * 2\nif x.sum() > 0:\n    x = x + 1\nfor _ in range(x.ndim):\n    y = nn.Dense(3)(y)\nreturn y"
    ),
    "a value decides in an expression": (
        "y = jnp.fft.rfft(x) if x.sum() > 0 else x\nfor i in range(y.shape[1]):\n    y = nn.Dense(3)(y)\nreturn y"
    ),
    "a value is a number": (
        "y = x[: int(x.max())]\nfor i in range(y.shape[1]):\n    y = nn.Dense(3)(y)\nreturn y"
    ),
    "what sows decides": (
        "y = x * 2\nif self.sow('a', 'b', x.max()):\n    x = x + 1\nfor _ in range(x.ndim):\n    y = nn.Dense(3)(y)\nreturn y"
    ),
    "a submodule computes it": (
        'y = self.make(x)\nreturn self.param("b", nn.initializers.ones, (y.ndim + y[0].ndim,)) + x'
    ),
    "an index is a value": (
        'return self.param("b", nn.initializers.ones, jnp.zeros((3, 4))[x].shape[:1]) + x'
    ),
    "an argument is no array": 'return self.param("b", nn.initializers.ones, (k + 1,)) + x[0]',
    "a submodule computes it whose size a call measures": (
        "w = 3\nfor n in range(k.ndim):\n    for _ in range(n):\n        y = nn.Dense(w)(x)\n"
        "        if x.shape[-1] != w:\n            x = nn.Dense(w)(x)\n        x = x + y\n    w *= 2\nreturn x"
    ),
    "a call decides what the submodule does": (
        "y = jnp.fft.rfft(nn.Dropout(0.5, deterministic=k)(x))\n"
        "for i in range(y.shape[1]):\n    y = nn.Dense(3)(y)\nreturn y"
    ),
    "the submodule is given a flag": (
        "y = jnp.fft.rfft(nn.Dropout(0.5)(x, deterministic=k))\n"
        "for i in range(y.shape[1]):\n    y = nn.Dense(3)(y)\nreturn y"
    ),
    "a flag may be None": (
        "y = jnp.fft.rfft(nn.Dropout(0.5)(x, deterministic=flag))\nfor i in range(y.shape[1]):\n    y = nn.Dense(3)(y)\nreturn y"
    ),
    "a variable computes it": (
        'y = jnp.fft.rfft(x + self.variable("stats", "v", jnp.zeros, (5,)).value)\n'
        "for i in range(y.shape[1] // 2):\n    y = nn.Dense(3)(y)\nreturn y"
    ),
    "its dtype decides": 'return self.param("b", nn.initializers.ones, (3,), x[0].dtype) + x',
}


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED)
def test_what_shapes_do_not_decide_is_refused(body: str) -> None:
    source = module(body, "x, k, flag=None").replace("make(x)", "n(x)")
    result = rewrite({"m.py": HEADER + source})
    assert [one.outcome for one in result.classes] == [Outcome.REFUSED]
    assert only(result) is None


@pytest.mark.parametrize("arguments", ["x=3", "x: int", "x: int = None", "*x"])
def test_a_parameter_that_may_be_no_array_gets_no_shape(arguments: str) -> None:
    body = 'return self.param("b", nn.initializers.ones, list(x.shape[1:]))'
    result = rewrite({"m.py": HEADER + module(body, arguments)})
    assert [one.outcome for one in result.classes] == [Outcome.REFUSED]


def test_a_parameter_with_a_fields_name_gets_no_shape() -> None:
    body = "shape = list(x.shape[1:])\nreturn self.param('b', nn.initializers.ones, tuple(shape))"
    result = rewrite({"m.py": HEADER + module(body, fields="    x: int = 3\n")})
    assert [one.outcome for one in result.classes] == [Outcome.REFUSED]


BRANCH = module(
    "if c is None:\n"
    "    y = x\n"
    "else:\n"
    "    y = jnp.concatenate([x, c.reshape((2, 12))], axis=1)\n"
    'w = self.param("w", nn.initializers.normal(), list(y.shape[self.n - 3 :]))\n'
    "return x.mean() * w",
    "x, c=None",
)
EXPRESSION = module(
    "y = x if c is None else jnp.concatenate([x, c.reshape((2, 12))], axis=1)\n"
    'w = self.param("w", nn.initializers.normal(), list(y.shape[self.n - 3 :]))\n'
    "return x.mean() * w",
    "x, *, c=None",
)
BY_FIELD = module(
    "y = x\n"
    "if self.n == 4:\n"
    "    y = jnp.concatenate([x, nn.Dense(3)(c)], axis=1)\n"
    'w = self.param("w", nn.initializers.normal(), list(y.shape[self.n // 5 :]))\n'
    "return x.mean() * w",
    "x, c=None",
)


@pytest.mark.parametrize("shape", [None, (2, 3, 4)], ids=["without", "with"])
@pytest.mark.parametrize("source", [BRANCH, EXPRESSION, BY_FIELD])
def test_an_input_that_may_be_none_has_a_shape_that_may_be_none(
    source: str, shape: tuple[int, ...] | None
) -> None:
    if source == BY_FIELD:
        n, shape = (4, (2, 5)) if shape else (3, None)
    else:
        n = 3
    x = jax.random.normal(jax.random.key(1), (2, 4))
    c = None if shape is None else jax.numpy.ones(shape)
    text = rewritten(source)
    assert "c_shape: tuple[int, ...] | None = None" in text
    with loaded(source, "spared_before") as before, loaded(text, "spared_after") as after:
        variables = before.M(n).init(jax.random.key(0), x, c=c)
        sizes = {"x_shape": x.shape, **({} if shape is None else {"c_shape": shape})}
        made = nnm.build(after.M, n, **sizes, rngs=jax.random.key(0))
    given: dict[str, Any] = nnm.variables_of(made)
    assert jax.tree.structure(given) == jax.tree.structure(dict(variables))
    for one, other in zip(jax.tree.leaves(given), jax.tree.leaves(variables), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("call", "passed"),
    [
        ("M()(x)", "M(x_shape=x_shape, rngs=rngs)"),
        ("M()(x, None)", "M(x_shape=x_shape, rngs=rngs)"),
        ("M()(x, c)", "M(c_shape=c_shape, x_shape=x_shape, rngs=rngs)"),
        ("M()(x, jnp.ones((2, 3, 4)))", "M(c_shape=(2, 3, 4), x_shape=x_shape, rngs=rngs)"),
    ],
)
def test_callers_pass_the_shape_that_their_call_has(call: str, passed: str) -> None:
    outer = module(f"return {call}", "x, c=None").replace("class M", "class Outer")
    text = rewritten(f"{BRANCH}\n\n{outer}")
    assert f"self.M_0 = {passed}" in text
    assert ("c_shape: tuple[int, ...] | None = None" in text.partition("class Outer")[2]) is (
        call == "M()(x, c)"
    )


ASKED = 'x = nn.Dropout(0.5)(x, deterministic=not k)\nreturn self.param("b", nn.initializers.ones, x.shape) + x'


def test_a_parameter_of_which_only_the_truth_is_read_may_be_either() -> None:
    text = rewritten(module(ASKED, "x, k"))
    assert "deterministic=not k), nnm.EITHER, x)" in one_line(text)


@pytest.mark.parametrize(
    "body",
    [
        ASKED + " * k",
        "k = k or x.sum() > 0\n" + ASKED,
        ASKED.replace("not k", "not k or k"),
    ],
)
def test_a_parameter_that_is_read_otherwise_may_not(body: str) -> None:
    result = rewrite({"m.py": HEADER + module(body, "x, k")})
    assert [one.outcome for one in result.classes] == [Outcome.REFUSED]
