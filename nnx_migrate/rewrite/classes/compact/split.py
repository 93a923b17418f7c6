"""One ``@nn.compact`` method: what moves to ``__init__`` and what the call becomes."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from nnx_migrate.edit.calls import call
from nnx_migrate.edit.expressions import dotted_node, tree_of
from nnx_migrate.edit.statements import GONE, TAKEN, Statement, assign
from nnx_migrate.model import SizeArgument
from nnx_migrate.rewrite.classes.compact.call_conditions import check_in_call, note_of, renumbering
from nnx_migrate.rewrite.classes.compact.call_variables import parameters_of
from nnx_migrate.rewrite.classes.compact.draws import check_unseen_draws, draws_before
from nnx_migrate.rewrite.classes.compact.emit import needs_counter
from nnx_migrate.rewrite.classes.compact.method import CompactMethod
from nnx_migrate.rewrite.classes.compact.shapes import Shapes, array_parameters
from nnx_migrate.rewrite.classes.compact.slicing import Slicer
from nnx_migrate.rewrite.classes.compact.spent_locals import moved_statements, spent_locals
from nnx_migrate.rewrite.classes.compact.starting import check_updates, spent_keys, with_updates
from nnx_migrate.rewrite.classes.compact.survey import Survey, survey
from nnx_migrate.rewrite.classes.compact.text import CallText, InitText
from nnx_migrate.rewrite.classes.compact.waiting import order_in_linen
from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.items import Item
from nnx_migrate.rewrite.classes.reading.flow import Step
from nnx_migrate.rewrite.classes.uses.references import Edits, Remarks
from nnx_migrate.rewrite.classes.variables.init_updates import updates_by_variable
from nnx_migrate.sizes.scope_functions import COUNTER
from nnx_migrate.source.bindings import names_bound_below
from nnx_migrate.source.walking import names_read


@dataclass(frozen=True)
class CompactPart:
    """What a compact method contributes.

    Attributes:
      statements: for ``__init__``.
      edits: edits of the method itself.
      header: statements at the start of the method (the name counter).
      attributes: what is built under a fixed attribute name.
      lazy: variables that only the call can create, by id of their call.
      reads: global names that the lines read.
      stems: first parts of attributes that Linen numbers at run time.
      renames: Linen's names of attributes that are not called so.
      order: those attributes as Linen builds them, where ``__init__`` does so in another order.
      updates: assignments to variables' values that ``__init__`` does, too, by id.
      init_draws: draws of keys that only ``__init__`` needs, by id of the call.
    """

    statements: tuple[Statement, ...]
    edits: Edits
    header: tuple[Statement, ...]
    attributes: Mapping[str, ast.Call]
    lazy: Mapping[int, Item]
    reads: frozenset[str] = frozenset()
    updates: frozenset[int] = frozenset()
    init_draws: frozenset[int] = frozenset()
    stems: frozenset[str] = frozenset()
    renames: Mapping[str, str] = field(default_factory=dict)
    order: tuple[str, ...] = ()


def convert_compact(method: CompactMethod) -> CompactPart:
    """Split the method.

    Raises:
      Refused: what is built depends on what only the call knows.
    """
    shape_parameters = frozenset(method.sizes.full_shapes)
    if shape_parameters:
        return _split(method, shape_parameters).part()
    before = method.remarks.copy()
    try:
        return _split(method, frozenset()).part()
    except ClassRefused as refused:
        method.remarks.restore(before)
        shapes = _wanted_shapes(method)
        if not shapes:
            raise
        found = refused.refusal
        wants = replace(found.wants, shapes=shapes)
        raise ClassRefused(found.node, found.reason, found.recipe, found.rule, wants) from None


def global_reads(statements: Sequence[Statement]) -> frozenset[str]:
    """Names that the statements read and do not bind."""
    tree = tree_of(statements)
    read = names_read(tree)
    return frozenset(read - names_bound_below(tree))


def _wanted_shapes(method: CompactMethod) -> frozenset[str]:
    """Parameters with whose shape ``__init__`` could build everything."""
    every = Shapes(
        method.project,
        method.scope,
        method.method,
        frozenset(parameters_of(method.method)),
        frozenset(),
    )
    arrays = array_parameters(method.method, every) - method.cls.field_names
    if method.method.name != "__call__" or not arrays:
        return frozenset()
    try:
        split = _split(replace(method, remarks=Remarks()), arrays)
        split.part()
    except ClassRefused:
        return frozenset()
    return frozenset(split.slicer.shape_readers)


def _split(method: CompactMethod, arrays: frozenset[str]) -> _Split:
    """The steps for ``__init__``, where it knows the shapes of the parameters ``arrays``."""
    found = survey(method, arrays)
    slicer = found.slicer()
    init_steps = slicer.run(found.steps)
    check_updates(init_steps, found.items, found.init_texts)
    if arrays:
        return _Split(found, slicer, init_steps)
    variable_updates = updates_by_variable(method.cls, method.items)
    slicer, init_steps, updates = with_updates(
        slicer,
        init_steps,
        found.steps,
        found.items,
        found.taint,
        found.init_texts,
        variable_updates.values(),
    )
    return _Split(found, slicer, init_steps, updates)


@dataclass(frozen=True)
class _Split:
    """A method with the steps that ``__init__`` takes over."""

    survey: Survey
    slicer: Slicer
    init_steps: tuple[Step, ...]
    updates: frozenset[int] = frozenset()

    def part(self) -> CompactPart:
        """What both sides become."""
        method, found = self.survey.method, self.survey
        removals = spent_locals(found, self.init_steps)
        moving = moved_statements(found, self.init_steps, removals)
        init = InitText(found, self.slicer, moving)
        spent = spent_keys(
            method.method, {key: found.items[key] for key in found.inside}, method.streams
        )
        written = init.statements(self.init_steps, self._draws(spent))
        reads = global_reads(written) - names_bound_below(method.method)
        edits = CallText(found).edits()
        edits |= {id(one): GONE for one in spent.values() if one is not None}
        edits |= {key: TAKEN if key in moving else GONE for key in removals}
        first, header = self._first_lines()
        return CompactPart(
            (*first, *init.shape_statements(), *written),
            edits,
            header,
            self._attributes(),
            found.lazy,
            reads,
            self.updates,
            frozenset(spent),
            frozenset(one.stem for one in found.names.values() if one.stem is not None),
            {one.literal: one.linen for one in found.names.values() if one.literal and one.linen},
            order_in_linen(self.init_steps, found.names),
        )

    def _draws(self, init_draws: Collection[int]) -> Mapping[int, tuple[str, ...]]:
        """What ``__init__`` draws before steps because the call does, by id of the step."""
        method = self.survey.method
        check_unseen_draws(method.project, method.cls, method.scope, method.method, self.init_steps)
        if method.is_function:
            return {}
        return draws_before(
            method.project, method.scope, method.method, self.init_steps, method.streams, init_draws
        )

    def _first_lines(self) -> tuple[tuple[Statement, ...], tuple[Statement, ...]]:
        """What ``__init__`` and the call begin with: the name counter, facts that must hold."""
        method, found = self.survey.method, self.survey
        lines: tuple[Statement, ...] = ()
        header: tuple[Statement, ...] = ()
        if needs_counter(found.steps, found.names) and not method.is_function:
            method.remarks.imports.add("nnm")
            lines = header = (assign(COUNTER, call("nnm.LinenNames")),)
        facts = self._facts()
        method.remarks.notes += [(method.method, note_of(one)) for one in facts]
        numbering = renumbering(found.steps, found.taint, found.names, found.answer_texts)
        checked = [one for one in facts if one.name in numbering]
        if checked:
            header = (check_in_call(checked), *header)
            lines = (
                *lines,
                *(assign(f"self._{one.name}", dotted_node(one.name)) for one in checked),
            )
        return lines, header

    def _facts(self) -> list[SizeArgument]:
        """The facts of the initial call that conditions of the method are told."""
        read = frozenset[str]().union(*self.survey.answer_texts.values())
        return [
            one for one in self.survey.method.sizes.new_arguments if one.fact and one.name in read
        ]

    def _attributes(self) -> dict[str, ast.Call]:
        found = self.survey
        return {
            name.literal: found.items[key].call
            for key, name in found.names.items()
            if key in found.inside and name.literal and name.stem is None
        }
