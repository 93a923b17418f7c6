"""Axis rules from files: the project's own, other people's, faults with lines, and merging."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from jax.sharding import PartitionSpec

from nnx_migrate.sharding import (
    axis_rule_names,
    first_axes,
    load_axis_rules,
    merge_rules,
)
from tests.sharding.rules_files import HEAD, faults, written

P = PartitionSpec

# Of each of the project's files: rules, mesh axes, and the start of the SHA-256 of the JSON of the
# rules as MaxText has them, so that an edit by accident shows.
OWN = {
    "cp-as-ep": (37, 5, "3761829e6a322798"),
    "deepseek3-671b-batchsplit": (22, 4, "f3ef3d971780dd97"),
    "default": (76, 12, "a9e32fe627e405fd"),
    "ep-as-cp": (37, 4, "78997fdba2d04725"),
    "ep-as-dp": (38, 4, "da02d7493e3fb9a4"),
    "pipeline-large-moe": (42, 6, "64b3e509338ab82b"),
    "pure-fsdp": (14, 1, "d3bad35bf51776a7"),
    "shard-exp-on-fsdp": (30, 6, "16fed6c6dcb03ab6"),
}


def test_the_project_has_its_own_rules() -> None:
    assert axis_rule_names() == tuple(OWN)


@pytest.mark.parametrize("name", OWN)
def test_own_rules_have_the_figures_they_were_written_from(name: str) -> None:
    rules = load_axis_rules(name)
    content = json.dumps([rules.mesh_axes, rules.logical_axis_rules], separators=(",", ":"))
    digest = hashlib.sha256(content.encode()).hexdigest()[:16]
    assert (len(rules.logical_axis_rules), len(rules.mesh_axes), digest) == OWN[name]


@pytest.mark.parametrize("name", OWN)
def test_own_rules_shard_data_over_one_dimension_of_axes_they_have(name: str) -> None:
    rules = load_axis_rules(name)
    assert rules.data_sharding is not None
    (axes,) = rules.data_sharding
    assert set(axes) == set(rules.mesh_axes) - {"diloco"}
    assert rules.data_spec == P(tuple(axes))


def test_own_rules_that_name_axes_their_mesh_lacks_say_so() -> None:
    found = {name: [one.line for one in load_axis_rules(name).findings] for name in OWN}
    assert {name: len(lines) for name, lines in found.items() if lines} == {"ep-as-dp": 4}
    text = str(load_axis_rules("ep-as-dp").findings[0])
    assert text == (
        f"ep-as-dp:{found['ep-as-dp'][0]}: the rule of 'activation_length_attn' names mesh axis "
        "'context', which mesh_axes lacks: it has no effect"
    )


@pytest.mark.parametrize(
    ("name", "context", "expert"),
    [
        ("default", ("context", "context_usp_ulysses"), ("expert",)),
        ("cp-as-ep", ("context",), ("context", "expert")),
        ("ep-as-cp", ("expert",), ("expert",)),
        ("ep-as-dp", (), ("expert",)),
        ("pure-fsdp", (), ()),
        ("shard-exp-on-fsdp", ("context",), ("expert", "fsdp")),
    ],
)
def test_axes_of_the_sequence_and_of_the_experts_come_from_the_rules(
    name: str, context: tuple[str, ...], expert: tuple[str, ...]
) -> None:
    rules = load_axis_rules(name)
    assert (rules.context_axes, rules.expert_axes) == (context, expert)


FILE = """\
    mesh_axes: [data, model]
    data_sharding: [data, null]
    logical_axis_rules:
      - [batch, data]
      - [embed, [model, data]]
      - [embed, []]
      - [norm, null]
    context_sharding: model
    """


def test_a_file_is_read_with_every_kind_of_value(tmp_path: Path) -> None:
    path = written(tmp_path, FILE)
    rules = load_axis_rules(path)
    assert rules.name == str(path)
    assert rules.mesh_axes == ("data", "model")
    assert rules.data_spec == P("data", None)
    assert rules.logical_axis_rules == (
        ("batch", "data"),
        ("embed", ("model", "data")),
        ("embed", ()),
        ("norm", None),
    )
    assert rules.context_sharding == "model"
    assert rules.context_axes == ("model",)
    assert rules.findings == ()


def test_a_string_with_an_ending_is_a_path(tmp_path: Path) -> None:
    assert load_axis_rules(str(written(tmp_path, FILE))) == load_axis_rules(tmp_path / "rules.yml")


def test_json_style_lists_are_read_the_same(tmp_path: Path) -> None:
    path = written(
        tmp_path, 'mesh_axes: ["x"]\nlogical_axis_rules: [\n  ["a", ["x"]],\n  ["b", "x"]\n]\n'
    )
    rules = load_axis_rules(path)
    assert rules.logical_axis_rules == (("a", ("x",)), ("b", "x"))
    assert rules.data_sharding is None
    assert rules.data_spec is None


def test_a_name_that_is_not_ours_is_refused_with_those_that_are() -> None:
    with pytest.raises(FileNotFoundError, match=r"one of cp-as-ep, .* found '2d-fsdp'"):
        load_axis_rules("2d-fsdp")


def test_a_path_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load_axis_rules(tmp_path / "none.yml")


def test_a_customary_axis_that_the_mesh_lacks_is_a_remark(tmp_path: Path) -> None:
    path = written(tmp_path, HEAD + "logical_axis_rules:\n  - [a, [data, tensor]]\n")
    text = "the rule of 'a' names mesh axis 'tensor', which mesh_axes lacks: it has no effect"
    assert [(one.line, one.text) for one in load_axis_rules(path).findings] == [(3, text)]
    assert faults(path, strict=True) == [f"3: {text}"]


def test_with_the_models_names_unused_rules_and_names_without_one_are_remarks(
    tmp_path: Path,
) -> None:
    path = written(tmp_path, FILE)
    names = ["batch", "embed", "heads"]
    found = load_axis_rules(path, model_names=names).findings
    assert [(one.line, one.fatal, one.text) for one in found] == [
        (7, False, "the rule of 'norm' is for a name the model never uses"),
        (0, False, "no rule for 'heads': its dimensions are not sharded"),
    ]
    assert len(faults(path, model_names=names, strict=True)) == 2


def test_names_that_are_all_used_leave_no_remark(tmp_path: Path) -> None:
    found = load_axis_rules(written(tmp_path, FILE), model_names=["batch", "embed", "norm"])
    assert found.findings == ()


def test_context_sharding_against_the_rule_of_the_sequence_is_a_remark(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        HEAD + "logical_axis_rules:\n  - [activation_length, data]\ncontext_sharding: model\n",
    )
    rules = load_axis_rules(path)
    assert rules.context_axes == ("data",)
    (found,) = rules.findings
    assert (found.line, found.fatal) == (4, False)
    assert found.text == (
        "context_sharding is 'model', but the rule of 'activation_length' gives ('data',), "
        "and the rule counts"
    )


def test_merging_replaces_all_rules_of_a_name_and_puts_them_last() -> None:
    base = (("a", "x"), ("b", "y"), ("a", "z"), ("c", None))
    later = (("a", "y"), ("d", "x"), ("a", ()))
    assert merge_rules(base, later) == (
        ("b", "y"),
        ("c", None),
        ("a", "y"),
        ("d", "x"),
        ("a", ()),
    )


def test_merging_nothing_changes_nothing_and_overriding_replaces_all() -> None:
    base = (("a", "x"), ("b", "y"))
    assert merge_rules(base, ()) == base
    assert merge_rules(base, (("c", "x"),), override=True) == (("c", "x"),)
    assert merge_rules(base, (), override=True) == ()


def test_the_first_rule_of_a_name_counts() -> None:
    rules = (("a", ["x", "y"]), ("a", "z"), ("b", None))
    assert first_axes(rules, "a") == ("x", "y")
    assert first_axes(rules, "b") == ()
    assert first_axes(rules, "c") is None
