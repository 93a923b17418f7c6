"""Linen's interface on NNX modules: what code in the lazy form imports as ``nn``."""

from nnx_migrate.linen.core.filters import DenyList
from nnx_migrate.linen.module import (
    Module,
    Variable,
    apply,
    build,
    compact,
    compact_name_scope,
    disable_named_call,
    enable_named_call,
    init,
    init_with_output,
    intercept_methods,
    merge_param,
    nowrap,
    override_named_call,
    share_scope,
    update,
    variables,
)

__all__ = [
    "DenyList",
    "Module",
    "Variable",
    "apply",
    "build",
    "compact",
    "compact_name_scope",
    "disable_named_call",
    "enable_named_call",
    "init",
    "init_with_output",
    "intercept_methods",
    "merge_param",
    "nowrap",
    "override_named_call",
    "share_scope",
    "update",
    "variables",
]
