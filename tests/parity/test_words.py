"""Words of the command line: read, or refused with one line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnx_migrate.cli import main
from nnx_migrate.parity import command, shardings_command
from nnx_migrate.parity.words import BadWord, mesh_sizes, number, read
from tests.hostile import FEW, refusal

WORDS = st.text(alphabet="ab:,=-+_019\u0661\u00b2 \n", max_size=12)


def test_a_mesh_is_sizes_by_axis() -> None:
    assert mesh_sizes("fsdp:4,expert:2") == {"fsdp": 4, "expert": 2}


@pytest.mark.parametrize(
    "text", ["", "a", "a:", ":1", "a:0", "a:1,", "a:1,a:2", "a:\u00b2", "a b:1"]
)
def test_what_is_no_mesh_is_refused(text: str) -> None:
    with pytest.raises(BadWord, match="expected axis:size"):
        mesh_sizes(text)


@FEW
@given(WORDS)
def test_any_text_is_a_mesh_or_refused(text: str) -> None:
    reason = refusal(lambda: mesh_sizes(text), BadWord)
    assert reason or all(size >= 1 for size in mesh_sizes(text).values())


@FEW
@given(WORDS, st.integers(0, 2))
def test_any_text_is_a_number_or_refused(text: str, least: int) -> None:
    found: list[int | None] = []
    reason = refusal(lambda: found.append(number({"steps": text}, "steps", least)), BadWord)
    assert reason or found[0] == int(text)


@FEW
@given(st.lists(WORDS, max_size=4))
def test_any_words_are_read_or_refused(words: list[str]) -> None:
    reason = refusal(lambda: read(words), BadWord)
    assert reason or [f"{key}={value}" for key, value in read(words).items()] == words


KEYS = st.sampled_from(("case", "steps", "mesh", "map", "before", "a"))


@FEW
@given(st.lists(st.builds("{}={}".format, KEYS, WORDS) | WORDS, max_size=4))
def test_any_words_of_a_command_are_refused_with_one_line(words: list[str]) -> None:
    for run, name in ((command.run, "parity"), (shardings_command.run, "shardings")):
        outcome = run(words)
        (line,) = outcome.lines
        assert outcome.exit_code == 2
        assert line.startswith(f"{name}: ")
        assert line.isprintable()


@pytest.mark.parametrize("words", [["undo", "a\nb"], ["rewrite", "a\nb"], ["verify", "a\nb"]])
def test_a_line_break_in_a_path_is_none_in_the_line(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert capsys.readouterr().err.count("\n") == 1
