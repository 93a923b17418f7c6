"""Submodules that a lift over axes runs, as nn.vmap and nn.scan do."""

from __future__ import annotations

from nnx_migrate.abstract.values import Instance, Submodule
from nnx_migrate.sizes.inference.class_analysis import ClassAnalysis
from nnx_migrate.sizes.inference.module_arguments import holds_state


def refuse_parts(analysis: ClassAnalysis, module: Submodule | Instance) -> None:
    """One that is given other submodules: Linen lifts their variables, too, where they are made."""
    if not isinstance(module, Instance) or not module.lifts:
        return
    assert module.call is not None
    for name, value in module.fields.items():
        if holds_state(analysis, value):
            reason = f"it is lifted over axes, and so is the submodule that it is given as {name!r}"
            analysis.problems.append((module.call, reason))
