"""Methods that build submodules for the compact method of their class."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nnx_migrate.parity import ParityCase, check
from tests.rewrite.projects import LINEN, outcomes, rewrite
from tests.rewrite.running import checked, printed_alike

HEAD = (
    "class M(nn.Module):\n    n: int = 3\n\n"
    "    @nn.compact\n    def __call__(self, x, train=False):\n"
)
BLOCK = "    def block(self, x, width):\n        return nn.relu(nn.Dense(width)(x))\n"


def model(*lines: str, helpers: str = BLOCK) -> str:
    """A class whose call has these lines, and its helper methods."""
    body = "".join(f"        {line}\n" for line in lines)
    return LINEN + HEAD + body + "\n" + helpers


def reason(text: str) -> str:
    result = rewrite({"model.py": text})
    found = next(one for one in result.classes if one.name == "model.M")
    assert found.outcome.value == "refused"
    return found.reason or ""


def rewritten(text: str) -> str:
    result = rewrite({"model.py": text})
    assert set(outcomes(result).values()) == {"rewritten"}
    (file,) = result.files
    assert file.code is not None
    return file.code


def test_a_helper_calls_what_its_builder_has_built() -> None:
    code = rewritten(model("return self.block(self.block(x, 4), self.n)"))
    assert code.splitlines()[-6:] == [
        "    def block(self, names, x, width):",
        "        return nnx.relu(getattr(self, names('Dense'))(x))",
        "",
        "    def init_block(self, names, *, width, in_features: int, rngs: nnx.Rngs):",
        '        """Build the submodules that block calls."""',
        "        setattr(self, names('Dense'), nnx.Linear(in_features, width, rngs=rngs))",
    ]
    assert "self.init_block(names, width=4, in_features=in_features, rngs=rngs)" in code
    assert "self.init_block(names, width=self.n, in_features=4, rngs=rngs)" in code
    assert "return self.block(names, self.block(names, x, 4), self.n)" in code


SCALE = (
    "    def scale(self, x):\n"
    "        return x * self.param('scale_by', nn.initializers.ones, (x.shape[-1],)) * self.shift()\n\n"
    "    def shift(self):\n        return self.param('shift_by', nn.initializers.zeros, (self.n,))\n"
)


def test_a_helper_reads_the_parameters_that_its_builder_has_made() -> None:
    code = rewritten(model("return self.scale(x)", helpers=SCALE))
    assert "return x * self.scale_by[...] * self.shift()" in code
    assert "return self.shift_by[...]" in code
    assert "self._init_scale" not in code
    assert "self.init_scale(in_features=in_features, rngs=rngs)" in code
    assert "self.init_shift(rngs=rngs)" in code


PARAMETERS = """\
import flax.linen as nn
import jax
import jax.numpy as jnp

normal = nn.initializers.normal()


class Model(nn.Module):
    width: int
    gated: bool = False

    def first(self):
        return self.param("one", normal, (1, self.width))

    def mixed(self, x, number, *, act=nn.relu):
        w = self.param(f"w{number}", normal, (x.shape[-1], self.width))
        h = nn.Dense(self.width)(act(x @ w))
        if self.gated:
            h = h * self.param(f"gate{number}", normal, (1, self.width))
        return h + self.param("b%d" % number, normal, (1, self.width))

    def rest(self, x):
        if not self.gated:
            return x
        return x * self.param("two", normal, (1, self.width))

    @nn.compact
    def __call__(self, x):
        x = x * self.param("before", normal, (1, x.shape[-1]))
        for number in range(2):
            x = self.mixed(x, number, act=nn.tanh if number else nn.relu)
        x = self.rest(x * self.first()) + self.param("behind", normal, (1, self.width))
        return nn.Dense(1)(x)


def main():
    x = jnp.linspace(-1, 1, 6).reshape(2, 3)
    for gated in (False, True):
        variables = Model(4, gated).init(jax.random.key(0), x)
        for path, value in jax.tree_util.tree_leaves_with_path(variables):
            print(jax.tree_util.keystr(path), value.tobytes().hex())
        print(Model(4, gated).apply(variables, x).tobytes().hex())
"""


def test_parameters_of_helpers_start_from_linen_s_keys() -> None:
    assert printed_alike(PARAMETERS) == {"m.Model": "explicit"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (SCALE.replace("scale_by", "n"), "'n' names a field as well"),
        (SCALE.replace("scale_by", "shift"), "'shift' names a method as well"),
        (
            SCALE.replace("nn.initializers.ones", "lambda key, shape: 1.0"),
            "something else than one",
        ),
        (
            SCALE + "\n    def state(self, x):\n"
            "        return self.variable('s', 'scale_by', jnp.ones, x.shape).value\n",
            "two collections have 'scale_by'",
        ),
    ],
)
def test_parameters_of_helpers_that_no_attribute_can_be_keep_the_class_linen(
    text: str, why: str
) -> None:
    assert why in reason(model("return self.scale(x)", helpers=text))


def test_a_submodule_with_a_name_needs_no_counter() -> None:
    named = BLOCK.replace("x, width", "x, width, label").replace("(width)", "(width, name=label)")
    code = rewritten(model("return self.block(x, 4, 'a')", helpers=named))
    assert "    def block(self, x, width, label):" in code
    assert "return self.block(x, 4, 'a')" in code
    assert "names" not in code


def test_a_size_that_nobody_knows_is_asked_for_under_the_name_that_the_call_gives() -> None:
    helper = "    def _fc(self, x, k):\n        label = f'fc{k}'\n"
    helper += "        return nn.Dense(4, name=label)(x)\n"
    lines = ("x = self._fc(x.reshape(x.shape[0], -1), 1)", "return self._fc(x, 2)")
    code = rewritten(model(*lines, helpers=helper))
    assert "fc1_in_features: int" in code
    assert "self._init_fc(k=1, in_features=fc1_in_features, rngs=rngs)" in code
    assert "self._init_fc(k=2, in_features=4, rngs=rngs)" in code


def test_names_loops_branches_and_helpers_of_helpers_compute_the_same() -> None:
    helpers = (
        "    def block(self, x, width, *, last=None):\n"
        "        x = nn.relu(self.dense(x, width))\n"
        "        for i in range(2):\n"
        "            x = nn.Dense(width + i)(x)\n"
        "        return nn.LayerNorm(name=last)(x) if last else x\n\n"
        "    def dense(self, x, width, bias=True):\n"
        "        return nn.Dense(width, use_bias=bias)(x)\n"
    )
    text = model(
        "x = nn.Dense(7)(x)",
        "x = self.block(x, self.n)",
        "if self.n > 3:",
        "    x = self.dense(x, 2, bias=False)",
        "return self.block(x, 5, last='norm') + self.dense(x, 6).sum()",
        helpers=helpers.replace(" if last else x", "").replace("last=None", "last='n'"),
    )
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    exec(text.replace("self.n)", "self.n, last='first')"), before)  # noqa: S102
    exec(rewritten(text.replace("self.n)", "self.n, last='first')")), after)  # noqa: S102
    x = np.random.default_rng(0).normal(size=(2, 5)).astype(np.float32)
    for n in (3, 4):
        case = ParityCase(
            linen=before["M"](n),
            nnx=lambda rngs, n=n: after["M"](n, in_features=5, rngs=rngs),
            inputs=(x,),
        )
        check(case).raise_if_different()


CALL = "return self.block(x, 4)"
IN_HELPER = "it is built in the helper method 'block'"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(model(CALL) + "\n\nclass Heir(M):\n    pass\n", id="a class inherits it"),
        pytest.param(model(CALL) + "\n\ndef use(m, x):\n    return m.block(x, 4)\n", id="used outside"),
        pytest.param(model(CALL) + "\n\nMETHOD = 'block'\n", id="its name is in a string"),
        pytest.param(model("f = self.block", "return f(x, 4)"), id="handed on"),
        pytest.param(model(CALL, helpers=BLOCK + "\n    def init_block(self):\n        pass\n"),
                     id="the builder's name is taken"),
        pytest.param(
            model(CALL, helpers=BLOCK.replace("x, width", "x, width, *rest")), id="any arguments"
        ),
        pytest.param(
            model(CALL, helpers=BLOCK.replace("def block", "@nn.nowrap\n    def block")),
            id="decorated",
        ),
        pytest.param(
            model(CALL, helpers=BLOCK.replace("(x))", "(x)) if width else self.block(x, 1)")),
            id="calls itself",
        ),
        pytest.param(
            model(CALL, helpers=BLOCK.replace("return", "self.sow('a', 'b', x)\n        return")),
            id="sows",
        ),
    ],
)  # fmt: skip
def test_helpers_that_are_more_than_that_keep_the_class_linen(text: str) -> None:
    assert reason(text) == IN_HELPER


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param(
            ("return self.block(x, x.sum())",), "depends on 'width'", id="a size of the call"
        ),
        pytest.param(
            ("if x.sum() > 0:", "    x = self.block(x, 4)", "return x"),
            "only under a condition on 'x'",
            id="under a condition on values",
        ),
        pytest.param(
            ("f = lambda y: self.block(y, 4)", "return f(x)"),
            "its helper method 'block' cannot be rewritten",
            id="in a lambda",
        ),
        pytest.param(
            ("return self.block(*x)",), "it is built in the helper method", id="unpacked arguments"
        ),
    ],
)
def test_calls_that_are_not_followed_keep_the_class_linen(
    lines: tuple[str, ...], expected: str
) -> None:
    assert expected in reason(model(*lines))


OTHER = """
class Other(nn.Module):
    @nn.compact
    def __call__(self, x):
        return {call}

    def block(self, x, width):
        return nn.tanh(nn.Dense(width)(x))
"""


def test_helpers_of_one_name_in_two_classes_are_told_apart() -> None:
    twice = rewritten(model(CALL) + "\n" + OTHER.format(call="self.block(x, 5)"))
    assert twice.count("def init_block(self, names") == 2


@pytest.mark.parametrize(
    "call",
    [
        pytest.param("M().block(x, 5)", id="of the other class"),
        pytest.param("(lambda self: self.block(x, 5))(M())", id="of a self of its own"),
        pytest.param("[self.block(x, 5) for self in (M(),)]", id="of a self bound again"),
    ],
)
def test_a_call_that_may_mean_the_helper_of_another_class_keeps_it_linen(call: str) -> None:
    assert reason(model(CALL) + "\n" + OTHER.format(call=call)) == IN_HELPER


def test_a_base_whose_methods_call_the_helper_keeps_the_class_linen() -> None:
    base = "class Runs:\n    def block(self, x, width): ...\n\n    def run(self, x):\n"
    base += "        return self.block(x, 5)\n\n\n"
    text = model(CALL).replace("class M(nn.Module)", base + "class M(Runs, nn.Module)")
    assert reason(text) == IN_HELPER


COMPACT_BLOCK = "    @nn.compact\n" + BLOCK


def test_a_helper_that_is_compact_itself_goes_on_counting() -> None:
    lines = ("x = self.block(nn.Dense(5)(x), 4)", "return nn.Dense(2)(self.block(x, 3))")
    source = model(*lines, helpers=COMPACT_BLOCK)
    found = checked(source, "M()", {"in_features": 6})
    widths = {name: one["kernel"].shape for name, one in found["params"].items()}
    assert widths == {
        "Dense_0": (6, 5),
        "Dense_1": (5, 4),
        "Dense_2": (3, 2),
        "Dense_3": (4, 3),
    }


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            model(CALL, helpers=COMPACT_BLOCK.replace("(width)", "(width, name='a')")), id="named"
        ),
        pytest.param(
            model(CALL, helpers="    @nn.remat\n" + COMPACT_BLOCK), id="lifted as well"
        ),
        pytest.param(
            model(CALL, helpers=COMPACT_BLOCK) + "\ndef use(m, x):\n    return m.block(x, 3)\n",
            id="called from outside",
        ),
    ],
)  # fmt: skip
def test_compact_helpers_that_do_more_keep_the_class_linen(text: str) -> None:
    assert reason(text)


def test_a_name_given_again_after_a_compact_helper_is_the_same_parameter() -> None:
    lines = (
        'w = self.param("w", nn.initializers.normal(), (1, 1))',
        "x = self.block(x, 4)",
        'return x * self.param("w", nn.initializers.normal(), (1, 1)) * w',
    )
    found = checked(model(*lines, helpers=COMPACT_BLOCK), "M()", {"in_features": 6})
    assert set(found["params"]) == {"w", "Dense_0"}


SCALED = """    @nn.compact
    def block(self, x):
        scale = self.param("scale", nn.initializers.normal(), (1, 1))
        return nn.relu(nn.Dense(6)(x * scale))
"""
PLAIN = "    def twice(self, x):\n        return self.block(self.block(x))\n\n"


@pytest.mark.parametrize(
    ("lines", "before"),
    [
        (("return self.block(self.block(x))",), ""),
        (("for _ in range(2):", "    x = self.block(x)", "return x"), ""),
        (("return [self.block(x) for _ in range(2)][0]",), ""),
        (("f = self.block", "return f(f(x))"), ""),
        (("return self.twice(x)",), PLAIN),
    ],
)
def test_a_compact_method_that_another_calls_again_keeps_the_class_linen(
    lines: tuple[str, ...], before: str
) -> None:
    assert "builds its submodules anew" in reason(model(*lines, helpers=before + SCALED))


def test_a_compact_method_that_another_calls_once_is_rewritten() -> None:
    found = checked(
        model("return self.block(x)", helpers=SCALED), "M()", {"Dense_0_in_features": 6}
    )
    assert set(found["params"]) == {"Dense_0", "scale"}


def test_a_plain_method_may_call_a_compact_one_again() -> None:
    source = model("return self.block(self.block(x))", helpers=SCALED)
    plain = source.replace("    @nn.compact\n    def __call__", "    def __call__")
    found = checked(plain, "M()", {"Dense_0_in_features": 6})
    assert set(found["params"]) == {"Dense_0", "scale"}


SPLIT = """def split(self, x):
        return nn.DenseGeneral((self.heads, 3), name="parts")(x)

    def joined(self, width: int, x):
        return nn.DenseGeneral(width, axis=(-2, -1), name="out")(x)
"""
GROW = """def grow(self, x, width):
        return nn.Dense(width)(x)
"""
WIDE = f"""{GROW}
    def wide(self, x, width, like):
        x = self.grow(x, like.shape[-1])
        return nn.Dense(x.shape[-1] + width)(x)
"""
SIZED = """
import flax.linen as nn
import jax
import jax.numpy as jnp


def block(x, width):
    return nn.relu(nn.Dense(width)(x))


class Model(nn.Module):
    heads: int = 2

    {helpers}

    @nn.compact
    def __call__(self, x, y, k: int = 3):
        {body}


def main():
    for x, y in (((2, 3, 4), (2, 3, 5)), ((3, 4), (3, 2)), ((1, 2, 3, 6), (1, 2, 3, 1))):
        x, y = jnp.full(x, 0.5), jnp.full(y, 2.0)
        variables = Model().init(jax.random.key(0), x, y)
        for path, leaf in jax.tree_util.tree_flatten_with_path(variables)[0]:
            print(jax.tree_util.keystr(path), leaf.shape, float(leaf.sum()).hex())
        print(float(Model().apply(variables, x, y).sum()).hex())


if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(
    ("helpers", "body", "form"),
    [
        (SPLIT, "return self.joined(x.shape[-1], self.split(x))", "explicit"),
        (
            GROW,
            "d = y.shape[-1]\n        return self.grow(self.grow(x, d), width=2 * d + 1)",
            "explicit",
        ),
        (WIDE, "*_, d = x.shape\n        return self.wide(x, d, y)", "explicit"),
        ("", "return block(block(x, y.shape[-1]), max(x.shape[-1], 3))", "explicit"),
        (GROW, "return self.grow(x, k)", "lazy"),
        (GROW, "return self.grow(x, int(x.shape[-1] * k))", "lazy"),
        (GROW, "return self.grow(x, x.shape[-1] if k > 2 else 3)", "lazy"),
        (GROW, "return self.grow(x, y.ndim)", "explicit"),
    ],
)
def test_a_size_that_a_call_passes_is_handed_to_the_builder(
    helpers: str, body: str, form: str
) -> None:
    assert printed_alike(SIZED.format(helpers=helpers, body=body)) == {"m.Model": form}
