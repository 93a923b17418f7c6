"""The code around the classes of one module, converted place by place."""

from __future__ import annotations

from nnx_migrate.rewrite.outside.data import Draft, OutsideContext, OutsideResult
from nnx_migrate.rewrite.outside.factories import convert_factories, convert_scope_functions
from nnx_migrate.rewrite.outside.lazily import convert_lazily
from nnx_migrate.rewrite.outside.places import places_of
from nnx_migrate.rewrite.outside.references import convert_references
from nnx_migrate.source.linen_modules import linen_modules
from nnx_migrate.source.project import Module, Project
from nnx_migrate.source.takers import asking_calls


def convert_outside(project: Project, module: Module, context: OutsideContext) -> OutsideResult:
    """Convert everything of ``module`` outside the classes that are converted or that the user keeps.

    A class that a place names in a way its lazy form does not carry is doubted.
    """
    draft = Draft()
    convert_scope_functions(project, module, context, draft)
    convert_factories(module, context, draft)
    asking = {name for name, _, _ in asking_calls(project).values()}
    if module.name not in linen_modules(project) | asking:
        return draft.result()
    functions = frozenset(
        key for one in context.scope_functions if not one.stays for key in one.edits
    )
    convert_references(project, places_of(module, context.skip | functions), context, draft)
    classes = project.linen.values()
    explicit = frozenset(id(one.node) for one in classes if one.name in context.explicit_classes)
    builders = frozenset(id(one.node) for one in context.factories)
    places = places_of(module, explicit | functions | builders | context.keep_classes)
    convert_lazily(project, places, context, draft)
    return draft.result()
