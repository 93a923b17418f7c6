"""Submodules of ``setup`` that only some calls reach: Linen's ``init`` makes what its call reaches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.rewrite.projects import LINEN
from tests.rewrite.running import module_of, printed_alike
from tests.rewrite.test_forms import auto, code, reason, said

HEAD = """\
class Inner(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(x)


class Head(nn.Module):
    deep: bool = True

    def setup(self):
        self.late = {late}

    def __call__(self, x, c=None, train=True, mode="a"):
{body}

    def positions(self, x):
        return self.late(x)


"""
# How it is called -> the condition under which it is built; "" where it always is.
KNOWN = {
    "always": ("return self.late(x)", ""),
    "by a field": ("if self.deep: x = self.late(x)\nreturn x", "if self.deep:"),
    "another parameter is given": (
        "if c is not None:\n    return x @ c\nreturn self.late(x)",
        "if not with_c:",
    ),
    "another parameter is not given": (
        "if c is None:\n    x = self.late(x)\nreturn x",
        "if not with_c:",
    ),
    "its input is given": (
        "if c is not None:\n    x = x + self.late(c)\nreturn x",
        "if c_features is not None:",
    ),
    "its input is given, behind and": (
        "y = c is not None and self.late(c)\nreturn x + y if c is not None else x",
        "if c_features is not None:",
    ),
    "its input is given, and a field": (
        "if c is not None:\n    if self.deep:\n        x = x + self.late(c)\nreturn x",
        "if c_features is not None and self.deep:",
    ),
    "its input is given, and a flag is set": (
        "if c is not None and train:\n    x = x + self.late(c)\nreturn x",
        "if with_c and init_train:",
    ),
    "a flag": ("if train:\n    x = self.late(x)\nreturn x", "if init_train:"),
    "a flag in an expression": ("return train and self.late(x)", "if init_train:"),
    "a test with a name": (
        "known = self.deep and c is not None\nif known:\n    x = self.late(x)\nreturn x",
        "if self.deep and with_c:",
    ),
    "sizes": ("if x.shape[-1] != 3:\n    x = self.late(x)\nreturn x", "if in_features != 3:"),
    "the attribute itself": ("return self.late(x) if hasattr(self, 'late') else x", ""),
}
UNKNOWN = {
    "by how many axes there are": "if x.ndim > 2:\n    x = self.late(x)\nreturn x",
    "by a word": "if mode == 'b':\n    x = self.late(x)\nreturn x",
    "by chance": "if random.random() > 0.5:\n    x = self.late(x)\nreturn x",
    "by chance and a flag": "if not train and random.random() > 0.5:\n    return x\nreturn self.late(x)",
}


def head(body: str, late: str = "nn.Dense(3)") -> str:
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    return "import random\n" + LINEN + HEAD.format(late=late, body=lines.rstrip())


@pytest.mark.parametrize("late", ["nn.Dense(3)", "Inner()"])
@pytest.mark.parametrize(("body", "condition"), KNOWN.values(), ids=KNOWN)
def test_what_decides_whether_it_is_called_decides_whether_it_is_built(
    body: str, condition: str, late: str
) -> None:
    result = auto({"m.py": head(body, late)})
    assert said(result)["m.Head"] == "explicit", reason(result, "m.Head")
    lines = [one.strip() for one in code(result).splitlines()]
    before = lines[next(at for at, one in enumerate(lines) if one.startswith("self.late =")) - 1]
    assert before == (condition or "self.deep = deep")


@pytest.mark.parametrize("body", UNKNOWN.values(), ids=UNKNOWN)
def test_what_nobody_can_tell_the_constructor_is_left_to_its_first_call(body: str) -> None:
    result = auto({"m.py": head(body)})
    assert said(result)["m.Head"] == "explicit"
    assert "self.late = nn.Dense(3)" in code(result)


def test_what_both_branches_call_is_built_always() -> None:
    body = "if c is not None:\n    return self.late(x) @ c\nreturn self.late(x)"
    result = auto({"m.py": head(body)})
    assert said(result)["m.Head"] == "explicit"
    assert "with_c" not in code(result)


def test_what_needs_no_variables_is_built_always() -> None:
    body = "if train:\n    x = self.late(x)\nreturn x"
    result = auto({"m.py": head(body, "nn.Dropout(0.5, deterministic=True)")})
    assert "init_train" not in code(result)


CALLER = """\
class Caller(nn.Module):
    tied: bool = True
    count: int = 2

    def setup(self):
        self.table = nn.Embed(5, 3)
        self.parts = {parts}

    def __call__(self, x, c=None):
{body}


"""
# What callers hand on -> what they pass to the constructor.
PASSED = {
    "nothing": ("return self.parts[0](self.table(x))", "Head(in_features=3, rngs=rngs)"),
    "its own parameter": (
        "return self.parts[0](self.table(x), c=c)",
        "Head(in_features=3, with_c=with_c, rngs=rngs)",
    ),
    "always": (
        "x = self.table(x)\nreturn self.parts[0](x, c=x)",
        "Head(in_features=3, with_c=True, rngs=rngs)",
    ),
    "by a field": (
        "c = self.table.variables['params'] if self.tied else None\n"
        + "return self.parts[0](self.table(x), c=c)",
        "Head(in_features=3, with_c=self.tied, rngs=rngs)",
    ),
}


@pytest.mark.parametrize(("body", "call"), PASSED.values(), ids=PASSED)
def test_callers_tell_what_their_call_has(body: str, call: str) -> None:
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    text = CALLER.format(body=lines.rstrip(), parts="[Head()]")
    result = auto({"m.py": head(KNOWN["another parameter is given"][0]) + text})
    assert said(result)["m.Caller"] == "explicit", reason(result, "m.Caller")
    assert call in code(result)


def test_a_caller_that_cannot_tell_is_lazy() -> None:
    lines = "        return self.parts[0](self.table(x), c=self.table.embedding)"
    text = CALLER.format(body=lines, parts="[Head()]")
    result = auto({"m.py": head(KNOWN["another parameter is given"][0]) + text})
    assert said(result) == {"m.Inner": "explicit", "m.Head": "explicit", "m.Caller": "lazy"}
    assert "[lazy(Head)()]" in code(result)


def test_what_is_called_by_default_and_otherwise_is_left_to_its_first_call() -> None:
    body = "c = None\nfor part in self.parts:\n    x = part(x, c)\n    c = x\nreturn self.table(x)"
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    parts = "[Head() for _ in range(self.count)]"
    text = CALLER.format(body=lines.rstrip(), parts=parts)
    result = auto({"m.py": head(KNOWN["another parameter is not given"][0]) + text})
    assert said(result) == dict.fromkeys(("m.Inner", "m.Head", "m.Caller"), "explicit")
    assert "self.late = nn.Dense(3)" in code(result)


def test_what_the_tests_around_it_ask_is_not_asked_again() -> None:
    text = head(
        "if self.deep and train:\n    x = self.late(x)\nreturn x",
        "nn.Dense(3) if self.deep else None",
    ).replace("        self.late = nn.Dense(3) if self.deep else None", DEEP)
    built = (
        "        if self.deep:\n            if init_train:\n                self.late = nnx.Linear("
    )
    assert built in code(auto({"m.py": text}))


DEEP = "        if self.deep:\n            self.late = nn.Dense(3)"
CHOSEN = """\
class Attention(nn.Module):
    cross: bool = False

    def setup(self):
        if self.cross:
            self.pair = Inner()
            self.query = Inner()
        else:
            self.pair = Inner()

    def __call__(self, x, c=None):
        is_cross = c is not None
        if not is_cross:
            return self.pair(x)
        return self.pair(c) + self.query(x)


"""


def test_a_size_that_a_fact_chooses_needs_only_that_one() -> None:
    result = auto({"m.py": head("return self.late(x)") + CHOSEN})
    assert said(result)["m.Attention"] == "explicit", reason(result, "m.Attention")
    built = "Inner(in_features=c_features if with_c else x_features, rngs=rngs)"
    assert f"        if self.cross:\n            self.pair = {built}\n" in code(result)


# ---- run

PROGRAM = """\
import jax
import jax.numpy as jnp


def made(*args, **kwargs):
    return Head().init(jax.random.key(0), *args, **kwargs)


def applied(variables, *args, **kwargs):
    return Head().apply(variables, *args, **kwargs)


def positions(variables, x):
    return Head().apply(variables, x, method="positions")


def inside(variables, x):
    return Head().apply(variables, x, method=lambda module, x: module.positions(x))
"""
X = jnp.linspace(-1.0, 1.0, 6).reshape(2, 3)
LATE = {"kernel": jnp.eye(3), "bias": jnp.ones(3)}
CALLS: dict[str, Callable[[Any], Any]] = {
    "without": lambda m: m.made(X),
    "with it": lambda m: m.made(X, X.T),
    "with the flag off": lambda m: m.made(X, train=False),
    "with both": lambda m: m.made(X, X.T, train=False),
    "applied": lambda m: m.applied(m.made(X), X),
    "applied otherwise": lambda m: m.applied(m.made(X), X, X.T),
    "another method": lambda m: m.positions({"params": {"late": LATE}}, X),
    "read inside": lambda m: m.inside({"params": {"late": LATE}}, X),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("name", ["another parameter is given", "a flag", "its input is given"])
def test_a_program_makes_and_computes_what_it_did(name: str, call: Callable[[Any], Any]) -> None:
    text = head(KNOWN[name][0]).replace("x @ c", "x + c.T") + PROGRAM
    result = auto({"m.py": text})
    assert said(result)["m.Head"] == "explicit", reason(result, "m.Head")
    with module_of("before", text) as before, module_of("after", code(result)) as after:
        assert _outcome(lambda: call(before)) == _outcome(lambda: call(after))


def _outcome(run: Callable[[], Any]) -> Any:
    try:
        found = run()
    except Exception as error:  # noqa: BLE001 - both have to end alike
        kinds = [one for one in type(error).__mro__ if one.__module__.startswith("flax")]
        return kinds[0].__name__ if kinds else type(error).__name__
    leaves = jax.tree_util.tree_flatten_with_path(found)[0]
    return {jax.tree_util.keystr(path): np.asarray(leaf).tolist() for path, leaf in leaves}


@pytest.mark.parametrize(
    ("field", "form"),
    [
        ("with_c: bool = True", "explicit"),
        ("with_c: bool = nn.module.kw_only_dataclasses.field(kw_only=True, default=True)", "lazy"),
        (
            "other: bool = nn.module.kw_only_dataclasses.field(kw_only=True, default=True)",
            "explicit",
        ),
    ],
)
def test_a_field_that_lazy_would_take_for_a_fact_makes_the_class_lazy(
    field: str, form: str
) -> None:
    text = head("return self.late(x)").replace("    deep: bool = True", f"    {field}")
    assert said(auto({"m.py": text + "use(Head)\n"}))["m.Head"] == form


OTHER_METHODS = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Nested(nn.Module):
    # The other method calls it without the flag: that says nothing of the initial call.
    kind: str = "dense"

    @nn.compact
    def __call__(self, x, train: bool = False):
        if train:
            if self.kind == "dense":
                x = nn.Dense(4)(x)
            elif self.kind == "norm":
                x = nn.LayerNorm()(x)
        return x

    def flipped(self, x):
        return -self(x)


class Ternary(nn.Module):
    kind: str = "dense"

    @nn.compact
    def __call__(self, x, train: bool = False):
        if self.kind == "dense":
            x = nn.Dense(4)(x) if train else x
        return nn.LayerNorm()(x)

    def flipped(self, x):
        return -self(x, train=False)


class InSetup(nn.Module):
    kind: str = "dense"

    def setup(self):
        self.first, self.second = nn.Dense(4), nn.LayerNorm()

    def __call__(self, x, train: bool = False):
        if train:
            if self.kind == "dense":
                x = self.first(x)
        return self.second(x)

    def flipped(self, x):
        return -self(x)


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return Nested()(Ternary()(x))


def main():
    for model in (Nested(), Nested("norm"), Ternary(), Ternary("norm"), InSetup()):
        for train in (False, True):
            print(jax.tree.map(jnp.shape, model.init(jax.random.key(0), jnp.ones((2, 4)), train)))
    print(jax.tree.map(jnp.shape, Net().init(jax.random.key(0), jnp.ones((2, 4)))))
"""


def test_what_other_methods_pass_is_not_what_the_initial_call_has() -> None:
    forms = printed_alike(OTHER_METHODS)
    assert forms["m.Nested"] == forms["m.Ternary"] == forms["m.Net"] == "explicit"
