"""Methods that objects of a class may run: not those of bases that it replaces.

::

    class Whole(Compact):
        def __call__(self, x):  # Compact.__call__ does not run, as nothing says super().__call__ ...
            return x  # ... or Compact.__call__
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.modules import Scope
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import each, is_self


def methods_run(project: Project, cls: ClassInfo) -> Iterator[tuple[ClassInfo, ast.FunctionDef]]:
    """The methods of a class and its bases that its objects may run, with the classes that define them."""
    past = _named_past(cls) if len(cls.mro) > 1 else ()
    for owner in cls.mro:
        for name, method in owner.methods.items():
            found = cls.find(name)
            is_own = found is not None and found[1] is method
            if is_own or name in past or _is_named(project, owner, name):
                yield owner, method


def _named_past(cls: ClassInfo) -> frozenset[str]:
    """What its methods name of bases: ``encode`` of ``super().encode(x)``."""
    attributes = (node for one in cls.every_method for node in each(one, ast.Attribute))
    return frozenset(one.attr for one in attributes if not is_self(one.value))


def _is_named(project: Project, cls: ClassInfo, method: str) -> bool:
    """Whether code anywhere names the method of that very class: ``apply(variables, x, method=Base.encode)``."""
    return any(
        isinstance(node, ast.Attribute) and project.resolve(node.value, Scope(module)) == cls.name
        for module in project.modules.values()
        for node in module.by_word.get(method, ())
    )
