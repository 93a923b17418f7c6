"""Every idiom has its one test."""

from __future__ import annotations

import re
from pathlib import Path


def test_the_twenty_five_idioms_have_one_test_each() -> None:
    files = Path(__file__).parent.glob("test_*.py")
    numbers = [
        int(number)
        for path in files
        for number in re.findall(r"^def test_(\d\d)_", path.read_text("utf-8"), re.MULTILINE)
    ]
    assert sorted(numbers) == list(range(1, 26))
