"""Faults in files of axis rules, every one with its line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnx_migrate.sharding import AxisRulesError, load_axis_rules
from nnx_migrate.sharding.rules_file import parse, text_of
from tests.hostile import BYTES, FEW, mutations, refusal
from tests.sharding.rules_files import HEAD, faults, written

KEYS = "mesh_axes, data_sharding, logical_axis_rules, context_sharding"


def unknown(line: int, axis: str, where: str) -> str:
    return (
        f"{line}: expected mesh axes among data, model, found {axis!r} in {where}: "
        "correct it, or add it to mesh_axes"
    )


FAULTS: dict[str, tuple[str, list[str]]] = {
    "an unknown key": (
        HEAD + "logical_axis_rules: []\nlogical_rules: []\n",
        [f"3: expected one of {KEYS}, found key 'logical_rules'"],
    ),
    "a key again": (
        HEAD + "logical_axis_rules: []\nmesh_axes: []\n",
        ["3: expected each key once, found 'mesh_axes' again"],
    ),
    "a missing key": (HEAD, ["expected the key 'logical_axis_rules', found none: add it"]),
    "an unknown axis in a rule": (
        HEAD + "logical_axis_rules:\n  - [a, data]\n  - [b, [data, modle]]\n",
        [unknown(4, "modle", "the rule of 'b'")],
    ),
    "an unknown axis in data_sharding": (
        HEAD + "logical_axis_rules: []\ndata_sharding: [[data, modle]]\n",
        [unknown(3, "modle", "data_sharding")],
    ),
    "an unknown axis in context_sharding": (
        HEAD + "logical_axis_rules: []\ncontext_sharding: contxt\n",
        [unknown(3, "contxt", "context_sharding")],
    ),
    "a mesh axis twice": (
        "mesh_axes: [data, data]\nlogical_axis_rules: []\n",
        ["1: mesh_axes: expected each mesh axis once, found 'data' more than once"],
    ),
    "an axis twice in a rule": (
        HEAD + "logical_axis_rules:\n  - [a, [data, model, data]]\n",
        ["3: the rule of 'a': expected each mesh axis once, found 'data' more than once"],
    ),
    "an axis in two entries of data_sharding": (
        HEAD + "logical_axis_rules: []\ndata_sharding:\n  - [data]\n  - [model, data]\n",
        ["4: data_sharding: expected each mesh axis once, found 'data' more than once"],
    ),
    "a rule that is no pair": (
        HEAD + "logical_axis_rules:\n  - [a]\n  - b: data\n  - [c, data, model]\n",
        [f"{n}: logical_axis_rules: expected a pair [name, mesh axes]" for n in (3, 4, 5)],
    ),
    "a number for an axis": (
        HEAD + "logical_axis_rules:\n  - [a, 3]\n",
        ["3: the rule of 'a': expected a name, found '3': quote it if it is one"],
    ),
    "a word that YAML takes for a truth value": (
        HEAD + "logical_axis_rules:\n  - [on, data]\n",
        ["3: the name of a rule: expected a name, found 'on': quote it if it is one"],
    ),
    "a list in a list": (
        HEAD + "logical_axis_rules:\n  - [a, [[data]]]\n",
        ["3: the rule of 'a': expected a name, found a list: quote it if it is one"],
    ),
    "a mapping of rules": (
        HEAD + "logical_axis_rules:\n  a: data\n",
        ["3: logical_axis_rules: expected a list of pairs [name, mesh axes], found a mapping"],
    ),
    "a string of mesh axes": (
        "mesh_axes: data\nlogical_axis_rules: []\n",
        ["1: mesh_axes: expected a list of mesh axes, found 'data'"],
    ),
    "an empty file": (
        "# nothing\n",
        [f"1: expected the keys {KEYS}, found nothing"],
    ),
    "no mapping": (
        "- a\n",
        [f"1: expected the keys {KEYS}, found a list"],
    ),
    "no YAML": (
        HEAD + "logical_axis_rules: [[a, data\n",
        ["3: not YAML: expected ',' or ']', but got '<stream end>'"],
    ),
    "a character that YAML does not allow": (
        HEAD + "logical_axis_rules:\n  - [a\x00, data]\n",
        ["3: not YAML: special characters are not allowed (#x0000)"],
    ),
    "axes twice within and across entries": (
        """\
            mesh_axes: [data, model, data]
            logical_axis_rules: []
            data_sharding:
              - [data, data]
              - [model, data]
            """,
        [
            "1: mesh_axes: expected each mesh axis once, found 'data' more than once",
            "4: data_sharding: expected each mesh axis once, found 'data' more than once",
            "4: data_sharding: expected each mesh axis once, found 'data' more than once",
        ],
    ),
    "several faults at once": (
        HEAD + "colour: red\nlogical_axis_rules:\n  - [a, blue]\n  - [b]\n",
        [
            f"2: expected one of {KEYS}, found key 'colour'",
            unknown(4, "blue", "the rule of 'a'"),
            "5: logical_axis_rules: expected a pair [name, mesh axes]",
        ],
    ),
}


@pytest.mark.parametrize("case", FAULTS)
def test_a_faulty_file_is_refused_with_every_fault_and_its_line(case: str, tmp_path: Path) -> None:
    text, expected = FAULTS[case]
    assert faults(written(tmp_path, text)) == expected


def test_a_file_that_is_no_text_is_refused_with_the_line(tmp_path: Path) -> None:
    path = tmp_path / "rules.yml"
    path.write_bytes(HEAD.encode() + b"logical_axis_rules:\n  - [\xff, data]\n")
    assert faults(path) == ["3: expected UTF-8 text, found the byte 0xff"]


@pytest.mark.parametrize("case", BYTES)
def test_a_hostile_file_is_refused(tmp_path: Path, case: str) -> None:
    path = tmp_path / "rules.yml"
    path.write_bytes(BYTES[case])
    with pytest.raises(AxisRulesError) as caught:
        load_axis_rules(path)
    assert all("\n" not in str(one) for one in caught.value.findings)


YAML = st.binary(max_size=60) | st.text(alphabet="[]{}:,-&*!|'\" \nab0~", max_size=40).map(
    lambda text: f"mesh_axes: [a]\nlogical_axis_rules: {text}".encode()
)
VALID = b"""# rules
mesh_axes: [data, model]
data_sharding: [[data, model]]
logical_axis_rules:
  - [batch, [data, model]]
  - &embed [embed, "model"]
  - ['heads', null]
"""


@FEW
@given(YAML | mutations(VALID))
def test_any_text_is_read_or_refused(content: bytes) -> None:
    text = refusal(lambda: parse(text_of(content, "rules.yml"), "rules.yml"), AxisRulesError)
    assert all(line.startswith("rules.yml:") for line in text.splitlines())
