"""One Linen class to one NNX class, whole or not at all."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from nnx_migrate.constructs import is_linen
from nnx_migrate.edit.calls import call
from nnx_migrate.edit.expressions import Expression, tree_of
from nnx_migrate.edit.rendering import Renderer
from nnx_migrate.edit.statements import GONE, TAKEN, without_keyword
from nnx_migrate.model import ClassMap, Confidence
from nnx_migrate.rewrite.class_values import ClassValue, class_values
from nnx_migrate.rewrite.classes.abstract_methods import check_abstract_methods, is_interface
from nnx_migrate.rewrite.classes.checks.attribute_names import (
    check_attribute_names,
    other_attributes,
)
from nnx_migrate.rewrite.classes.checks.captures import check_captures
from nnx_migrate.rewrite.classes.checks.class_body import check_class_body
from nnx_migrate.rewrite.classes.checks.class_defaults import (
    check_class_defaults,
    check_declared_anew,
)
from nnx_migrate.rewrite.classes.checks.compact_calls import check_compact_calls
from nnx_migrate.rewrite.classes.checks.conflicts import check_stored
from nnx_migrate.rewrite.classes.checks.every_call import check_every_call
from nnx_migrate.rewrite.classes.checks.forbidden import (
    check_generic,
    check_given,
    check_items,
    check_lazy,
    check_methods,
    check_text,
    constructs_nothing,
)
from nnx_migrate.rewrite.classes.checks.kept import check_kept
from nnx_migrate.rewrite.classes.checks.kinds import check_kinds
from nnx_migrate.rewrite.classes.checks.late_bindings import check_late_bindings
from nnx_migrate.rewrite.classes.checks.lazy_arguments import given_classes
from nnx_migrate.rewrite.classes.checks.lazy_forms import check_lazy_forms
from nnx_migrate.rewrite.classes.checks.lazy_submodules import check_lazy_submodules
from nnx_migrate.rewrite.classes.checks.method_decorators import check_method_decorators
from nnx_migrate.rewrite.classes.checks.module_calls import check_functions
from nnx_migrate.rewrite.classes.checks.nnx_names import check_nnx_names
from nnx_migrate.rewrite.classes.checks.output import check_class, check_init
from nnx_migrate.rewrite.classes.checks.reviews import handed_on, lazy_note, updates_at_init
from nnx_migrate.rewrite.classes.checks.sharing import local_names, shared_paths
from nnx_migrate.rewrite.classes.checks.stacking import check_late
from nnx_migrate.rewrite.classes.checks.taken_out import check_taken_out
from nnx_migrate.rewrite.classes.checks.transformed_draws import check_transformed_draws
from nnx_migrate.rewrite.classes.checks.trees import check_dicts, check_trees
from nnx_migrate.rewrite.classes.checks.unread import check_unread
from nnx_migrate.rewrite.classes.checks.vocabulary import check_vocabulary
from nnx_migrate.rewrite.classes.compact.base_methods import counts_before
from nnx_migrate.rewrite.classes.compact.carry_helpers import counted_calls
from nnx_migrate.rewrite.classes.compact.helpers import helpers_of
from nnx_migrate.rewrite.classes.compact.late import made_always
from nnx_migrate.rewrite.classes.compact.method import CompactMethod
from nnx_migrate.rewrite.classes.compact.split import CompactPart, convert_compact
from nnx_migrate.rewrite.classes.constructor import (
    Constructor,
    insert_header,
    placed_members,
)
from nnx_migrate.rewrite.classes.data import (
    ClassRefusal,
    ConversionContext,
    ConvertedClass,
    Refused,
    Wants,
    or_refusal,
)
from nnx_migrate.rewrite.classes.fields.class_decorators import (
    adapted_decorators,
    removals,
    removed_decorators,
)
from nnx_migrate.rewrite.classes.fields.late import late_fields
from nnx_migrate.rewrite.classes.fields.parameters import Parameter, parameters_of
from nnx_migrate.rewrite.classes.fields.post_init import post_init_edits
from nnx_migrate.rewrite.classes.inheritance import (
    Inherited,
    check_bases,
    inherited_by,
)
from nnx_migrate.rewrite.classes.items import ItemKind, defined_names, find_items, initializers_in
from nnx_migrate.rewrite.classes.reading.attributes import Attribute, Kind
from nnx_migrate.rewrite.classes.reading.children import children_of
from nnx_migrate.rewrite.classes.setup.body import SetupConverter, SetupPart
from nnx_migrate.rewrite.classes.setup.optional import optional_attributes
from nnx_migrate.rewrite.classes.setup.tied_weights import tied_layer
from nnx_migrate.rewrite.classes.setup.variable_attributes import attributes_of
from nnx_migrate.rewrite.classes.uses.calls import Methods
from nnx_migrate.rewrite.classes.uses.makings import makings_of
from nnx_migrate.rewrite.classes.uses.reads import Reader, Reads
from nnx_migrate.rewrite.classes.uses.references import Edits, Remarks, name_edits
from nnx_migrate.rewrite.classes.variables.presence import asked_in_init, is_made_later
from nnx_migrate.rewrite.classes.writing.comments import with_comments_of
from nnx_migrate.rewrite.classes.writing.construct import (
    Builder,
    optional_sizes,
    relaxed,
    without_applied_only,
)
from nnx_migrate.rewrite.classes.writing.document import class_docstring
from nnx_migrate.rewrite.classes.writing.in_scope import builders_of
from nnx_migrate.rewrite.classes.writing.layout import Layout, layout_of
from nnx_migrate.rewrite.classes.writing.lazy import lazy_call
from nnx_migrate.rewrite.classes.writing.linen_names import called_in_linen, named_in_linen
from nnx_migrate.rewrite.render import renderer_of
from nnx_migrate.sizes.result import ClassSizes, SiteKind
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import walk

RULE = "class"
_MOST_SIZES = 10  # that a constructor takes as callers know them alone: nobody writes one with more


def convert_class(
    project: Project, cls: ClassInfo, sizes: ClassSizes, context: ConversionContext
) -> ConvertedClass | ClassRefusal:
    """Convert ``cls``, or say why not.

    Args:
      sizes: what size inference found for the class.
      context: what is decided about the other classes.
    """
    return or_refusal(_Conversion(project, cls, sizes, context).run, RULE, cls.node)


@dataclass
class _Conversion:
    project: Project
    cls: ClassInfo
    sizes: ClassSizes
    context: ConversionContext
    remarks: Remarks = field(default_factory=Remarks)
    late_fields: frozenset[str] = frozenset()
    with_members: Callable[[Any], Any] = lambda node: node

    def run(self) -> ConvertedClass:
        check_bases(self.project, self.cls)
        check_abstract_methods(self.project, self.cls)
        check_vocabulary(self.project, self.cls)
        self._check_sizes()
        self._find_items()
        self._check_items()
        self._check_class()
        attributes = self._setup_attributes()
        check_captures(self.project, self.cls, attributes, self.items)
        check_kept(self.cls, attributes)
        check_late_bindings(self.cls)
        return self._write(self._reads(attributes))

    def _check_sizes(self) -> None:
        for node, reason in self.sizes.problems:
            raise Refused(
                node, reason, "give the size as a field, or run `nnx-migrate record`", "sizes"
            )
        count = len(self.sizes.new_arguments)
        if count > _MOST_SIZES:
            raise Refused(
                self.cls.node,
                f"its constructor would take {count} sizes that only callers know, more than {_MOST_SIZES}",
                "run `nnx-migrate record` on code that builds it",
                "sizes",
            )
        for one in self.sizes.untold:
            raise Refused(
                one.call,
                one.reason,
                "build it under a condition on a field, or call it always",
                "sizes",
                Wants(facts=one.parameters),
            )

    def _find_items(self) -> None:
        self.inferred = frozenset(one.name for one in self.sizes.new_arguments)
        self.sizes = relaxed(without_applied_only(self.cls, self.sizes))
        self.layout: Layout = layout_of(self.cls)
        self.helpers = helpers_of(self.project, self.cls, self.sizes, self.context)
        self.items = find_items(self.cls, self.sizes, self.helpers.inside)
        self.inherited: Inherited = inherited_by(self.project, self.cls, self.sizes, self.context)

    def _check_items(self) -> None:
        check_methods(self.project, self.cls, self.items)
        compact = self._compact_method()
        self.counted = counted_calls(self.cls, self.sizes, compact)
        elsewhere = {id(one.site.call) for one in self.counted.values() if one.site is not None}
        own = {key: one for key, one in self.items.items() if key not in elsewhere}
        every = {**own, **self.helpers.parameters}
        self.renames = other_attributes(self.project, self.cls, compact, every)
        check_attribute_names(self.project, self.cls, compact, every, self.renames)
        check_items(self.cls, own, self.helpers.parameters, compact)
        self.methods = Methods(self.project, self.cls)
        self.makings = makings_of(self.project, self.methods, self.cls, self.items, self.context)
        check_compact_calls(self.cls, self.methods, self.makings)
        self.counts = counts_before(self.cls, self.sizes, self.items, self.methods, self.makings)
        check_given(self.cls, self.items)
        check_kinds(self.project, self.cls, self.items)
        check_taken_out(self.cls, self.items)
        check_late(self.project, self.items.values(), self.context.makes_late)
        built = [one.site.symbol or "" for one in self.items.values() if one.site is not None]
        self.makes_late = any(map(self.context.makes_late, built))
        self.given = given_classes(self.project, self.cls, self.sizes, self.context)
        check_lazy_forms(self.project, self.sizes, self.context, self.given.values())
        self.holds_lazy = check_lazy_submodules(
            self.project,
            self.cls,
            self.items,
            self.sizes,
            self.context,
            self.given,
            self.inherited.delegates,
        )

    def _check_class(self) -> None:
        check_functions(self.cls)
        check_class_defaults(self.project, self.cls)
        check_declared_anew(self.cls)
        check_nnx_names(self.cls)
        check_class_body(self.cls)
        check_method_decorators(self.project, self.cls)
        made = (*self.items.values(), *self.helpers.parameters.values())
        check_trees(self.project, self.cls, made)
        check_dicts(self.cls, self.items)
        check_text(self.cls)
        check_generic(self.project, self.cls)
        check_every_call(self.cls)
        check_transformed_draws(self.project, self.cls)

    def _write(self, reads: Reads) -> ConvertedClass:
        values = self._lazy_values()
        staying = [node for one in values for whole in one.wholes for node in walk(whole)]
        staying += [node for one in self._lazy_layers() for node in walk(one)]
        given = self.given.values()
        staying += [node for one, symbol in given if is_linen(symbol) for node in walk(one)]
        common = self._common_edits(reads, values, staying)
        base = renderer_of(self.cls.module, common)
        parameters = parameters_of(self.project, self.cls, base, self.remarks)
        setup = self._setup(common, reads)
        compact = self._compact(common, reads, parameters)
        if compact is not None:
            reads = reads.without(compact.spent)
            self.remarks.review = [
                one for one in self.remarks.review if id(one[0]) not in compact.updates
            ]
        constructor = Constructor(
            self.cls,
            self.sizes,
            self.context,
            self.layout,
            self.inherited,
            parameters,
            setup,
            compact,
        )
        edits = self._edits(common, constructor, reads)
        return self._finish(edits, constructor, reads, staying)

    def _common_edits(
        self, reads: Reads, values: Sequence[ClassValue], staying: Sequence[ast.AST]
    ) -> Edits:
        """What changes in every method alike: reads, local functions, names."""
        handled = {*self.items, *map(id, removed_decorators(self.project, self.cls))}
        handled |= self.helpers.builds | {*map(id, staying)}
        return {
            **reads.call,
            **self.helpers.local,
            **self._lazy_forms(values),
            **name_edits(
                self.project, self.cls, handled, self.remarks, initializers_in(self.items.values())
            ),
        }

    def _lazy_values(self) -> list[ClassValue]:
        """What is made of lazy classes, which stays as it is: ``nn.remat(Block)``."""
        values = class_values(self.project, self.cls) if self.holds_lazy else ()
        is_lazy = self.context.is_lazy_value
        return [one for _, symbol, one in values if one is not None and is_lazy(symbol)]

    def _lazy_layers(self) -> Iterator[ast.expr]:
        """The names of Linen's layers that take their sizes in their first call, and stay as they are."""
        for one in self.items.values():
            if one.site is not None and one.site.is_lazy and one.site.kind is SiteKind.LAYER:
                yield one.site.call.func

    def _lazy_forms(self, values: Sequence[ClassValue]) -> Edits:
        """``lazy(Block)`` where ``Block`` is explicit."""
        explicit = [one.node for one in values if one.symbol not in self.context.lazy]
        given = self.given.values()
        explicit += [node for node, symbol in given if symbol in self.context.converted]
        self.remarks.imports |= {"lazy"} if explicit else set()
        return {id(node): functools.partial(_lazy_form, node) for node in explicit}

    # What the class has -------------------------------------------------------------------

    def _compact_method(self) -> ast.FunctionDef | None:
        found = [one for one in self.cls.methods.values() if self.project.is_compact(self.cls, one)]
        with_items = [
            one
            for one in found
            if any(
                id(node) in self.items and self.items[id(node)].kind is not ItemKind.STREAM
                for node in walk(one)
            )
        ]
        return next(iter(with_items or found), None)

    def _setup_attributes(self) -> list[Attribute]:
        found = list(self.inherited.attributes)
        setup = self.cls.methods.get("setup")
        if setup is not None:
            own = attributes_of(self.cls, setup, self.items)
            check_unread(self.project, self.cls, own, self.items)
            found += own
        check_stored(found)
        return found

    def _reads(self, attributes: list[Attribute]) -> Reads:
        params = {one.name: one.stored or one.name for one in attributes if one.kind is Kind.PARAM}
        variables = {
            one.name: one.stored or one.name for one in attributes if one.kind is Kind.VARIABLE
        }
        computed = {
            one.name: one.stored for one in attributes if one.kind is Kind.COMPUTED and one.stored
        }
        own = defined_names(self.cls) | {one.name for one in self.cls.fields}
        own |= {one.name for one in attributes}
        self.own_names = frozenset(own)
        self.remarks.review += handed_on(attributes)
        self.remarks.review += updates_at_init(self.cls, self.items, frozenset(variables))
        self.tied_sites = {
            one.name: self.items[id(one.value)]
            for one in attributes
            if id(one.value) in self.items and one.kind is Kind.SUBMODULE
        }
        reader = Reader(
            self.items,
            params,
            variables | computed,
            self.own_names,
            self.remarks,
            self._tied_layer,
            lambda node: self.project.resolve(node, self.cls.scope),
            children_of(self.project, self.cls, attributes, self.items),
            self.context.lazy.__contains__,
            functools.partial(asked_in_init, self.cls, self.items),
            functools.partial(is_made_later, self.cls),
            {
                one.name: self.items[id(one.value)]
                for one in attributes
                if one.kind is Kind.VARIABLE and id(one.value) in self.items
            },
            optional_attributes(attributes),
            frozenset(one.name for one in self.cls.fields) - self.cls.reassigned,
        )
        for method in self.cls.methods.values():
            reader.read(method)
        return reader.found

    def _tied_layer(self, child: str, node: ast.expr, renderer: Renderer) -> Expression:
        item = self.tied_sites.get(child)
        if item is None:
            raise Refused(
                node,
                f"self.{child}.apply(...) of a submodule that setup does not build",
                "build it in setup",
                "tied",
            )
        setup = self.cls.methods.get("setup")
        return tied_layer(item, node, renderer, self._builder(), setup, self.inferred)

    def _builder(self) -> Builder:
        method = self.cls.methods.get("setup")
        scope = self.cls.scope.enter(method) if method else self.cls.scope
        return Builder(
            self.project, scope, self.context, self.remarks, optional=optional_sizes(self.sizes)
        )

    # The parts ----------------------------------------------------------------------------

    def _setup(self, common: Edits, reads: Reads) -> SetupPart | None:
        method = self.cls.methods.get("setup")
        if method is None:
            return None
        common = dict(common)
        for node in self.inherited.super_setup:
            common[id(node)] = GONE
        converter = SetupConverter(
            self.project,
            self.cls,
            method,
            {k: one for k, one in self.items.items() if one.kind is not ItemKind.STREAM},
            self.sizes,
            self._builder(),
            self.layout,
            self.remarks,
            common,
            reads.static,
            self.inherited.plain,
        )
        return converter.convert()

    def _compact(
        self, common: Edits, reads: Reads, parameters: tuple[Parameter, ...]
    ) -> CompactPart | None:
        method = self._compact_method()
        if method is None:
            return None
        inside = {id(node) for node in walk(method)}
        items = {
            k: one
            for k, one in self.items.items()
            if k in inside and one.kind is not ItemKind.STREAM
        }
        compact = CompactMethod(
            self.project,
            self.cls,
            method,
            items,
            self.sizes,
            self.context,
            self.layout,
            self.remarks,
            common,
            reads.static,
            frozenset(one.name for one in parameters if one.plain) - self.cls.reassigned,
            self.counts,
            held=reads.held,
            streams=reads.streams,
            counted=self.counted,
            renames=self.renames,
        )
        part = convert_compact(compact)
        check_lazy(self.project, self.cls, method, part.lazy)
        return part

    def _lazy_edits(self, compact: CompactPart | None) -> Edits:
        """Variables that calls create: in helper methods, or because only the call sizes them."""
        done = self.cls.methods.get("setup"), self._compact_method()
        inside = {id(node) for one in done if one is not None for node in walk(one)}
        lazy = dict(compact.lazy) if compact else {}
        self.makes_late |= made_always(self._compact_method(), lazy.values())
        for key, item in self.items.items():
            if item.kind is ItemKind.VARIABLE and key not in inside:
                lazy[key] = item
        edits: Edits = {}
        for key, item in lazy.items():
            self.remarks.imports.add("nnm")
            self.remarks.review.append(lazy_note(item))
            edits[key] = lazy_call(item)
        return edits

    # The class ----------------------------------------------------------------------------

    def _edits(
        self,
        common: Edits,
        constructor: Constructor,
        reads: Reads,
    ) -> Edits:
        edits: Edits = {**common, **self.helpers.edits}
        self.remarks.imports |= self.helpers.imports
        self.remarks.review += self.helpers.review
        self.remarks.notes += self.helpers.notes
        compact = constructor.compact
        edits |= self._lazy_edits(compact)
        if compact is not None:
            edits |= compact.edits
        edits |= removals(self.project, self.cls)
        edits |= post_init_edits(self.project, self.cls, self.remarks)
        new = tuple(one.name for one in constructor.new_arguments())
        edits |= adapted_decorators(self.project, self.cls, new, self.remarks)
        if constructs_nothing(self.cls, self.items) or is_interface(self.project, self.cls):
            self.remarks.imports.add("nnx")
            return edits
        members = constructor.members(reads, self.own_names, self.remarks)
        tree = tree_of(members)
        check_init(self.cls, tree, builders_of(self.items))
        init = next(one for one in tree.body if isinstance(one, ast.FunctionDef))
        if compact is None or not compact.lazy:
            self.late_fields = late_fields(init, defined_names(self.cls))
        method = self._compact_method()
        if compact is not None and compact.header and method is not None:
            insert_header(edits, method, compact.header)
        if self.inherited.needs_init or "setup" in self.cls.methods:
            self.with_members = placed_members(self.cls, members, edits)
            gone = [one for one in constructor.declarations.values() if id(one) in edits]
            edits |= {id(one): TAKEN for one in gone if edits[id(one)] is GONE}
        docstring = class_docstring(self.cls, constructor.new_arguments(), self.layout)
        return edits if docstring is None else {**edits, id(docstring[0]): docstring[1]}

    def _finish(
        self,
        edits: Edits,
        constructor: Constructor,
        reads: Reads,
        staying: Sequence[ast.AST],
    ) -> ConvertedClass:
        node = self.cls.node
        stems = constructor.compact.stems if constructor.compact else frozenset()
        order = constructor.compact.order if constructor.compact else ()
        renames = constructor.compact.renames if constructor.compact else {}
        self.remarks.imports |= {"nnm"} if stems or renames else set()
        inside = frozenset(map(id, walk(node))) - {id(node)}

        def written(renderer: Renderer) -> list[Any]:
            made = self.with_members(renderer.with_edits(edits).without(node).inner(node))
            made = without_keyword(made, "kw_only")  # which the constructor says now
            if stems:
                made = named_in_linen(made, renderer.page, counted=stems, order=order)
            if renames:
                made = called_in_linen(made, renderer.page, renames)
            return [with_comments_of(renderer.sources.pairs[id(node)], made)]

        alone = written(renderer_of(self.cls.module))

        def make(renderer: Renderer) -> list[Any]:
            return alone if inside.isdisjoint(renderer.edits) else written(renderer)

        check_class(self.project, self.cls, tree_of(alone), staying)
        new_arguments = constructor.new_arguments()
        arguments = {one.name: one.name for one in constructor.parameters}
        review = (*self.remarks.review, *self.sizes.review)
        return ConvertedClass(
            edits={id(node): make},
            imports=frozenset(self.remarks.imports),
            class_map=ClassMap(
                linen=self.cls.name,
                nnx=self.cls.name,
                fields=arguments,
                size_arguments=new_arguments,
                attributes=self._shared(constructor.setup, constructor.compact),
                rng_streams=reads.named,
            ),
            new_arguments=new_arguments,
            confidence=Confidence.REVIEW if review else Confidence.EXACT,
            review=review,
            notes=(*self.remarks.notes, *self._first_call_notes()),
            late_fields=self.late_fields,
            makes_late=self.makes_late,
            holds_lazy=self.holds_lazy,
            staying=tuple(staying),
        )

    def _first_call_notes(self) -> Iterator[tuple[ast.AST, str]]:
        """Which submodules are left to their first calls."""
        text = (
            "its first call makes it: only that shows its size, or whether Linen makes it; `nnx-migrate record`"
            " may show a size before"
        )
        for one in self.items.values():
            if one.site is not None and one.site.is_lazy:
                yield one.call, text

    def _shared(self, setup: SetupPart | None, compact: CompactPart | None) -> dict[str, str]:
        """Where NNX lists submodules that several modules hold."""
        held: dict[str, ast.Call] = dict(compact.attributes) if compact else {}
        if setup is not None:
            held |= {
                one.stored or one.name: one.value
                for one in setup.attributes
                if one.kind is Kind.SUBMODULE and isinstance(one.value, ast.Call)
            }
        local: dict[str, str] = {}
        for method in (self.cls.methods.get("setup"), self._compact_method()):
            if method is not None:
                local |= local_names(method, held)
        return shared_paths(self.project, self.cls, held, local)


def _lazy_form(node: ast.expr, renderer: Renderer) -> Expression:
    made: Expression = call("lazy", renderer.inner(node))
    return made
