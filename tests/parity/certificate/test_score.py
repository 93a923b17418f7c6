"""The mutation score that a certificate quotes: of the installed sources, or none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nnx_migrate.parity.certificate.data import OF_ANOTHER, OF_THIS_VERSION, Count, Digest, Tally
from nnx_migrate.parity.certificate.score import FILE, mutation_score, source_digest, text_of

SIZES = {"tiny": Tally(Count(10), Count(1), Count(9), Count(8))}


def test_a_score_of_the_installed_sources_is_quoted(tmp_path: Path) -> None:
    file = tmp_path / "score.json"
    file.write_text(text_of(SIZES, source_digest()))
    found = mutation_score(file)
    assert (found.state, found.sizes, found.source) == (OF_THIS_VERSION, SIZES, source_digest())


@pytest.mark.parametrize("source", [None, Digest("a" * 64)])
def test_a_score_of_other_sources_is_not_claimed(tmp_path: Path, source: Digest | None) -> None:
    file = tmp_path / "score.json"
    file.write_text(text_of(SIZES, source))
    found = mutation_score(file)
    assert (found.state, found.sizes, found.source) == (OF_ANOTHER, {}, source_digest())


def test_a_score_of_another_version_is_not_claimed(tmp_path: Path) -> None:
    file = tmp_path / "score.json"
    content = {**json.loads(text_of(SIZES, source_digest())), "version": "0.0.0"}
    file.write_text(json.dumps(content))
    assert mutation_score(file).state == OF_ANOTHER


def test_a_score_of_another_schema_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "score.json"
    file.write_text(json.dumps({"schema": 2}))
    with pytest.raises(ValueError, match="expected schema 1, found 2"):
        mutation_score(file)


def test_the_committed_score_is_quoted_only_if_it_is_of_these_sources() -> None:
    content = json.loads(FILE.read_text())
    is_ours = content["source"] == source_digest()
    assert mutation_score().state == (OF_THIS_VERSION if is_ours else OF_ANOTHER)


@pytest.mark.parametrize(
    ("path", "text", "is_another"),
    [
        ("a.py", "x = 2\n", True),
        ("b/new.py", "", True),
        ("a.py", "x = 1\r\n", False),
        ("score.json", "{}", False),
    ],
)
def test_sources_are_known_by_their_text(
    tmp_path: Path, path: str, text: str, is_another: bool
) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "a.py").write_text("x = 1\n")
    before = source_digest(tmp_path)
    (tmp_path / path).write_bytes(text.encode())
    assert (source_digest(tmp_path) != before) is is_another
