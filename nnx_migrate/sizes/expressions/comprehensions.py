"""Comprehensions, and what a loop header runs over."""

from __future__ import annotations

import ast
import functools
from contextlib import ExitStack
from typing import TYPE_CHECKING

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.joining import join
from nnx_migrate.abstract.questions import held_modules
from nnx_migrate.abstract.values import (
    ExtendedList,
    Record,
    RepeatedDict,
    RepeatedItem,
    Sequence,
    Static,
    Unknown,
    Value,
)
from nnx_migrate.sizes.expressions.list_parts import leave_filter
from nnx_migrate.sizes.expressions.subscripts import key_text
from nnx_migrate.sizes.frames import Frame, Loop
from nnx_migrate.source.bindings import target_names, variables_of
from nnx_migrate.source.walking import Comprehension, each

if TYPE_CHECKING:
    from nnx_migrate.sizes.interpreter import Interpreter


def iterate(
    interpreter: Interpreter, node: ast.expr, target: ast.expr, frame: Frame, loop_node: ast.AST
) -> list[Value] | tuple[Value, Loop]:
    """What a loop runs over: items one by one, or one abstract item for all iterations."""
    from nnx_migrate.sizes.iteration import iteration_of
    from nnx_migrate.sizes.lengths import note_lengths
    from nnx_migrate.sizes.rounds import note_rounds

    value = interpreter.evaluate(node, frame)
    note_lengths(interpreter, node, value, frame)
    found = iteration_of(interpreter, value, target, loop_node, foreign=not frame.own)
    if not isinstance(found, list):
        own = interpreter.root.info.find("__call__")
        note_rounds(found[1], value, own[1] if own is not None else None)
    return found


def read_comprehension(
    interpreter: Interpreter,
    node: ast.ListComp | ast.GeneratorExp | ast.SetComp,
    frame: Frame,
) -> Value:
    """Items one by one when they are known, else one item for all."""
    from nnx_migrate.sizes.assignment import assign

    generator = node.generators[0]
    named = _named(interpreter, node, frame)
    if len(node.generators) != 1:
        frame.env.update(named)
        return Unknown("a nested comprehension")
    iteration = iterate(interpreter, generator.iter, generator.target, frame, node)
    saved = dict(frame.env)
    try:
        if isinstance(iteration, list):
            items = []
            for item in iteration:
                assign(interpreter, generator.target, item, frame)
                items.append(_item(interpreter, node, generator.ifs, frame))
            return _filter_items(items, node)
        value, loop = iteration
        interpreter.loops.append(loop)
        try:
            assign(interpreter, generator.target, value, frame)
            _, item = _item(interpreter, node, generator.ifs, frame)
        finally:
            interpreter.loops.pop()
        length = None if generator.ifs else loop.rounds
        return RepeatedItem(item, length, node, dict(loop.last))
    finally:
        _leave(frame, node, {**saved, **named})


def _named(
    interpreter: Interpreter,
    node: Comprehension,
    frame: Frame,
) -> dict[str, Value]:
    """Names that the rounds of a comprehension bind and leave behind: ``[y := layer(y) for layer in layers]``.

    What one round hands to the next so is not followed.
    """
    every = each(node, ast.NamedExpr)
    for one in every:
        if any(read.id == one.target.id for read in each(one.value, ast.Name)):
            place = node if frame.own else interpreter.root.info.node
            reason = f"a comprehension changes {one.target.id!r} from round to round"
            interpreter.refuse(place, reason)
    return {one.target.id: Unknown("bound in a comprehension") for one in every}


def read_dict_comprehension(interpreter: Interpreter, node: ast.DictComp, frame: Frame) -> Value:
    """A dict whose keys are known; where a loop makes its values they are alike.

    ``{k: nn.Dense(2) for k in ("a", "b")}``, ``{k: head(x) for k, head in self.heads.items()}``.
    """
    generator = node.generators[0]
    if len(node.generators) != 1 or generator.ifs:
        return Unknown("a dict of a nested or filtered comprehension")
    saved, named = dict(frame.env), _named(interpreter, node, frame)
    try:
        return _entries(interpreter, node, frame)
    finally:
        _leave(frame, node, {**saved, **named})


def _leave(frame: Frame, node: Comprehension, around: dict[str, Value]) -> None:
    """After the rounds their variables are gone, and what they changed around them is unknown."""
    own = variables_of(node)
    inside, frame.env = frame.env, around
    for name, old in [*around.items()]:
        if name not in own and inside.get(name) is not old:
            frame.change(name, Unknown("a comprehension changes it"))


def _entries(interpreter: Interpreter, node: ast.DictComp, frame: Frame) -> Value:
    from nnx_migrate.sizes.assignment import assign

    generator = node.generators[0]
    iteration = iterate(interpreter, generator.iter, generator.target, frame, node)
    keys = _keys(interpreter, node, frame)
    if isinstance(iteration, list):
        values = []
        for item in iteration:
            assign(interpreter, generator.target, item, frame)
            values.append(interpreter.evaluate(node.value, frame))
    else:
        value, loop = iteration
        interpreter.loops.append(loop)
        try:
            assign(interpreter, generator.target, value, frame)
            one = interpreter.evaluate(node.value, frame)
        finally:
            interpreter.loops.pop()
        values = [one] * len(keys)
        if any(True for _ in held_modules(one)):
            length = ex.literal(len(keys)) if keys else loop.rounds
            return RepeatedDict(RepeatedItem(one, length, node, dict(loop.last)))
        if _follows(node.value, frozenset(target_names(generator.target))):
            return Unknown("a dict of values that differ")
    if not keys or len(values) != len(set(keys)):
        return Unknown("a dict whose keys are not known")
    return Record(dict(zip(keys, values, strict=True)))


def _keys(interpreter: Interpreter, node: ast.DictComp, frame: Frame) -> list[str]:
    """The keys, one by one; [] where one is not known."""
    from nnx_migrate.sizes.assignment import assign
    from nnx_migrate.sizes.iteration import items_of

    generator = node.generators[0]
    found: list[str] = []
    for item in items_of(interpreter.evaluate(generator.iter, frame)) or ():
        assign(interpreter, generator.target, item, frame)
        key = interpreter.evaluate(node.key, frame)
        text = key_text(key.expr.node) if isinstance(key, Static) else None
        if text is None:
            return []
        found.append(text)
    return found


def _follows(value: ast.expr, names: frozenset[str]) -> bool:
    """Whether a value reads the variables of its loop, but for a name: ``nn.Dense(2, name=f"head_{k}")``."""
    for node in ast.iter_child_nodes(value):
        match node:
            case ast.keyword(arg="name"):
                continue
            case ast.Name(id=name) if name in names:
                return True
            case ast.expr() | ast.keyword() if _follows(node, names):  # type: ignore[arg-type]
                return True
    return isinstance(value, ast.Name) and value.id in names


def _item(
    interpreter: Interpreter,
    node: ast.ListComp | ast.GeneratorExp | ast.SetComp,
    tests: list[ast.expr],
    frame: Frame,
) -> tuple[bool | None, Value]:
    """Whether the bound item passes the filters (None: nobody knows), and its value if it does."""
    from nnx_migrate.sizes.expressions.conditions import truth
    from nnx_migrate.sizes.narrowing import assume

    answers = [truth(interpreter, test, frame) for test in tests]
    if False in answers:
        return False, Unknown("an item that is left out")
    with ExitStack() as filters:
        for answer, test in zip(answers, tests, strict=True):
            assume(interpreter.project, frame, test, holds=True)
            if not isinstance(answer, bool):
                filters.enter_context(interpreter.under(answer))
        value = interpreter.evaluate(node.elt, frame)
    if set(answers) <= {True}:
        return True, value
    leave_filter(interpreter, node, value)
    return None, value


def _filter_items(items: list[tuple[bool | None, Value]], node: ast.expr) -> Value:
    """The items that are certainly there, then what may follow from the first doubtful one on."""
    possible = [(condition, value) for condition, value in items if condition is not False]
    doubtful = next((i for i, (condition, _) in enumerate(possible) if condition is None), None)
    values = tuple(value for _, value in possible)
    if doubtful is None:
        return Sequence(values, is_list=True)
    rest = functools.reduce(functools.partial(join, None), values[doubtful:])
    repeated = RepeatedItem(rest, None, node)
    return ExtendedList(values[:doubtful], repeated) if doubtful else repeated
