"""What a compact method builds, in which order, and what of it ``__init__`` can know."""

from __future__ import annotations

import ast
from collections import ChainMap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nnx_migrate.edit.statements import GONE
from nnx_migrate.rewrite.classes.compact.answers import refuse_answers
from nnx_migrate.rewrite.classes.compact.call_conditions import (
    CallConditions,
    call_tests,
    tested_parameters,
)
from nnx_migrate.rewrite.classes.compact.call_options import moves_of
from nnx_migrate.rewrite.classes.compact.call_variables import call_variables, refuse_late_reads
from nnx_migrate.rewrite.classes.compact.conditional_calls import check_calls
from nnx_migrate.rewrite.classes.compact.guards import guards_of
from nnx_migrate.rewrite.classes.compact.last_rounds import refuse_last_rounds
from nnx_migrate.rewrite.classes.compact.method import CompactMethod
from nnx_migrate.rewrite.classes.compact.moves import Moves
from nnx_migrate.rewrite.classes.compact.shapes import Shapes
from nnx_migrate.rewrite.classes.compact.slicing import Slicer
from nnx_migrate.rewrite.classes.data import ClassRefused, ConversionContext
from nnx_migrate.rewrite.classes.items import Item, ItemKind
from nnx_migrate.rewrite.classes.loop_indexes import Index
from nnx_migrate.rewrite.classes.naming import (
    Name,
    names_of,
    numbered_classes,
    with_other_attributes,
)
from nnx_migrate.rewrite.classes.reading.aliases import changed_elsewhere, with_aliases
from nnx_migrate.rewrite.classes.reading.comprehensions import (
    refuse_equal_keys,
    refuse_lazy,
    refuse_leaks,
)
from nnx_migrate.rewrite.classes.reading.effects import Effects, effects_on
from nnx_migrate.rewrite.classes.reading.evaluation import closures_of, free_names, held_parts
from nnx_migrate.rewrite.classes.reading.flags import flags_of
from nnx_migrate.rewrite.classes.reading.flow import Step, builds, flow_of
from nnx_migrate.rewrite.classes.reading.questions import (
    ANSWER,
    answers_in,
    changed_globals,
    traits_in,
)
from nnx_migrate.rewrite.classes.reading.taint import Replaced, Taint, taint_of
from nnx_migrate.rewrite.classes.run_time_names import run_time_names
from nnx_migrate.rewrite.classes.writing.construct import is_inline, operands_of
from nnx_migrate.sizes.result import ClassSizes
from nnx_migrate.source.bindings import bindings_below, changed_names
from nnx_migrate.source.growth import grown
from nnx_migrate.source.names import last_name
from nnx_migrate.source.walking import each, names_in, walk

RULE = "compact"


@dataclass(frozen=True)
class Survey:
    """One reading of the method.

    Args:
      items: what ``__init__`` builds, by id of the constructor call.
      lazy: variables that only the call can create.
      taint: what the call's parameters reach.
      init_texts: nodes with another text in ``__init__``, with the names that text reads.
      indexes: loops that count their rounds from now on.
      answer_texts: those among all such nodes whose text asks what the initial call is given.
      texts_without_shapes: ``init_texts`` without reads of shapes.
      mutations: locals that something changes where no statement of the method says it.
      effects: those that a place may change, and how it looks says nothing of it.
    """

    method: CompactMethod
    items: Mapping[int, Item]
    lazy: Mapping[int, Item]
    steps: tuple[Step, ...]
    moves: Moves
    names: Mapping[int, Name]
    indexes: Mapping[int, Index]
    shapes: Shapes
    taint: Taint
    init_texts: Replaced
    answer_texts: Replaced
    texts_without_shapes: Replaced
    mutations: Mapping[str, ast.AST]
    effects: Effects

    @property
    def inside(self) -> frozenset[int]:
        """Ids of what is built by the method itself, not by a nested function."""
        return frozenset(id(item.call) for item in builds(self.steps))

    def slicer(self) -> Slicer:
        """What finds the steps that ``__init__`` needs."""
        lengths = self.method.sizes.lengths
        taint = taint_of(
            self.steps, self.method.unknown, {**self.init_texts, **self.answer_texts}, lengths
        )
        counted = {key: _names_in(lengths[key]) for key in taint.counted}
        known = {**self.texts_without_shapes, **self.answer_texts, **counted}
        return Slicer(
            frozenset(self.method.unknown),
            {
                **self.texts_without_shapes,
                **self.shapes.init_expressions(self.texts_without_shapes),
                **self.answer_texts,
                **counted,
            },
            {key: operands_of(self.items[key], self.moves.values) for key in self.inside},
            taint,
            shapes=self.shapes if self.shapes.parameters else None,
            texts_without_shapes=known,
            call_conditions=CallConditions(self.taint, self.init_texts)
            if self.answer_texts
            else None,
            askable=self.method.askable,
            mutations=self.mutations,
            effects=self.effects,
            closures=closures_of(self.method.method),
            guards=guards_of(
                self.method.project, self.method.cls, self.method.method, self.method.receiver
            ),
        )


def survey(method: CompactMethod, arrays: frozenset[str]) -> Survey:
    """Read the method.

    Args:
      arrays: parameters whose whole shape ``__init__`` may take to know.
    """
    plain, answer_texts = _static_names(method)
    shapes = Shapes(method.project, method.scope, method.method, arrays, frozenset(method.items))
    replaced = {**plain, **shapes.unread(plain)}
    items = {key: item for key, item in method.items.items() if not is_inline(item)}
    wrappers = method.items.keys() - items.keys()
    lazy = call_variables(method.method, items, replaced)
    items = {key: item for key, item in items.items() if key not in lazy}
    _refuse(method, items, wrappers)
    steps = _steps(method, items, items)
    replaced |= {key: frozenset() for key, one in items.items() if not one.is_in_scope}
    moves, taint = _moves(method, items, steps, replaced)
    replaced |= {key: frozenset() for key in moves.values}
    shapes.whole = _whole(items, moves, _widths(method.sizes), method.context)
    shapes.flags = flags_of(method.project, method.scope, method.method)
    shapes.submodule_names = _holders(method.method, shapes.whole)
    shapes.incomplete = _holders(method.method, items.keys() - shapes.whole)
    counting = (
        _steps(method, items, {**items, **method.helper_items}) if method.helper_items else steps
    )
    names, indexes = _names(method, counting, taint)  # Linen gives names where it builds
    names = _without_helper_items(names, method.helper_items)
    fixed = {k: v for k, v in replaced.items() if k in plain or k not in shapes.nodes}
    return Survey(
        method,
        items,
        lazy,
        steps,
        moves,
        names,
        indexes,
        shapes,
        taint,
        replaced,
        answer_texts,
        fixed,
        changed_elsewhere(method.project, method.scope, method.method),
        effects_on(method.project, method.scope, method.cls, method.method),
    )


def _refuse(method: CompactMethod, items: Mapping[int, Item], wrappers: Collection[int]) -> None:
    """Refuse what no ``__init__`` can build as this method does."""
    refuse_lazy(method.method, items, RULE)
    refuse_leaks(method.method, items, RULE)
    refuse_equal_keys(method.method, items, RULE)
    refuse_last_rounds(method.method, items, RULE)
    check_calls(method.method, items, wrappers)
    refuse_late_reads(method.method, items)


def _steps(
    method: CompactMethod, items: Mapping[int, Item], helper_items: Mapping[int, Item]
) -> tuple[Step, ...]:
    """The steps in which the method builds the ``helper_items``: what goes counts where it builds an item."""
    body = [
        one
        for one in method.method.body
        if method.common.get(id(one)) != GONE or any(id(node) in items for node in walk(one))
    ]
    return with_aliases(flow_of(body, helper_items), method.method)


def _moves(
    method: CompactMethod, items: Mapping[int, Item], steps: tuple[Step, ...], init_texts: Replaced
) -> tuple[Moves, Taint]:
    """What moves from the calls to ``__init__``, and what the method's parameters reach then.

    Raises:
      Refused: what ``__init__`` needs hangs on an answer that another moment gives otherwise.
    """
    answers = answers_in(method.cls, method.method, method.items, init_texts)
    answer_texts = {**init_texts, **answers}
    unknown = [*method.unknown, ANSWER]
    moves = moves_of(
        method.project,
        method.scope,
        method.method,
        items,
        taint_of(steps, unknown, answer_texts, method.sizes.lengths),
        answer_texts,
        method.context,
        method.cls,
    )
    no_reads = {key: frozenset[str]() for key in moves.values}
    lengths = method.sizes.lengths
    taint = taint_of(steps, method.unknown, {**init_texts, **no_reads}, lengths)
    changing = changed_globals(method.method, steps)
    if answers or changing:
        unknown += changing
        answer_texts |= {
            **traits_in(method.project, method.scope, method.method, answer_texts),
            **no_reads,
        }
        refuse_answers(
            steps,
            taint,
            taint_of(steps, unknown, answer_texts, lengths),
            answer_texts,
            moves.values,
        )
    return moves, taint


def _names(
    method: CompactMethod, steps: Sequence[Step], taint: Taint
) -> tuple[Mapping[int, Name], Mapping[int, Index]]:
    """The attributes of what is built, and the loops that count their rounds for that, by id.

    Raises:
      Refused: only the call knows a number; told about its conditions, the constructor may.
    """
    words = _words(method)
    try:
        found = names_of(
            steps,
            frozenset(taint.steps),
            method.base_counts,
            goes_on=method.is_function,
            used_names=words,
            lengths=method.sizes.lengths,
        )
    except ClassRefused as refused:
        one = refused.refusal
        questions = [tested_parameters(test, method.askable) for test in call_tests(steps, taint)]
        wants = replace(one.wants, facts=one.wants.facts.union(*questions))
        raise ClassRefused(one.node, one.reason, one.recipe, one.rule, wants) from None
    names: Mapping[int, Name] = with_other_attributes(found.names, method.renames)
    if found.is_even and not (method.is_function or method.base_counts or numbered_classes(steps)):
        used_names = words.new_child({**method.cls.methods})
        names = {**names, **(run_time_names(steps, names, found.indexes, used_names) or {})}
    return names, found.indexes.read_by(names)


def _without_helper_items(
    names: Mapping[int, Name], helper_items: Mapping[int, Item]
) -> Mapping[int, Name]:
    """The attributes but for those of what calls of other methods build and nothing keeps.

    Raises:
      Refused: the run-time counter gives them their numbers, which counts what is there.
    """
    for key, item in helper_items.items():
        if key in names and names[key].counter_argument is not None:
            reason = "how many of its class Linen counts before this call is not known"
            raise ClassRefused(item.call, reason, "give the submodules names", RULE)
    return {key: name for key, name in names.items() if key not in helper_items}


def _words(method: CompactMethod) -> ChainMap[str, Any]:
    """All names of the method, of its file and of the arguments of ``__init__``: a file has many."""
    words = names_in(method.method)
    words |= {one.arg for one in each(method.method, ast.arg)}
    words |= method.cls.field_names
    words |= {one.name for one in method.sizes.new_arguments}
    return ChainMap(dict.fromkeys(words), method.cls.module.table)


def _static_names(
    method: CompactMethod,
) -> tuple[dict[int, frozenset[str]], dict[int, frozenset[str]]]:
    """The names that texts of ``__init__`` read, and apart those of facts of the initial call."""
    # A local named like a size argument is that size: the argument is read in its place.
    sizes = {one.name for one in method.sizes.new_arguments if one.fact is None}
    every = {key: _names_in(text) - sizes for key, text in method.static_texts().items()}
    answer_texts = {key: names for key, names in every.items() if key in method.sizes.facts}
    return {key: names for key, names in every.items() if key not in answer_texts}, answer_texts


def _names_in(text: str) -> frozenset[str]:
    return frozenset(free_names(ast.parse(text, mode="eval")))


def _widths(sizes: ClassSizes) -> frozenset[str]:
    """Arguments that are submodules' widths, which calls of the whole module measure, and what follows them."""
    carries = [one for many in sizes.loop_carries.values() for one in many]
    return grown(  # ``x_features = Dense_0_in_features`` in front of a loop
        (one.name for one in sizes.new_arguments if one.submodule),
        lambda found: (
            one.name for one in carries if found & (_names_in(one.before) | _names_in(one.after))
        ),
    )


def _whole(
    items: Mapping[int, Item], moves: Moves, widths: frozenset[str], context: ConversionContext
) -> frozenset[int]:
    """Submodules and parameters that are whole once they are built.

    ``__init__`` runs none whose width a call has to show: it does not fit before. Nor does it run lazy ones.
    """
    completed = {*moves.views, *moves.per_call_fields}
    for key, item in items.items():
        parts = {id(one) for one in walk(item.call)}
        texts = item.site.sizes.values() if item.site is not None and widths else ()
        if parts & moves.values or any(widths & _names_in(one) for one in texts):
            completed.add(key)
        if item.site is not None and context.is_lazy_inside(item.site):
            completed.add(key)
    return frozenset(
        key
        for key, item in items.items()
        if item.kind in (ItemKind.SITE, ItemKind.PARAM)
        and not item.is_in_scope
        and key not in completed
    )


def _holders(method: ast.FunctionDef, items: Collection[int]) -> frozenset[str]:
    """Local names that may hold what an item built, or a container with it."""
    pairs = [*bindings_below(method)]
    return grown(
        (),
        lambda names: (
            name
            for target, value in pairs
            if _holds(value, items, names)
            for name in changed_names(target)
        ),
    )


def _holds(value: ast.AST, items: Collection[int], names: frozenset[str]) -> bool:
    if id(value) in items or (isinstance(value, ast.Name) and value.id in names):
        return True
    parts = held_parts(value)
    if isinstance(value, ast.Call) and last_name(value.func)[:1].isupper():
        parts = value.args  # an object may hold what it is made with: a chain of layers
    return any(_holds(one, items, names) for one in parts)
