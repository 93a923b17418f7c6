"""Sizes along code without loops: layers, array functions, conditions."""

from __future__ import annotations

import pytest

from tests.sizes.inference import (
    LAZY,
    arguments,
    compact,
    dims,
    in_features,
    problems,
    sites,
    sizes_of,
)

HEAD = "return nn.Dense(3)(x)"


def head(body: str, fields: str = "", args: str = "x", layer: str = "nn.Dense(3)") -> str | None:
    """``in_features`` of the last layer of a body."""
    result = sizes_of(compact(f"{body}\nreturn {layer}(x)", fields, args))
    assert problems(result) == []
    return sites(result)[layer].get("in_features")


def test_a_chain_passes_the_features_of_each_layer_to_the_next() -> None:
    result = sizes_of(compact("x = nn.Dense(8)(x)\nx = nn.relu(x)\nreturn nn.Dense(3)(x)"))
    assert in_features(result) == ["in_features", "8"]
    assert arguments(result) == ["in_features"]
    assert result.out_features == "3"


def test_features_may_come_from_fields() -> None:
    fields = "width: int;config: Any"
    assert head("x = nn.Dense(self.width)(x)", fields) == "self.width"
    assert head("x = nn.Dense(self.config.dim)(x)", fields) == "self.config.dim"
    assert head("x = nn.Dense(self.config.mlp['dim'])(x)", fields) == "self.config.mlp['dim']"
    assert head("c = self.config\nx = nn.Dense(4 * c.dim)(x)", fields) == "4 * self.config.dim"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("x = nn.Dense(8)(x) + 1", "8"),
        ("x = nn.gelu(nn.Dense(8)(x)) * 0.5", "8"),
        ("y = nn.Dense(8)(x)\nx = y + nn.Dense(8)(y)", "8"),
        ("a = nn.Dense(4)(x)\nx = jnp.concatenate([a, x], axis=-1)", "4 + x_features"),
        ("a = nn.Dense(4)(x)\nb = nn.Dense(5)(x)\nx = jnp.concatenate((a, b), -1)", "9"),
        ("a, b = jnp.split(nn.Dense(8)(x), 2, axis=-1)\nx = a * b", "4"),
        ("a = nn.Dense(8)(x)\nx = jnp.stack([a, a], axis=-1)", "2"),
        ("x = nn.Dense(8)(x).mean(axis=-2)", "8"),
        ("x = jnp.mean(nn.Dense(8)(x), axis=(-3, -2))", "8"),
        ("x = jnp.sum(nn.Dense(8)(x), axis=-1, keepdims=True)", "1"),
        ("x = x[..., None]", "1"),
        ("x = nn.Dense(8)(x)[..., 2:]", "6"),
        ("x = nn.Dense(8)(x)[..., :-3]", "5"),
        ("x = nn.Dense(8)(x)[..., -3:]", "3"),
        ("x = nn.Dropout(0.1)(nn.LayerNorm()(nn.Dense(8)(x)), deterministic=True)", "8"),
        ("x = nn.Embed(10, 6)(x)", "6"),
        ("x = jnp.expand_dims(nn.Dense(8)(x), 0)", "8"),
        ("x = jax.lax.stop_gradient(nn.Dense(8)(x)).astype(jnp.float32)", "8"),
        ("x = nn.Dense(6)(x)\nx = x.reshape((x.shape[0], 2, 3))", "3"),
        ("x = nn.Dense(6)(x)\nx = x.reshape(-1, 3)", "3"),
        ("x = nn.Dense(6)(x).reshape((-1, 2, 3)).transpose((0, 2, 1))", "2"),
        ("x = nn.Dense(6)(x).reshape((-1, 2, 3)).swapaxes(1, 2)", "2"),
        ("x = jnp.zeros((2, 7))", "7"),
        ("x = jax.nn.one_hot(x, 9)", "9"),
        ("x = jnp.einsum('bi,ij->bj', x, jnp.zeros((4, 5)))", "5"),
        ("x = x @ self.param('w', nn.initializers.ones, (4, 5))", "5"),
        ("x = jnp.where(x > 0, nn.Dense(8)(x), 0)", "8"),
        ("x = nn.DenseGeneral((2, 4))(x)", "4"),
        ("x = nn.DenseGeneral(features=6, axis=(-2, -1))(x)", "6"),
    ],
)
def test_array_code_is_followed(body: str, expected: str) -> None:
    found = head(body)
    assert found in (expected, expected.replace("x_features", "in_features"))


def test_heads_are_split_and_merged() -> None:
    body = """
        q = nn.Dense(self.heads * self.dim)(x)
        q = q.reshape(x.shape[0], x.shape[1], self.heads, self.dim)
        weights = nn.softmax(jnp.einsum('blhd,bmhd->bhlm', q, q))
        y = jnp.einsum('bhlm,bmhd->blhd', weights, q)
        y = y.reshape(x.shape[0], x.shape[1], self.heads * self.dim)
        return nn.Dense(x.shape[-1])(y)
        """
    result = sizes_of(compact(body, "heads: int;dim: int"))
    assert in_features(result) == ["in_features", "self.heads * self.dim"]
    assert "in_features" in dims(result)
    assert result.out_features == "in_features"


def test_a_shape_that_is_read_becomes_an_argument() -> None:
    result = sizes_of(compact("y = nn.Dense(2 * x.shape[-1])(x)\nreturn nn.Dense(4)(y)"))
    assert arguments(result) == ["in_features"]
    assert "2 * in_features" in dims(result)


def test_a_parameter_of_a_read_shape() -> None:
    body = "w = self.param('w', nn.initializers.ones, (x.shape[-1], 3))\nreturn nn.Dense(2)(x @ w)"
    result = sizes_of(compact(body))
    assert in_features(result) == ["3"]
    assert "(in_features, 3)" in dims(result)


# ---- images


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("x = nn.Conv(4, (3, 3))(x)", "x_shape[-3] * x_shape[-2] * 4"),
        (
            "x = nn.Conv(4, (3, 3), padding='VALID')(x)",
            "(x_shape[-3] - 3 + 1) * (x_shape[-2] - 3 + 1) * 4",
        ),
        (
            "x = nn.Conv(4, (3, 3), strides=(2, 2))(x)",
            "-(-x_shape[-3] // 2) * -(-x_shape[-2] // 2) * 4",
        ),
    ],
)
def test_a_flattened_image_needs_its_whole_shape(body: str, expected: str) -> None:
    body += "\nx = x.reshape((x.shape[0], -1))\nreturn nn.Dense(3)(x)"
    result = sizes_of(compact(body))
    (argument,) = result.new_arguments
    assert (argument.name, argument.argument, argument.axis) == ("x_shape", "x", None)
    text = sites(result)["nn.Dense(3)"]["in_features"]
    for shape in ((7, 9, 1), (12, 30, 3), (28, 28, 1)):
        assert eval(text, {"x_shape": shape}) == eval(expected, {"x_shape": shape})


@pytest.mark.parametrize(
    ("layer", "output"),
    [
        ("nn.Conv(4, (3, 3))", (13, 10)),
        ("nn.Conv(4, (3, 3), strides=2)", (7, 5)),
        ("nn.Conv(4, (3, 3), strides=(2, 1), padding='VALID')", (6, 8)),
        ("nn.Conv(4, (5, 2), padding='SAME', strides=(3, 3))", (5, 4)),
        ("nn.Conv(4, (3, 3), kernel_dilation=2, padding='VALID')", (9, 6)),
        ("nn.Conv(4, (3, 3), padding=((1, 2), (0, 0)))", (14, 8)),
        ("nn.Conv(4, (3, 3), padding=1)", (13, 10)),
    ],
)
def test_convolutions_shrink_images_as_linen_does(layer: str, output: tuple[int, int]) -> None:
    import jax
    from flax import linen as nn

    image = jax.ShapeDtypeStruct((1, 13, 10, 3), "float32")
    module = eval(layer, {"nn": nn})
    traced, _ = jax.eval_shape(module.init_with_output, jax.random.key(0), image)
    assert traced.shape[1:3] == output
    result = sizes_of(
        compact(f"x = {layer}(x)\nx = x.reshape((x.shape[0], -1))\nreturn nn.Dense(3)(x)")
    )
    text = sites(result)["nn.Dense(3)"]["in_features"]
    names = {"x_shape": image.shape, "Dense_0_in_features": output[0] * output[1] * 4}
    assert eval(text, names) == output[0] * output[1] * 4


@pytest.mark.parametrize(
    "layer",
    [
        "nn.Conv(4, (3, 3), padding=self.option)",
        "nn.Conv(4, (3, 3), strides=read(self.option), padding='VALID')",
        "nn.Conv(4, (3, 3), kernel_dilation=read(self.option), padding='VALID')",
        "nn.Conv(4, (3, 3), input_dilation=2)",
        "nn.Conv(4, (3, 3), padding='CIRCULAR')",
        "nn.Conv(4, (3, 3), padding=((1, 2),))",
        "nn.Conv(4, self.option)",
    ],
)
def test_an_image_of_unknown_size_asks_for_the_size_of_the_layer_behind(layer: str) -> None:
    body = f"x = {layer}(x)\nx = x.reshape((x.shape[0], -1))\nreturn nn.Dense(3)(x)"
    result = sizes_of(compact(body, "option: Any = None", before="from other import read"))
    assert sites(result)["nn.Dense(3)"]["in_features"] == "Dense_0_in_features"


def test_pooling_over_all_positions_leaves_the_channels() -> None:
    body = "x = nn.avg_pool(nn.Conv(4, (3, 3))(x), (2, 2))\nx = x.mean(axis=(1, 2))"
    assert head(body) == "4"


# ---- conditions


def test_a_condition_on_a_field_chooses_the_size() -> None:
    body = "if self.wide:\n    x = nn.Dense(8)(x)\nelse:\n    x = nn.Dense(4)(x)\n" + HEAD
    result = sizes_of(compact(body, "wide: bool = True"))
    assert in_features(result) == ["in_features", "in_features", "8 if self.wide else 4"]
    reached = {site.condition for site in result.sites.values()}
    assert reached == {"self.wide", "not self.wide", None}


def test_a_condition_without_else_keeps_the_size_otherwise() -> None:
    body = "if self.wide:\n    x = nn.Dense(8)(x)"
    assert head(body, "wide: bool = True") in (
        "8 if self.wide else in_features",
        "8 if self.wide else x_features",
    )


def test_branches_of_a_call_argument_that_agree_give_a_size() -> None:
    body = "if train:\n    x = nn.Dense(8)(x)\nelse:\n    x = nn.Dense(8, name='other')(x)"
    assert head(body, args="x, train") == "8"


def test_branches_of_a_call_argument_that_disagree_give_an_opaque_argument() -> None:
    body = "if train:\n    x = nn.Dense(8)(x)\nelse:\n    x = nn.Dense(4)(x)\n"
    result = sizes_of(compact(body + "return nn.Dense(3, name='head')(x)", arguments="x, train"))
    opaque = next(one for one in result.new_arguments if one.submodule)
    assert (opaque.name, opaque.submodule, opaque.optional) == ("head_in_features", "head", False)
    assert sites(result)["nn.Dense(3, name='head')"]["in_features"] == "head_in_features"


def test_a_submodule_of_unknown_size_is_lazy_when_branches_decide_linens_number() -> None:
    body = "if train:\n    x = nn.Dense(8)(x)\nelse:\n    x = nn.Dense(4)(x)\n" + HEAD
    result = sizes_of(compact(body, arguments="x, train"))
    assert sites(result)["nn.Dense(3)"]["in_features"] == LAZY
    assert arguments(result) == ["in_features"]


def test_a_size_that_only_some_calls_reach_is_optional() -> None:
    body = "x = nn.Dense(8)(x)\nif extra is not None:\n    x = x + nn.Dense(8, name='e')(extra)\n"
    body += HEAD
    result = sizes_of(compact(body, arguments="x, extra=None"))
    assert {one.name: one.optional for one in result.new_arguments} == {
        "extra_features": True,
        "x_features": False,
    }


def test_a_comparison_of_shapes_becomes_one_of_sizes() -> None:
    body = """
        residual = x
        y = nn.Dense(self.width)(x)
        if residual.shape != y.shape:
            residual = nn.Dense(self.width, name='proj')(residual)
        return residual + y
        """
    result = sizes_of(compact(body, "width: int"))
    assert dims(result) == {"in_features != self.width"}
    assert result.out_features == "self.width"


SHORTCUT = """
    residual = x
    y = nn.Conv(self.width, (3, 3), {strides})(x)
    if {test}:
        residual = nn.Conv(self.width, (1, 1), {strides}, name='proj')(residual)
    return residual + y
    """


@pytest.mark.parametrize(
    ("strides", "test", "is_said"),
    [
        ("(self.stride, 1)", "residual.shape != y.shape", True),
        ("(self.stride, 1)", "not residual.shape == y.shape", True),
        ("(2, 2)", "residual.shape != y.shape", True),
        ("(1, 1)", "residual.shape != y.shape", False),
        ("(2, 2)", "residual.shape[-1] != y.shape[-1]", False),
    ],
)
def test_a_map_that_a_stride_is_taken_to_shrink_is_for_a_person_to_look_at(
    strides: str, test: str, is_said: bool
) -> None:
    result = sizes_of(
        compact(SHORTCUT.format(strides=strides, test=test), "width: int;stride: int")
    )
    assert len(result.sites) == 2
    assert any("strided layer" in text for _, text in result.review) is is_said


def test_a_branch_that_is_never_taken_builds_nothing() -> None:
    result = sizes_of(compact("if False:\n    x = nn.Dense(8)(x)\n" + HEAD))
    assert sites(result) == {"nn.Dense(3)": {"in_features": "in_features"}}


# ---- several inputs


def test_each_input_gets_an_argument_of_its_name() -> None:
    result = sizes_of(compact("return nn.Dense(2)(x) + nn.Dense(2)(y)", arguments="x, y"))
    assert arguments(result) == ["x_features", "y_features"]


def test_items_of_a_tuple_argument_are_inputs() -> None:
    body = "a, b = inputs\nreturn nn.Dense(2)(a) + nn.Dense(5)(b)"
    result = sizes_of(compact(body, arguments="inputs"))
    assert {one.argument for one in result.new_arguments} == {"inputs[0]", "inputs[1]"}


def test_attention_has_the_sizes_of_query_and_memory() -> None:
    layer = "nn.MultiHeadDotProductAttention(num_heads=2)"
    result = sizes_of(compact(f"return {layer}(x, kv)", arguments="x, kv"))
    assert sites(result)[layer] == {"in_features": "x_features", "in_kv_features": "kv_features"}
    same = sizes_of(compact(f"return {layer}(x, x)"))
    assert sites(same)[layer] == {"in_features": "in_features"}


def test_a_recurrent_layer_passes_the_features_of_its_cell() -> None:
    assert head("x = nn.RNN(nn.LSTMCell(7))(x)") == "7"
    assert head("c, x = nn.OptimizedLSTMCell(7)((c, c), x)", args="c, x") == "c_features"
    both = "x = nn.Bidirectional(nn.RNN(nn.LSTMCell(7)), nn.RNN(nn.GRUCell(5)))(x)"
    assert head(both) == "12"


@pytest.mark.parametrize(
    ("body", "size"),
    [
        ("c, y = nn.GRUCell(7)(c, x)", "c_features"),
        ("c, y = nn.GRUCell(7)(nn.Dense(5)(x), x)", "5"),
        ("c, y = nn.SimpleCell(7)(carry=nn.Dense(7)(x), inputs=x)", "7"),
        ("c, y = nn.LSTMCell(7)(c, x)", "c_1_features"),
        ("c, y = nn.LSTMCell(7)((c[0], nn.Dense(5)(x)), x)", "5"),
        ("c, y = nn.ConvLSTMCell(7, (3,))(c, x)", "7"),
        ("cell = nn.LSTMCell(7)\nc, y = cell(cell.initialize_carry(k, x.shape), x)", "7"),
    ],
)
def test_a_cell_is_as_wide_as_the_hidden_state_it_is_given(body: str, size: str) -> None:
    result = sizes_of(compact(f"{body}\nreturn nn.Dense(2)(y)", arguments="c, x, k"))
    assert sites(result)["nn.Dense(2)"]["in_features"] == size


def test_a_carry_of_unknown_width_asks_for_a_look() -> None:
    result = sizes_of(compact("c, y = nn.GRUCell(7)(mystery(x), x)\nreturn nn.Dense(2)(y)"))
    assert any("taken to be `features` wide" in text for _, text in result.review)


def test_a_field_that_shares_an_argument_name_is_not_overwritten() -> None:
    result = sizes_of(compact("return nn.Dense(2)(x)", "in_features: int = 3"))
    assert arguments(result) == ["input_in_features"]


@pytest.mark.parametrize(
    ("field", "size"),
    [
        ("step: int = 2", "(8 + self.step - 1) // self.step * 5"),
        ("step: Sequence[int] = (2,)", "(8 + self.step[0] - 1) // self.step[0] * 5"),
        ("step: Any = 2", "Dense_0_in_features"),
    ],
)
def test_a_stride_that_is_a_field_is_read_as_its_annotation_says(field: str, size: str) -> None:
    body = (
        "x = nn.Conv(5, (3,), strides=self.step)(jnp.zeros((2, 8, 3)))\n"
        "return nn.Dense(3)(x.reshape((2, -1)))"
    )
    assert in_features(sizes_of(compact(body, field)))[-1] == size


@pytest.mark.parametrize(
    ("axis", "size"),
    [
        ("-1", "DenseGeneral_0_in_features"),
        ("(-2, -1)", "(DenseGeneral_0_input_shape[-2], DenseGeneral_0_input_shape[-1])"),
    ],
)
def test_a_layer_over_several_axes_asks_for_the_whole_shape(axis: str, size: str) -> None:
    layer = f"nn.DenseGeneral(3, axis={axis})(mystery(x))"
    assert in_features(sizes_of(compact(f"return {layer}"))) == [size]
    looped = compact(f"for i in range(2):\n    y = {layer}\nreturn y")
    assert in_features(sizes_of(looped)) == [LAZY]


def test_a_layer_over_unknown_axes_of_an_unknown_input_is_a_problem() -> None:
    body = "return nn.DenseGeneral(3, axis=self.axes)(mystery(x))"
    assert problems(sizes_of(compact(body, "axes: Any = -1"))) == [
        "the axes of this layer are not known here"
    ]


def test_sizes_behind_locals_of_a_parameter_are_arguments() -> None:
    body = "shape = (3, x.shape[3], 4)\nw = jnp.zeros(shape)\nreturn self.param('w', lambda *_: w)"
    result = sizes_of(compact(body))
    assert arguments(result) == ["x_shape"]
    assert "x_shape[3]" in dims(result)


def test_sizes_behind_locals_that_need_the_input_itself_are_none() -> None:
    body = "w = jnp.ones_like(x) * x.shape[3]\nreturn self.param('w', lambda *_: w)"
    assert arguments(sizes_of(compact(body))) == []


@pytest.mark.parametrize(
    "made", ["jnp.split(x, 2, axis=1)[0]", "jnp.expand_dims(x, 1)", "jnp.stack([x, x], axis=1)"]
)
def test_an_axis_of_an_array_of_unknown_rank_may_be_the_last_one(made: str) -> None:
    assert head(f"x = {made}\n" + HEAD) == "Dense_0_in_features"


@pytest.mark.parametrize(
    "index",
    [
        ":, *jnp.tril_indices(4)",
        "(slice(None), *rows)",
        "(slice(None),) + rows",
        "rows",
        "..., *rows",
        "tuple(rows)",
        "jnp.index_exp[:, 1]",
        "dots, :1",
        "none, 1",
        "none",
    ],
)
def test_indices_in_unknown_number_may_take_the_last_axis(index: str) -> None:
    body = f"x = jnp.ones((2, 4, 4))\nrows = jnp.tril_indices(4)\ndots, none = ..., None\nx = x[{index}]\n{HEAD}"
    assert head(body) == "Dense_0_in_features"


@pytest.mark.parametrize(
    ("made", "size"),
    [
        ("jnp.split(x, 2, axis=-2)[0]", "in_features"),
        ("jnp.expand_dims(nn.silu(x[..., :]), 0)", "in_features"),
    ],
)
def test_an_axis_of_an_array_of_unknown_rank_that_is_not_the_last_one(made: str, size: str) -> None:
    assert head(f"x = {made}\n" + HEAD) == size


@pytest.mark.parametrize(
    "code",
    [
        "try:\n    x = jnp.ones((1, 3))\nexcept ValueError:\n    x = jnp.ones((1, 9))",
        "try:\n    x = jnp.ones((1, 3))\nexcept ValueError:\n    pass",
        "try:\n    x = jnp.ones((1, 3))\nexcept ValueError:\n    return x",
        "xs = [x]\ntry:\n    check(x)\nexcept ValueError:\n    xs.append(x)\nx = jnp.concatenate(xs, -1)",
    ],
)
def test_what_a_handler_may_leave_behind_is_asked_for(code: str) -> None:
    found = sizes_of(compact(f"{code}\nreturn nn.Dense(2)(x)"))
    assert in_features(found) == ["Dense_0_in_features"]


def test_a_handler_that_raises_again_changes_nothing() -> None:
    code = "try:\n    x = jnp.ones((1, 3))\nexcept ValueError as error:\n    raise TypeError() from error"
    found = sizes_of(compact(f"{code}\nreturn nn.Dense(2)(x)"))
    assert in_features(found) == ["3"]


@pytest.mark.parametrize(
    ("loop", "size"),
    [
        ("for i in (1, 2):\n    pass\nelse:\n    x = jnp.ones((1, 3))", "3"),
        ("for i in (1, 2):\n    break\nelse:\n    x = jnp.ones((1, 3))", "Dense_0_in_features"),
        ("while x.sum():\n    pass\nelse:\n    x = jnp.ones((1, 3))", "3"),
        ("it = iter((3, 4))\nx = jnp.ones((1, next(it)))", "Dense_0_in_features"),
        ("x = jnp.ones((1, random.randint(3, 4)))", "Dense_0_in_features"),
    ],
)
def test_the_else_of_a_loop_and_iterators_are_followed_or_asked_for(loop: str, size: str) -> None:
    source = compact(f"{loop}\nreturn nn.Dense(2)(x)", before="import random")
    assert in_features(sizes_of(source)) == [size]


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("nn.initializers.normal(), (8, 6)", "6"),
        ("self.init, (8, 6)", "6"),
        ("lambda key, *shape: jax.random.uniform(key, shape), 8, 6", "6"),
        ("lambda key, out, size: jax.random.normal(key, (size, out)), 6, 8", "6"),
        ("lambda key, size: jax.random.normal(key, (8, size)), 6", "6"),
        ("lambda key, shape: other(key, shape), (8, 6)", "6"),  # as initialisers take it
        ("lambda key, size: other(key, size), 6", "Dense_1_in_features"),  # nobody knows
    ],
)
def test_a_parameter_has_the_shape_that_its_function_gives(made: str, expected: str) -> None:
    assert head(f"w = self.param('w', {made})\nx = nn.Dense(8)(x) @ w", "init: Any") == expected


DOUBLES = """
def even(x):
    if x.shape[-1] % 8 == 0:
        return x
    return even(jnp.concatenate([x, x, x], -1))


def counted(x, n):
    return x if n == 0 else counted(jnp.concatenate([x, x], -1), n - 1)


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = {call}(nn.Dense(self.width)(x){arguments})
        return nn.Dense(3)(x)

    width: int
"""


@pytest.mark.parametrize(
    ("call", "arguments", "size"),
    [
        ("even", "", "Dense_1_in_features"),
        ("counted", ", 2", "self.width + self.width + (self.width + self.width)"),
    ],
)
def test_a_function_that_calls_itself_is_followed_while_sizes_stay_short(
    call: str, arguments: str, size: str
) -> None:
    """Three times the text in each call would never end."""
    result = sizes_of(DOUBLES.format(call=call, arguments=arguments))
    assert problems(result) == []
    assert sites(result)["nn.Dense(3)"] == {"in_features": size}
