"""Functions that build submodules for the classes that call them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nnx_migrate.parity import ParityCase, check
from tests.rewrite.projects import LINEN, caller, looped, ops_reason, rewrite, run_ops

OPS = LINEN + (
    "def linear(features, bias=True):\n"
    "    if bias:\n"
    "        return nn.Dense(features)\n"
    "    return nn.Dense(features, use_bias=False)\n"
)


def test_a_factory_function_hands_the_size_and_the_streams_on() -> None:
    found, after = run_ops(OPS, caller("A", "ops.linear(4, bias=False)(x)"))
    assert found == {"user.A": "rewritten"}
    assert after["ops.py"].splitlines()[-4:] == [
        "def linear(features, bias=True, *, in_features=None, rngs):",
        "    if bias:",
        "        return nnm.factory.Dense(features, in_features=in_features, rngs=rngs)",
        "    return nnm.factory.Dense(features, use_bias=False, in_features=in_features, rngs=rngs)",
    ]
    built = "self.Dense_0 = ops.linear(4, bias=False, in_features=in_features, rngs=rngs)"
    assert built in after["user.py"]


def test_keywords_are_added_before_the_rest_of_the_keywords() -> None:
    ops = LINEN + "def linear(features, *, bias=True, **rest):\n"
    ops += "    return nn.Dense(features, use_bias=bias, **rest)\n"
    found, after = run_ops(ops, caller("A", "ops.linear(4, name='out')(x)"))
    assert found == {"user.A": "rewritten"}
    assert "def linear(features, *, bias=True, in_features=None, rngs, **rest):" in after["ops.py"]
    assert "self.out = " in after["user.py"]


def test_a_function_whose_layers_need_no_size_gets_none() -> None:
    ops = LINEN + "def table(size):\n    return nn.Embed(size, 4)\n"
    found, after = run_ops(ops, caller("A", "ops.table(9)(x)"))
    assert found == {"user.A": "rewritten"}
    assert "ops.table(9, rngs=rngs)" in after["user.py"]


def test_a_class_of_the_project_is_built_with_its_size() -> None:
    block = caller("Block", "nn.Dense(3)(x)")
    ops = LINEN + block + "def block(n):\n    return Block()\n"
    found, after = run_ops(ops, caller("A", "ops.block(1)(x)"))
    assert found == {"ops.Block": "rewritten", "user.A": "rewritten"}
    assert "    return Block(in_features=in_features, rngs=rngs)" in after["ops.py"]


def test_a_function_stays_as_it_is_when_one_of_its_users_stays_linen() -> None:
    stays = looped("B", "ops.linear(2)(x)")
    found, after = run_ops(OPS, caller("A", "ops.linear(4)(x)") + stays)
    assert found == {"user.A": "refused", "user.B": "refused"}
    assert after["ops.py"] == OPS


@pytest.mark.parametrize(
    ("ops", "user"),
    [
        pytest.param(OPS, "layer = ops.linear(3)\n", id="called outside of a class"),
        pytest.param(OPS, "make = ops.linear\n", id="handed on"),
        pytest.param(OPS.replace("bias=True", "rngs=True"), "", id="a parameter named rngs"),
        pytest.param(OPS.replace("features", "name"), "", id="a parameter named name"),
        pytest.param(
            OPS.replace("use_bias=False)", "name='out')"), "", id="names the submodule itself"
        ),
        pytest.param(
            OPS.replace("    return nn.Dense(features, use_bias=False)", "    return lambda x: x"),
            "",
            id="returns something else as well",
        ),
        pytest.param(
            LINEN
            + "def linear(features):\n    act = nn.Dropout(0.1)\n    return nn.Dense(features)\n",
            "",
            id="builds more than it returns",
        ),
        pytest.param(
            LINEN + "def linear(features, how=None):\n    return nn.Dense(features, **how)\n",
            "",
            id="keywords nobody knows",
        ),
    ],
)
def test_other_functions_keep_their_users_linen(ops: str, user: str) -> None:
    assert "outside the class builds" in ops_reason(ops, caller("A", "ops.linear(4)(x)") + user)


def test_a_function_that_may_build_two_kinds_of_layers_keeps_its_users_linen() -> None:
    ops = LINEN + "def layer(n, norm):\n    if norm:\n        return nn.LayerNorm()\n"
    found = ops_reason(ops + "    return nn.Dense(n)\n", caller("A", "ops.layer(4, x.ndim > 2)(x)"))
    assert "ops.layer may build a submodule of a class that is not known" in found


def test_a_layer_without_a_factory_keeps_the_users_linen() -> None:
    ops = LINEN + "def linear(n):\n    return nn.RNN(nn.LSTMCell(n))\n"
    assert "outside the class" in ops_reason(ops, caller("A", "ops.linear(4)(x)"))


def test_what_is_built_through_functions_computes_the_same() -> None:
    body = (
        "def norm(scale, **kwargs):\n"
        "    options = {'use_bias': scale}\n"
        "    if scale:\n"
        "        options['epsilon'] = 1e-3\n"
        "    return nn.LayerNorm(**options)\n\n\n"
        "def linear(features, bias=True):\n"
        "    return nn.Dense(features, use_bias=bias)\n\n\n"
        "class M(nn.Module):\n"
        "    width: int\n"
        "    def setup(self):\n"
        "        self.first = linear(self.width)\n"
        "        self.second = linear(3, bias=False)\n"
        "        self.norm = norm(True)\n"
        "    def __call__(self, x):\n"
        "        return self.second(self.norm(nn.relu(self.first(x))))\n"
    )
    result = rewrite({"model.py": LINEN + body})
    (file,) = result.files
    assert file.code is not None
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    exec(LINEN + body, before)  # noqa: S102
    exec(file.code, after)  # noqa: S102
    x = np.random.default_rng(0).normal(size=(2, 5)).astype(np.float32)
    case = ParityCase(
        linen=before["M"](4),
        nnx=lambda rngs: after["M"](4, in_features=5, rngs=rngs),
        inputs=(x,),
    )
    check(case).raise_if_different()
