"""Submodules that several modules hold: the path NNX gives them, against Linen's.

Linen keeps a shared submodule at the path of the module that made it. NNX lists it once, at the
first path of a walk through the attributes in alphabetical order: ``decoder/embedding`` comes
before ``shared``. The migration map says so, where the two differ.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from nnx_migrate.source.classes import ClassInfo, arguments_by_field
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import walk

_DEPTH = 6
Path = tuple[str, ...]


def shared_paths(
    project: Project, cls: ClassInfo, submodules: Mapping[str, ast.Call], local: Mapping[str, str]
) -> dict[str, str]:
    """Linen's scope name of a shared submodule -> its NNX attribute path (slashes between).

    Args:
      submodules: constructor call of every submodule with a fixed attribute name.
      local: local variables that hold one of them.
    """
    found: dict[str, str] = {}
    for name in submodules:
        paths = [
            (other, *path)
            for other, call in submodules.items()
            if other != name
            for path in _paths_below(project, cls, call, name, local, _DEPTH)
        ]
        first = min(paths, default=(name,))
        if first < (name,):
            found[name] = "/".join(first)
    return found


def _paths_below(
    project: Project,
    cls: ClassInfo,
    call: ast.Call,
    name: str,
    local: Mapping[str, str],
    depth: int,
) -> Iterator[Path]:
    """Paths below the built module at which it holds ``self.<name>``."""
    child = project.linen.get(project.resolve(call.func, cls.scope) or "")
    if child is None or depth == 0:
        return
    for field, value in arguments_by_field(child, call.args, call.keywords):
        if _is_submodule(value, name, local):
            yield (field,)
            yield from _passed_on(project, child, field, depth - 1)


def _passed_on(project: Project, cls: ClassInfo, field: str, depth: int) -> Iterator[Path]:
    """Paths below ``cls`` at which its children hold the module in its field."""
    for method in cls.methods.values():
        for node in walk(method):
            match node:
                case ast.Assign(
                    targets=[ast.Attribute(value=ast.Name(id="self"), attr=attribute)],
                    value=ast.Call() as call,
                ):
                    for path in _paths_below(project, cls, call, field, {}, depth):
                        yield (attribute, *path)


def _is_submodule(value: ast.expr, name: str, local: Mapping[str, str]) -> bool:
    match value:
        case ast.Attribute(value=ast.Name(id="self"), attr=attribute):
            return attribute == name
        case ast.Name(id=variable):
            return local.get(variable) == name
        case _:
            return False


def local_names(method: ast.FunctionDef, submodules: Mapping[str, ast.Call]) -> dict[str, str]:
    """Local variables of ``method`` that hold one of the ``submodules``."""
    owners = {id(call): name for name, call in submodules.items()}
    found: dict[str, str] = {}
    for node in walk(method):
        match node:
            case ast.Assign(targets=targets, value=value) if id(value) in owners:
                for target in targets:
                    if isinstance(target, ast.Name):
                        found[target.id] = owners[id(value)]
    return found
