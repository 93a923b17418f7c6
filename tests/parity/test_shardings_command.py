"""``shardings``: how a built-in model is sharded, and what other rules change."""

from __future__ import annotations

import pytest
from jax.sharding import NamedSharding

from nnx_migrate.parity.evaluation.shardings import layout_on, show
from nnx_migrate.parity.models import layout
from nnx_migrate.parity.models.layout import Row
from nnx_migrate.parity.models.options import model_options
from nnx_migrate.parity.shardings_command import run
from tests.sharding.recordings import recorded

FIRST = Row("a/kernel", (8, 4), ("embed", None), "P(fsdp)", 1024)
SECOND = Row("a/scale", (), None, "P()", 4)


def test_rows_are_in_columns_under_their_heads() -> None:
    assert layout.table([FIRST, SECOND]) == [
        "array     shape   logical names  spec     bytes per device",
        "a/kernel  8x4     embed,-        P(fsdp)  1,024",
        "a/scale   scalar  none           P()      4",
        "2 arrays, 1,028 bytes per device",
    ]


def test_only_what_changes_is_listed() -> None:
    other = Row("a/kernel", (8, 4), ("embed", None), "P(-, fsdp)", 512)
    assert layout.changes([FIRST, SECOND], [other, SECOND], ("one", "two")) == [
        "a/kernel: P(fsdp) -> P(-, fsdp), 1,024 -> 512 bytes per device",
        "1 of 2 arrays change from one to two, 1,028 -> 516 bytes per device",
    ]


def test_the_table_of_a_model_has_all_its_parameters() -> None:
    outcome = run(["model=deepseek", "mesh=fsdp:4,expert:2"])
    assert outcome.exit_code == 0
    assert outcome.lines[0] == "deepseek2-16b size=tiny rules=default mesh=fsdp:4,expert:2"
    (line,) = (line for line in outcome.lines if "dense_layers/mlp/wi_0" in line)
    assert line.split() == [
        "decoder/dense_layers/mlp/wi_0/kernel",
        "64x1x128",
        "embed,dense_layers,mlp",
        "P(fsdp+expert)",
        "4,096",
    ]
    assert outcome.lines[-1] == "27 arrays, 167,872 bytes per device"


def test_a_second_set_of_rules_shows_what_changes() -> None:
    outcome = run(["model=deepseek", "rules=default", "rules=shard-exp-on-fsdp"])
    assert outcome.exit_code == 0
    changed = [line for line in outcome.lines if " -> P(" in line]
    assert len(changed) == 4
    assert all("MoeBlock_0" in line for line in changed)
    assert outcome.lines[-1].startswith("4 of 27 arrays change from default to shard-exp-on-fsdp")
    same = run(["model=deepseek", "rules=default", "rules=default"])
    assert same.lines[-1].startswith("0 of 27 arrays change")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rules", "mesh"),
    [
        ("default", "fsdp:16"),
        ("pure-fsdp", "fsdp:16"),
        ("ep-as-dp", "fsdp:8,expert:2"),
        ("shard-exp-on-fsdp", "fsdp:4,expert:2"),
        ("cp-as-ep", "fsdp:2,context:2,expert:2"),
    ],
)
def test_at_full_size_nnx_variables_have_the_recorded_names_and_specs(
    rules: str, mesh: str
) -> None:
    given = {"model": "deepseek2-16b", "size": "full", "rules": rules, "mesh": mesh}
    found = layout.rows(model_options(given))
    here = recorded(f"deepseek2-16b__{rules}")
    known = {
        row.name.removeprefix("params/"): (
            row.shape,
            row.names,
            show(layout_on(NamedSharding(here.mesh, row.spec))),
        )
        for row in here.arrays
        if row.name.startswith("params/")
    }
    assert {row.path: (row.shape, row.names, row.spec) for row in found} == known
    assert len(known) == 27


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "nothing to show: pass model=NAME"),
        (["modle=deepseek"], "unknown key 'modle'; did you mean model?"),
        (["model=deepseek", "steps=3"], "steps= is for parity: nothing runs here"),
        (["model=deepseek", "rules=defalt"], "rules=defalt: axis rules: expected a file or one"),
        (["model=deepseek", *["rules=default"] * 3], "expected one or two rules=, found 3"),
        (["model=deepseek", "mesh=fsdp:3"], "divisible by 3 (mesh axes 'fsdp') in dimension 0"),
        (["model=deepseek", "mesh=fdsp:4"], "rules=default have no mesh axis 'fdsp'"),
        (["model=deepseek", "size=huge"], "size=huge: expected tiny or full"),
    ],
)
def test_what_cannot_be_shown_is_one_line(words: list[str], message: str) -> None:
    outcome = run(words)
    assert outcome.exit_code == 2
    (line,) = outcome.lines
    assert line.startswith("shardings: ")
    assert message in line
