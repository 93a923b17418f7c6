"""Certificates of one run: what of them has to be equal, and when."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nnx_migrate.parity.certificate.comparing import compare
from nnx_migrate.parity.certificate.data import (
    OF_THIS_VERSION,
    Certificate,
    Count,
    MutationScore,
    Tally,
)
from nnx_migrate.parity.certificate.reading import certificate_of
from nnx_migrate.parity.command import run
from tests.parity.certificate.certificate_files import EXACT, TAMPERED, WORDS, changed, write_case

SCORE = Tally(Count(10), Count(1), Count(8), Count(7))


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("certified")
    write_case(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        outcome = run([*WORDS, "certificate=c.json"])
    assert outcome.exit_code == 0, outcome.lines
    return (folder / "c.json").read_text()


def elsewhere(content: dict[str, Any]) -> None:
    content["provenance"]["versions"]["jax"] = "0.0.1"


def test_a_certificate_holds_what_the_run_showed(text: str) -> None:
    content = json.loads(text)
    assert content["command"] == list(WORDS)
    assert content["provenance"]["machine"]["devices"] == "2"
    assert {name: list(files) for name, files in content["sources"].items()} == {
        "case": ["case.py"],
        "before": ["models.py"],
        "after": ["models.py"],
        "map": ["map.json"],
    }
    assert (content["verdict"], content["modes"]) == ("equal_by_rules", ["train=True"])
    ours, theirs = content["linen"], content["nnx"]
    programs = {"forward", "loss_and_grad", "step", "loss_and_grad with train=True"}
    assert programs <= {*ours["programs"]}
    assert {"step 1", "step 2", "loss under key 1"} <= {*ours["losses"]}
    assert [*ours["initial"]] == ["params/up"]
    assert {"params/up", "opt_state/0/mu/up"} <= {*ours["after_steps"]}
    assert ours["programs"].keys() == theirs["programs"].keys()
    same = ("initial", "outputs", "gradients", "after_steps", "specs", "losses")
    assert [ours[name] for name in same] == [theirs[name] for name in same]
    assert ours["initial"] != ours["after_steps"]
    for stage in ("initial", "outputs", "gradients", "after_steps"):
        assert all(len(leaf["sha256"]) == 64 for leaf in ours[stage].values())


def test_the_same_run_is_equal_in_every_entry(text: str) -> None:
    found = compare(certificate_of(text), certificate_of(text))
    assert found.ok
    kinds = ("paths", "specs", "values", "losses", "programs", "not checked", "checks")
    assert all(found.equal[kind] for kind in kinds)
    assert (found.circumstances, found.is_other_parity) == ((), False)


@pytest.mark.parametrize("name", TAMPERED)
def test_every_entry_that_was_changed_is_named(text: str, name: str) -> None:
    change, line = TAMPERED[name]
    found = compare(certificate_of(changed(text, change)), certificate_of(text))
    assert not found.ok
    assert any(one.startswith(line) for one in found.differences), found.differences


@pytest.mark.parametrize("name", TAMPERED)
def test_elsewhere_what_depends_on_the_machine_is_left_out_and_nothing_else(
    text: str, name: str
) -> None:
    change, line = TAMPERED[name]
    old = certificate_of(changed(changed(text, change), elsewhere))
    found = compare(old, certificate_of(text))
    named = any(one.startswith(line) for one in found.differences)
    assert named is (name not in EXACT)
    assert not {"values", "losses", "programs", "not checked"} & found.equal.keys()
    assert found.circumstances[0].startswith("jax was 0.0.1, is ")


@pytest.mark.parametrize(
    ("part", "name", "line"),
    [
        ("versions", "flax", "flax was other, is "),
        ("versions", "nnx-migrate", "nnx-migrate was other, is "),
        ("machine", "cpu", "cpu was other, is "),
        ("machine", "cores", "cores was other, is "),
        ("settings", "JAX_ENABLE_X64", "JAX_ENABLE_X64 was other, is none"),
    ],
)
def test_what_another_result_may_come_from_is_named(
    text: str, part: str, name: str, line: str
) -> None:
    def change(content: dict[str, Any]) -> None:
        content["provenance"][part][name] = "other"

    found = compare(certificate_of(changed(text, change)), certificate_of(text))
    assert found.ok
    assert [one[: len(line)] for one in found.circumstances] == [line]


def test_the_version_of_libcst_decides_about_no_number(text: str) -> None:
    def change(content: dict[str, Any]) -> None:
        content["provenance"]["versions"]["libcst"] = "other"

    found = compare(certificate_of(changed(text, change)), certificate_of(text))
    assert (found.ok, found.circumstances) == (True, ())


def _empty(content: dict[str, Any]) -> None:
    for side in ("linen", "nnx"):
        for name, value in content[side].items():
            content[side][name] = value if name == "model" else {}


@pytest.mark.parametrize("change", [_empty, lambda content: (_empty(content), elsewhere(content))])
def test_nothing_compared_with_nothing_fails(
    text: str, change: Callable[[dict[str, Any]], None]
) -> None:
    old, new = certificate_of(changed(text, change)), certificate_of(changed(text, _empty))
    found = compare(old, new)
    assert found.differences == ("nothing was compared: both certificates are empty",)
    assert not found.ok


def scored(text: str, killed: int, source: str) -> Certificate:
    score = MutationScore(OF_THIS_VERSION, source, {"tiny": replace(SCORE, killed=Count(killed))})  # type: ignore[arg-type]
    return replace(certificate_of(text), mutation_score=score)


def test_a_score_that_parity_does_not_have_is_named(text: str) -> None:
    found = compare(scored(text, 9, "a"), scored(text, 8, "a"))
    assert len(found.differences) == 1
    assert found.differences[0].startswith("mutation score: tiny: ")


def test_scores_of_two_sources_of_parity_are_not_compared_and_that_is_known(text: str) -> None:
    found = compare(scored(text, 9, "a"), scored(text, 8, "b"))
    assert (found.ok, found.is_other_parity) == (True, True)


def test_a_run_of_the_same_words_writes_the_same_bytes(text: str, tmp_path: Path) -> None:
    assert certificate_of(text).to_json() == text
