"""Offsets of nodes in exact source text."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nnx_migrate.source.modules import Lines


def segment(lines: Lines, node: ast.AST) -> str:
    """The text of a node."""
    span = lines.span(node)
    return lines.text[span.start : span.end]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("before", ["", "# ü☃\n", "\n\n", "s = 'é'; ", "\f", "'''a\nb'''\n"])
def test_a_node_is_found_behind_any_text(newline: str, before: str) -> None:
    text = (before + "target = other\n").replace("\n", newline)
    node = next(
        one for one in ast.walk(ast.parse(text)) if isinstance(one, ast.Name) and one.id == "other"
    )
    assert segment(Lines(text), node) == "other"


def test_columns_count_characters_not_bytes() -> None:
    text = "é = 'ü☃'; name\n"
    node = ast.parse(text).body[1]
    lines = Lines(text)
    assert segment(lines, node) == "name"
    assert lines.position(lines.span(node).start) == (1, 11)


def test_a_form_feed_ends_no_line() -> None:
    lines = Lines("a\fb\nc")
    assert lines.starts == (0, 4)
    assert lines.position(2) == (1, 3)


@pytest.mark.parametrize(("text", "newline"), [("", "\n"), ("a\r\nb\n", "\r\n"), ("a\r", "\r")])
def test_the_first_line_end_is_the_files(text: str, newline: str) -> None:
    assert Lines(text).newline == newline


@settings(max_examples=25, derandomize=True)
@given(st.text(alphabet="aé☃\n\r\f ", max_size=30))
def test_positions_lead_back_to_their_offsets(text: str) -> None:
    lines = Lines(text)
    for offset in range(len(text)):
        line, column = lines.position(offset)
        assert lines.starts[line - 1] + column - 1 == offset
