"""What the statements of a class body read of the class itself."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.walking import walk

RULE = "class"


def check_class_body(cls: ClassInfo) -> None:
    """Refuse class bodies that read a field, or a method for another name.

    The defaults of fields move to ``__init__``, where the rest of the body does not see them; what a
    method builds and which sizes its inputs show is known by the name of its definition.

    Raises:
      Refused: a statement does.
    """
    fields = {one.name: one.node for one in cls.own_fields}
    # Defaults that read fields are `fields/parameters.py`'s.
    for node in _read(one for one in cls.node.body if one not in fields.values()):
        if node.id in fields:
            reason = f"the class body reads the field {node.id}, which NNX has in __init__"
            raise ClassRefused(node, reason, "write the value itself", RULE)
        if node.id in cls.methods:
            reason = f"the method {node.id} has another name in the class as well"
            raise ClassRefused(node, reason, f"define a method that calls {node.id}", RULE)


def _read(body: Iterable[ast.stmt]) -> Iterator[ast.Name]:
    """The names that run with the class statement; the bodies of methods run later."""
    parts: list[ast.AST] = []
    for one in body:
        match one:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                keyword_defaults = (
                    default for default in one.args.kw_defaults if default is not None
                )
                parts += [*one.decorator_list, *one.args.defaults, *keyword_defaults]
            case ast.ClassDef():
                parts += [*one.decorator_list, *one.bases, *one.keywords]
            case _:
                parts.append(one)
    for part in parts:
        for node in walk(part):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                yield node
