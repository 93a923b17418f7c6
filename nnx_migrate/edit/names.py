"""The names that new code reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nnx_migrate.edit.syntax import cst
from nnx_migrate.edit.walking import children

_LONGEST = 200  # a string that is longer is prose


def names_in(node: Any) -> set[str]:
    """The names that stand in an expression, those of attributes and keywords left out."""
    return {one.value for one in _names(node) if isinstance(one, cst.Name)}


def loaded_names(module: Any) -> set[str]:
    """Names in a file, also those in a quoted annotation or ``__all__``; prose has spaces."""
    found: set[str] = set()
    for one in _names(module):
        if isinstance(one, cst.Name):
            found.add(one.value)
        elif len(one.value) < _LONGEST:
            text = str(one.evaluated_value)
            if text and " " not in text.strip():
                found.add(text.split(".")[0].split("[")[0].strip("'\""))
    return found


def _names(node: Any) -> Iterator[Any]:
    """Names and strings of code; not those that imports, attributes and keywords are called."""
    todo = [node]
    while todo:
        one = todo.pop()
        kind = type(one)  # none of these has subclasses, and their metaclass makes isinstance slow
        if kind in (cst.Name, cst.SimpleString):
            yield one
        elif kind in (cst.Attribute, cst.Arg):
            todo.append(one.value)
        elif kind is cst.Param:
            todo += [part for part in (one.annotation, one.default) if part is not None]
        elif kind in (cst.FunctionDef, cst.ClassDef):
            todo += [part for part in children(one, code=True) if part is not one.name]
        elif kind not in (cst.Import, cst.ImportFrom):
            todo += children(one, code=True)
