"""What strict resolution objects to, and what explain_spec lists."""

from __future__ import annotations

import pytest
from jax.sharding import PartitionSpec

from nnx_migrate.sharding import (
    AxesDropped,
    NameUnmatched,
    RuleLost,
    SilentResolutionError,
    explain_spec,
    resolve_spec,
)

P = PartitionSpec


def test_a_rule_that_lost_is_listed_with_the_winner_and_what_came_instead() -> None:
    rules = (("mlp", "fsdp"), ("embed", ("fsdp", "expert")), ("embed", "expert"))
    found = explain_spec(("embed", "mlp"), rules, array="wi/kernel")
    assert found.spec == P("expert", "fsdp")
    assert found.silent == (
        RuleLost("wi/kernel", 0, "embed", 1, ("fsdp", "expert"), (("fsdp", "mlp"),), "expert"),
    )
    assert str(found.silent[0]) == (
        "wi/kernel, dimension 0: rule 1 ('embed' -> ('fsdp', 'expert')) lost: "
        "'fsdp' is used by 'mlp'; the dimension got 'expert'"
    )


def test_a_name_whose_every_rule_lost_is_not_also_unmatched() -> None:
    found = explain_spec(("a", "b"), (("b", "x"), ("a", "x")))
    assert found.silent == (RuleLost("", 0, "a", 1, "x", (("x", "b"),), None),)


def test_axes_given_among_the_names_own_themselves() -> None:
    found = explain_spec((("x", "y"), "a"), (("a", "y"),))
    assert found.silent == (RuleLost("", 1, "a", 0, "y", (("y", ""),), None),)


def test_a_name_no_rule_mentions_is_listed() -> None:
    found = explain_spec(("a", "b"), (("a", "x"),), array="scale")
    assert found.silent == (NameUnmatched("scale", 1, "b"),)
    assert str(found.silent[0]) == (
        "scale, dimension 1: no rule mentions 'b'; the dimension got None"
    )


def test_dropped_axes_are_listed_by_reason() -> None:
    found = explain_spec(("a",), (("a", ("x", "one", "gone")),), {"x": 2, "one": 1}, array="bias")
    assert found.spec == P("x")
    assert found.silent == (AxesDropped("bias", 0, "a", ("one",), ("gone",)),)
    assert str(found.silent[0]) == (
        "bias, dimension 0: dropped for 'a': 'one' has size 1, 'gone' is not in the mesh"
    )


def test_the_list_is_in_order_of_the_dimensions() -> None:
    rules = (("c", "one"), ("a", "one"))
    found = explain_spec(("a", "b", "c"), rules, {"one": 1})
    assert [(type(one), one.dimension) for one in found.silent] == [
        (RuleLost, 0),
        (NameUnmatched, 1),
        (AxesDropped, 2),
    ]


def test_nothing_is_listed_where_every_name_got_its_first_rule() -> None:
    found = explain_spec(("a", None), (("a", "x"), ("a", "y")), {"x": 2, "y": 2})
    assert found.silent == ()
    assert resolve_spec(("a", None), (("a", "x"), ("a", "y")), strict=True) == P("x", None)


@pytest.mark.parametrize(
    ("names", "rules", "text"),
    [
        (("a", "b"), (("b", "x"), ("a", "x")), r"'x' is used by 'b'; the dimension got None"),
        (("a", "b"), (("b", "x"), ("a", "x"), ("a", "y")), r"the dimension got 'y'"),
        (("a",), (), "no rule mentions 'a'"),
    ],
)
def test_strict_refuses_what_linen_passes_over(names: object, rules: object, text: str) -> None:
    with pytest.raises(SilentResolutionError, match=text) as caught:
        resolve_spec(names, rules, strict=True, array="kernel")  # type: ignore[call-overload]
    assert [one.array for one in caught.value.silent] == ["kernel"]


def test_strict_does_not_object_to_axes_the_mesh_cannot_use() -> None:
    assert resolve_spec(("a",), (("a", "one"),), {"one": 1}, strict=True) == P(None)
