"""The count of flax's own tests: only what passed before and passes now counts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks.flax_suite import comparing
from benchmarks.flax_suite.running import Outcome, Suite, SuiteError, outcomes, prepare
from benchmarks.flax_suite.splitting import each_alone

PASSED, SKIPPED = Outcome("passed"), Outcome("skipped")


def failed(error: str) -> Outcome:
    return Outcome("failed", error)


BEFORE = {
    "a_test.py::T::same": PASSED,
    "a_test.py::T::worse": PASSED,
    "a_test.py::T::skips": PASSED,
    "a_test.py::T::gone": PASSED,
    "a_test.py::T::never": failed("E1"),
    "a_test.py::T::not_here": SKIPPED,
}
AFTER = {
    "a_test.py::T::same": PASSED,
    "a_test.py::T::worse": failed("ValueError: no"),
    "a_test.py::T::skips": SKIPPED,
    "a_test.py::T::never": PASSED,
}


def test_only_tests_that_passed_before_count_and_a_skip_is_no_pass() -> None:
    found = comparing.compare("a_test.py", BEFORE, AFTER)
    assert (found.tests, len(found.passed), found.kept) == (6, 4, 1)
    assert found.lost == {
        "a_test.py::T::worse": "ValueError: no",
        "a_test.py::T::skips": "skipped",
        "a_test.py::T::gone": "it did not run after the rewrite",
    }
    assert comparing.share(found) == "25.0 %"


def test_a_file_that_cannot_be_imported_loses_all_its_tests() -> None:
    crash = {"a_test.py": failed("ImportError: flax.linen is not there")}
    found = comparing.compare("a_test.py", BEFORE, crash)
    assert found.kept == 0
    assert set(found.lost.values()) == {"ImportError: flax.linen is not there"}


def test_the_table_tells_what_is_explained_what_is_not_and_what_need_not_be() -> None:
    explained = {"a_test.py::T::skips": "needs a GPU", "a_test.py::T::same": "was slow"}
    found = [comparing.compare("a_test.py", BEFORE, AFTER)]
    text = comparing.table(found, explained)
    assert "| a_test.py | 6 | 4 | 1 | 25.0 % |" in text
    assert "- a_test.py::T::skips: needs a GPU" in text
    assert "unexplained (2):\n- a_test.py::T::worse: ValueError: no" in text
    assert "explained, but passing (1): a_test.py::T::same" in text
    written = comparing.as_json("py3", found, explained)
    assert (written["passed_before"], written["passed_after"]) == (4, 1)
    assert [one["why"] for one in written["lost"]] == [None, "needs a GPU", None]


@pytest.mark.parametrize("why", ["", "   ", "two\\nlines"])
def test_an_explanation_is_one_line(tmp_path: Path, why: str) -> None:
    file = tmp_path / "remaining.toml"
    file.write_text(f'[auto]\n"a::b" = "{why}"\n', encoding="utf-8")
    with pytest.raises(ValueError, match="expected one line for 'a::b'"):
        comparing.explanations("auto", file)


@pytest.mark.parametrize("form", ["lazy", "auto"])
def test_the_list_of_remaining_losses_is_readable(form: str) -> None:
    assert all("_test.py::" in name for name in comparing.explanations(form))


CASES = """\
import unittest


def helper():
    return 1


class First(unittest.TestCase):
    def setUp(self):
        self.one = helper()

    @unittest.skip("not today")
    def test_a(self):
        pass

    def test_b(self):
        pass


class Second(unittest.TestCase):
    def test_c(self):
        pass
"""


def test_a_test_alone_has_what_all_tests_of_the_file_share() -> None:
    alone = dict(each_alone(CASES))
    assert [*alone] == ["First.test_a", "First.test_b", "Second.test_c"]
    names = ("helper", "setUp", "skip", "test_a", "test_b", "Second", "test_c")
    assert {key: [one for one in names if one in text] for key, text in alone.items()} == {
        "First.test_a": ["helper", "setUp", "skip", "test_a"],
        "First.test_b": ["helper", "setUp", "test_b"],
        "Second.test_c": ["helper", "Second", "test_c"],
    }


TESTS = """\
import unittest

class Case(unittest.TestCase):
    def test_linen(self):
        from flax import linen

    def test_submodule_of_linen(self):
        import flax.linen.module

    def test_nnx(self):
        from flax import nnx

    @unittest.skip("not today")
    def test_skipped(self):
        pass

    def test_parts(self):
        for part in (1, 2):
            with self.subTest(part=part):
                self.assertEqual(part, 2)
"""


def test_flax_linen_is_there_before_and_not_after(tmp_path: Path) -> None:
    suite = Suite(Path(sys.executable), tmp_path)
    for side in ("before", "after"):
        (tmp_path / side).mkdir()
        (tmp_path / side / "a_test.py").write_text(TESTS, encoding="utf-8")
        (tmp_path / side / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    assert suite.files == ["a_test.py"]
    before, after = (
        {
            name.rpartition("::")[2].removeprefix("test_"): one
            for name, one in outcomes(suite, side, "a_test.py", 300, fresh=False).items()
            if "(" not in name  # one of the parts of a test, which newer pytests report too
        }
        for side in ("before", "after")
    )
    always = {"nnx": "passed", "skipped": "skipped", "parts": "failed"}
    there = {"linen": "passed", "submodule_of_linen": "passed"}
    assert {name: one.outcome for name, one in before.items()} == {**always, **there}
    gone = dict.fromkeys(there, "failed")
    assert {name: one.outcome for name, one in after.items()} == {**always, **gone}
    assert "this process runs without it" in after["linen"].error

    (tmp_path / "before" / "a_test.py").write_text("import nothing_of_this_name\n")
    (entry,) = outcomes(suite, "before", "a_test.py", 300, fresh=False).values()
    assert entry.outcome == "failed"
    assert "nothing_of_this_name" in entry.error


def test_a_python_without_jax_is_told_in_a_line(tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match=r"/bin/false has no jax and flax: no output"):
        prepare(Path("/bin/false"), tmp_path, tmp_path)
