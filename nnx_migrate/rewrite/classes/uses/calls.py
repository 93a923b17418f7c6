"""Linen's own methods on ``self`` or a submodule: what each becomes in calls and in ``__init__``."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nnx_migrate.edit.calls import Argument, call
from nnx_migrate.edit.expressions import Expression
from nnx_migrate.edit.rendering import Renderer, Replacement
from nnx_migrate.rewrite.classes.data import Refused
from nnx_migrate.rewrite.classes.items import receiver_of
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import walk

RULE = "module-api"


def carried_call(name: str, node: ast.Call, *more: Argument) -> Replacement:
    """``self.sow("losses", "l2", x)`` as ``nnm.sow(self, "losses", "l2", x)``; ``more`` comes last."""
    assert isinstance(node.func, ast.Attribute)
    owner = node.func.value

    def make(renderer: Renderer) -> Expression:
        given = [*map(renderer.argument, node.args), *map(renderer.keyword, node.keywords)]
        return call(f"nnm.{name}", renderer.render(owner), *given, *more, unit=renderer.unit)

    return make


def mutable_in_init(node: ast.Call) -> str:
    """What ``self.is_mutable_collection(...)`` is in Linen's ``init``, as ``__init__`` may ask it.

    Raises:
      Refused: what it is depends on more than the class' fields.
    """
    match node.args:
        case [ast.Constant(value=collection)]:
            return str(collection != "intermediates")
        case [ast.Attribute(value=ast.Name(id="self")) as field]:
            return f"({ast.unparse(field)} != 'intermediates')"
    raise Refused(
        node,
        "the collection is neither a string nor a field",
        "write it as a string",
        RULE,
    )


# ---- calls of a base class' methods: ``super().__call__(x)`` and ``Base.__call__(self, x)``


def base_calls(
    project: Project, cls: ClassInfo, method: ast.FunctionDef
) -> Iterator[tuple[ast.Call, str, ClassInfo | None]]:
    """Every call in ``method`` of a method that a base of ``cls`` has.

    Yields the call, the name of the method, and the base that was named; None for ``super()``.
    """
    bases = {one.name: one for one in cls.mro[1:]}
    scope = cls.scope.enter(method)
    receiver = receiver_of(method)
    for node in walk(method):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr=attr)):
                yield node, attr, None
            case ast.Call(
                func=ast.Attribute(value=ast.Name() | ast.Attribute() as owner, attr=attr),
                args=[ast.Name(id=first), *_],
            ) if first == receiver:
                base = bases.get(project.resolve(owner, scope) or "")
                if base is not None:
                    yield node, attr, base


def calls_base(project: Project, cls: ClassInfo, name: str, base: ClassInfo) -> bool:
    """Whether a method of ``cls`` calls the method ``name`` that ``base`` has."""
    return any(
        attr == name and (named is None or base in named.mro)
        for method in cls.methods.values()
        for _, attr, named in base_calls(project, cls, method)
    )
