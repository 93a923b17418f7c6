"""The edits of a class: its methods, its constructor, what stands around them."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from nnx_migrate.constructs import is_linen
from nnx_migrate.edit.calls import call
from nnx_migrate.edit.expressions import Expression, tree_of
from nnx_migrate.edit.rendering import Renderer
from nnx_migrate.edit.statements import GONE, TAKEN
from nnx_migrate.rewrite.class_values import ClassValue, class_values
from nnx_migrate.rewrite.classes.abstract_methods import is_interface
from nnx_migrate.rewrite.classes.checks.forbidden import check_lazy, constructs_nothing
from nnx_migrate.rewrite.classes.checks.output import check_init
from nnx_migrate.rewrite.classes.checks.reviews import lazy_note
from nnx_migrate.rewrite.classes.class_facts import ClassFacts
from nnx_migrate.rewrite.classes.class_parts import ClassParts
from nnx_migrate.rewrite.classes.class_reads import builder_of
from nnx_migrate.rewrite.classes.compact.call_variables import is_always_made
from nnx_migrate.rewrite.classes.compact.method import CompactMethod
from nnx_migrate.rewrite.classes.compact.split import CompactPart, convert_compact
from nnx_migrate.rewrite.classes.constructor import Constructor, insert_header, placed_members
from nnx_migrate.rewrite.classes.fields.call_fields import per_call_fields
from nnx_migrate.rewrite.classes.fields.class_decorators import (
    adapted_decorators,
    removals,
    removed_decorators,
)
from nnx_migrate.rewrite.classes.fields.parameters import Parameter, parameters_of
from nnx_migrate.rewrite.classes.fields.post_init import post_init_edits
from nnx_migrate.rewrite.classes.items import ItemKind, initializers_in
from nnx_migrate.rewrite.classes.setup.body import SetupConverter, SetupPart
from nnx_migrate.rewrite.classes.uses.reads import Reads
from nnx_migrate.rewrite.classes.uses.references import Edits, Remarks, name_edits
from nnx_migrate.rewrite.classes.writing.document import class_docstring
from nnx_migrate.rewrite.classes.writing.in_scope import builders_of
from nnx_migrate.rewrite.classes.writing.lazy import lazy_call
from nnx_migrate.rewrite.render import renderer_of
from nnx_migrate.sizes.result import SiteKind
from nnx_migrate.source.project import Scope
from nnx_migrate.source.walking import walk


@dataclass(frozen=True)
class ClassEdits:
    """What becomes of a class.

    Attributes:
      edits: of the nodes in it, by id.
      with_members: what puts the constructor into its statement.
      constructor: how an object of it is built.
      reads: what its methods read, but for the keys that the constructor alone needs.
      staying: nodes that stay as they are.
      per_call_fields: fields that may be set anew for every call.
      makes_call_variables: whether every call makes a variable that only it can make.
    """

    edits: Edits
    with_members: Callable[[Any], Any]
    constructor: Constructor
    reads: Reads
    staying: tuple[ast.AST, ...]
    per_call_fields: frozenset[str]
    makes_call_variables: bool


def class_edits(
    parts: ClassParts,
    facts: ClassFacts,
    reads: Reads,
    names: frozenset[str],
    remarks: Remarks,
) -> ClassEdits:
    """Convert the parts of a class.

    Args:
      names: of its methods, fields and attributes.

    Raises:
      Refused: what is built cannot be moved to a constructor.
    """
    return _Editor(parts, facts, names, remarks).run(reads)


@dataclass(frozen=True)
class _Editor:
    parts: ClassParts
    facts: ClassFacts
    names: frozenset[str]
    remarks: Remarks

    def run(self, reads: Reads) -> ClassEdits:
        parts, remarks = self.parts, self.remarks
        values = self._lazy_values()
        staying = tuple(self._staying(values))
        common = self._common(reads, values, staying)
        base = renderer_of(parts.cls.module, common)
        parameters = parameters_of(parts.project, parts.cls, base, remarks)
        setup = self._setup(common, reads)
        compact = self._compact(common, reads, parameters)
        if compact is not None:
            reads = reads.without(compact.init_draws)
            remarks.review = [one for one in remarks.review if id(one[0]) not in compact.updates]
        constructor = Constructor(
            parts.cls,
            parts.sizes,
            parts.context,
            parts.layout,
            parts.base_parts,
            parameters,
            setup,
            compact,
        )
        edits, makes_late = self._around(common, constructor)
        with_members, per_call = self._add_constructor(edits, constructor, reads)
        return ClassEdits(edits, with_members, constructor, reads, staying, per_call, makes_late)

    # What stays, and what changes in every method alike -------------------------------------

    def _lazy_values(self) -> list[ClassValue]:
        """What is made of lazy classes, which stays as it is: ``nn.remat(Block)``."""
        parts = self.parts
        values = class_values(parts.project, parts.cls) if self.facts.holds_lazy else ()
        is_lazy = parts.context.is_lazy_value
        return [one for _, symbol, one in values if one is not None and is_lazy(symbol)]

    def _staying(self, values: Sequence[ClassValue]) -> Iterator[ast.AST]:
        wholes = [whole for one in values for whole in one.wholes]
        # Names of Linen's layers that take their sizes in their first call.
        sites = (one.site for one in self.parts.items.values() if one.site is not None)
        layers = [one.call.func for one in sites if one.is_lazy and one.kind is SiteKind.LAYER]
        project, module = self.parts.project, Scope(self.parts.cls.module)
        wholes += [one for one in layers if not project.is_alias(one, module.around(one))]
        wholes += [node for node, symbol in self.facts.class_arguments.values() if is_linen(symbol)]
        return (node for whole in wholes for node in walk(whole))

    def _common(
        self, reads: Reads, values: Sequence[ClassValue], staying: Sequence[ast.AST]
    ) -> Edits:
        """Reads, local functions, names."""
        parts = self.parts
        handled = {*parts.items, *map(id, removed_decorators(parts.project, parts.cls))}
        handled |= parts.helpers.builds | {*map(id, staying)}
        initializers = initializers_in(parts.items.values())
        return {
            **reads.call,
            **parts.helpers.local,
            **self._lazy_forms(values),
            **name_edits(parts.project, parts.cls, handled, self.remarks, initializers),
        }

    def _lazy_forms(self, values: Sequence[ClassValue]) -> Edits:
        """``lazy(Block)`` where ``Block`` is explicit."""
        context = self.parts.context
        explicit = [one.node for one in values if one.symbol not in context.lazy]
        class_arguments = self.facts.class_arguments.values()
        explicit += [node for node, symbol in class_arguments if symbol in context.explicit_classes]
        self.remarks.imports |= {"lazy"} if explicit else set()
        return {id(node): functools.partial(_lazy_form, node) for node in explicit}

    # The parts ------------------------------------------------------------------------------

    def _setup(self, common: Edits, reads: Reads) -> SetupPart | None:
        parts, method = self.parts, self.parts.setup
        if method is None:
            return None
        converter = SetupConverter(
            parts.project,
            parts.cls,
            method,
            {k: one for k, one in parts.items.items() if one.kind is not ItemKind.STREAM},
            parts.sizes,
            builder_of(parts, self.remarks),
            parts.layout,
            self.remarks,
            {**common, **{id(node): GONE for node in parts.base_parts.super_setup}},
            reads.static,
            parts.base_parts.plain,
        )
        return converter.convert()

    def _compact(
        self, common: Edits, reads: Reads, parameters: tuple[Parameter, ...]
    ) -> CompactPart | None:
        parts, method = self.parts, self.parts.compact
        if method is None:
            return None
        inside = {id(node) for node in walk(method)}
        items = {
            key: one
            for key, one in parts.items.items()
            if key in inside and one.kind is not ItemKind.STREAM
        }
        compact = CompactMethod(
            parts.project,
            parts.cls,
            method,
            items,
            parts.sizes,
            parts.context,
            parts.layout,
            self.remarks,
            common,
            reads.static,
            frozenset(one.name for one in parameters if one.plain) - parts.cls.post_init_attributes,
            self.facts.counts,
            value_edits=reads.value_edits,
            streams=reads.streams,
            helper_items=self.facts.helper_items,
            renames=self.facts.renames,
        )
        part = convert_compact(compact)
        check_lazy(parts.project, parts.cls, method, part.lazy)
        return part

    # The class ------------------------------------------------------------------------------

    def _around(self, common: Edits, constructor: Constructor) -> tuple[Edits, bool]:
        """The edits but for the constructor, and whether every call makes a variable."""
        parts, remarks = self.parts, self.remarks
        remarks.imports |= parts.helpers.imports
        remarks.review += parts.helpers.review
        remarks.notes += parts.helpers.notes
        compact = constructor.compact
        lazy_calls, makes_late = self._late_variables(compact)
        edits: Edits = {**common, **parts.helpers.edits, **lazy_calls}
        edits |= {} if compact is None else compact.edits
        edits |= removals(parts.project, parts.cls)
        edits |= post_init_edits(parts.project, parts.cls, remarks)
        new = tuple(one.name for one in constructor.new_arguments())
        return edits | adapted_decorators(parts.project, parts.cls, new, remarks), makes_late

    def _late_variables(self, compact: CompactPart | None) -> tuple[Edits, bool]:
        """Variables that calls create: in helper methods, or because only the call sizes them."""
        parts = self.parts
        done = [one for one in (parts.setup, parts.compact) if one is not None]
        inside = {id(node) for one in done for node in walk(one)}
        lazy_variables = {} if compact is None else dict(compact.lazy)
        makes_late = self.facts.makes_call_variables or is_always_made(
            parts.compact, lazy_variables.values()
        )
        lazy_variables |= {
            key: item
            for key, item in parts.items.items()
            if item.kind is ItemKind.VARIABLE and key not in inside
        }
        self.remarks.imports |= {"nnm"} if lazy_variables else set()
        self.remarks.review += map(lazy_note, lazy_variables.values())
        return {key: lazy_call(item) for key, item in lazy_variables.items()}, makes_late

    def _add_constructor(
        self, edits: Edits, constructor: Constructor, reads: Reads
    ) -> tuple[Callable[[Any], Any], frozenset[str]]:
        """Add the edits of the constructor; returns what places it, and the fields that calls may set anew."""
        parts, remarks, cls = self.parts, self.remarks, self.parts.cls
        if constructs_nothing(cls, parts.items) or is_interface(parts.project, cls):
            remarks.imports.add("nnx")
            return _as_it_is, frozenset()
        members = constructor.members(reads, self.names, remarks)
        tree = tree_of(members)
        check_init(cls, tree, builders_of(parts.items))
        init = next(one for one in tree.body if isinstance(one, ast.FunctionDef))
        compact = constructor.compact
        is_late = compact is not None and bool(compact.lazy)
        per_call = frozenset[str]() if is_late else per_call_fields(init, cls.method_names)
        if compact is not None and compact.header and parts.compact is not None:
            insert_header(edits, parts.compact, compact.header)
        with_members: Callable[[Any], Any] = _as_it_is
        if parts.base_parts.needs_init or parts.setup is not None:
            with_members = placed_members(cls, members, edits)
            removals = [one for one in constructor.declarations.values() if id(one) in edits]
            edits |= {id(one): TAKEN for one in removals if edits[id(one)] is GONE}
        docstring = class_docstring(cls, constructor.new_arguments(), parts.layout)
        edits |= {} if docstring is None else {id(docstring[0]): docstring[1]}
        return with_members, per_call


def _as_it_is(statement: Any) -> Any:
    return statement


def _lazy_form(node: ast.expr, renderer: Renderer) -> Expression:
    made: Expression = call("lazy", renderer.inner(node))
    return made
