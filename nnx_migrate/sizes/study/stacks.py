"""Submodules whose variables a lifted function stacks: ``nn.scan(f, variable_axes=...)(block, x)``."""

from __future__ import annotations

import ast

from nnx_migrate.sizes.study.study import Study
from nnx_migrate.sizes.values import Instance, Submodule


def stacked_by(study: Study, module: Submodule | Instance) -> ast.Call | None:
    """The lift that stacks the variables of a submodule; None for plain ones.

    Linen makes them where the submodule is called first, so every call must be in that lift.
    """
    uses = study.root.records.get(id(module.call), [])
    lifts = {id(use.stacked_by): use.stacked_by for use in uses}
    if len(lifts) < 2:
        return next(iter(lifts.values()), None)
    assert module.call is not None
    reason = "it is called in a lifted function that stacks its variables, and elsewhere"
    study.problems.append((module.call, reason))
    return None
