"""Methods decorated with ``nn.add_metadata_axis``: what such a class may be.

The names of all that the method makes get an axis. ``nnm.add_metadata_axis`` puts it there when the
constructor has run, and therefore the method has to be the one that makes everything.
"""

from __future__ import annotations

import ast
from collections.abc import Collection

from nnx_migrate.rewrite.classes.data import Refused
from nnx_migrate.rewrite.classes.items import Item
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project

RULE = "metadata-axis"
_LIFT = "flax.linen.add_metadata_axis"
_ALONE = (
    "put what the method builds into a class of its own, with add_metadata_axis and compact alone"
)


def check_metadata_axes(project: Project, cls: ClassInfo, items: Collection[Item]) -> None:
    """Refuse a class of which more than the decorated method makes variables.

    Raises:
      Refused: it has another method that builds, bases or subclasses, or other decorators.
    """
    for name, method in cls.methods.items():
        found = [one for one in method.decorator_list if _names_axis(project, cls, one)]
        if not found:
            continue
        inside = {id(one) for one in ast.walk(method)}
        related = [one for one in project.linen.values() if cls in one.mro[1:]]
        unplain = {
            "is not __call__": name != "__call__",
            "has other decorators": len(method.decorator_list) != 2
            or not project.is_compact(cls, method),
            "is in a class with bases or subclasses": bool(related)
            or any(one.linen for one in cls.mro[1:]),
            "is in a class with setup": cls.find("setup") is not None,
            "does not make all variables": any(
                id(one.call) not in inside or one.is_in_scope for one in items
            ),
        }
        for reason, holds in unplain.items():
            if holds:
                reason = f"a method under add_metadata_axis {reason}"
                raise Refused(found[0], reason, _ALONE, RULE)


def _names_axis(project: Project, cls: ClassInfo, decorator: ast.expr) -> bool:
    called = [decorator]
    if isinstance(decorator, ast.Call):
        called = [decorator.func, *decorator.args[:1]]
    return any(project.resolve(one, cls.scope) == _LIFT for one in called)
