"""Renderers of the project's modules."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from nnx_migrate.edit.expressions import expression
from nnx_migrate.edit.rendering import Renderer, Replacement
from nnx_migrate.source.project import Module


def renderer_of(
    module: Module, edits: Mapping[int, Replacement] = MappingProxyType({})
) -> Renderer:
    """A renderer of a module with ``edits`` applied."""
    return Renderer(module.text, module.tree, edits)


def nodes_of(texts: Mapping[int, str]) -> dict[int, Replacement]:
    """Edits that put expressions over sizes and fields, which the analysis gives as texts."""
    return {key: expression(text) for key, text in texts.items()}
