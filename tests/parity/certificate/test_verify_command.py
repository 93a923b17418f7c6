"""``parity certificate=FILE`` and ``verify FILE`` as a person runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from nnx_migrate.parity import command, verify_command
from nnx_migrate.parity.certificate import preparing
from tests.parity.certificate.certificate_files import (
    CASE,
    LINEN,
    NNX,
    TAMPERED,
    WORDS,
    changed,
    write_case,
)

ROOT = Path(__file__).parents[3]
WHOLE = ("a leaf's hash", "a spec", "a loss", "the verdict", "a path that is left out", "a program")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_case(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def nnx_migrate(*words: str) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own, which says at its end what it loaded."""
    code = (
        "import sys\n"
        "from nnx_migrate.cli import main\n"
        f"code = main({list(words)!r})\n"
        "print(*sorted({'jax', 'flax', 'numpy'} & sys.modules.keys()), file=sys.stderr)\n"
        "sys.exit(code)\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**environment, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


def certify(folder: Path) -> Path:
    """A certificate of the case in the folder that nothing was run for."""
    from tests.parity.certificate.test_reading import CONTENT

    given = dict(word.split("=") for word in WORDS)
    prepared = preparing.prepare(given, {})
    content = {**CONTENT, "command": list(prepared.command), "sources": prepared.sources}
    file = folder / "c.json"
    file.write_text(json.dumps(content))
    return file


def test_a_file_of_the_map_that_is_a_link_out_of_the_tree_is_refused(folder: Path) -> None:
    entry = {"path": "models.py", "classes": ["models.Model"], "before": "", "after": ""}
    content = {"schema": 1, "classes": [], "files": [entry]}
    (folder / "map.json").write_text(json.dumps(content))
    (folder / "case.py").write_text(
        CASE.partition("def nnx")[0]
    )  # then the map says how to build it
    file = folder / "before" / "models.py"
    file.rename(folder / "elsewhere.py")
    file.symlink_to(folder / "elsewhere.py")
    found = verify_command.run(certify(folder))
    (line,) = found.lines
    assert found.exit_code == 2
    assert "map.json: expected files inside of the tree, found 'models.py', a link that" in line


@pytest.mark.parametrize("path", ["../secret.py", "/etc/secret.py"])
def test_a_map_whose_files_lead_out_of_the_tree_is_refused(folder: Path, path: str) -> None:
    entry = {"path": path, "classes": [], "before": "", "after": ""}
    content = {"schema": 1, "classes": [], "files": [entry]}
    (folder / "map.json").write_text(json.dumps(content))
    (folder / "case.py").write_text("raise ValueError('it ran')")
    found = verify_command.run(certify(folder))
    (line,) = found.lines
    assert found.exit_code == 2
    assert f"map.json: expected files inside of the tree that rewrite read, found {path!r}" in line


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["certificate=case.py"], "certificate=case.py: expected a file to write, found the name of"),
        (["certificate=map.json"],
         "certificate=map.json: expected a file of its own, found one that this command reads"),
        (["certificate=link.json"],
         "certificate=link.json: expected a file of its own, found one that this command reads"),
        (["report=r.json", "certificate=./r.json"],
         "certificate=r.json: expected a file of its own, found one that report=r.json writes"),
        (["certificate=no/c.json"], "certificate=no/c.json: expected a file in an existing direct"),
        (["certificate=c.yml"], "certificate=c.yml: expected a name that ends in .json"),
        (["certificate="], "certificate: expected certificate=VALUE"),
    ],
)  # fmt: skip
def test_a_certificate_replaces_no_input(folder: Path, words: list[str], line: str) -> None:
    (folder / "link.json").symlink_to("map.json")
    before = (folder / "map.json").read_text()
    outcome = command.run([*WORDS, *words])
    assert (outcome.exit_code, len(outcome.lines)) == (2, 1)
    assert outcome.lines[0].startswith(f"parity: {line}")
    assert (folder / "map.json").read_text() == before


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["case=sizes.db"], "certificate= is of case=FILE.py or model=NAME, not of recorded modules"),
        (["model=llama2-7b", "distributed=true"],
         "certificate= is of a run in one process, not of distributed=true"),
    ],
)  # fmt: skip
def test_what_no_certificate_is_of_is_one_line(folder: Path, words: list[str], line: str) -> None:
    (folder / "sizes.db").write_bytes(b"SQLite format 3\0")
    outcome = command.run([*words, "certificate=c.json"])
    assert (outcome.exit_code, outcome.lines) == (2, (f"parity: {line}",))
    assert not (folder / "c.json").exists()


def test_a_run_that_does_not_finish_leaves_no_certificate(folder: Path) -> None:
    (folder / "case.py").write_text("raise ValueError('no')\n")
    outcome = command.run([*WORDS, "certificate=c.json"])
    assert outcome.exit_code == 2
    assert sorted(path.name for path in folder.iterdir()) == [
        *("after", "before", "case.py", "map.json")
    ]


def test_files_that_are_edited_while_parity_runs_are_not_certified(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    states = iter([{"after": {"models.py": "a"}}, {"after": {"models.py": "b"}}])
    monkeypatch.setattr(preparing, "sources_of", lambda given: next(states))
    prepared = preparing.prepare({"certificate": "c.json"}, {})
    with pytest.raises(command.BadWord, match=r"not written: after: models.py: changed while"):
        preparing.require_unchanged(prepared, {"certificate": "c.json"})


def test_files_that_are_others_are_named_before_jax_is_loaded(folder: Path) -> None:
    file = certify(folder)
    (folder / "after" / "models.py").write_text(NNX + "\n")
    (folder / "before" / "models.py").unlink()
    done = nnx_migrate("verify", "c.json")
    assert (done.returncode, done.stderr.strip()) == (1, "")
    assert done.stdout.splitlines() == [
        "c.json: not verified: 2 files are not those that were certified",
        "  before: models.py: missing",
        "  after: models.py: changed",
    ]
    assert file.is_file()


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda c: c.update(command=["case=no.py"]),
         "c.json: case=no.py: no such file in {} (its paths are relative to the folder that parity ran"),
        (lambda c: c["command"].append("colour=red"), "c.json: unknown key 'colour'"),
        (lambda c: c["command"].append("case=case.py"), "c.json: case= is given twice"),
        (lambda c: c.update(command=["seed=1"]), "c.json: command: expected case=FILE.py or model=N"),
        (lambda c: c.update(command=["model=no"], sources={}), "c.json: model=no: unknown model"),
        (lambda c: c.update(verdict=1), "c.json: verdict: expected identical or"),
    ],
)  # fmt: skip
def test_a_certificate_that_cannot_be_run_again_is_one_line(
    folder: Path, change: Any, line: str
) -> None:
    file = certify(folder)
    file.write_text(changed(file.read_text(), change))
    outcome = verify_command.run(Path("c.json"))
    assert (outcome.exit_code, len(outcome.lines)) == (2, 1)
    assert outcome.lines[0].startswith(f"verify: {line.format(folder)}")


def test_a_missing_file_and_no_file_are_one_line(folder: Path) -> None:
    done = nnx_migrate("verify", "no.json")
    assert done.returncode == 2
    assert done.stderr.strip() == "verify: no.json: No such file or directory"
    done = nnx_migrate("verify")
    assert done.returncode == 2
    assert "the following arguments are required: FILE" in done.stderr


def test_names_in_a_certificate_break_no_line(folder: Path) -> None:
    file = certify(folder)
    evil = {"case": {"a\nb\x1b[31m": "c" * 64}}
    file.write_text(changed(file.read_text(), lambda c: c.update(sources=evil)))
    outcome = verify_command.run(file)
    assert outcome.exit_code == 1
    assert all(line.isprintable() for line in outcome.lines)
    assert r"  case: a\nb\x1b[31m: missing" in outcome.lines


def test_what_was_certified_is_verified_and_every_change_by_hand_is_named(folder: Path) -> None:
    done = nnx_migrate("parity", *WORDS, "report=r.json", "certificate=c.json")
    assert done.returncode == 0, done.stdout + done.stderr
    text = (folder / "c.json").read_text()
    done = nnx_migrate("verify", "c.json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("c.json: as certified: models.Model is equal_by_rules (equal: ")
    assert (folder / "c.json").read_text() == text

    def change(content: dict[str, Any]) -> None:
        for name in WHOLE:
            TAMPERED[name][0](content)

    (folder / "c.json").write_text(changed(changed(text, TAMPERED["a leaf's hash"][0]), change))
    done = nnx_migrate("verify", "c.json")
    assert done.returncode == 1
    told = done.stdout.splitlines()
    assert told[0].startswith("c.json: not as certified: ")
    for name in WHOLE[1:]:
        assert any(line.strip().startswith(TAMPERED[name][1]) for line in told), (name, told)


def test_a_pair_that_is_different_is_certified_as_that(folder: Path) -> None:
    other = NNX.replace("0.5", "0.25")
    assert other != NNX
    (folder / "after" / "models.py").write_text(other)
    done = nnx_migrate("parity", *WORDS, "certificate=c.json")
    assert done.returncode == 1, done.stdout + done.stderr
    assert json.loads((folder / "c.json").read_text())["verdict"] == "different"
    done = nnx_migrate("verify", "c.json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "models.Model is different (equal: " in done.stdout


def test_another_result_of_the_same_files_is_named(folder: Path) -> None:
    """A model that reads what is no source: the files are the same, the values are not."""
    for tree, text in (("before", LINEN), ("after", NNX)):
        scaled = text.replace("x @ self", "float(open('scale.txt').read()) * x @ self")
        (folder / tree / "models.py").write_text(scaled)
    (folder / "scale.txt").write_text("1.0")
    assert command.run([*WORDS, "certificate=c.json"]).exit_code == 0
    (folder / "scale.txt").write_text("2.0")
    outcome = verify_command.run(Path("c.json"))
    assert outcome.exit_code == 1
    assert any(line.startswith("  values: Linen output: ") for line in outcome.lines)


@pytest.mark.parametrize(
    ("words", "values"), [(("steps=1",), 1), (("size=full",), 0)], ids=["tiny", "full"]
)
def test_a_built_in_model_is_certified_and_verified(
    folder: Path, words: tuple[str, ...], values: int
) -> None:
    done = nnx_migrate("parity", "model=deepseek", *words, "certificate=c.json")
    assert done.returncode == 0, done.stdout + done.stderr
    content = json.loads((folder / "c.json").read_text())
    leaves = [*content["linen"]["initial"].values(), *content["nnx"]["initial"].values()]
    assert len(leaves) == 54
    assert all((leaf["sha256"] is not None) is bool(values) for leaf in leaves)
    assert bool(content["without_values"]) is not bool(values)
    assert len(content["nnx"]["specs"]) == 82
    named = {"forward", "loss_and_grad", "step"} if values else {"init", "loss_and_grad", "step"}
    assert content["nnx"]["programs"].keys() == named
    done = nnx_migrate("verify", "c.json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "as certified: deepseek2-16b (size=" in done.stdout
    assert ("there are no values to compare" in done.stdout) is not bool(values)
