"""From a plan to the new text of a file."""

from __future__ import annotations

import ast

from nnx_migrate.rewrite.lazy.plan import Plan
from nnx_migrate.rewrite.lazy.strings import rename_words


def mentions_linen(text: str) -> bool:
    """Whether a file can have a reference to ``flax.linen`` at all, by its letters alone."""
    return "linen" in text and "flax" in text


def write(text: str, tree: ast.Module, plan: Plan) -> str:
    """The text of a file with its plan carried out; ``tree`` is its syntax tree.

    Raises:
        EditError: LibCST cannot read or edit the file.
    """
    # LibCST takes a moment to load: only where a file changes.
    from nnx_migrate.edit.changes import change_import, change_owner, change_words, rename
    from nnx_migrate.edit.draft import Draft

    draft = Draft(text, tree)
    for statement, change in plan.imports.items():
        change_import(draft, statement, change)
    for owner in plan.owners:
        change_owner(draft, owner, "nnx_migrate")
    for package in plan.packages:
        assert isinstance(package, ast.Name)
        rename(draft, package, "nnx_migrate")
    for name, alias in plan.names:
        rename(draft, name, alias)
    for string in plan.strings:
        change_words(draft, string, rename_words)
    return draft.write()
