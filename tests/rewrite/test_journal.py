"""What the journal remembers from run to run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnx_migrate.rewrite.journal import (
    Entry,
    Journal,
    JournalError,
    State,
    begin,
    digest,
    is_own,
    journal_file,
    load,
    name_in,
    original_bytes,
    original_file,
    read_original,
    unfinished_journal,
)
from tests.hostile import FEW, json_values, mutations, refusal

RUN = ("0.1.0", "/src")


def hashes(*texts: str) -> list[str]:
    return [digest(text.encode()) for text in texts]


def store(root: Path, text: str) -> None:
    journal_file(root).parent.mkdir()
    journal_file(root).write_text(text)


def test_a_journal_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    journal = Journal(State.WRITING, RUN, (Entry("a.py", "1", "2", "3"),))
    store(tmp_path, journal.to_json())
    assert load(tmp_path) == journal


def test_no_journal_is_none(tmp_path: Path) -> None:
    assert load(tmp_path) is None


@pytest.mark.parametrize(
    "text", ["", "{", "[" * 20_000, "[]", '{"schema": 2}', '{"schema": 1, "state": "odd"}']
)
def test_a_damaged_journal_is_refused_with_what_to_do(tmp_path: Path, text: str) -> None:
    store(tmp_path, text)
    with pytest.raises(JournalError, match=r"journal"):
        load(tmp_path)


def stored(root: Path, **changes: object) -> Path:
    """A root with a journal of one entry, one field of which is as given."""
    entry = {"path": "a.py", "before": "1", "found": "2", "after": "3", **changes}
    root.mkdir(exist_ok=True)
    store(root, json.dumps({"schema": 1, "state": "done", "run": [], "entries": [entry]}))
    return root


@pytest.mark.parametrize(
    "path", ["../a.py", "b/../../a.py", "/etc/passwd", "out/a.py", "loop/a.py"]
)
def test_an_entry_that_leads_out_of_the_root_is_refused(tmp_path: Path, path: str) -> None:
    root = stored(tmp_path / "root", path=path)
    (root / "out").symlink_to(tmp_path)
    (root / "loop").symlink_to(root / "loop")
    with pytest.raises(JournalError, match=f"journal.json: entry '{path}': expected a path inside"):
        load(root)


@pytest.mark.parametrize(
    "changes", [{"path": ""}, {"path": 1}, {"before": "../../a"}, {"found": None}, {"odd": "x"}]
)
def test_an_entry_that_is_no_path_with_hashes_is_refused(
    tmp_path: Path, changes: dict[str, object]
) -> None:
    with pytest.raises(JournalError, match="expected a journal of schema 1"):
        load(stored(tmp_path, **changes))


def test_an_entry_in_a_folder_that_is_a_link_within_the_root_is_read(tmp_path: Path) -> None:
    root = stored(tmp_path, path="link/a.py")
    (root / "real").mkdir()
    (root / "link").symlink_to(root / "real")
    assert load(root) is not None


def test_a_second_run_keeps_the_first_original() -> None:
    one, two, three = hashes("one", "two", "three")
    first = begin(None, RUN, [Entry("a.py", one, one, two)])
    second = begin(first, RUN, [Entry("a.py", two, two, three)])
    assert second.entries == (Entry("a.py", one, two, three),)


def test_a_file_edited_between_runs_starts_anew() -> None:
    one, two, edited, three = hashes("one", "two", "edited", "three")
    first = begin(None, RUN, [Entry("a.py", one, one, two)])
    second = begin(first, RUN, [Entry("a.py", edited, edited, three)])
    assert second.entries == (Entry("a.py", edited, edited, three),)


def test_repeating_a_killed_second_run_keeps_the_first_original() -> None:
    one, two, three = hashes("one", "two", "three")
    killed = Journal(State.WRITING, RUN, (Entry("a.py", one, two, three),))
    again = begin(killed, RUN, [Entry("a.py", two, two, three)])
    assert again.entries == killed.entries


def test_entries_of_other_files_stay() -> None:
    first = begin(None, RUN, [Entry("b.py", "1", "1", "2")])
    both = begin(first, RUN, [Entry("a.py", "3", "3", "4")])
    assert [entry.path for entry in both.entries] == ["a.py", "b.py"]


@pytest.mark.parametrize("state", [State.WRITING, State.PARTIAL])
def test_an_unfinished_run_is_continued_by_the_same_run(state: State) -> None:
    journal = Journal(state, RUN)
    assert unfinished_journal(journal, RUN) is journal


def test_a_killed_run_stops_a_different_one() -> None:
    with pytest.raises(JournalError, match="undo"):
        unfinished_journal(Journal(State.WRITING, RUN), ("0.1.0", "/other"))


@pytest.mark.parametrize("journal", [None, Journal(State.DONE, RUN), Journal(State.PARTIAL, ())])
def test_nothing_is_continued_after_a_run_that_ended(journal: Journal | None) -> None:
    assert unfinished_journal(journal, RUN) is None


def test_own_changes_are_told_from_foreign_ones() -> None:
    one, two = hashes("one", "two")
    journal = Journal(State.DONE, RUN, (Entry("a.py", one, one, two),))
    assert is_own(journal, "a.py", b"two")
    assert not is_own(journal, "a.py", b"three")
    assert not is_own(journal, "b.py", b"two")
    assert not is_own(None, "a.py", b"two")


def test_originals_are_checked_by_their_hash(tmp_path: Path) -> None:
    (one,) = hashes("one")
    file = original_file(tmp_path, one)
    file.parent.mkdir(parents=True)
    file.write_bytes(b"one")
    assert read_original(tmp_path, "a.py", one) == b"one"
    file.write_bytes(b"tampered")
    with pytest.raises(JournalError, match="damaged"):
        read_original(tmp_path, "a.py", one)
    file.unlink()
    with pytest.raises(JournalError, match="unreadable"):
        read_original(tmp_path, "a.py", one)


def test_a_replaced_file_is_read_as_the_killed_run_found_it(tmp_path: Path) -> None:
    one, two = hashes("one", "two")
    file = original_file(tmp_path, one)
    file.parent.mkdir(parents=True)
    file.write_bytes(b"one")
    journal = Journal(State.WRITING, RUN, (Entry("a.py", one, one, two),))
    assert original_bytes(tmp_path, journal, "a.py", b"two") == b"one"
    assert original_bytes(tmp_path, journal, "a.py", b"edited") == b"edited"
    assert original_bytes(tmp_path, None, "a.py", b"two") == b"two"


def test_a_file_outside_the_root_has_its_whole_path(tmp_path: Path) -> None:
    assert name_in(tmp_path / "root", tmp_path / "root" / "b" / "a.py") == "b/a.py"
    assert name_in(tmp_path / "root", tmp_path / "a.py") == (tmp_path / "a.py").as_posix()


VALID = Journal(State.DONE, RUN, (Entry("a.py", "1", "2", "3"),)).to_json().encode()
WORDS = ("schema", "state", "done", "run", "entries", "path", "before", "found", "after", "../a")


@FEW
@given(st.binary(max_size=40) | mutations(VALID))
def test_any_bytes_are_a_journal_or_refused_with_one_line(tmp_path: Path, content: bytes) -> None:
    journal_file(tmp_path).parent.mkdir(exist_ok=True)
    journal_file(tmp_path).write_bytes(content)
    assert "\n" not in refusal(lambda: load(tmp_path), JournalError)


@FEW
@given(
    st.sampled_from(("schema", "state", "run", "entries", "path", "before")), json_values(*WORDS)
)
def test_any_value_in_a_journal_is_read_or_refused_with_one_line(
    tmp_path: Path, name: str, value: object
) -> None:
    journal_file(tmp_path).parent.mkdir(exist_ok=True)
    content = json.loads(VALID)
    for place in (content, content["entries"][0]):
        changed = {**place, name: value}
        whole = changed if place is content else {**content, "entries": [changed]}
        journal_file(tmp_path).write_text(json.dumps(whole))
        assert "\n" not in refusal(lambda: load(tmp_path), JournalError)
