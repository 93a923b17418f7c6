"""Functions that build and call submodules of the class that calls them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nnx_migrate.parity import ParityCase, check
from tests.rewrite.projects import (
    LINEN,
    USER,
    caller,
    ops_reason,
    outcomes,
    rewrite,
    run_ops,
    texts,
)

OPS = LINEN + "def block(x, width):\n    x = nn.Dense(width)(x)\n    return nn.relu(x)\n"
NAMED = LINEN + "def project(x, width, label):\n    return nn.Dense(width, name=label)(x)\n"
STAYS = "    def __getattr__(self, name):\n        return name\n\n"


def compact(name: str, *lines: str, parameters: str = "x", fields: str = "") -> str:
    body = "".join(f"        {line}\n" for line in lines)
    head = f"class {name}(nn.Module):\n{fields}    @nn.compact\n"
    return f"{head}    def __call__(self, {parameters}):\n{body}\n\n"


def test_a_function_calls_what_its_builder_has_built() -> None:
    found, after = run_ops(OPS, caller("A", "nn.Dense(3)(ops.block(x, 4))"))
    assert found == {"user.A": "rewritten"}
    assert after["ops.py"].splitlines()[-8:] == [
        "def block(module, names, x, width):",
        "    x = getattr(module, names('Dense'))(x)",
        "    return nnx.relu(x)",
        "",
        "",
        "def init_block(module, names, *, width, in_features: int, rngs: nnx.Rngs):",
        '    """Build the submodules of ``module`` that block calls."""',
        "    setattr(module, names('Dense'), nnx.Linear(in_features, width, rngs=rngs))",
    ]
    built = "ops.init_block(self, names, width=4, in_features=in_features, rngs=rngs)"
    assert built in after["user.py"]
    assert "getattr(self, names('Dense'))(ops.block(self, names, x, 4))" in after["user.py"]


def test_a_submodule_with_a_name_needs_no_counter() -> None:
    found, after = run_ops(NAMED, caller("A", "ops.project(x, 4, 'head')"))
    assert found == {"user.A": "rewritten"}
    assert "def project(module, x, width, label):" in after["ops.py"]
    assert "    return getattr(module, label)(x)" in after["ops.py"]
    assert "LinenNames" not in after["user.py"]
    assert "ops.init_project(self, width=4, label='head', in_features" in after["user.py"]


def test_imported_names_bring_the_builder_along() -> None:
    files = {
        "ops.py": OPS,
        "pack/__init__.py": "from ops import block as blk\n",
        "user.py": LINEN + "from pack import blk\n\n\n" + caller("A", "blk(x, 4)"),
    }
    result = rewrite(files)
    after = texts(result, files)
    assert outcomes(result) == {"user.A": "rewritten"}
    assert after["pack/__init__.py"] == "from ops import block as blk, init_block as init_blk\n"
    assert "from pack import blk, init_blk" in after["user.py"]
    assert "        init_blk(self, names, width=4, in_features" in after["user.py"]
    assert "return blk(self, names, x, 4)" in after["user.py"]


def test_parameters_on_lines_of_their_own_stay_there() -> None:
    ops = OPS.replace("def block(x, width):", "def block(\n    x: object,\n    width: int = 3,\n):")
    _, after = run_ops(ops, caller("A", "ops.block(x, width=4)"))
    head = "def block(\n    module,\n    names,\n    x: object,\n    width: int = 3,\n):"
    assert head in after["ops.py"]
    assert "*, width: int = 3, in_features: int, rngs: nnx.Rngs" in after["ops.py"]


def test_what_only_the_call_knows_stays_with_the_call() -> None:
    ops = LINEN + "def drop(x, rate, train):\n"
    ops += "    return nn.Dropout(rate, deterministic=not train)(x)\n"
    user = compact("A", "return ops.drop(x, 0.5, train)", parameters="x, train")
    found, after = run_ops(ops, user)
    assert found == {"user.A": "rewritten"}
    assert "def init_drop(module, names, *, rate, rngs: nnx.Rngs):" in after["ops.py"]
    assert "getattr(module, names('Dropout'))(x, deterministic=not train)" in after["ops.py"]


def test_a_function_stays_beside_its_new_form_where_a_linen_class_calls_it() -> None:
    found, after = run_ops(
        OPS, caller("A", "ops.block(x, 4)") + caller("B", "ops.block(x, 2)", STAYS)
    )
    assert found == {"user.A": "rewritten", "user.B": "refused"}
    assert "def block(x, width):\n    x = nn.Dense(width)(x)" in after["ops.py"]
    assert "def call_block(module, names, x, width):" in after["ops.py"]
    assert "return ops.call_block(self, names, x, 4)" in after["user.py"]
    assert "return ops.block(x, 2)" in after["user.py"]


def test_a_size_that_nobody_knows_is_asked_for_where_the_function_builds() -> None:
    lines = ("x = x.reshape(x.shape[0], -1)", "return ops.project(x, 4, 'head')")
    found, after = run_ops(NAMED, compact("A", *lines))
    assert found == {"user.A": "rewritten"}
    assert "in_features=head_in_features, rngs=rngs" in after["user.py"]


def test_every_call_asks_for_its_own_size() -> None:
    ops = NAMED + "\n\ndef flat(x):\n    return x.reshape(x.shape[0], -1)\n"
    user = compact(
        "A", "y = ops.project(ops.flat(x), 4, 'a')", "return y, ops.project(ops.flat(x[0]), 4, 'b')"
    )
    found, after = run_ops(ops, user)
    assert found == {"user.A": "rewritten"}
    assert "in_features=a_in_features, rngs=rngs" in after["user.py"]
    assert "in_features=b_in_features, rngs=rngs" in after["user.py"]


@pytest.mark.parametrize(
    ("ops", "user"),
    [
        pytest.param(OPS, "y = ops.block(1, 2)\n", id="called outside of a class"),
        pytest.param(OPS, "make = ops.block\n", id="handed on"),
        pytest.param(OPS + "def init_block():\n    pass\n", "", id="the builder's name is taken"),
        pytest.param(OPS.replace("x, width", "x, width, *rest"), "", id="any arguments"),
        pytest.param(OPS.replace("width", "names"), "", id="a parameter named as the counter"),
        pytest.param(
            OPS.replace("def block", "def same(f):\n    return f\n\n\n@same\ndef block"),
            "",
            id="decorated",
        ),
        pytest.param(
            OPS.replace("return nn.relu(x)", "return block(x, width - 1) if width else x"),
            "",
            id="calls itself",
        ),
    ],
)
def test_other_functions_keep_their_users_linen(ops: str, user: str) -> None:
    assert "outside the class builds" in ops_reason(ops, caller("A", "ops.block(x, 4)") + user)


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        pytest.param(
            compact("A", "return ops.block(x, x.sum())"),
            "what is built here depends on 'width', which is only known in the call",
            id="a size that the call decides",
        ),
        pytest.param(
            compact("A", "if x.sum() > 0:", "    x = ops.block(x, 4)", "return x"),
            "it is built only under a condition on 'x', known in the call alone",
            id="under a condition on values",
        ),
        pytest.param(
            compact("A", "f = lambda y: ops.block(y, 4)", "return f(x)"),
            "something is built inside a lambda",
            id="in a lambda",
        ),
        pytest.param(
            compact("A", "return ops.block(self, 4)"),
            "a function outside the class builds",
            id="given the module itself",
        ),
        pytest.param(
            compact("A", "return ops.block(*x)"),
            "a function outside the class builds",
            id="unpacked arguments",
        ),
        pytest.param(
            caller("A", "ops.block(x, 4)", "    Dense_0: int\n"),
            "'Dense_0' names a field as well",
            id="a field of an automatic name",
        ),
        pytest.param(
            "class A(nn.Module):\n"
            "    def setup(self):\n        self.n = 3\n"
            "    def __call__(self, x):\n        return ops.block(x, 4)\n",
            "a function outside the class builds",
            id="not in a compact method",
        ),
    ],
)
def test_calls_that_are_not_followed_keep_the_class_linen(user: str, expected: str) -> None:
    assert expected in ops_reason(OPS, user)


@pytest.mark.parametrize(
    "ops",
    [
        pytest.param(OPS + "\n\n" + OPS.removeprefix(LINEN), id="defined twice"),
        pytest.param(
            LINEN + "if nn:\n    def block(x, width):\n        return nn.Dense(width)(x)\n"
            "else:\n    block = None\n",
            id="defined under a condition",
        ),
        pytest.param(OPS.replace("def block", "@unknown(1)\ndef block"), id="decorated"),
    ],
)
def test_a_function_that_builds_and_cannot_be_followed_keeps_its_users_linen(ops: str) -> None:
    found = ops_reason(ops, caller("A", "ops.block(x, 4)"))
    assert found == "ops.block builds submodules for it and cannot be followed"


def test_a_function_that_builds_nothing_need_not_be_followed() -> None:
    ops = LINEN + "@unknown(1)\ndef scale(x):\n    return 2 * nn.relu(x)\n"
    found, _ = run_ops(ops, caller("A", "ops.scale(nn.Dense(3)(x))"))
    assert found == {"user.A": "rewritten"}


def test_a_function_in_a_file_that_stays_keeps_its_users_linen() -> None:
    user = {"user.py": USER + caller("A", "ops.block(x, 4)")}
    (found,) = rewrite(user, {"ops.py": OPS}).classes
    assert "is not in a file to rewrite" in (found.reason or "")


def test_an_import_in_a_file_that_stays_keeps_the_users_linen() -> None:
    files = {
        "ops.py": OPS,
        "user.py": LINEN + "from pack import block\n" + caller("A", "block(x, 4)"),
    }
    (found,) = rewrite(files, {"pack.py": "from ops import block\n"}).classes
    assert "is imported in pack, which is not rewritten" in (found.reason or "")


def compared(body: str, inputs: tuple[Any, ...], linen: Any, nnx: Any, **options: Any) -> None:
    result = rewrite({"model.py": LINEN + body})
    (file,) = result.files
    assert file.code is not None
    assert set(outcomes(result).values()) == {"rewritten"}
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    exec(LINEN + body, before)  # noqa: S102
    exec(file.code, after)  # noqa: S102
    case = ParityCase(
        linen=linen(before), nnx=lambda rngs: nnx(after, rngs), inputs=inputs, **options
    )
    check(case).raise_if_different()


def test_loops_branches_and_functions_of_functions_count_and_compute_the_same() -> None:
    body = (
        "def block(x, width):\n"
        "    return nn.relu(nn.Dense(width)(x))\n\n\n"
        "def two(x, width, train, *, bias=True):\n"
        "    y = block(x, width)\n"
        "    y = nn.Dropout(0.5, deterministic=not train)(y)\n"
        "    for i in range(2):\n"
        "        y = nn.Dense(2 * width + i, use_bias=bias)(y)\n"
        "    return nn.LayerNorm(name='last')(y)\n\n\n"
        + compact(
            "M",
            "x = nn.Dense(7)(x)",
            "x = two(x, self.n, train, bias=False)",
            "for i in range(self.depth):",
            "    x = block(x, self.n + i)",
            "if self.head:",
            "    return block(x, 5)",
            "return nn.Dense(3)(x)",
            parameters="x, train=False",
            fields="    n: int\n    depth: int = 3\n    head: bool = True\n",
        )
    )
    x = np.random.default_rng(0).normal(size=(2, 5)).astype(np.float32)
    for head in (True, False):
        compared(
            body,
            (x,),
            lambda module, head=head: module["M"](4, head=head),
            lambda module, rngs, head=head: module["M"](4, head=head, in_features=5, rngs=rngs),
        )


def test_running_statistics_of_a_function_move_as_in_linen() -> None:
    body = (
        "def norm(x, train, momentum=0.9):\n"
        "    return nn.BatchNorm(use_running_average=not train, momentum=momentum)(x)\n\n\n"
        + compact(
            "M",
            "x = norm(nn.Dense(4)(x), train)",
            "return norm(nn.Dense(3)(x), train, momentum=0.5)",
            parameters="x, train=True",
        )
    )
    x = np.random.default_rng(0).normal(size=(6, 5)).astype(np.float32)
    compared(
        body,
        (x,),
        lambda module: module["M"](),
        lambda module, rngs: module["M"](in_features=5, rngs=rngs),
        collections=("batch_stats",),
    )


SCALE = (
    "class Scale(nn.Module):\n    @nn.compact\n    def __call__(self, x):\n"
    "        shape = tuple(d if i == x.ndim - 1 else 1 for i, d in enumerate(x.shape))\n"
    "        return x * self.param('scale', nn.initializers.normal(1.0), shape)\n\n\n"
)
SCALED = "def scaled(x, plain=False):\n{}\n\n\n"
BRANCHES = "    if plain:\n        x = Scale()(x)\n    else:\n        x = nn.relu(Scale()(x))\n    return x"
THREE = ("x = scaled(nn.Dense(4)(x))", "x = scaled(nn.Dense(3)(x), True)", "return scaled(x)")


def test_shapes_that_classes_of_a_function_need_are_asked_for_under_their_own_names() -> None:
    compared(
        SCALE + SCALED.format(BRANCHES) + compact("M", *THREE),
        (np.random.default_rng(0).normal(size=(6, 5)).astype(np.float32),),
        lambda module: module["M"](),
        lambda module, rngs: module["M"](
            x_features=5,
            Scale_0_x_shape=(6, 4),
            Scale_1_x_shape=(6, 3),
            Scale_2_x_shape=(6, 3),
            rngs=rngs,
        ),
    )


@pytest.mark.parametrize(
    "body",
    [
        "    if plain:\n        return x\n    return Scale()(x)",
        "    for i in range(2):\n        x = Scale()(x)\n    return x",
        "    if plain:\n        x = Scale()(x)\n    return x",
        "    return Scale()(x) if plain else x",
        "    return [Scale()(x) for _ in range(2)][0]",
        "    while plain:\n        x, plain = Scale()(x), False\n    return x",
    ],
    ids=["an early return", "a loop", "a condition", "a choice", "a list", "while"],
)
def test_after_a_call_that_numbers_nobody_knows_how_many_no_name_is_certain(body: str) -> None:
    result = rewrite({"model.py": LINEN + SCALE + SCALED.format(body) + compact("M", *THREE)})
    assert outcomes(result)["model.M"] != "rewritten"
