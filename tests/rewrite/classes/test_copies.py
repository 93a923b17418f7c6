"""``self.policy.copy(name=...)``: a second module like the one that a field holds."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from nnx_migrate import nn as nnm
from nnx_migrate.parity import ParityCase, check
from tests.rewrite.projects import outcomes, rewrite
from tests.rewrite.running import migrated, module_of, refused

X = np.random.default_rng(0).normal(size=(2, 6)).astype(np.float32)
SAME = ("identical", "equal_by_rules")

HEAD = """\
import flax.linen as nn


class Policy(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(nn.tanh(nn.Dense(self.width)(x)))


"""


def anchored(body: str, *, setup: str = "", field: str = "policy: nn.Module") -> str:
    """A class that copies its field."""
    text = f"{HEAD}class Model(nn.Module):\n    {field}\n    flag: bool = True\n\n"
    if setup:
        text += f"    def setup(self):\n        {setup}\n\n"
    lines = "\n".join(f"        {line}" for line in body.splitlines())
    return f"{text}    @nn.compact\n    def __call__(self, x):\n{lines}\n"


PLAIN = {
    "local": anchored('anchor = self.policy.copy(name="anchor")\nreturn self.policy(x), anchor(x)'),
    "inline": anchored('return self.policy(x) - self.policy.copy(name="anchor")(x)'),
    "declared": anchored(
        'anchor = self.policy.copy(name="anchor")\nreturn self.policy(x), anchor(x)',
        field="policy: Policy",
    ),
    "setup": anchored(
        "return self.policy(x), self.anchor(x)", setup="self.anchor = self.policy.copy()"
    ),
    "setup by name": anchored(
        "return self.policy(x), self.other(x)", setup='self.other = self.policy.copy(name="anchor")'
    ),
}


@pytest.mark.parametrize("case", PLAIN)
def test_the_copy_starts_where_it_does_in_linen(case: str) -> None:
    source = PLAIN[case]
    with module_of("linen_side", source) as old, module_of("nnx_side", migrated(source)) as new:
        key = jax.random.key(2)
        theirs = jax.jit(old.Model(old.Policy(4)).init)(key, X)

        def make(rngs: Any) -> Any:
            return new.Model(new.Policy(4, in_features=6, rngs=rngs), rngs=rngs)

        ours = jax.jit(lambda key: nnm.variables_of(nnm.build(make, rngs=key)))(key)
        assert set(theirs["params"]) == {"policy", "anchor"}
        jax.tree.map(np.testing.assert_array_equal, ours, theirs)
        kernels = [one["Dense_0"]["kernel"] for one in ours["params"].values()]
        assert not np.array_equal(*kernels)


def test_the_copy_computes_what_it_does_in_linen() -> None:
    source = PLAIN["local"]
    with module_of("linen_side", source) as old, module_of("nnx_side", migrated(source)) as new:
        report = check(
            ParityCase(
                linen=old.Model(old.Policy(4)),
                nnx=lambda rngs: new.Model(new.Policy(4, in_features=6, rngs=rngs), rngs=rngs),
                inputs=(X,),
            )
        )
    assert report.verdict in SAME, report


REFUSED = {
    "unnamed": "return self.policy.copy()(x)",
    "computed name": 'return self.policy.copy(name=f"a{1}")(x)',
    "changed": 'return self.policy.copy(name="a", width=3)(x)',
    "parent": 'return self.policy.copy(name="a", parent=None)(x)',
    "clone": 'return self.policy.clone(name="a")(x)',
    "not called": 'a = self.policy.copy(name="a")\nreturn self.policy(x)',
    "called sometimes": 'a = self.policy.copy(name="a")\nreturn a(x) if self.flag else x',
    "called after a return": (
        'a = self.policy.copy(name="a")\nif self.flag:\n    return x\nreturn a(x)'
    ),
    "made sometimes": 'a = self.policy.copy(name="a") if self.flag else self.policy\nreturn a(x)',
    "rebound": 'a = self.policy.copy(name="a")\na = nn.Dense(3)\nreturn a(x)',
    "in a loop": 'for i in range(2):\n    x = self.policy.copy(name="a")(x)\nreturn x',
    "a copy of a copy": 'a = self.policy.copy(name="a")\nreturn a.copy(name="b")(x)',
    "of an alias": 'p = self.policy\nreturn p.copy(name="a")(x)',
}


@pytest.mark.parametrize("case", REFUSED)
def test_other_copies_are_refused(case: str) -> None:
    assert "copy" in (reason := refused(anchored(REFUSED[case]))) or "clone" in reason


def test_a_copy_method_of_its_own_is_left_alone() -> None:
    source = (
        anchored('return self.policy.copy(name="a")(x)', field="policy: Own")
        + "\n\nclass Own(Policy):\n    def copy(self, name):\n        return self\n"
    )
    result = rewrite({"m.py": source})
    assert outcomes(result)["m.Own"] == "rewritten"
    assert not any(one.reason and "copy_of" in one.reason for one in result.classes)


def test_classes_that_nobody_copies_remember_nothing() -> None:
    assert "remember" not in migrated(anchored("return self.policy(x)"))
    declared = f"{PLAIN['declared']}\n\nclass Other(nn.Module):\n    @nn.compact\n    def __call__(self, x):\n"
    assert migrated(f"{declared}        return nn.Dense(2)(x)\n").count("remember") == 1
