"""``nnx-migrate parity``: its words, its lines, its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nnx_migrate.parity.command import run
from tests.parity.file_case import CASE, NNX, write_trees


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ([], "nothing to compare: pass case=FILE.py or model=NAME"),
        (["cse=x.py"], "unknown key 'cse'; did you mean case?"),
        (["colour=red"], ("unknown key 'colour' (known: case, model, before, after, map, report, certificate, "
         "seed, steps, devices, mesh, shard_mode, class, instances, shim)")),
        (["case"], "case: expected case=VALUE"),
        (["ok.py"], "ok.py: expected key=VALUE; did you mean case=ok.py?"),
        (["sizes.db", "seed=1"], "sizes.db: expected key=VALUE; did you mean case=sizes.db?"),
        (["model=deepseek", "case=ok.py"],
         "model=deepseek and case=ok.py exclude each other: a built-in model, or a case of your own"),
        (["case="], "case: expected case=VALUE"),
        (["case=a.py", "case=b.py"], "case= is given twice"),
        (["case=missing.py"], "case=missing.py: no such file"),
        (["case=a.py", "seed=x"], "seed=x: expected a whole number of at least 0"),
        (["case=a.py", "steps=-1"], "steps=-1: expected a whole number of at least 0"),
        (["case=a.py", "devices=0"], "devices=0: expected a whole number of at least 1"),
        (["case=a.py", "mesh=data"],
         "mesh=data: expected axis:size[,axis:size...], found 'data'"),
        (["case=a.py", "mesh=data:0"],
         "mesh=data:0: expected axis:size[,axis:size...], found 'data:0'"),
        (["case=a.py", "mesh=data:2,data:2"],
         "mesh=data:2,data:2: expected axis:size[,axis:size...], found 'data:2'"),
        (["case=a.py", "mesh=data:8", "devices=4"],
         "mesh=data:8 needs 8 devices, devices=4 are given"),
        (["case=a.py", "mesh=data:5000"],
         "mesh=data:5000: expected at most 4096 simulated devices, found 5000"),
        (["case=a.py", "devices=5000"],
         "devices=5000: expected at most 4096 simulated devices, found 5000"),
        (["case=a.py", "seed=" + "9" * 5000], f"seed={'9' * 20}: expected at most 4294967295"),
        (["model=llama2-7b", "vocab_size=99999999999999999999"],
         "vocab_size=99999999999999999999: expected at most 2147483647"),
        (["case=a.py", "shard_mode=manual"], "shard_mode=manual: expected auto or explicit"),
        (["case=a.py", "report=no/such/dir/r.json"],
         "report=no/such/dir/r.json: expected a file in an existing directory"),
    ],
)  # fmt: skip
def test_a_bad_word_is_one_line_and_exit_code_2(words: list[str], line: str) -> None:
    outcome = run(words)
    assert (outcome.exit_code, outcome.lines) == (2, (f"parity: {line}",))


@pytest.mark.parametrize(
    ("word", "line"),
    [
        ("before=no-such-tree", "before=no-such-tree: no such directory, and"),
        ("map=missing.json", "map=missing.json: no such file"),
    ],
)
def test_a_missing_tree_or_map_is_one_line(tmp_path: Path, word: str, line: str) -> None:
    case = tmp_path / "case.py"
    case.write_text("")
    outcome = run([f"case={case}", word])
    assert outcome.exit_code == 2
    assert outcome.lines[0].startswith(f"parity: {line}")


@pytest.mark.parametrize("report", ["case.txt", "map.json", "link", "other.py"])
def test_a_report_never_replaces_what_is_read(tmp_path: Path, report: str) -> None:
    for name in ("case.txt", "map.json"):
        (tmp_path / name).write_text("mine")
    (tmp_path / "link").symlink_to("map.json")
    words = [
        f"{key}={tmp_path / name}" for key, name in (("case", "case.txt"), ("map", "map.json"))
    ]
    outcome = run([*words, f"report={tmp_path / report}"])
    assert outcome.exit_code == 2
    assert outcome.lines[0].startswith(f"parity: report={tmp_path / report}: expected a file ")
    assert [(tmp_path / name).read_text() for name in ("case.txt", "map.json")] == ["mine"] * 2


def test_equal_sides_exit_0_and_leave_a_report(tmp_path: Path) -> None:
    case = write_trees(tmp_path)
    report = tmp_path / "report.json"
    words = [f"case={case}", f"before={tmp_path / 'before'}", f"after={tmp_path / 'after'}"]
    outcome = run([*words, f"report={report}"])
    assert outcome.exit_code == 0, outcome.lines
    assert outcome.lines[0].startswith(f"{case}: identical (")
    document = json.loads(report.read_text())
    assert (document["schema"], document["ok"]) == (1, True)
    assert document["peak_rss_bytes"] > 10_000_000


def test_different_sides_exit_1_and_name_the_submodule(tmp_path: Path) -> None:
    after = NNX.replace("nnx.Dropout(rate", "nnx.Dropout(rate / 2")
    case = write_trees(tmp_path, after=after)
    words = [f"case={case}", f"before={tmp_path / 'before'}", f"after={tmp_path / 'after'}"]
    outcome = run(words)
    assert outcome.exit_code == 1
    assert any("first difference at Dropout_0" in line for line in outcome.lines), outcome.lines


@pytest.mark.slow
def test_a_case_that_raises_exits_2(tmp_path: Path) -> None:
    case = write_trees(tmp_path, case=CASE.replace("x = np", "x = no_such_name"))
    outcome = run([f"case={case}", f"before={tmp_path / 'before'}"])
    assert outcome.exit_code == 2
    line = "parity: before side: inputs() raised NameError: name 'no_such_name' is not defined "
    assert outcome.lines == (f"{line}(case.py:13)",)
