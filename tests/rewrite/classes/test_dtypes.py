"""Parameters whose first value has the dtype of an input, and where more than that reads it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nnx_migrate import nn as nnm
from tests.rewrite.classes.support import HEADER, loaded
from tests.rewrite.projects import only, outcomes, rewrite
from tests.rewrite.running import compare, refused


def module(body: str, arguments: str = "x", fields: str = "", name: str = "Model") -> str:
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    return (
        f"class {name}(nn.Module):\n{fields}    @nn.compact\n"
        f"    def __call__(self, {arguments}):\n{lines}\n\n"
    )


ONE = "self.param('a', nn.initializers.ones, (1, 3), {})"
POSITION = module(f"return x * {ONE.format('x.dtype')}")
KEYWORD = module("return x * self.param('a', nn.initializers.normal(), (1, 3), dtype=x.dtype)")
LAMBDA = module("return x * self.param('a', lambda k: jnp.ones((1, 3), x.dtype))")
SHAPE = module("return x * self.param('a', lambda k: jnp.ones(x.shape, x.dtype))")
CHOSEN = module(
    f"return x * {ONE.format('x.dtype if self.n else jnp.int32')}", fields="    n: int = 3\n"
)
LOCAL = module(
    "x_dtype = jnp.float32\n"
    "a = self.param('a', nn.initializers.normal(), (1, 3), x_dtype)\n"
    "return x * a * self.param('b', nn.initializers.ones, (1, 3), x.dtype)"
)


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float32])
@pytest.mark.parametrize(
    ("source", "argument"),
    [
        (POSITION, "x_dtype"),
        (KEYWORD, "x_dtype"),
        (LAMBDA, "x_dtype"),
        (SHAPE, "x_dtype"),
        (CHOSEN, "x_dtype"),
        (LOCAL, "input_x_dtype"),
    ],
)
def test_programs_and_initial_values_are_linens(source: str, argument: str, dtype: object) -> None:
    x = jnp.linspace(1, 2, 6).reshape(2, 3).astype(dtype)
    sizes = {argument: x.dtype, **({"x_shape": x.shape} if source is SHAPE else {})}
    report = compare(HEADER + source, "Model()", sizes, (x,))
    assert report.verdict == "identical", report.to_json()


def test_a_later_call_of_another_dtype_leaves_the_parameter_as_it_is() -> None:
    text = (only(rewrite({"m.py": HEADER + POSITION})) or "").partition("\n\n\n")[2]
    x = jnp.ones((2, 3), jnp.bfloat16)
    with loaded(POSITION, "dtype_before") as before, loaded(text, "dtype_after") as after:
        variables = before.Model().init(jax.random.key(0), x)
        expected = before.Model().apply(variables, x.astype(jnp.float32))
        made = nnm.build(after.Model, x_dtype=x.dtype, rngs=jax.random.key(0))
        found = made(x.astype(jnp.float32))
        assert nnm.variables_of(made)["params"]["a"].dtype == jnp.bfloat16
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


def test_the_argument_is_named_documented_and_passed_on() -> None:
    run = "def run(key, x):\n    return Model().init(key, x)\n"
    result = rewrite({"m.py": HEADER + POSITION + run})
    assert result.classes[0].new_arguments == ("x_dtype",)
    code = only(result) or ""
    assert "def __init__(self, *, x_dtype, rngs: nnx.Rngs):" in code
    assert "x_dtype: the dtype of x in the first call." in code
    assert 'return lazy(Model, x_dtype=Size("x", None, fact="dtype"))().init(key, x)' in code
    (one,) = result.migration_map.classes[0].size_arguments
    assert (one.argument, one.fact, one.default) == ("x", "dtype", None)


@pytest.mark.parametrize(
    "body",
    [
        "return nn.Dense(3, dtype=x.dtype)(x)",
        "return nn.Dense(3, param_dtype=x.dtype)(x)",
        f"return nn.Dense(3, dtype=x.dtype)(x * {ONE.format('x.dtype')})",
        f"x = x.astype(jnp.bfloat16)\nreturn x * {ONE.format('x.dtype')}",
        f"if x.ndim:\n    x = x + 1.5\nreturn x * {ONE.format('x.dtype')}",
        f"y = 2 * x\nreturn x * {ONE.format('y.dtype')}",
        f"d = x.dtype\nreturn x * {ONE.format('d')}",
        f"for x in (x, x.astype(int)):\n    pass\nreturn x * {ONE.format('x.dtype')}",
        f"(x := x + 1)\nreturn x * {ONE.format('x.dtype')}",
        f"return x * {ONE.format('x.real.dtype')}",
        f"return x * {ONE.format('x[0].dtype')}",
        f"x.dtype = int\nreturn x * {ONE.format('x.dtype')}",
        f"f = lambda x: jnp.ones((1, 3), x.dtype)\nreturn x * {ONE.format('f(x).dtype')}",
    ],
)  # fmt: skip
def test_a_dtype_that_later_calls_read_or_that_is_not_the_inputs_is_refused(body: str) -> None:
    reason = refused(HEADER + module(body))
    assert "call" in reason, reason


CHILD = module(f"return x * {ONE.format('x.dtype')}", name="Child")


@pytest.mark.parametrize(
    "rest",
    [
        "class Sub(Child):\n    n: int = 3\n",
        module("return Child()(x.astype(int))"),
        module("child = Child()\nreturn child(child(x).astype(int))"),
        module("return nn.Sequential([Child()])(x)"),
        module(
            "return nn.vmap(Child, variable_axes={'params': 0}, split_rngs={'params': True})()(x)"
        ),
        module("return self.make()(x)", fields="    make: Any = Child\n"),
    ],
    ids=["inherited", "converted", "called twice", "in a chain", "lifted", "a field"],
)
def test_callers_and_heirs_that_cannot_pass_it_on_stay_linen(rest: str) -> None:
    found = outcomes(rewrite({"m.py": HEADER + CHILD + rest}))
    assert found["m.Sub" if "m.Sub" in found else "m.Model"] == "refused"


def test_a_helper_method_has_parameters_of_its_own() -> None:
    helper = f"    def helper(self, x):\n        return {ONE.format('x.dtype')}\n\n"
    source = module("return x + self.helper(x.astype(int))").rstrip() + "\n\n" + helper
    assert refused(HEADER + source)
