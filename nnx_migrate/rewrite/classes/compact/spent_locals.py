"""Local names of a compact method that only constructors read, which ``__init__`` calls now.

``hidden = 4 * self.width`` in front of ``nn.Dense(hidden)(x)`` moves there with the constructor.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence

from nnx_migrate.rewrite.classes.compact.survey import Survey
from nnx_migrate.rewrite.classes.reading.attributes import statements
from nnx_migrate.rewrite.classes.reading.flow import Bind, Exit, Step, each_step
from nnx_migrate.rewrite.classes.reading.unread import dead_assignments, with_empty_ifs
from nnx_migrate.source.names import name_parts
from nnx_migrate.source.walking import each, walk

_BLOCKS = ("body", "orelse", "finalbody")
_LOOKS = frozenset({("locals",), ("vars",), ("eval",), ("exec",), ("dir",)})


def spent_locals(survey: Survey, init_steps: Sequence[Step]) -> set[int]:
    """Ids of the statements that the call does without: assignments, and ``if`` of nothing else.

    Args:
      init_steps: the steps of ``__init__``; what it raises the call does not.
    """
    method, body = survey.method, survey.method.method.body
    if any(name_parts(one.func) in _LOOKS for one in each(method.method, ast.Call)):
        return set()
    read_otherwise = (one for one in each(method.method, ast.Name) if id(one) in method.common)
    removals, staying = {*_constructor_nodes(survey), *map(id, read_otherwise)}, set[int]()
    moving = {*_moving(survey)}
    raised = {id(one): one for one in _nodes(init_steps) if isinstance(one, ast.Raise)}
    asserted = {id(one): one for one in _nodes(init_steps) if isinstance(one, ast.Assert)}
    while True:
        inside = {id(part) for one in (raised | asserted).values() for part in walk(one)}
        removed_nodes = dead_assignments(
            method.project, method.scope, body, removals | inside, staying, moving
        )
        removed_nodes = with_empty_ifs(
            method.project, method.scope, body, removed_nodes | raised.keys() | asserted.keys()
        )
        bare, tests = {*_bare(body, removed_nodes)}, {*_tests(body, removed_nodes)}
        below = _below(body, removed_nodes)
        if bare <= staying and tests <= removals and raised.keys() <= below:
            return removed_nodes
        if bare <= staying:
            removals |= tests
        staying |= bare
        raised = {key: one for key, one in raised.items() if key in below}


def _bare(body: list[ast.stmt], removals: Collection[int]) -> Iterator[int]:
    """Ids of what stands in blocks that would be left with nothing."""
    blocks = [body]
    for one in statements(body):
        if id(one) not in removals:
            blocks += [block for name in _BLOCKS if (block := getattr(one, name, None))]
            parts = (*getattr(one, "handlers", []), *getattr(one, "cases", []))
            blocks += [part.body for part in parts]
    for block in blocks:
        if all(id(one) in removals for one in block):
            yield from (id(part) for one in block for part in walk(one))


def _tests(body: list[ast.stmt], removals: Collection[int]) -> Iterator[int]:
    """Ids of the nodes of conditions that go."""
    for one in statements(body):
        if isinstance(one, ast.If) and id(one) in removals:
            yield from map(id, walk(one.test))


def _moving(survey: Survey) -> Iterator[int]:
    """Ids of the nodes of values that move from where a layer is built to where it is called."""
    values = {*survey.moves.values, *survey.moves.late_values}
    for one in walk(survey.method.method):
        if id(one) in values:
            yield from map(id, walk(one))


def _constructor_nodes(survey: Survey) -> Iterator[int]:
    """Ids of the nodes of constructor calls, but for what the call goes on to need of them."""
    moves = survey.moves
    for key, name in survey.names.items():
        site, call = survey.items[key].site, survey.items[key].call
        if site is not None and site.condition == "False":
            continue  # nothing is built: a cell that is asked for its carry alone stays where it is
        needed = {*moves.values, *moves.late_values}
        needed |= {id(one.value) for one in call.keywords if one.arg == "name"}
        needed |= (
            {id(name.counter_argument)} if isinstance(name.counter_argument, ast.expr) else set()
        )
        needed |= {id(name.explicit)} if name.explicit is not None else set()
        yield from _without(call, needed)


def _without(node: ast.AST, exceptions: Collection[int]) -> Iterator[int]:
    """The node and those below it, but for the needed ones and what is below these."""
    if id(node) not in exceptions:
        yield id(node)
        for child in ast.iter_child_nodes(node):
            yield from _without(child, exceptions)


def moved_statements(
    survey: Survey, init_steps: Sequence[Step], removals: Collection[int]
) -> frozenset[int]:
    """Those of the statements that ``__init__`` has now, with their comments.

    What an ``if`` holds leaves its comments with it where ``__init__`` has not all of it.
    """
    body = survey.method.method.body
    there = {*map(id, _nodes(init_steps))}
    whole = {id(one): one for one in _ifs(body) if id(one) in removals}
    moves = {key for key, one in whole.items() if _below([one], whole) <= there | whole.keys()}
    return frozenset((there & {*removals}) - _below(body, removals)) | moves


def _ifs(body: list[ast.stmt]) -> Iterator[ast.If]:
    return (one for one in statements(body) if isinstance(one, ast.If))


def _below(body: list[ast.stmt], ifs: Collection[int]) -> set[int]:
    """Ids of the statements in those of the ``if`` statements."""
    blocks = (one.body + one.orelse for one in _ifs(body) if id(one) in ifs)
    return {id(part) for block in blocks for part in statements(block)}


def _nodes(steps: Sequence[Step]) -> Iterator[ast.AST]:
    """The assignments and exits among the steps."""
    return (one.node for one in each_step(steps) if isinstance(one, Bind | Exit))
