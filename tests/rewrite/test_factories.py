"""Functions that build submodules for the classes that call them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nnx_migrate.parity import ParityCase, check
from tests.rewrite.projects import LINEN, caller, looped, ops_reason, outcomes, rewrite, run_ops

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


NAMED = (
    LINEN
    + "def linear(features, bias=True{}name{}):\n    return nn.Dense(features, use_bias=bias, name=name)\n"
)


@pytest.mark.parametrize(
    ("parameters", "call", "built"),
    [
        ((", ", "=None"), "ops.linear(4, name='out')", "self.out = "),
        ((", ", "=None"), "ops.linear(4)", "self.Dense_0 = "),
        ((", *, ", ""), "ops.linear(4, name='out')", "self.out = "),
        ((", *, ", ": str | None = None"), "ops.linear(4, name='out')", "self.out = "),
    ],
)
def test_the_name_that_a_function_takes_is_the_callers_attribute(
    parameters: tuple[str, str], call: str, built: str
) -> None:
    found, after = run_ops(NAMED.format(*parameters), caller("A", f"{call}(x)"))
    assert found == {"user.A": "rewritten"}
    assert after["ops.py"].splitlines()[-2:] == [
        "def linear(features, bias=True, *, in_features=None, rngs):",
        "    return nnm.factory.Dense(features, use_bias=bias, in_features=in_features, rngs=rngs)",
    ]
    assert f"{built}ops.linear(4, in_features=in_features, rngs=rngs)" in after["user.py"]


@pytest.mark.parametrize(
    ("ops", "call"),
    [
        (NAMED.format(", ", "='out'"), "ops.linear(4)"),
        (NAMED.format(", ", "=None"), "ops.linear(4, True, 'out')"),
        (NAMED.format(", ", "=None"), "ops.linear(4, **{'name': 'out'})"),
        (NAMED.format(", ", "=None").replace("=name", "=name or 'out'"), "ops.linear(4)"),
        (NAMED.format(", ", "=None").replace("return", "print(name)\n    return"), "ops.linear(4)"),
        (
            NAMED.format(", ", "=None").replace(
                "return", "if bias:\n        return nn.Dense(2)\n    return"
            ),
            "ops.linear(4, name='out')",
        ),
    ],
)
def test_a_name_that_the_caller_does_not_decide_keeps_it_linen(ops: str, call: str) -> None:
    assert "outside the class builds" in ops_reason(ops, caller("A", f"{call}(x)"))


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


LAZY_USERS = {
    "a user that is lazy": (OPS, looped("B", "ops.linear(2)(x)")),
    "a call outside of a class": (OPS, "layer = ops.linear(3)\n"),
    "a value": (OPS, "make = ops.linear\n"),
    "a parameter named rngs": (OPS.replace("bias=True", "rngs=True"), ""),
}


@pytest.mark.parametrize(("ops", "user"), LAZY_USERS.values(), ids=LAZY_USERS)
def test_what_a_function_that_stays_builds_is_held_as_it_is(ops: str, user: str) -> None:
    ops = ops.replace("if bias", "if rngs") if "rngs" in ops else ops
    found, after = run_ops(ops, caller("A", "ops.linear(4)(x)") + user)
    assert found["user.A"] == "rewritten"
    assert "ops.py" not in after or after["ops.py"] == ops
    assert "        self.Dense_0 = ops.linear(4)\n" in after["user.py"]
    assert "def __init__(self, *, rngs: nnx.Rngs):" in after["user.py"]


@pytest.mark.parametrize(
    ("ops", "user"),
    [
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


SCALE = """\
class Scale(nn.Module):
    start: float = 1.0

    @nn.compact
    def __call__(self, x):
        return x * self.param("scale", nn.initializers.constant(self.start), (1, x.shape[-1]))


"""
SEVERAL = LINEN + (
    SCALE + "def norm(kind, *args, **kwargs):\n"
    "    if kind == 'scale':\n"
    "        return Scale(*args, **kwargs)\n"
    "    elif kind == 'layer':\n"
    "        return nn.LayerNorm(*args, **kwargs)\n"
    "    raise ValueError(kind)\n\n\n"
    "def linear(kind, n):\n"
    "    return nn.Conv(n, (1,)) if kind == 'layer' else nn.Dense(n)\n\n\n"
)
SEVERAL_USED = SEVERAL + (
    "class M(nn.Module):\n    kind: str\n    early: bool = True\n\n"
    "    @nn.compact\n    def __call__(self, x):\n"
    "        if self.early:\n"
    "            x = norm(self.kind, 2.0)(x)\n"
    "        for kind in ('scale', self.kind, 'layer'):\n"
    "            x = nn.LayerNorm()(linear(self.kind, 6)(nn.Dense(5)(norm(kind)(x))))\n"
    "        return norm('layer', name='last')(norm(self.kind)(x))\n"
)


def test_a_function_that_builds_one_of_several_layers_gives_each_the_size() -> None:
    found, after = run_ops(SEVERAL, caller("A", "ops.norm('layer', 1e-3)(x)"))
    assert found == {"ops.Scale": "rewritten", "user.A": "rewritten"}
    assert "def norm(kind, *args, in_features=None, rngs, **kwargs):" in after["ops.py"]
    given = "(*args, **kwargs, in_features=in_features, rngs=rngs)"
    assert f"        return Scale{given}" in after["ops.py"]
    assert f"        return nnm.factory.LayerNorm{given}" in after["ops.py"]
    assert (
        "self.LayerNorm_0 = ops.norm('layer', 1e-3, in_features=in_features, rngs=rngs)"
        in (after["user.py"])
    )


@pytest.mark.parametrize("model", ["M('scale')", "M('layer')", "M('layer', early=False)"])
def test_what_is_one_of_several_layers_has_linens_name_and_values(model: str) -> None:
    alike(SEVERAL_USED, model)


@pytest.mark.parametrize(
    ("ops", "call", "reason"),
    [
        (SEVERAL, "ops.norm(x[0])(x)", "what is built here depends on 'x'"),
        (SEVERAL.replace("(*args,", "(*(args or (1e-3,)),"), "ops.norm('layer')(x)", "outside"),
        (
            SEVERAL.replace("raise ValueError(kind)", "return len"),
            "ops.norm('layer')(x)",
            "outside",
        ),
    ],
)
def test_several_layers_of_which_one_is_not_known_keep_the_users_linen(
    ops: str, call: str, reason: str
) -> None:
    assert reason in ops_reason(ops, caller("A", call))


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
    alike(LINEN + body, "M(4)")


def alike(source: str, model: str) -> None:
    """Assert that a model computes the same in both forms."""
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    exec(source, before)  # noqa: S102
    result = rewrite({"model.py": source})
    assert set(outcomes(result).values()) == {"rewritten"}
    (file,) = result.files
    exec(file.code or "", after)  # noqa: S102
    x = np.random.default_rng(0).normal(size=(2, 5)).astype(np.float32)
    case = ParityCase(
        linen=eval(model, before),
        nnx=lambda rngs: eval(f"{model[:-1]}, in_features=5, rngs=rngs)", after, {"rngs": rngs}),
        inputs=(x,),
    )
    check(case).raise_if_different()
