"""References in classes that stay as they are, and which are edited all the same."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nnx_migrate.rewrite.attempt import Attempt
from nnx_migrate.rewrite.results import position
from nnx_migrate.source.modules import Module
from nnx_migrate.source.names import Assignment, Import, name_parts
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import walk


def edited_in_left_classes(project: Project, attempt: Attempt) -> Iterator[tuple[str, int, int]]:
    """Path, line and column of layers that such classes hand to explicit ones: ``lazy(Block)(partial(nn.BatchNorm))``.

    And of names there that another file gives a value, which is edited: ``default_init = nn.initializers.zeros``.
    """
    for name, cls in project.linen.items():
        edited = attempt.edited_nodes.get(cls.module.path, frozenset())
        for node in walk(cls.node) if name not in attempt.decisions.conversions else ():
            if not isinstance(node, ast.Name | ast.Attribute):
                continue
            if id(node) in edited or _is_edited_elsewhere(project, attempt, node, cls.module):
                yield cls.module.path, *position(cls.module, node)


def _is_edited_elsewhere(
    project: Project, attempt: Attempt, node: ast.Name | ast.Attribute, module: Module
) -> bool:
    """Whether a name that the file imports is assigned what is edited in the file that has it."""
    names = name_parts(node)
    binding = module.table.get(names[0]) if names is not None else None
    visited: set[str] = set()  # files may import a name from each other
    while names is not None and isinstance(binding, Import) and binding.target not in visited:
        visited.add(binding.target)
        home, rest = project.split(".".join((binding.target, *names[1:])))
        if home is None or len(rest) != 1:
            return False
        names, binding = rest, home.table.get(rest[0])
        if isinstance(binding, Assignment):
            return id(binding.value) in attempt.edited_nodes.get(home.path, ())
    return False
