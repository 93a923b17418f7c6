"""The code around the classes of one module, converted place by place."""

from __future__ import annotations

from nnx_migrate.rewrite.outside.calls import calls_unknown, convert_calls
from nnx_migrate.rewrite.outside.data import Draft, OutsideContext, OutsideResult
from nnx_migrate.rewrite.outside.factories import convert_factories
from nnx_migrate.rewrite.outside.layers import convert_layers
from nnx_migrate.rewrite.outside.lazily import convert_lazily
from nnx_migrate.rewrite.outside.places import places_of
from nnx_migrate.rewrite.outside.references import convert_references
from nnx_migrate.rewrite.outside.scope_functions import convert_scope_functions
from nnx_migrate.source.linked import linked_modules
from nnx_migrate.source.project import Module, Project


def convert_outside(project: Project, module: Module, context: OutsideContext) -> OutsideResult:
    """Convert everything of ``module`` outside the classes in ``context.skip``.

    Every place that is not understood stays as it is and gets a remark.
    """
    draft = Draft()
    convert_scope_functions(project, module, context, draft)
    convert_factories(module, context, draft)
    if module.name not in linked_modules(project) and not calls_unknown(module):
        return draft.result()
    converted = frozenset(
        key for one in context.scope_functions if not one.stays for key in one.edits
    )
    places = places_of(module, context.skip | converted)
    convert_layers(project, places, context, draft)
    convert_references(project, places, context, draft)
    convert_calls(project, places, context, draft)
    if context.lazily:
        classes = project.linen.values()
        explicit = frozenset(id(one.node) for one in classes if one.name in context.converted)
        builders = frozenset(id(one.node) for one in context.factories)
        places = places_of(module, explicit | converted | builders | context.kept)
        convert_lazily(project, places, context, draft)
    return draft.result()
