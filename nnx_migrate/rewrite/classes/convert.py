"""One Linen class to one NNX class, whole or not at all."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from nnx_migrate.edit.expressions import dotted_node, tree_of
from nnx_migrate.edit.rendering import Renderer
from nnx_migrate.edit.statements import with_keyword, without_keyword
from nnx_migrate.model import ClassMap, Confidence
from nnx_migrate.rewrite.classes.abstract_methods import check_abstract_methods
from nnx_migrate.rewrite.classes.checks.captures import check_captures
from nnx_migrate.rewrite.classes.checks.initial_values import check_initial_values
from nnx_migrate.rewrite.classes.checks.late_bindings import check_late_bindings
from nnx_migrate.rewrite.classes.checks.output import check_class
from nnx_migrate.rewrite.classes.checks.sharing import local_names, shared_paths
from nnx_migrate.rewrite.classes.checks.sizes import check_sizes
from nnx_migrate.rewrite.classes.checks.stale_values import check_stale_values
from nnx_migrate.rewrite.classes.checks.vocabulary import check_vocabulary
from nnx_migrate.rewrite.classes.class_edits import ClassEdits, class_edits
from nnx_migrate.rewrite.classes.class_facts import facts_of
from nnx_migrate.rewrite.classes.class_parts import ClassParts, class_parts
from nnx_migrate.rewrite.classes.class_reads import class_reads, own_names, setup_attributes
from nnx_migrate.rewrite.classes.data import (
    ClassRefusal,
    ConversionContext,
    ConvertedClass,
    or_refusal,
)
from nnx_migrate.rewrite.classes.inheritance import brings_protocol, check_bases
from nnx_migrate.rewrite.classes.reading.attributes import Kind
from nnx_migrate.rewrite.classes.uses.references import Remarks
from nnx_migrate.rewrite.classes.writing.comments import with_comments_of
from nnx_migrate.rewrite.classes.writing.linen_names import called_in_linen, named_in_linen
from nnx_migrate.rewrite.render import renderer_of
from nnx_migrate.sizes.result import ClassSizes
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import walk

RULE = "class"


def convert_class(
    project: Project, cls: ClassInfo, sizes: ClassSizes, context: ConversionContext
) -> ConvertedClass | ClassRefusal:
    """Convert ``cls``, or say why not.

    Args:
      sizes: what size inference found for the class.
      context: what is decided about the other classes.
    """
    return or_refusal(lambda: _convert(project, cls, sizes, context), RULE, cls.node)


def _convert(
    project: Project, cls: ClassInfo, sizes: ClassSizes, context: ConversionContext
) -> ConvertedClass:
    check_bases(project, cls)
    check_abstract_methods(project, cls)
    check_vocabulary(project, cls)
    check_sizes(cls, sizes)
    parts = class_parts(project, cls, sizes, context)
    facts = facts_of(parts)
    attributes = setup_attributes(parts)
    check_captures(project, cls, attributes, parts.items)
    check_stale_values(cls, attributes)
    check_initial_values(cls, parts.items)
    check_late_bindings(cls)
    remarks = Remarks()
    names = own_names(parts, attributes)
    reads = class_reads(parts, attributes, names, remarks)
    made = class_edits(parts, facts, reads, names, remarks)
    return _result(parts, made, remarks, facts.holds_lazy)


def _result(
    parts: ClassParts, class_edits: ClassEdits, remarks: Remarks, holds_lazy: bool
) -> ConvertedClass:
    cls, constructor = parts.cls, class_edits.constructor
    new_arguments = constructor.new_arguments()
    review = (*remarks.review, *parts.sizes.review)
    edits = {id(cls.node): _statement(parts, class_edits, remarks)}
    return ConvertedClass(
        edits=edits,
        imports=frozenset(remarks.imports),
        class_map=ClassMap(
            linen=cls.name,
            nnx=cls.name,
            fields={one.name: one.name for one in constructor.parameters},
            size_arguments=new_arguments,
            attributes=_shared(parts, class_edits),
            rng_streams=class_edits.reads.named,
        ),
        new_arguments=new_arguments,
        confidence=Confidence.REVIEW if review else Confidence.EXACT,
        review=review,
        notes=(*remarks.notes, *_first_call_notes(parts)),
        per_call_fields=class_edits.per_call_fields,
        makes_call_variables=class_edits.makes_call_variables,
        holds_lazy=holds_lazy,
        staying=class_edits.staying,
    )


def _statement(parts: ClassParts, class_edits: ClassEdits, remarks: Remarks) -> Any:
    """What replaces the statement of the class; that is checked."""
    node, compact = parts.cls.node, class_edits.constructor.compact
    inside = frozenset(map(id, walk(node))) - {id(node)}
    if compact is not None and (compact.stems or compact.renames):
        remarks.imports.add("nnm")

    has_protocol = brings_protocol(parts.cls)
    if has_protocol:
        remarks.imports.add("nnm")

    def write(renderer: Renderer) -> list[Any]:
        found = class_edits.with_members(
            renderer.with_edits(class_edits.edits).without(node).inner(node)
        )
        found = without_keyword(found, "kw_only")  # which the constructor says now
        if has_protocol:
            found = with_keyword(found, "metaclass", dotted_node("nnm.ProtocolMeta"))
        if compact is not None and compact.stems:
            stems, order = compact.stems, compact.order
            found = named_in_linen(found, renderer.page, class_names=stems, order=order)
        if compact is not None and compact.renames:
            found = called_in_linen(found, renderer.page, compact.renames)
        return [with_comments_of(renderer.sources.pairs[id(node)], found)]

    alone = write(renderer_of(parts.cls.module))
    check_class(parts.project, parts.cls, tree_of(alone), class_edits.staying)

    def make(renderer: Renderer) -> list[Any]:
        return alone if inside.isdisjoint(renderer.edits) else write(renderer)

    return make


def _first_call_notes(parts: ClassParts) -> Iterator[tuple[ast.AST, str]]:
    """Which submodules are left to their first calls."""
    text = (
        "its first call makes it: only that shows its size, or whether Linen makes it; `nnx-migrate record`"
        " may show a size before"
    )
    for one in parts.items.values():
        if one.site is not None and one.site.is_lazy:
            yield one.call, text


def _shared(parts: ClassParts, class_edits: ClassEdits) -> dict[str, str]:
    """Where NNX lists submodules that several modules hold."""
    setup, compact = class_edits.constructor.setup, class_edits.constructor.compact
    submodules: dict[str, ast.Call] = dict(compact.attributes) if compact else {}
    if setup is not None:
        submodules |= {
            one.storage_name or one.name: one.value
            for one in setup.attributes
            if one.kind is Kind.SUBMODULE and isinstance(one.value, ast.Call)
        }
    local: dict[str, str] = {}
    for method in (parts.setup, parts.compact):
        if method is not None:
            local |= local_names(method, submodules)
    return shared_paths(parts.project, parts.cls, submodules, local)
