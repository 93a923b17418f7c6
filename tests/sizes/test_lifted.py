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
        ("in_axes=1", "x", "in_features"),
        ("in_axes=(1,)", "nn.Dense(6)(x)", "6"),
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
        return nn.scan(block, {SHARED})()(0.0, x)
    """
    result = sizes_of(compact(body, fields="flag: bool", before=CELL))
    assert [site.class_name for site in result.sites.values()] == [None]
    assert [site.sizes for site in result.sites.values()] == [{"x_features": "in_features"}]


@pytest.mark.parametrize("target", ["lambda m, c, x: (c, x)", "helper", "nn.Dense", "self.cell"])
def test_a_scan_of_no_class_is_a_problem(target: str) -> None:
    before = "def helper(m, c, x):\n    return c, x\n"
    body = f"return nn.scan({target}, length=3)(self, x, x)"
    result = sizes_of(compact(body, fields="cell: Any", before=before))
    assert any("nn.scan of something else" in reason for _, reason in result.problems)
