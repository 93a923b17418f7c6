"""What lifts that stack variables may lift.

The modules that a decorated method calls hold the variables of all layers; ``nnm.stacked`` builds
them. Parameters and variables of the class itself, and what ``setup`` makes, nobody stacks.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable

from nnx_migrate.constructs.common.lifts import is_shared
from nnx_migrate.rewrite.classes.data import Refused
from nnx_migrate.rewrite.classes.items import Item, ItemKind
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project

RULE = "stacked"
_LIFTS = ("flax.linen.scan", "flax.linen.vmap")
_LIFT_A_CLASS = "lift a class that has the method as its __call__"


def check_stacking(project: Project, cls: ClassInfo, items: Collection[Item]) -> None:
    """Refuse a class that has variables of its own beside a method that stacks them.

    Raises:
      Refused: it has, or the method is not ``__call__``, or ``setup`` makes something.
    """
    found = [
        (method, one)
        for owner in cls.mro
        for method in owner.methods.values()
        for one in method.decorator_list
        if _stacks(project, owner, one)
    ]
    for method, decorator in found:
        if method.name != "__call__" or len(found) > 1:
            reason = "a method other than __call__, or one of several, stacks variables"
            raise Refused(decorator, reason, _LIFT_A_CLASS, RULE)
        if cls.find("setup") is not None:
            reason = "a method stacks the variables of what setup makes"
            raise Refused(decorator, reason, _LIFT_A_CLASS, RULE)
        for item in items:
            if item.kind is not ItemKind.SITE or item.is_in_scope:
                reason = "a method stacks variables of the class itself"
                raise Refused(item.call, reason, _LIFT_A_CLASS, RULE)


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


def _stacks(project: Project, owner: ClassInfo, decorator: ast.expr) -> bool:
    if not isinstance(decorator, ast.Call):
        return False
    called = [decorator.func, *decorator.args[:1]]
    if not any(project.resolve(one, owner.scope) in _LIFTS for one in called):
        return False
    given = {one.arg: one.value for one in decorator.keywords}
    return None in given or not is_shared(given.get("variable_axes"))
