"""What a split compact method becomes: statements of ``__init__`` and edits of the call."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from nnx_migrate.edit.calls import call, named
from nnx_migrate.edit.expressions import Expression, contents, dotted_node
from nnx_migrate.edit.rendering import Renderer
from nnx_migrate.edit.statements import Statement, assign
from nnx_migrate.rewrite.classes.compact.call_options import with_keywords, without_keywords
from nnx_migrate.rewrite.classes.compact.emit import Emitter, reference
from nnx_migrate.rewrite.classes.compact.method import CompactMethod
from nnx_migrate.rewrite.classes.compact.moves import Moves
from nnx_migrate.rewrite.classes.compact.slicing import Slicer
from nnx_migrate.rewrite.classes.compact.survey import Survey
from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.items import Item, ItemKind
from nnx_migrate.rewrite.classes.loop_indexes import count_edits, index_edits
from nnx_migrate.rewrite.classes.naming import Name
from nnx_migrate.rewrite.classes.reading.evaluation import COMPREHENSIONS
from nnx_migrate.rewrite.classes.reading.flow import Step, builds
from nnx_migrate.rewrite.classes.uses.references import Edits
from nnx_migrate.rewrite.classes.writing.construct import Builder, is_inline, optional_sizes
from nnx_migrate.rewrite.classes.writing.in_scope import calling_edits, not_here
from nnx_migrate.rewrite.render import nodes_of, renderer_of
from nnx_migrate.source.walking import names_in, walk

RULE = "compact"
Make = Callable[[Renderer], Expression]


@dataclass(frozen=True)
class InitText:
    """Writes the kept steps as statements of ``__init__``.

    Args:
      slicer: the one that found them, for what it learned about their values.
      moved_statements: ids of statements that the call does without: their comments come along.
    """

    survey: Survey
    slicer: Slicer
    moved_statements: Collection[int]

    def statements(
        self, init_steps: tuple[Step, ...], draws: Mapping[int, tuple[str, ...]]
    ) -> tuple[Statement, ...]:
        """The statements.

        Args:
          draws: names of streams to draw from before a step, by its id.

        Raises:
          Refused: something cannot be written there.
        """
        method, survey = self.survey.method, self.survey
        if method.receiver != "self" and not method.is_function:
            raise ClassRefused(
                method.method, "the module is not called 'self'", "rename it to self", RULE
            )
        temporaries = self._temporaries()
        edits = self._edits(temporaries)
        if survey.shapes.abstract or draws or self._measures(init_steps):
            method.remarks.imports.add("nnm")
        emitter = Emitter(
            renderer_of(method.cls.module, method.common).with_edits(edits),
            method.layout,
            survey.names,
            self._builder(),
            method.sizes.loop_carries,
            method.receiver,
            temporaries,
            method.parameters,
            method.sizes.facts,
            draws=draws,
            moved_statements=self.moved_statements,
        )
        return tuple(emitter.statements(init_steps, method.layout.body))

    def shape_statements(self) -> list[Statement]:
        """Statements that give parameters of the call a shape in ``__init__``."""
        method = self.survey.method
        made = []
        for name in sorted(self.slicer.shape_readers):
            method.remarks.imports.add("nnm")
            argument = method.sizes.full_shapes.get(name, f"{name}_shape")
            made.append(assign(name, call("nnm.abstract_array", argument)))
        return made

    def _edits(self, temporaries: Mapping[int, str]) -> Edits:
        method, survey = self.survey.method, self.survey
        edits: Edits = {
            **method.value_edits,
            **survey.shapes.edits(),
            **nodes_of(method.static_texts()),
        }
        edits |= inline_edits(method, survey.moves)
        for key, partial in survey.moves.partials.items():
            edits[key] = without_keywords(partial, survey.moves.values)
        edits |= dict.fromkeys(survey.moves.late_values, dotted_node("None"))
        edits |= {key: not_here(item) for key, item in survey.items.items() if item.is_in_scope}
        for key, name in survey.names.items():
            temporary = temporaries.get(key)
            edits[key] = _read_again(survey.items[key], name, temporary, method.receiver)
        lengths = {key: method.sizes.lengths[key] for key in self.slicer.taint.counted}
        edits |= index_edits(survey.indexes, edits)
        return edits | count_edits(survey.steps, survey.indexes, lengths)

    def _temporaries(self) -> dict[int, str]:
        """Locals for what has a name only at run time and is read again, by id of its call."""
        found: dict[int, str] = {}
        for key, item in self.survey.items.items():
            name = self.survey.names.get(key)
            if name is None or name.counter_argument is None:
                continue
            if key in self.slicer.values:
                self._check_alone(item)
            if key in self.slicer.values or _is_measured(item):
                found[key] = _temporary(item, len(found), self.survey.method.method)
        return found

    def _check_alone(self, item: Item) -> None:
        """One local cannot hold everything that a comprehension builds."""
        for node in walk(self.survey.method.method):
            if isinstance(node, COMPREHENSIONS) and any(one is item.call for one in walk(node)):
                raise ClassRefused(
                    item.call,
                    "what this comprehension builds is needed again while the class is built",
                    "build it in a loop, or give the sizes after it as fields",
                    "compact",
                )

    def _builder(self) -> Builder:
        method, moves = self.survey.method, self.survey.moves
        return Builder(
            method.project,
            method.scope,
            method.context,
            method.remarks,
            moves.values - moves.late_values,
            receiver=method.receiver,
            optional=optional_sizes(method.sizes),
            compact=True,
        )

    def _measures(self, init_steps: tuple[Step, ...]) -> bool:
        """Whether some line asks a submodule for its width."""
        return any(_is_measured(item) for item in builds(init_steps))


@dataclass(frozen=True)
class CallText:
    """Writes what the method itself becomes."""

    survey: Survey

    def edits(self) -> Edits:
        """Edits of the method, by id of the node."""
        method, survey = self.survey.method, self.survey
        edits: Edits = {**calling_edits(survey.items, method.receiver, method.context)}
        for key, name in survey.names.items():
            edits[key] = self._used(survey.items[key], name)
        nodes = {id(node): node for node in walk(method.method)}
        for key, keywords in survey.moves.calls.items():
            called = nodes[key]
            assert isinstance(called, ast.Call)
            edits[key] = with_keywords(called, keywords)
        edits |= inline_edits(method, survey.moves)
        return edits | index_edits(survey.indexes, edits)

    def _used(self, item: Item, name: Name) -> Make:
        receiver, remarks = self.survey.method.receiver, self.survey.method.remarks
        view = self.survey.moves.views.get(id(item.call))
        per_call_fields = self.survey.moves.per_call_fields.get(id(item.call), {})

        def make(renderer: Renderer) -> Expression:
            found = reference(name, receiver, renderer)
            if item.kind is ItemKind.PARAM:
                return contents(found)
            if per_call_fields:
                remarks.imports.add("nnm")
                fields = [renderer.argument(one, key) for key, one in per_call_fields.items()]
                found = call("nnm.with_fields", found, *fields)
            if view is None:
                return found
            remarks.imports.add("nnx")
            lenient = named("raise_if_not_found", "False")
            return call("nnx.view", found, lenient, *map(renderer.keyword, view))

        return make


def inline_edits(method: CompactMethod, moves: Moves) -> Edits:
    """Wrappers without variables are built in the call itself."""
    builder = Builder(method.project, method.scope, method.context, method.remarks, moves.values)
    edits: Edits = {}
    for key, item in method.items.items():
        if is_inline(item):
            edits[key] = lambda renderer, one=item: builder(one, renderer)  # type: ignore[misc]
    return edits


def _read_again(item: Item, name: Name, temporary: str | None, receiver: str) -> Make:
    """How ``__init__`` reads what it has built."""

    def make(renderer: Renderer) -> Expression:
        if temporary is not None:
            return dotted_node(temporary)
        if name.counter_argument is not None:
            raise ClassRefused(item.call, "its name is only counted at run time", "name it", RULE)
        found = reference(name, receiver, renderer)
        return contents(found) if item.kind is ItemKind.PARAM else found

    return make


def _is_measured(item: Item) -> bool:
    return item.site is not None and item.site.out_variable is not None


def _temporary(item: Item, number: int, method: ast.FunctionDef) -> str:
    used_names = names_in(method)
    kind = (item.site.class_name if item.site else None) or "layer"
    stem = f"{kind.lower()}_{number}"
    while stem in used_names:
        stem += "_"
    return stem
