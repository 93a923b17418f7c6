"""Classes whose sizes are not known well enough for a constructor."""

from __future__ import annotations

from nnx_migrate.rewrite.classes.data import ClassRefused, Wants
from nnx_migrate.sizes.result import ClassSizes
from nnx_migrate.source.classes import ClassInfo

_MOST = 10  # that a constructor takes as callers know them alone: nobody writes one with more


def check_sizes(cls: ClassInfo, sizes: ClassSizes) -> None:
    """Refuse a class of which a size is not known, or too many are its callers' to give.

    Raises:
      Refused: at what needs the size, or at the class.
    """
    for node, reason in sizes.problems:
        recipe = "give the size as a field, or run `nnx-migrate record`"
        raise ClassRefused(node, reason, recipe, "sizes")
    count = len(sizes.new_arguments)
    if count > _MOST:
        raise ClassRefused(
            cls.node,
            f"its constructor would take {count} sizes that only callers know, more than {_MOST}",
            "run `nnx-migrate record` on code that builds it",
            "sizes",
        )
    for one in sizes.untold:
        recipe = "build it under a condition on a field, or call it always"
        raise ClassRefused(one.call, one.reason, recipe, "sizes", Wants(facts=one.parameters))
