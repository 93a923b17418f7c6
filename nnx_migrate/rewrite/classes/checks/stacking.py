"""Which submodules may be lifted over axes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from functools import lru_cache

from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.items import Item
from nnx_migrate.rewrite.links import links_of
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import each

RULE = "stacked"
_STACKING = ("Scan", "Vmap")  # in the names that Linen gives to lifted classes
_LIFTS = (*_STACKING, "Checkpoint")


def check_call_variables(
    project: Project, items: Iterable[Item], makes_call_variables: Callable[[str], bool]
) -> None:
    """Refuse submodules lifted over axes whose calls make variables that only a call can make.

    A lifted call gets the variables it stacks from outside (:func:`nnx_migrate.nn.lifts.scan`). Linen makes
    perturbations where the lift carries their collection alone.

    Args:
      makes_call_variables: whether every call of a class makes such a variable.

    Raises:
      Refused: a submodule is of such a class, or lifted and perturbs values.
    """
    for item in items:
        cls = project.linen.get(item.site.symbol or "") if item.site is not None else None
        if cls is None or item.site is None:
            continue
        prefix = (item.site.class_name or "").removesuffix(cls.node.name)
        if makes_call_variables(cls.name) and any(lift in prefix for lift in _STACKING):
            reason = f"{cls.node.name} makes a variable in every call, and is lifted over axes here"
            recipe = "read the variable's shape from fields, or make it outside of the lift"
            raise ClassRefused(item.call, reason, recipe, RULE)
        if any(lift in prefix for lift in _LIFTS) and cls.name in _perturbing(project):
            reason = f"self.perturb is called in {cls.node.name} or below, which is lifted here"
            raise ClassRefused(item.call, reason, "perturb the values outside of the lift", RULE)


@lru_cache(maxsize=2)
def _perturbing(project: Project) -> frozenset[str]:
    """Classes that call ``self.perturb``, and all that may build one of those or inherit from one."""
    calls = (
        name
        for name, cls in project.linen.items()
        if any(one.attr == "perturb" for one in each(cls.node, ast.Attribute))
    )
    found, links = frozenset(calls), links_of(project)
    reached = {name: {*built, *links.bases[name]} for name, built in links.builds.items()}
    while more := {name for name, every in reached.items() if not found.isdisjoint(every)} - found:
        found |= more
    return found
