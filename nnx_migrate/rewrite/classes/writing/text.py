"""Pieces of the new class text."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from nnx_migrate.rewrite.classes.data import Refused
from nnx_migrate.rewrite.classes.items import Item
from nnx_migrate.rewrite.classes.writing.construct import named_init
from nnx_migrate.rewrite.render import Renderer

RULE = "class"
GONE = "\ue000"  # marks a statement that leaves no line behind
END = "\ue001"  # marks the end of a line whose comment has moved


def lazy_text(item: Item) -> Callable[[Renderer], str]:
    """Edit: a variable that the first call creates."""

    def text(renderer: Renderer) -> str:
        assert item.name is not None
        init = "None" if item.init is None else renderer.render(item.init)
        init = init if item.axes is None else named_init(init, item, renderer)
        parts = ["self", item.collection_text(renderer.render), renderer.render(item.name), init]
        parts += [renderer.render(one) for one in item.arguments]
        if item.keywords:
            raise Refused(
                item.call, "keyword arguments of the initialiser", "pass them by position", RULE
            )
        return f"nnm.lazy_variable({', '.join(parts)})"

    return text


def before(
    head: str, node: ast.AST, previous: str | Callable[[Renderer], str] | None
) -> Callable[[Renderer], str]:
    """Edit: ``head`` before the text of ``node``."""

    def text(renderer: Renderer) -> str:
        if previous is None:
            return head + renderer.without(node).inner(node)
        return head + (previous if isinstance(previous, str) else previous(renderer))

    return text


def without_gone(text: str, newline: str) -> str:
    """Drop the lines of statements that are gone, and blank lines that pile up there."""
    text = re.sub(rf"{END}[ \t]*(#[^\r\n]*)?", "", text)
    text = re.sub(rf"@?{GONE}[ \t]*;?", GONE, text)
    kept: list[str] = []
    dropped = False
    for line in text.split(newline):
        if GONE in line:
            dropped = True
            continue
        if dropped and not line.strip() and (not kept or _opens(kept[-1])):
            continue
        dropped = dropped and not line.strip()
        kept.append(line)
    return newline.join(kept)


def _opens(line: str) -> bool:
    """Whether no blank line is wanted after ``line``."""
    return not line.strip() or (line.rstrip().endswith(":") and line.lstrip().startswith("class"))
