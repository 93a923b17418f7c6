"""Factory functions: they hand the size and the streams of their callers on to what they build."""

from __future__ import annotations

from nnx_migrate.rewrite.factory_text import factory_edits
from nnx_migrate.rewrite.outside.data import Draft, OutsideContext
from nnx_migrate.sizes.return_values import IN_FEATURES, RNGS
from nnx_migrate.source.project import Module

RULE = "factory_function"


def convert_factories(module: Module, context: OutsideContext, draft: Draft) -> None:
    """Edit the factory functions of a module whose users all become NNX."""
    for function in context.factories:
        if function.module is module:
            edits, imports = factory_edits(function, context.new_arguments)
            draft.edits |= edits
            draft.imports |= imports
            message = (
                f"{function.node.name}() now takes {IN_FEATURES}= and {RNGS}=;"
                " callers outside pass them"
            )
            draft.note(function.node, RULE, message, "constructor")
