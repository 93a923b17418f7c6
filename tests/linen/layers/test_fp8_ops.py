"""8-bit matrix products."""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import pytest

from tests.linen.layers.comparison import (
    assert_same_error,
    assert_same_text,
    evaluate,
    floats,
    namespaces,
    pair,
)

F = "fp8_ops."
COLLECTION = "_overwrite_with_gradient"


@pytest.fixture(autouse=True)
def _without_deprecation():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The Fp8DotGeneralOp is deprecated", DeprecationWarning)
        yield


@pytest.mark.parametrize("dtype", ["jnp.float32", "jnp.bfloat16"])
@pytest.mark.parametrize("op", ["Fp8DotGeneralOp", "Fp8DirectDotGeneralOp", "NANOOFp8DotGeneralOp"])
def test_a_dense_layer_is_the_same_program(op, dtype):
    found = pair(
        f"linear.Dense(8, dtype={dtype}, dot_general_cls=functools.partial({F}{op}, amax_history_length=4))",
        floats(2, 16),
        mutable=[COLLECTION],
    )
    variables = found.check_programs()
    assert set(variables[COLLECTION][f"{op}_0"]) == {
        f"{what}_{kind}"
        for what in ("input", "kernel", "output_grad")
        for kind in ("amax_history", "scale")
    }


EINSUM = """
class Model(Module):
    @compact
    def __call__(self, x):
        kernel = self.param("kernel", initializers.lecun_normal(), (16, 8))
        return fp8_ops.Fp8Einsum(amax_history_length=4)("ab,bc->ac", x, kernel, preferred_element_type=x.dtype)
"""


def test_an_einsum_is_the_same_program_and_bits():
    found = pair("Model()", floats(2, 16), source=EINSUM, mutable=[COLLECTION])
    found.check_programs()
    found.check_numbers()


@pytest.mark.parametrize("op", ["Fp8DotGeneralOp", "Fp8DirectDotGeneralOp"])
def test_gradients_of_scales_are_their_new_values(op):
    linen, lazy = evaluate(
        f"linear.Dense(8, dot_general_cls=functools.partial({F}{op}, amax_history_length=4))"
    )
    x = floats(2, 16)
    variables = jax.jit(linen.init)(jax.random.key(0), x)
    loss = lambda model: lambda variables: model.apply(variables, x).sum()
    assert_same_text(jax.grad(loss(linen)), jax.grad(loss(lazy)), variables)
    gradients = jax.jit(jax.grad(loss(lazy)))(variables)
    assert gradients[COLLECTION][f"{op}_0"]["input_amax_history"][0] == jnp.abs(x).max()


FUNCTIONS = {
    "qdq": "qdq(x, jnp.float8_e4m3fn, s, jnp.float32)",
    "qdq in bfloat16": "qdq(x.astype(jnp.bfloat16), jnp.float8_e5m2, s, jnp.bfloat16)",
    "quantize": "quantize(x, jnp.float8_e4m3fnuz, s, jnp.float32).astype(jnp.float32)",
    "scale": "compute_scale(h, s, 448.0, margin=1)",
    "history": "compute_amax_history(x, h)",
    "update": "update_fp8_meta(x, jnp.float8_e4m3fn, s, h)",
    "in_qdq": "in_qdq(jnp.float32, jnp.float8_e4m3fn, x, s, h)",
    "out_qdq": "out_qdq(jnp.float32, jnp.float8_e5m2, x, s, h)",
    "in_q": "in_q(jnp.float32, jnp.float8_e4m3fn, x, s, h)[1]",
    "out_dq": "out_dq(jnp.float32, s, s, x)",
    "precision": "dot_general_with_precision(x, x, (((1,), (1,)), ((), ())))",
}


@pytest.mark.parametrize("case", FUNCTIONS)
def test_functions_are_the_same_programs(case):
    linen, lazy = evaluate(f"lambda x, s, h: {F}{FUNCTIONS[case]}")
    assert_same_text(linen, lazy, floats(3, 4), jnp.full((1,), 0.5), jnp.ones((4,)))


@pytest.mark.parametrize("case", ["in_qdq", "out_qdq", "in_q", "out_dq", "precision"])
def test_gradients_are_the_same_programs(case):
    linen, lazy = evaluate(f"lambda x, s, h: jnp.sum({F}{FUNCTIONS[case]})")
    gradients = [jax.grad(function, (0, 1, 2)) for function in (linen, lazy)]
    assert_same_text(*gradients, floats(3, 4), jnp.full((1,), 0.5), jnp.ones((4,)))


@pytest.mark.parametrize(
    "numbers",
    [
        (((1,), (0,)), ((), ())),
        (((0, 2), (2, 1)), ((), ())),
        (((2,), (1,)), ((0,), (0,))),
        (((1, 2), (1, 2)), ((0,), (0,))),
    ],
)
def test_transposes_give_the_shapes_of_the_operands(numbers):
    (x_contracted, y_contracted), (x_batch, y_batch) = numbers
    x_shape, y_shape = [2, 3, 4], [2, 4, 3]
    for a, b in zip(x_contracted + x_batch, y_contracted + y_batch, strict=True):
        y_shape[b] = x_shape[a]
    x, y = floats(*x_shape), floats(*y_shape)
    g = jax.lax.dot_general(x, y, numbers)
    for name, shape in (("lhs", x.shape), ("rhs", y.shape)):
        options = "dimension_numbers=numbers, precision=None, preferred_element_type=None"
        source = f"def run(numbers):\n    return jax.jit(lambda g, x, y: {F}dot_general_transpose_{name}(g, x, y, {options}))"
        linen, lazy = (side["run"](numbers) for side in namespaces(source))
        assert linen.lower(g, x, y).as_text() == lazy.lower(g, x, y).as_text()
        assert lazy(g, x, y).shape == shape


def test_cotangents_of_the_dtype_of_scales_add_up_by_their_maximum():
    source = """
def loss(scale, history, x):
    scale = jax.lax.convert_element_type(scale, fp8_ops.fp32_max_grad)
    history = jax.lax.convert_element_type(history, fp8_ops.fp32_max_grad)
    for _ in range(2):
        x = fp8_ops.in_qdq(jnp.float32, jnp.float8_e4m3fn, x * 3, scale, history)
    return x.sum()
gradient = jax.grad(loss, (0, 1))
"""
    linen, lazy = (side["gradient"] for side in namespaces(source))
    assert_same_text(linen, lazy, jnp.ones((1,)), jnp.ones((4,)), floats(3, 4))


def test_the_dtype_of_scales_reads_as_linens():
    linen, lazy = evaluate(
        f"{F}fm32, {F}fm32 == {F}fp32_max_grad, jax.dtypes.issubdtype({F}fm32, {F}fp8_meta_dtype)"
    )
    assert repr(linen) == repr(lazy)


def test_what_flax_gives_up_warns():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        evaluate(f"{F}Fp8DotGeneralOp(), {F}NANOOFp8DotGeneralOp()")
    messages = [str(one.message) for one in caught if issubclass(one.category, DeprecationWarning)]
    assert len(messages) == 2
    assert messages[0] == messages[1]


@pytest.mark.parametrize("name", ["fp8_scaled_dot_general", "dot_general_with_precision"])
def test_a_precision_that_is_ignored_warns(name):
    numbers = "(((1,), (1,)), ((), ()))"
    linen, lazy = evaluate(f"lambda x, **options: {F}{name}(x, x, {numbers}, 'highest', **options)")
    options = {}
    if name.startswith("fp8"):
        for what in ("lhs", "rhs", "grad"):
            options |= {f"{what}_scale": jnp.ones((1,)), f"{what}_amax_history": jnp.ones((4,))}
    for function in (linen, lazy):
        with pytest.warns(UserWarning, match="disregard any provided"):
            jax.eval_shape(function, floats(3, 4), **options)


def test_other_dtypes_are_refused():
    assert_same_error(f"{F}get_fp8_max(jnp.float16, jnp.float32)")
    assert_same_error(f"{F}Fp8DirectDotGeneralOp().init(jax.random.key(0), jnp.ones((2, 3)))")
