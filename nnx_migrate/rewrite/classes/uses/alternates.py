"""Class methods that build the class: ``@classmethod def from_config(cls, ...): return cls(...)``.

The NNX class needs ``rngs`` and its sizes, which the callers of such a method know and the method does
not: each ``cls(...)`` is told as a call that does not pass them yet. One that hands on the method's own
``**kwargs`` passes what its callers give. Those that Linen classes alone call are factories, and are
rewritten.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TypeGuard

from nnx_migrate.model import SizeArgument
from nnx_migrate.sizes.factories import factory_functions
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import walk


def alternate_constructors(
    project: Project, cls: ClassInfo, new_arguments: Sequence[SizeArgument]
) -> Iterator[tuple[ast.AST, str]]:
    """The calls ``cls(...)`` in class methods, and what they lack."""
    names = [*(f"{one.name}=" for one in new_arguments if not one.optional), "rngs="]
    for method in cls.methods.values():
        if id(method) in factory_functions(project):
            continue
        arguments = (*method.args.posonlyargs, *method.args.args)
        if not arguments or "classmethod" not in project.decorators(cls, method):
            continue
        own = method.args.kwarg.arg if method.args.kwarg is not None else None
        for node in walk(method):
            if not _calls(node, arguments[0].arg):
                continue
            if any(one.arg is None and _is_name(one.value, own) for one in node.keywords):
                text = f"callers of {method.name}() pass {', '.join(names)}"
            else:
                text = f"pass {', '.join(names)} on from the callers of {method.name}()"
            yield node, f"{cls.name} is an NNX module now: {text}"


def _calls(node: ast.AST, name: str) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and _is_name(node.func, name)


def _is_name(node: ast.expr, name: str | None) -> bool:
    return isinstance(node, ast.Name) and node.id == name
