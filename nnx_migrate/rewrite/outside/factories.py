"""Factory functions of a module, the sizes that fields are given, and scope functions with their imports."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from nnx_migrate.constructs import all_layers
from nnx_migrate.edit.rendering import Renderer
from nnx_migrate.edit.statements import with_aliases
from nnx_migrate.rewrite.classes.data import ConvertedFunction
from nnx_migrate.rewrite.classes.writing.factories import factory_edits
from nnx_migrate.rewrite.outside.data import Draft, OutsideContext
from nnx_migrate.rewrite.outside.field_reads import read_fields
from nnx_migrate.sizes import ClassSizes, SiteKind
from nnx_migrate.sizes.mentions import imports_of
from nnx_migrate.sizes.return_values import IN_FEATURES, RNGS
from nnx_migrate.sizes.scope_functions import OWNER, builder_name, caller_name
from nnx_migrate.source.classes import arguments_by_field
from nnx_migrate.source.project import Module, Project

RULE = "factory_function"


def convert_factories(module: Module, context: OutsideContext, draft: Draft) -> None:
    """Edit the factory functions of a module whose users all become NNX."""
    for function in context.factories:
        if function.module is module and function.method_of is None:
            edits, imports = factory_edits(function, context.new_arguments)
            draft.edits |= edits
            draft.imports |= imports
            message = (
                f"{function.symbol.rpartition('.')[2]}() now takes {IN_FEATURES}= and {RNGS}=;"
                " callers outside pass them"
            )
            draft.note(function.node, RULE, message, "constructor")


# ---- the sizes that explicit classes give to what they build from a field
# A layer or class for such a field has to do with them: ``nnm.ConvLocal`` asks for the whole shape of
# its input, where a class that builds ``nn.Conv`` by default gives ``in_features``.

Field = tuple[str, str]  # class, field
_Given = frozenset[str] | None  # None: nothing is built from it


def passed_sizes(
    project: Project, sizes: Mapping[str, ClassSizes], names: Iterable[str]
) -> dict[Field, frozenset[str]]:
    """The size arguments that everything built from a field is given, by class and field."""
    sizes_by_field: dict[Field, _Given] = {
        (name, one.name): None for name in names for one in project.linen[name].fields
    }
    links = [*_links(project, sizes, sizes_by_field)]
    while True:
        before = dict(sizes_by_field)
        for at, argument in links:
            found = argument if isinstance(argument, frozenset) else sizes_by_field.get(argument)
            old = sizes_by_field[at]
            if found is not None:
                sizes_by_field[at] = found if old is None else old & found
        if sizes_by_field == before:
            return {at: found for at, found in sizes_by_field.items() if found is not None}


def _links(
    project: Project, sizes: Mapping[str, ClassSizes], fields: Iterable[Field]
) -> Iterator[tuple[Field, frozenset[str] | Field]]:
    """Fields with the sizes given to what is built from them, or with the field they are given to.

    What is built lazily takes all that it asks for in its first call.
    """
    own = {size.name for one in sizes.values() for size in one.new_arguments}
    every = frozenset(own.union(*(layer.sizes for layer in all_layers().values())))
    for name in sorted({name for name, _ in fields}):
        cls = project.linen[name]
        for site in sizes[name].sites.values():
            if site.kind is not SiteKind.LAYER and site.symbol not in project.linen:
                for field in read_fields(project, cls, site.call.func):
                    yield (name, field), every if site.is_lazy else frozenset(site.sizes)
            built = project.linen.get(site.symbol or "")
            if built is None:
                continue
            for other, value in arguments_by_field(built, site.call.args, site.call.keywords):
                for field in read_fields(project, cls, value) if other else ():
                    yield (name, field), (built.name, other)


# ---- scope functions in a module: their new text, and the imports that bring their builders along

SCOPE_RULE = "scope_function"


def convert_scope_functions(
    project: Project, module: Module, context: OutsideContext, draft: Draft
) -> None:
    """Edit the scope functions of a module, and import their builders where they are imported."""
    own = {id(node): node for node in module.tree.body}
    for function in context.scope_functions:
        for key in function.edits.keys() & own.keys():
            _convert(own[key], function, draft)
        for alias in imports_of(project, module, function.symbol):
            new = (caller_name, builder_name) if function.stays else (builder_name,)
            draft.edits[id(alias)] = _with(alias, new)


def _convert(node: ast.stmt, function: ConvertedFunction, draft: Draft) -> None:
    draft.edits.update(function.edits)
    draft.imports |= function.imports
    name = function.symbol.rpartition(".")[2]
    if function.stays:
        message = (
            f"{name}() stays for classes that stay Linen; {builder_name(name)}() and"
            f" {caller_name(name)}() build and call the submodules of the others"
        )
    else:
        message = (
            f"{name}() now takes the {OWNER} whose submodules it calls; {builder_name(name)}()"
            " builds them: callers outside call both"
        )
    draft.note(node, SCOPE_RULE, message, "constructor")
    for place, text in (*function.review, *function.notes):
        draft.note(place, SCOPE_RULE, text, "reference")


def _with(alias: ast.alias, new_names: Sequence[Callable[[str], str]]) -> Callable[[Renderer], Any]:
    """The imported name with those of the new functions."""
    bound = alias.asname
    more = [(one(alias.name), None if bound is None else one(bound)) for one in new_names]
    return lambda renderer: with_aliases(renderer.inner(alias), more)
