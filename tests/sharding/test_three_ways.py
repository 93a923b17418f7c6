"""The rows of the table in docs/sharding.md: Linen, stock NNX and the shim on the same names and rules."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import pytest
from flax import linen, nnx
from flax.core.spmd import logical_axis_rules
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

from nnx_migrate.sharding import resolve_spec

P = PartitionSpec
MESH = AbstractMesh((2, 4, 1), ("data", "model", "one"), axis_types=(AxisType.Auto,) * 3)


def stock_spec(names: tuple[Any, ...], rules: Any) -> PartitionSpec:
    """What stock NNX says of a variable with these names under these rules."""
    with nnx.use_eager_sharding(False):
        variable = nnx.Param(jnp.zeros((8,) * len(names)), out_sharding=names)
    with logical_axis_rules(rules):
        return nnx.get_partition_spec({"a": variable})["a"].get_raw_value()


def three_ways(names: tuple[Any, ...], rules: Any) -> tuple[Any, Any, Any]:
    """The specs of Linen, stock NNX and the shim."""
    linens = linen.logical_to_mesh_axes(names, rules)
    return linens, stock_spec(names, rules), resolve_spec(names, rules)


def test_a_repeated_rule() -> None:
    rules = (("embed", "data"), ("embed", "model"))
    assert three_ways(("embed",), rules) == (P("data"), P("model"), P("data"))


def test_a_repeated_rule_falls_through() -> None:
    rules = (("mlp", "data"), ("embed", "data"), ("embed", "model"), ("embed", None))
    found = three_ways(("embed", "mlp"), rules)
    assert found == (P("model", "data"), P(None, "data"), P("model", "data"))


def test_two_names_with_one_mesh_axis() -> None:
    found = three_ways(("embed", "mlp"), (("embed", "data"), ("mlp", "data")))
    assert found == (P("data", None), P("data", "data"), P("data", None))
    with pytest.raises(Exception, match="duplicate entries for `data`"):
        NamedSharding(MESH, found[1])


def test_a_tuple_that_conflicts_in_part() -> None:
    found = three_ways(("embed", "mlp"), (("mlp", "data"), ("embed", ("data", "model"))))
    assert found == (P(None, "data"), P(("data", "model"), "data"), P(None, "data"))


def test_a_name_without_a_rule() -> None:
    found = three_ways(("embed", "norm"), (("embed", "data"),))
    assert found == (P("data", None), P("data", "norm"), P("data", None))
    with pytest.raises(ValueError, match="norm"):
        NamedSharding(MESH, found[1])


def test_a_rule_that_assigns_nothing() -> None:
    rules = (("embed", None), ("embed", "data"))
    assert three_ways(("embed",), rules) == (P(None), P("data"), P(None))


def test_a_name_at_two_dimensions() -> None:
    names, rules = ("embed", "embed"), (("embed", "data"),)
    for resolve in (linen.logical_to_mesh_axes, resolve_spec):
        with pytest.raises(ValueError, match="more than once"):
            resolve(names, rules)
    assert stock_spec(names, rules) == P("data", "data")


def test_an_axis_of_size_one() -> None:
    names, rules = ("embed", "mlp"), (("embed", ("data", "one")), ("mlp", ("one", "model")))
    linens, stock, ours = three_ways(names, rules)
    assert (linens, stock) == (P(("data", "one"), None), P(("data", "one"), ("one", "model")))
    assert ours == linens
    assert resolve_spec(names, rules, MESH) == P("data", None)


def test_an_axis_the_mesh_lacks() -> None:
    names, rules = ("embed",), (("embed", ("data", "gone")),)
    linens, stock, ours = three_ways(names, rules)
    assert linens == stock == ours == P(("data", "gone"))
    with pytest.raises(ValueError, match="gone"):
        NamedSharding(MESH, linens)
    assert NamedSharding(MESH, resolve_spec(names, rules, MESH)).spec == P("data")


def test_every_row_of_the_table_names_a_test_and_every_test_here_has_a_row() -> None:
    page = Path(__file__).parents[2] / "docs" / "sharding.md"
    rows = [line for line in page.read_text("utf-8").splitlines() if line.startswith("| ")][1:]
    named = [found[-1] for row in rows if (found := re.findall(r"`(test_\w+)` \|$", row))]
    assert len(named) == len(rows) > 0
    files = Path(__file__).parent.glob("test_*.py")
    tests = {
        name
        for path in files
        for name in re.findall(r"^def (test_\w+)", path.read_text("utf-8"), re.MULTILINE)
    }
    assert [name for name in named if name not in tests] == []
    here = {name for name in globals() if name.startswith("test_") and "every_row" not in name}
    assert here - {*named} == set()
