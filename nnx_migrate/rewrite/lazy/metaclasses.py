"""Metaclasses of Linen modules: NNX's modules have one of their own, and Python asks that these agree.

::

    class Named(type): ...
    class Net(nn.Module, metaclass=Named): ...  # type(nn.Module) is ``type`` in Linen
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator

from nnx_migrate.model import Finding, Outcome
from nnx_migrate.rewrite.lazy.foreign import parse
from nnx_migrate.source.names import last_name
from nnx_migrate.source.walking import each

_AGREEING = frozenset({"ABCMeta", "type"})  # type(nnx_migrate.linen.Module) inherits from them


def disagreements(
    texts: Iterable[tuple[str, str]], linen: Collection[tuple[str, int]]
) -> Iterator[Finding]:
    """What to say of class statements of Linen modules with another metaclass, their own or one of a base.

    Args:
      texts: paths and texts of the files of a project.
      linen: paths and lines of class statements that inherit from a Linen module.
    """
    classes = [
        (path, node)
        for path, text in texts
        if "metaclass" in text and (tree := parse(text)) is not None
        for node in each(tree, ast.ClassDef)
    ]
    # ``class Named(type(nn.Module))`` agrees with either.
    agreeing = {node.name for _, node in classes if any(map(_is_type_of, node.bases))}
    own = {node.name: name for _, node in classes if (name := _metaclass(node))}
    for path, node in classes:
        names = [own.get(one) for one in (node.name, *map(last_name, node.bases))]
        other = next((one for one in names if one and one not in _AGREEING | agreeing), None)
        if other is not None and (path, node.lineno) in linen:
            message = (
                f"{node.name} has the metaclass {other}, and NNX's modules have one of their own;"
                f" let {other} inherit from type(nn.Module), which is the same in Linen"
            )
            at = (node.lineno, node.col_offset + 1)
            yield Finding("inheritance", path, *at, Outcome.REFUSED, message)


def _metaclass(node: ast.ClassDef) -> str:
    """The last name of its metaclass; "" where the statement has none but ``type(nn.Module)``."""
    value = next((one.value for one in node.keywords if one.arg == "metaclass"), None)
    if value is None or _is_type_of(value):
        return ""
    return last_name(value) or ast.unparse(value)


def _is_type_of(base: ast.expr) -> bool:
    return isinstance(base, ast.Call) and last_name(base.func) == "type"
