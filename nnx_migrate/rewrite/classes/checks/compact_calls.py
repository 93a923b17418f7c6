"""Compact methods that other compact methods of the object call: Linen counts on there.

Every such call builds submodules of its own (flax 0.12.8, linen/module.py, ``_call_wrapped_method``: only the
outermost compact method resets the counters), where the converted class holds those of one call.
"""

from __future__ import annotations

from collections.abc import Sequence

from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.uses.calls import Methods
from nnx_migrate.rewrite.classes.uses.makings import Making
from nnx_migrate.source.classes import ClassInfo


def check_compact_calls(cls: ClassInfo, methods: Methods, makings: Sequence[Making]) -> None:
    """Refuse a compact method that builds and that one of the others may run more than once.

    Raises:
      Refused: it does.
    """
    for one in makings:
        for other in makings if one.numbers else ():
            if other is one or methods.runs(other.method, one.method) < 2:
                continue
            name = one.method.node.name
            raise ClassRefused(
                one.method.node if one.method.owner is cls else cls.node,
                f"the compact {other.method.node.name} may call {name} more than once, and Linen builds its"
                " submodules anew for each call",
                "build them in setup, or make it a method that is not compact",
                "compact",
            )
