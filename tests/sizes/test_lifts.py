"""Sizes of modules that nn.scan lifts: the body sees slices, results get an axis."""

from __future__ import annotations

import pytest

from tests.sizes.inference import compact, in_features, sites, sizes_of

CELL = """\
class Cell(nn.Module):
    @nn.compact
    def __call__(self, carry, x):
        return carry, (nn.Dense(3)(x), x)
"""
SHARED = "variable_broadcast='params', split_rngs={'params': False}"


@pytest.mark.parametrize(
    ("options", "inputs", "expected"),
    [
        ("in_axes=1", "jnp.zeros((2, 5, 7))", "7"),
        ("in_axes=0", "jnp.zeros((5, 7))", "7"),
        ("in_axes=-1", "jnp.zeros((2, 7, 5))", "7"),
        ("in_axes=-2", "jnp.zeros((2, 5, 7))", "7"),
        ("in_axes=nn.broadcast, length=3", "jnp.zeros((2, 7))", "7"),
        ("in_axes=1", "x", "ScanCell_0_x_features"),
        ("in_axes=(1,)", "nn.Dense(6)(x[:, :, :])", "6"),
        ("in_axes=2", "jnp.zeros((2, 5, 7))", "5"),
        ("in_axes=2", "nn.Dense(6)(x)", "ScanCell_0_x_features"),
        ("in_axes=2", "nn.Conv(6, (3, 3))(x)", "6"),
    ],
)
def test_the_body_sees_inputs_without_the_scanned_axis(
    options: str, inputs: str, expected: str
) -> None:
    body = f"return nn.scan(Cell, {SHARED}, {options})()(0.0, {inputs})"
    found = sites(sizes_of(compact(body, before=CELL)))
    scanned = next(sizes for text, sizes in found.items() if text.startswith("nn.scan("))
    assert scanned == {"x_features": expected}


@pytest.mark.parametrize(
    ("out_axes", "expected"), [("0", "3"), ("1", "3"), ("-2", "3"), ("-1", "None")]
)
def test_results_are_stacked(out_axes: str, expected: str) -> None:
    body = f"""
        cell = nn.scan(Cell, {SHARED}, in_axes=1, out_axes={out_axes}, length=5)()
        carry, (ys, same) = cell(0.0, jnp.zeros((2, 5, 7)))
        return nn.Dense(4)(ys)
    """
    found = in_features(sizes_of(compact(body, before=CELL)))
    assert found[-1] == (expected if expected != "None" else "Dense_0_in_features")


def test_names_count_the_lifted_class() -> None:
    body = f"""
        scanned = nn.scan(nn.remat(Cell), {SHARED})
        return scanned()(0.0, x)
    """
    result = sizes_of(compact(body, before=CELL))
    assert [site.class_name for site in result.sites.values()] == ["ScanCheckpointCell"]


def test_a_flag_between_remat_and_the_class_leaves_the_name_open() -> None:
    body = f"""
        block = nn.remat(Cell) if self.flag else Cell
        return nn.scan(block, {SHARED})()(0.0, x[:, :])
    """
    result = sizes_of(compact(body, fields="flag: bool", before=CELL))
    assert [site.class_name for site in result.sites.values()] == [None]
    assert [site.sizes for site in result.sites.values()] == [{"x_features": "in_features"}]


@pytest.mark.parametrize(
    "call",
    [
        "nn.scan(self.cell, length=3)(self, x, x)",
        "nn.scan(self.step)(x, x)",
        "nn.scan(lambda m, c, x: (m(c), x), variable_broadcast='params')(self, x, x)",
        "nn.vmap(lambda m, x: x)(self, x)",
        "nn.remat(lambda m, x: x)(self, x)",
        "nn.remat(nn.Dense)(4)(x)",
    ],
)
def test_a_transformation_of_no_class_of_the_project_is_a_problem(call: str) -> None:
    source = compact(f"return {call}", fields="cell: Any")
    result = sizes_of(source + "    def step(self, c, x):\n        return c, x\n")
    assert any("of something else than a module class" in reason for _, reason in result.problems)


def test_a_function_that_makes_parameters_for_the_class_is_a_problem() -> None:
    before = """
        def helper(m, c, x=None):
            return c + m.param("b", nn.initializers.ones, (3,)), x
    """
    result = sizes_of(compact("return helper(self, x)", before=before))
    assert [reason for _, reason in result.problems] == [
        "a function outside the class calls self.param for it"
    ]


def decorated(options: str, name: str = "vmap", arguments: str = "x") -> str:
    return f"""\
class Lifted(nn.Module):
    @functools.partial(nn.{name}, {SHARED if name == "scan" else "variable_axes={'params': None}"}, {options})
    @nn.compact
    def __call__(self, {arguments}):
        y = nn.Dense(3)(x)
        return {"(carry, y)" if name == "scan" else "y"}
"""


@pytest.mark.parametrize(
    ("options", "inputs", "axis", "expected"),
    [
        ("in_axes=0", "jnp.zeros((5, 7))", -1, "7"),
        ("in_axes=1", "jnp.zeros((2, 5, 7))", -1, "7"),
        ("in_axes=-1", "jnp.zeros((2, 7, 5))", -2, "7"),
        ("in_axes=-2", "jnp.zeros((2, 5, 7))", -1, "7"),
        ("in_axes=(-1,)", "jnp.zeros((7, 5))", -2, "7"),
        ("in_axes=None, axis_size=3", "jnp.zeros((5, 7))", -1, "7"),
    ],
)
def test_callers_of_a_decorated_method_pass_the_axis_that_its_body_sees_last(
    options: str, inputs: str, axis: int, expected: str
) -> None:
    source = compact(f"return Lifted()({inputs})", before=decorated(options))
    (argument,) = sizes_of(source, "Lifted").new_arguments
    assert (argument.argument, argument.axis) == ("x", axis)
    assert sites(sizes_of(source)) == {"Lifted()": {"in_features": expected}}


@pytest.mark.parametrize(
    ("out_axes", "expected"), [("0", "3"), ("-2", "3"), ("-1", "Dense_0_in_features")]
)
@pytest.mark.parametrize("name", ["vmap", "scan"])
def test_results_of_a_decorated_method_are_stacked(name: str, out_axes: str, expected: str) -> None:
    lifted = decorated(
        f"in_axes=1, out_axes={out_axes}", name, "carry, x" if name == "scan" else "x"
    )
    call = "Lifted()(0.0, jnp.zeros((2, 5, 7)))[1]" if name == "scan" else "Lifted()(x)"
    body = f"""
        y = {call}
        return nn.Dense(4)(y)
    """
    found = in_features(sizes_of(compact(body, before=lifted)))
    assert found[-1] == expected


@pytest.mark.parametrize(
    ("options", "read", "inputs", "expected"),
    [
        ("in_axes=0", "x.shape[1]", "jnp.zeros((2, 5, 7))", "x_shape[2]"),
        ("in_axes=1", "x.shape[0] + x.shape[1]", "jnp.zeros((2, 5, 7))", "x_shape[0] + x_shape[2]"),
        ("in_axes=2", "x.shape[1]", "jnp.zeros((2, 7, 5))", "x_shape[1]"),
        ("in_axes=0", "x.shape[-2]", "jnp.zeros((2, 5, 7))", "x_shape[-2]"),
    ],
)
def test_an_axis_counted_from_the_front_is_another_for_callers(
    options: str, read: str, inputs: str, expected: str
) -> None:
    lifted = decorated(options).replace(
        "nn.Dense(3)(x)", f"self.param('w', lambda _: jnp.ones({read}))"
    )
    source = compact(f"return Lifted()({inputs})", before=lifted)
    found = sizes_of(source, "Lifted")
    assert expected in found.dims.values() or expected in found.statics.values()
    assert not found.problems


@pytest.mark.parametrize(
    ("options", "body", "reason"),
    [
        ("in_axes=-1", "nn.Dense(x.shape[1])(x)", "takes an axis away"),
        ("in_axes=1", "nn.Dense(x.shape[-2])(x)", "takes an axis away"),
        ("in_axes=2", "nn.Dense(3)(x)", "whether axis 2, which the decorator takes away"),
        ("in_axes=AXES", "nn.Dense(3)(x)", "which axis of it the decorator"),
        ("in_axes=1", "x @ self.param('w', nn.initializers.ones, x.shape[-2:])", "takes an axis"),
    ],
)
def test_an_axis_that_a_decorator_may_take_away_is_refused(
    options: str, body: str, reason: str
) -> None:
    source = decorated(options).replace("nn.Dense(3)(x)", body)
    found = sizes_of(f"AXES = make()\n{source}", "Lifted").problems
    assert any(reason in text for _, text in found), found


def test_a_call_whose_last_axis_a_decorator_takes_away_is_refused() -> None:
    source = compact("return Lifted()(jnp.zeros((5, 7)))", before=decorated("in_axes=1"))
    assert "takes away the last axis" in sizes_of(source).problems[0][1]
