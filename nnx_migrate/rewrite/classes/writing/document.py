"""What the docstring of a converted class says of the arguments that it now asks for.

They join the arguments that the class's docstring has already, else they are a paragraph at its end. A class
without a docstring gets one of ``__init__``, for the arguments whose names do not say what to pass.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Sequence

from nnx_migrate.edit.expressions import Expression
from nnx_migrate.edit.page import WIDTH
from nnx_migrate.edit.statements import Statement, docstring
from nnx_migrate.edit.syntax import cst
from nnx_migrate.model import SizeArgument
from nnx_migrate.rewrite.classes.writing.layout import Layout, docstring_of
from nnx_migrate.rewrite.render import renderer_of
from nnx_migrate.source.classes import ClassInfo

HEADING = "Args:"
_SECTION = re.compile(r"(\s*)(Args|Arguments|Attributes|Fields|Parameters):\s*")
_TRIPLE = re.compile(r"""[rRuU]?("{3}|'{3})""")


def describe(one: SizeArgument) -> str:
    """What to pass for an argument, in words."""
    method = "" if one.method == "__call__" else f" of {one.method}"
    if one.fact is not None:
        what = "is given" if one.fact == "given" else "is true"
        return f"whether {one.argument} {what} in the first call{method}."
    if one.submodule is not None:
        path = one.submodule
        subject = f"{one.argument} of {path}" if one.argument else f"the input of {path}"
        return f"{_in_words(one)} {subject}{_unless(one)}."
    return f"{_in_words(one)} {one.argument}{method}{_unless(one)}."


def _in_words(one: SizeArgument) -> str:
    if one.axis is None:
        return "the shape of"
    return "size of the last axis of" if one.axis == -1 else f"size of axis {one.axis} of"


def _unless(one: SizeArgument) -> str:
    return ", where a call needs it" if one.optional else ""


def speaks_for_itself(one: SizeArgument) -> bool:
    """Whether the argument is the last axis of an input, and is named after it."""
    return one.fact is None and one.submodule is None and one.axis == -1


def docstring_with_arguments(
    literal: str, arguments: Sequence[SizeArgument], indent: str, unit: str, width: int = WIDTH
) -> str | None:
    """The source of a docstring that says what the arguments are; None when it has no room.

    Only a literal in triple quotes has: text with line ends cannot be put into others.

    Args:
        indent: what the lines of the docstring begin with.
        unit: one more level.
        width: columns of a line.
    """
    found = _TRIPLE.match(literal)
    if found is None or not literal.endswith(found[1]):
        return None
    newline = "\r\n" if "\r\n" in literal else "\n"
    lines = literal[: -len(found[1])].rstrip().split(newline)
    section = _section(lines)
    if section is None:
        lines += ["", f"{indent}{HEADING}", *_entries(arguments, indent + unit, unit, width)]
    else:
        place, inner = section
        lines[place:place] = _entries(arguments, inner, unit, width)
    return newline.join([*lines, f"{indent}{found[1]}"])


def _section(lines: Sequence[str]) -> tuple[int, str] | None:
    """Where a docstring's list of arguments ends, and the indentation of its entries."""
    for start, line in enumerate(lines):
        head = _SECTION.fullmatch(line)
        if head is None:
            continue
        inner = ""
        end = start + 1
        for index, one in enumerate(lines[end:], end):
            margin = one[: len(one) - len(one.lstrip())]
            if one.strip() and len(margin) <= len(head[1]):
                break
            if one.strip():
                inner, end = inner or margin, index + 1
        return (end, inner) if inner else None
    return None


def _entries(arguments: Sequence[SizeArgument], indent: str, unit: str, width: int) -> list[str]:
    lines = textwrap.TextWrapper(width, break_long_words=False, break_on_hyphens=False)
    lines.initial_indent, lines.subsequent_indent = indent, indent + unit
    entries = (f"{one.name}: {describe(one)}" for one in arguments)
    return [line for entry in entries for line in lines.wrap(entry)]


def class_docstring(
    cls: ClassInfo, arguments: Sequence[SizeArgument], layout: Layout
) -> tuple[ast.Constant, Expression] | None:
    """The docstring of a class, and its new literal; None when there is none or it stays."""
    found = docstring_of(cls.node.body)
    if found is None or not isinstance(found.value, ast.Constant) or not arguments:
        return None
    literal = renderer_of(cls.module).render(found.value)
    if not isinstance(literal, cst.SimpleString):
        return None
    text = docstring_with_arguments(
        literal.value, arguments, " " * layout.indent, layout.unit, layout.page.width
    )
    return None if text is None else (found.value, literal.with_changes(value=text))


def init_docstring(arguments: Sequence[SizeArgument], layout: Layout) -> list[Statement]:
    """The docstring of ``__init__``, where a name alone does not say what to pass."""
    unclear = [one for one in arguments if not speaks_for_itself(one)]
    if not unclear:
        return []
    single, indent = f"{unclear[0].name}: {describe(unclear[0])}", " " * layout.body
    if len(unclear) == 1 and len(single) + 6 + layout.body <= layout.page.width:
        return [docstring(single)]
    first = "Build the layers."
    entries = _entries(unclear, indent + layout.unit, layout.unit, layout.page.width)
    lines = [first, "", f"{indent}{HEADING}", *entries, indent]
    return [docstring(layout.newline.join(lines))]
