"""Whether a file names ``flax.linen`` at all: by its letters, and only then by its syntax tree."""

from __future__ import annotations

import ast
import re

from nnx_migrate.ledger.trees import walk

_OURS = re.compile(r"\bnnx_migrate\.linen\b|\bfrom nnx_migrate import linen\b")
_WORD = re.compile(r"\blinen\b")


def names_linen(text: str) -> bool:
    """Whether an import or expression of the file can reach ``flax.linen``; True if it is unsure.

    Names that come from other files are those files' business.
    """
    if "linen" not in text or not _WORD.search(_OURS.sub("", text)):
        return False
    try:
        tree = ast.parse(text.removeprefix("\ufeff"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True
    return any(map(_names, walk(tree)))


def _names(node: ast.AST) -> bool:
    match node:
        case ast.Import(names=names):
            return any(_below(one.name) for one in names)
        case ast.ImportFrom(module=str() as module, names=names, level=0):
            listed = {one.name for one in names}
            return _below(module) or (module == "flax" and bool({"linen", "*"} & listed))
        case ast.Attribute(attr="linen", value=value):
            return not (isinstance(value, ast.Name) and value.id == "nnx_migrate")
        case ast.Call(args=[_, ast.Constant(value="linen"), *_]):
            return True
        case ast.Constant(value=str() as text):
            return _below(text) and " " not in text
    return False


def _below(name: str) -> bool:
    return name == "flax.linen" or name.startswith("flax.linen.")
