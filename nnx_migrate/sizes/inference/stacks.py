"""Lifted submodules that stack variables."""

from __future__ import annotations

from nnx_migrate.abstract.values import Instance, Submodule
from nnx_migrate.sizes.inference.class_analysis import ClassAnalysis
from nnx_migrate.sizes.inference.module_arguments import holds_state


def refuse_parts(analysis: ClassAnalysis, module: Submodule | Instance) -> None:
    """A stacked submodule that is given others: Linen stacks their variables, too, where they are made."""
    if not isinstance(module, Instance) or all(one.call is None for one in module.lifts):
        return
    assert module.call is not None
    for name, value in module.fields.items():
        if holds_state(analysis, value):
            reason = (
                f"a lift stacks its variables, and those of the submodule that is given as {name!r}"
            )
            analysis.problems.append((module.call, reason))
