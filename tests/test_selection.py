"""What the quick suite leaves out is a choice by time, and never all that shows a construct."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests import selection


class Item(SimpleNamespace):
    def add_marker(self, marker: Any) -> None:
        self.marks.append(marker.name)


def test_cases_beyond_the_number_given_are_slow() -> None:
    names = ["a.py::f[x]", "a.py::f[y]", "a.py::f[z::1]", "a.py::g", "b.py::f[x]"]
    items = [Item(nodeid=f"tests/{name}", marks=[]) for name in names]
    selection.mark(items, {"a.py::f": 1, "a.py::g": 0})
    assert [item.marks for item in items] == [[], ["slow"], ["slow"], ["slow"], []]


def test_as_many_cases_are_quick_as_fit_but_one_at_least() -> None:
    share, longest = selection.SHARE, selection.LONGEST
    times = {
        "all of them": [share / 4] * 4,
        "some": [share / 4] * 9,
        "one": [(share + longest) / 2] * 3,
        "too long": [longest + 1],
        "too long later": [0.1, longest + 1, 0.1],
    }
    assert selection.chosen(times) == {"some": 4, "one": 1, "too long": 0, "too long later": 1}


def test_times_are_read_by_function(tmp_path: Path) -> None:
    file = tmp_path / "junit.xml"
    case = '<testcase classname="tests.nn.test_a" name="{}" time="{}" />'
    cases = (
        case.format("test_f[a]", 2) + case.format("test_f[b.c::d]", 3) + case.format("test_g", 1)
    )
    file.write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
    found = selection.timed(file, 0.5)
    assert found == {"nn/test_a.py::test_f": [1.0, 1.5], "nn/test_a.py::test_g": [0.5]}


def test_only_functions_that_are_there_are_listed() -> None:
    for name in selection.read():
        file, _, function = name.partition("::")
        assert f"def {function}(" in (selection.HERE / file).read_text(encoding="utf-8"), name
