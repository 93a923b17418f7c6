"""Opting out: comments, --select and --exclude."""

from __future__ import annotations

import pytest

from nnx_migrate.model import Tally
from nnx_migrate.rewrite.keep import is_kept, kept_lines
from nnx_migrate.source.project import parse
from tests.rewrite.projects import LINEN, dense, only, outcomes, rewrite

KEPT, REFUSED, REWRITTEN = "kept", "refused", "rewritten"


def kept(text: str) -> list[int]:
    return sorted(kept_lines(parse("m", "m.py", text)))


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("x = 1  # nnx-migrate: keep\n", [1]),
        ("x = 1\r\n#nnx-migrate:keep, because\r\n", [2]),
        ("x = 1\n\n# nnx-migrate:  keep", [3]),
        ("x = 1  # nnx-migrate: keeper\n", []),
        ("x = 'nnx-migrate: keep'\n", []),
        ("x = 1  # keep\n", []),
    ],
)
def test_lines_with_the_comment(text: str, lines: list[int]) -> None:
    assert kept(text) == lines


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# nnx-migrate: keep\nclass A:\n    pass\n", True),
        ("# nnx-migrate: keep\n@deco\nclass A:\n    pass\n", True),
        ("class A:  # nnx-migrate: keep\n    pass\n", True),
        ("class A:\n    x = 1  # nnx-migrate: keep\n", True),
        ("x = 1  # nnx-migrate: keep\nclass A:\n    pass\n", False),
        ("# nnx-migrate: keep\n\nclass A:\n    pass\n", False),
        ("class A:\n    pass\n# nnx-migrate: keep\n", False),
    ],
)
def test_a_class_is_kept_by_a_comment_on_above_or_inside_it(text: str, expected: bool) -> None:
    module = parse("m", "m.py", text)
    node = next(one for one in module.tree.body if hasattr(one, "decorator_list"))
    assert is_kept(module, node, kept_lines(module)) is expected


def test_a_kept_class_is_untouched_and_counted_as_kept() -> None:
    text = LINEN + "# nnx-migrate: keep\n" + dense("A") + dense("B")
    result = rewrite({"m.py": text})
    assert outcomes(result) == {"m.A": KEPT, "m.B": REWRITTEN}
    assert dense("A") in (only(result) or "")
    assert result.references == Tally(6, rewritten=3, kept=3)


def test_a_reference_on_a_kept_line_is_kept_and_not_remarked_on() -> None:
    result = rewrite({"m.py": LINEN + "f = nn.relu  # nnx-migrate: keep\ng = nn.relu\n"})
    code = only(result) or ""
    assert "f = nn.relu  # nnx-migrate: keep\n" in code
    assert "g = nn.relu\n" not in code
    assert result.references == Tally(2, rewritten=1, kept=1)
    assert result.findings == ()


def test_selecting_a_class_keeps_the_others() -> None:
    result = rewrite({"m.py": LINEN + dense("A") + dense("B")}, select=("*.A",))
    assert outcomes(result) == {"m.A": REWRITTEN, "m.B": KEPT}


def test_excluding_a_class_converts_the_others() -> None:
    result = rewrite({"m.py": LINEN + dense("A") + dense("B")}, exclude=("m.A",))
    assert outcomes(result) == {"m.A": KEPT, "m.B": REWRITTEN}


def test_exclusion_wins_over_selection() -> None:
    result = rewrite({"m.py": LINEN + dense("A")}, select=("m.*",), exclude=("*.A",))
    assert outcomes(result) == {"m.A": KEPT}


def test_globs_are_case_sensitive_and_match_whole_names() -> None:
    result = rewrite({"m.py": LINEN + dense("A") + dense("B")}, exclude=("a", "B", "*.b"))
    assert outcomes(result) == {"m.A": REWRITTEN, "m.B": REWRITTEN}


def test_a_path_glob_says_nothing_about_classes() -> None:
    result = rewrite({"m.py": LINEN + dense("A")}, select=("src/*.py",))
    assert outcomes(result) == {"m.A": REWRITTEN}


def test_the_subclass_of_a_kept_class_is_refused_with_its_name() -> None:
    result = rewrite({"m.py": LINEN + dense("A") + dense("B", base="A")}, exclude=("*.A",))
    assert outcomes(result) == {"m.A": KEPT, "m.B": REFUSED}
    assert result.classes[1].cut_by == "m.A"
