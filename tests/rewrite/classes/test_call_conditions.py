"""Structure that follows from which arguments the initial call has, and from its flags."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nnx_migrate import nn as nnm
from nnx_migrate.model import Outcome, RewriteResult
from tests.rewrite.classes.support import HEADER, loaded
from tests.rewrite.projects import only, rewrite


def module(body: str, arguments: str = "x, c=None, train=True", name: str = "M") -> str:
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    return (
        f"class {name}(nn.Module):\n    n: int = 3\n\n"
        f"    @nn.compact\n    def __call__(self, {arguments}):\n{lines}\n\n"
    )


FLAG = module("y = nn.Dense(2)(x)\nif self.n > 1 and train:\n    y = y + nn.Dense(2)(x)\nreturn y")
NEGATED = module("y = nn.Dense(2)(x)\nif not train:\n    y = nn.LayerNorm()(y)\nreturn y")
GIVEN = module(
    "if c is not None:\n    x = x + nn.Dense(x.shape[-1], name='cond')(c)\nreturn nn.Dense(2)(x)"
)
MISSING = module("if c is None:\n    c = nn.Embed(7, 4)(x.astype(int))\nreturn nn.Dense(2)(c)")
CHOSEN = module("return nn.Dense(2)(x) if c is None else nn.Dense(2)(c) * nn.Dense(2, name='b')(x)")
LOOP = module("for i in range(self.n):\n    if train:\n        x = nn.Dense(4)(x)\nreturn x")
PARAMETER = module(
    "if c is not None:\n    x = x * self.param('s', nn.initializers.ones, (1, 4))\nreturn x"
)
BOTH = module(
    "if c is not None or not train:\n    x = nn.Dense(4)(x)\nif train:\n    x = nn.LayerNorm()(x)\nreturn x"
)


def run(source: str) -> RewriteResult:
    return rewrite({"m.py": HEADER + source})


def outcome(result: RewriteResult, name: str) -> Outcome:
    return next(one.outcome for one in result.classes if one.name.endswith(f".{name}"))


def rewritten(source: str) -> str:
    result = run(source)
    assert [one.outcome for one in result.classes] == [Outcome.REWRITTEN] * len(result.classes), [
        one.reason for one in result.classes
    ]
    return (only(result) or "").partition("\n\n\n")[2]


X, C = jnp.linspace(0.0, 3.0, 8).reshape(2, 4), jnp.linspace(1.0, 2.0, 8).reshape(2, 4)
SIZES = {"in_features": 4, "x_features": 4, "c_features": 4}


@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize("c", [None, C], ids=["without", "with"])
@pytest.mark.parametrize("source", [FLAG, NEGATED, GIVEN, MISSING, CHOSEN, LOOP, PARAMETER, BOTH])
def test_parameters_and_outputs_are_linens(source: str, c: jax.Array | None, train: bool) -> None:
    text = rewritten(source)
    told = {"with_c": c is not None, "init_train": train}
    asked = {name: v for name, v in (told | SIZES).items() if re.search(rf"\b{name}:", text)}
    assert asked.keys() & told.keys()
    with loaded(source, "told_before") as before, loaded(text, "told_after") as after:
        variables = before.M().init(jax.random.key(0), X, c, train)
        expected = before.M().apply(variables, X, c, train)
        made = nnm.build(after.M, **asked, rngs=jax.random.key(0))
        found = made(X, c, train)
    given: Mapping[str, Any] = nnm.variables_of(made)
    assert jax.tree.structure(given) == jax.tree.structure(dict(variables))
    for one, other in zip(jax.tree.leaves(given), jax.tree.leaves(variables), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("source", "argument"),
    [
        (FLAG, "init_train: bool = True"),
        (GIVEN, "with_c: bool = False"),
        (FLAG.replace("train=True", "*, train"), "init_train: bool,"),
        (GIVEN.replace("c=None, train=True", "c"), "with_c: bool,"),
        (GIVEN.replace("c=None", "c=jnp.ones(3)"), "with_c: bool,"),
        (FLAG.replace("train=True", "*, train: bool | None = None"), "init_train: bool = False"),
        (
            FLAG.replace("n: int", "init_train: int = 1\n    n: int"),
            "input_init_train: bool = True",
        ),
    ],
)
def test_the_default_is_that_of_the_call(source: str, argument: str) -> None:
    found = re.search(r"def __init__\((.*?)\):", rewritten(source), re.DOTALL)
    assert found is not None
    assert argument in " ".join(found.group(1).split())


def test_the_call_keeps_its_condition_and_init_asks_what_it_was_told() -> None:
    text = rewritten(FLAG)
    assert "        if self.n > 1 and init_train:\n            self.Dense_1 = nnx.Linear(" in text
    assert "        if self.n > 1 and train:\n            y = y + self.Dense_1(x)" in text


def test_the_report_says_what_the_argument_means() -> None:
    result = run(GIVEN)
    assert result.classes[0].new_arguments == ("c_features", "x_features", "with_c")
    assert any(
        "with_c says whether Linen's initial call gets 'c'" in one.message
        for one in result.findings
    )


def test_a_later_call_that_needs_what_was_not_built_raises() -> None:
    with loaded(rewritten(FLAG), "told_after") as after:
        made = nnm.build(after.M, in_features=4, init_train=False, rngs=jax.random.key(0))
        made(X, train=False)
        with pytest.raises(AttributeError, match="Dense_1"):
            made(X, train=True)


RENUMBERED = module("if train:\n    x = nn.Dense(4)(x)\nreturn nn.Dense(4)(x)")


def test_a_call_in_which_linen_would_number_otherwise_raises() -> None:
    with loaded(rewritten(RENUMBERED), "told_after") as after:
        made = nnm.build(after.M, in_features=4, rngs=jax.random.key(0))
        made(X)
        with pytest.raises(
            ValueError, match=r"a M built with init_train=False, .*=True: Linen would"
        ):
            made(X, train=False)


@pytest.mark.parametrize(
    ("call", "passed"),
    [
        ("M()(x)", "M(rngs=rngs)"),
        ("M()(x, None, False)", "M(init_train=False, rngs=rngs)"),
        ("M()(x, x, bool(self.k))", "M(with_c=with_x, init_train=bool(self.k), rngs=rngs)"),
        ("M()(x, x + 1, self.k)", "M(with_c=True, init_train=self.k, rngs=rngs)"),
        ("M()(x, c=self.k)", "M(with_c=self.k is not None, rngs=rngs)"),
        ("M()(x, c, train=flag)", "M(with_c=with_c, init_train=init_flag, rngs=rngs)"),
        ("M()(x, c['y'])", None),
        ("M()(x, train=x.sum() > 0)", None),
        ("M()(x, *c)", None),
    ],
)
def test_callers_pass_on_what_their_call_has(call: str, passed: str | None) -> None:
    inner = module(
        "if c is not None:\n    x = x * self.param('s', nn.initializers.ones, (1, 4))\n"
        "if train:\n    x = x + self.param('t', nn.initializers.ones, (1, 4))\nreturn x"
    )
    outer = module(f"return {call}", "x, c=None, flag=False", "Outer").replace("n: int", "k: bool")
    result = run(inner + outer)
    if passed is None:
        assert outcome(result, "Outer") is Outcome.REFUSED
    else:
        assert f"self.M_0 = {passed}" in (only(result) or "")


NORMS = """\
class Norm(nn.Module):
    def setup(self):
        self.norm = nn.LayerNorm()

    def __call__(self, x):
        return x + self.norm(x)


class M(nn.Module):
    def setup(self):
        self.norms = [Norm() for _ in range(2)]

    def __call__(self, x, train=False):
        x = x * jax.random.normal(self.make_rng("noise"), x.shape)
        if train:
            for norm in self.norms:
                x = norm(x)
        return x


"""


@pytest.mark.parametrize(
    ("told", "asked"), [("train", "M_0_norms_0_in_features: int | None = None"), ("False", "")]
)
def test_what_is_told_of_the_call_takes_its_sizes_along(told: str, asked: str) -> None:
    body = f"m = M()\nfor _ in range(2):\n    x = m(x, {told})\nreturn nn.Dense(2)(x)"
    text = rewritten(NORMS + module(body, "x, train=False", "Outer"))
    signature = text.partition("class Outer")[2].partition("rngs: ")[0]
    assert asked in signature
    assert ("norms" in signature) is bool(asked)


def test_who_calls_a_submodule_with_and_without_stays_linen() -> None:
    outer = module("m = M()\nreturn m(x) + m(x, x)", "x", "Outer")
    result = run(PARAMETER + outer)
    assert outcome(result, "Outer") is Outcome.REFUSED


CHOICE = """\
class Outer(nn.Module):
    block: Any = M

    @nn.compact
    def __call__(self, x, c=None):
        return self.block()({arguments})


Outer(N)
"""
OTHER = PARAMETER.replace("class M", "class N").replace("x, c=None", "x, d=None, c=None")


@pytest.mark.parametrize(
    ("arguments", "passed"),
    [("x", "with_c=False"), ("x, c=c", "with_c=with_c"), ("x, c=x + 1", "with_c=True")],
)
def test_classes_that_are_chosen_at_run_time_are_told_the_same(arguments: str, passed: str) -> None:
    text = rewritten(PARAMETER + OTHER + CHOICE.format(arguments=arguments))
    assert passed in text.partition("class Outer")[2]


def test_who_would_have_to_tell_classes_different_things_stays_linen() -> None:
    result = run(PARAMETER + OTHER + CHOICE.format(arguments="x, c"))
    assert outcome(result, "Outer") is Outcome.REFUSED


LEFT = {
    "a value decides": "if x.sum() > 0:\n    x = nn.Dense(3)(x)\nreturn x",
    "a string decides": "if train == 'yes':\n    x = nn.Dense(3)(x)\nreturn x",
    "a changed argument decides": "train = self.other(train)\nif train:\n    x = nn.Dense(3)(x)\nreturn x",
    "or gives a value": "c = c or self.n\nif c:\n    x = nn.Dense(3)(x)\nreturn x",
    "dropout beside variables": (
        "if train:\n    if self.n:\n        x = nn.Dense(3)(x)\n    x = nn.Dropout(0.1)(x, deterministic=False)\nreturn x"
    ),
}


@pytest.mark.parametrize("body", LEFT.values(), ids=LEFT)
def test_what_the_constructor_cannot_be_told_of_is_left_to_its_first_call(body: str) -> None:
    assert "self.Dense_0 = nn.Dense(3)\n" in rewritten(module(body))


REFUSED = {
    "a flag decides on a setting": "if train:\n    k = 0.5\nelse:\n    k = 0.1\n"
    "if train:\n    x = nn.Dense(3)(x)\nreturn nn.GroupNorm(4, epsilon=k)(x)",
    "a flag is a setting": "if train:\n    x = nn.Dense(4)(x)\nreturn nn.LayerNorm(use_bias=train)(x)",
}


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED)
def test_what_the_initial_call_does_not_decide_is_refused(body: str) -> None:
    result = run(module(body))
    assert [one.outcome for one in result.classes] == [Outcome.REFUSED]
    assert only(result) is None


def test_what_stands_behind_an_early_return_is_left_to_its_first_call() -> None:
    text = rewritten(module("if not train:\n    return x\nreturn nn.Dense(3)(x)"))
    assert "init_train" not in text
    assert "        self.Dense_0 = nn.Dense(3)" in text


def test_what_has_no_variables_is_built_for_every_call() -> None:
    text = rewritten(
        module("if train:\n    x = nn.Dropout(0.1)(x, deterministic=False)\nreturn nn.Dense(2)(x)")
    )
    assert "init_train" not in text
    assert "        self.Dropout_0 = nnx.Dropout(0.1, rngs=rngs)" in text
