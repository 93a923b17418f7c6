"""Which submodules may be lifted over axes."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from nnx_migrate.rewrite.classes.data import Refused
from nnx_migrate.rewrite.classes.items import Item
from nnx_migrate.source.project import Project

RULE = "stacked"


def check_late(project: Project, items: Iterable[Item], makes_late: Callable[[str], bool]) -> None:
    """Refuse submodules lifted over axes whose calls make variables that only a call can make.

    A lifted call gets the variables it stacks from outside (:func:`nnx_migrate.nn.lifts.scan`).

    Args:
      makes_late: whether every call of a class makes such a variable.

    Raises:
      Refused: a submodule is of such a class.
    """
    for item in items:
        cls = project.linen.get(item.site.symbol or "") if item.site is not None else None
        if cls is None or item.site is None or not makes_late(cls.name):
            continue
        prefix = (item.site.class_name or "").removesuffix(cls.node.name)
        if any(lift in prefix for lift in ("Scan", "Vmap")):
            reason = f"{cls.node.name} makes a variable in every call, and is lifted over axes here"
            recipe = "read the variable's shape from fields, or make it outside of the lift"
            raise Refused(item.call, reason, recipe, RULE)
