import re

import jax
import jax.numpy as jnp
import pytest

from nnx_migrate.parity.programs.canonical import canonical, first_line_apart


def lowered(function, *values):
    return jax.jit(function).lower(*values).as_text()


def inner_named(name):
    def inner(x):
        return jnp.sin(x) * 2

    inner.__name__ = name
    return jax.jit(inner)


def test_names_of_modules_functions_and_results_do_not_count():
    def one(x):
        return {"a": inner_named("first")(x)}

    def other(x):
        return {"b": inner_named("second")(x)}

    ours, theirs = lowered(one, 1.0), lowered(other, 1.0)
    assert ours != theirs
    assert canonical(ours) == canonical(theirs)


def test_a_helper_named_like_another_ones_prefix_is_renamed_apart():
    text = """module @jit_f {
  func.func public @main(%arg0: tensor<f32> {jax.arg_info = "x"}) -> (tensor<f32> {jax.result_info = "r"}) {
    %0 = call @g(%arg0) : (tensor<f32>) -> tensor<f32>
    %1 = call @g_1(%0) : (tensor<f32>) -> tensor<f32>
    return %1 : tensor<f32>
  }
  func.func private @g(%arg0: tensor<f32>) -> tensor<f32> {
    return %arg0 : tensor<f32>
  }
  func.func private @g_1(%arg0: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.sine %arg0 : tensor<f32>
    return %0 : tensor<f32>
  }
}
"""
    result = canonical(text)
    assert "call @f0(%arg0)" in result
    assert "call @f1(%0)" in result
    assert "jax." not in result
    assert canonical(result) == result


def test_donated_arguments_and_shardings_count():
    plain = jax.jit(lambda x: x + 1).lower(jnp.ones(3)).as_text()
    donated = jax.jit(lambda x: x + 1, donate_argnums=0).lower(jnp.ones(3)).as_text()
    assert canonical(plain) != canonical(donated)


@pytest.mark.parametrize(
    "other", [lambda x: x + 2.0, lambda x: x * 1.0, lambda x: x + jnp.asarray(1, jnp.bfloat16)]
)
def test_operations_constants_and_types_count(other):
    value = jnp.ones(3, jnp.bfloat16)
    assert canonical(lowered(lambda x: x + 1.0, value)) != canonical(
        lowered(lambda x: other(x.astype(jnp.float32)), value)
    )


def test_where_two_texts_part_is_said_by_line():
    assert first_line_apart("a\nb\n", "a\nc\n") == "line 2: Linen `b`, NNX `c`"
    assert first_line_apart("a\n", "a\nb\n") == "Linen has 1 lines, NNX 2"


def test_of_long_lines_the_part_that_differs_is_shown():
    same = ", ".join(f"%arg{n}: tensor<f32>" for n in range(30))
    ours, theirs = (f"func(%{same}, %last: tensor<{kind}>) {{" for kind in ("f32", "bf16"))
    text = first_line_apart(f"a\n{ours}\n", f"a\n{theirs}\n")
    first, second = re.findall("`(.*?)`", text)
    assert (first[:3], second[:3]) == ("...", "...")
    assert first.endswith("%last: tensor<f32>) {")
    assert second.endswith("%last: tensor<bf16>) {")
    long = "x" * 300
    line = f"line 1: Linen `a{'x' * 159}...`, NNX `b{'x' * 159}...`"
    assert first_line_apart(f"a{long}", f"b{long}") == line


def test_only_attributes_that_name_results_are_taken_out():
    signature = (
        "  func.func public @main(%arg0: tensor<8x4xf32> {{{0}sdy.sharding = #sdy.sharding<@mesh, "
        '[{{"data"}}, {{}}]>{1}}}, %arg1: tensor<f32>{2}) -> tensor<f32> {{'
    )
    bare = signature.format("", "", "")
    for words in (
        ('jax.arg_info = "a[\\"b\\"], c", ', "", ' {jax.arg_info = "y"}'),
        ("", ', jax.arg_info = "x"', ""),
    ):
        assert canonical(signature.format(*words)) == canonical(bare)
    assert '[{"data"}, {}]' in canonical(bare)
