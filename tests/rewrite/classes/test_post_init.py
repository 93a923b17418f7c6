"""``__post_init__`` of Linen modules."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from flax import nnx

from tests.rewrite.classes.support import converted, loaded, refusal
from tests.rewrite.projects import LINEN
from tests.rewrite.running import printed_alike

CALL = """
    @nn.compact
    def __call__(self, x):
        for width in self.widths:
            x = nn.Dense(width)(x)
        return nn.Dense(self.last)(x)
"""

FIELDS = """\
class M(nn.Module):
    widths: Any
    last: int = 0

    def __post_init__(self):
"""


def module(*statements: str) -> str:
    body = "".join(f"        {one}\n" for one in statements)
    return FIELDS + body + CALL


FREEZING = module(
    "if not isinstance(self.widths, (list, tuple)):",
    "    self.widths = [self.widths]",
    "self.last = self.last or self.widths[-1]",
    "super().__post_init__()",
)

FAMILY = """\
class Base(nn.Module):
    width: int

    def __post_init__(self):
        self.seen = getattr(self, "seen", 0) + 1
        super().__post_init__()

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.width)(x)


class Sub(Base):
    times: int = 2

    def __post_init__(self):
        self.width = self.width * self.times
        super().__post_init__()
"""


def test_it_runs_after_the_fields_and_before_anything_is_built() -> None:
    text = converted(FREEZING)
    assert (
        "        self.widths = widths\n        self.last = last\n        self.__post_init__()\n"
        in text
    )
    assert "self.widths = nnm.as_field([self.widths])" in text
    assert "super().__post_init__()" not in text


def test_the_migrated_module_is_the_linen_one() -> None:
    with loaded(FREEZING, "before") as before, loaded(converted(FREEZING), "after") as after:
        old = before.M(4)
        variables = old.init(jax.random.key(0), jnp.ones((1, 3)))
        held = old.apply(variables, method=lambda one: (one.widths, one.last))
        new = after.M(4, in_features=3, rngs=nnx.Rngs(0))
    shapes = {path: one.shape for path, one in jax.tree_util.tree_leaves_with_path(variables)}
    state = nnx.to_flat_state(nnx.state(new, nnx.Param))
    assert sorted(one.get_value().shape for _, one in state) == sorted(shapes.values())
    assert (new.widths, new.last) == held == ((4,), 4)


def test_a_base_runs_what_its_subclass_overrides_once() -> None:
    text = converted(FAMILY)
    assert text.count("self.__post_init__()") == 1
    assert text.count("super().__post_init__()") == 1
    with loaded(text, "family") as made:
        sub = made.Sub(3, in_features=2, rngs=nnx.Rngs(0))
    assert sub.Dense_0.kernel.shape == (2, 6)
    assert sub.seen == 1


def test_a_body_of_linens_own_call_alone_becomes_pass() -> None:
    assert "def __post_init__(self):\n        pass\n" in converted(
        module("super().__post_init__()")
    )


def test_object_setattr_becomes_an_assignment() -> None:
    text = converted(module('object.__setattr__(self, "last", [3])', "super().__post_init__()"))
    assert "        self.last = nnm.as_field([3])\n" in text


def test_a_caller_does_not_trust_a_field_that_it_may_change() -> None:
    outer = """

class Outer(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(2)(Base(3)(x))
"""
    text = converted(FAMILY.partition("\n\nclass Sub")[0].replace("seen", "width") + outer)
    assert "self.Dense_0 = nnx.Linear(Dense_0_in_features, 2, rngs=rngs)" in text


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("self.table = jnp.ones(3)", "sets 'table', which may be an array"),
        ("self.a, self.b = self.widths", "sets 'a', which may be an array"),
        ("self.last, self.widths = 1, 2", "sets the field 'last' together with something else"),
        ("self.last += 1", "sets the field 'last' together with something else"),
        ("self.last = nn.Dense(2)", "Dense is built where NNX cannot build it"),
    ],
)
def test_what_an_nnx_module_would_not_keep_is_refused(statement: str, reason: str) -> None:
    assert reason in refusal(module(statement, "super().__post_init__()")).reason


def test_a_base_that_builds_without_one_is_refused() -> None:
    base = '    def __post_init__(self):\n        self.seen = getattr(self, "seen", 0) + 1\n'
    body = FAMILY.replace(base + "        super().__post_init__()\n\n", "")
    assert "its base model.Base builds without one" in refusal(body).reason


DEFINITION = (
    LINEN
    + """
import jax
import jax.numpy as jnp


class Net(nn.Module):
    width: int = 4
    inner: "int | None" = None

    def __post_init__(self):
        {body}
        super().__post_init__()

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.inner)(x)


def main():
    x = jnp.ones((2, 3))
    print(Net(3) == Net(3, 6), hash(Net(3)) == hash(Net(3, 6)), Net(3))
    print(Net(3).clone(width=5).init_with_output(jax.random.key(0), x))
    print(Net(3).init(jax.random.key(0), x))
"""
)


@pytest.mark.parametrize(
    "body",
    [
        "if self.inner is None:\n            self.inner = self.width * 2",
        "if self.width:\n            self.inner = self.width + (self.inner or 0)",
    ],
    ids=["once", "each time that it runs"],
)
def test_definitions_have_the_fields_that_it_sets(body: str) -> None:
    assert printed_alike(DEFINITION.format(body=body)) == {"m.Net": "explicit"}
