"""Keys that a compact method draws in its call before it makes parameters.

Linen counts the draws of a scope, those of ``make_rng`` and those of ``param`` alike (flax 0.12.8,
core/scope.py): a parameter starts from another key behind ``self.make_rng("noise")`` where ``init`` was
given no key of that name and takes the one of ``params``. So ``__init__`` draws as often.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence

from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.items import Item, ItemKind, self_call
from nnx_migrate.rewrite.classes.reading.evaluation import COMPREHENSIONS
from nnx_migrate.rewrite.classes.reading.flow import Bind, Branch, Build, Loop, Step, builds
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.walking import each, is_self, walk

# Where a draw may not happen, or more than once.
_PERHAPS = (ast.Lambda, ast.IfExp, ast.BoolOp, *COMPREHENSIONS)
_CONSTANT = frozenset(
    f"{package}.{name}"
    for package in ("flax.linen.initializers", "jax.nn.initializers")
    for name in ("zeros", "ones", "zeros_init", "ones_init", "constant")
)
_PERHAPS_DRAWN = (
    "a key may be drawn here before parameters are made, which then start from other keys",
    "draw keys behind the parameters, or in every call",
    "make_rng",
)
_SHOWN = (
    "init_with_output is used, and shows what is computed from a key that is drawn before parameters",
    "call init, and then apply",
    "make_rng",
)
_Place = tuple[int, int]


def check_unseen_draws(
    project: Project,
    cls: ClassInfo,
    scope: Scope,
    method: ast.FunctionDef,
    init_steps: Sequence[Step],
) -> None:
    """Refuse draws that ``__init__`` does not count: those of other methods, or before such parameters.

    Raises:
      Refused: at the first one that stands before a parameter.
    """
    items, making = builds(init_steps), _methods_that_call(cls, "param")
    own = [_place(one.call) for one in items if _starts_from_key(project, scope, one)]
    helpers = [
        _end(one.call) for one in items if one.is_in_scope and self_call(one.call, "self") in making
    ]
    drawing = _methods_that_call(cls, "make_rng")
    for node in each(method, ast.Attribute):
        makes = helpers if node.attr == "make_rng" else [*own, *helpers]
        draws = is_self(node.value) and node.attr in {"make_rng", *drawing}
        if draws and any(_place(node) < one for one in makes):
            raise ClassRefused(node, *_PERHAPS_DRAWN)


def _methods_that_call(cls: ClassInfo, word: str) -> frozenset[str]:
    """The methods of a class that call a method of Linen's on it, also through each other."""
    mentions = {
        name: {one.attr for one in each(method, ast.Attribute) if is_self(one.value)}
        for owner in cls.mro
        for name, method in owner.methods.items()
    }
    found = {word}
    while more := {name for name, said in mentions.items() if said & found} - found:
        found |= more
    return frozenset(found - {word})


def draws_before(
    project: Project,
    scope: Scope,
    method: ast.FunctionDef,
    init_steps: Sequence[Step],
    streams: Mapping[int, str],
    init_draws: Collection[int],
) -> Mapping[int, tuple[str, ...]]:
    """By id of a kept step: the names of the streams that the call surely draws from before it.

    Args:
      streams: names of the streams that calls draw from, by id of the call.
      init_draws: ids of those that only variables start from.

    Raises:
      Refused: one that the call may leave out, or repeat, stands before a parameter; or the key itself
        is seen.
    """
    makes = [
        _place(one.call)
        for one in builds(init_steps)
        if _starts_from_key(project, scope, one) or _draws_itself(one, streams, init_draws)
    ]
    there = {id(node) for step in init_steps for one in _init_nodes(step) for node in walk(one)} | {
        *init_draws
    }
    certain = {id(node) for statement in method.body for node in _certain(statement)}
    found: dict[int, list[str]] = {}
    for node in sorted(each(method, ast.Call), key=_place):
        name = streams.get(id(node))
        if name is None or id(node) in there or not any(_place(node) < one for one in makes):
            continue
        if id(node) not in certain:
            raise ClassRefused(node, *_PERHAPS_DRAWN)
        if any("init_with_output" in module.by_word for module in project.modules.values()):
            raise ClassRefused(node, *_SHOWN)
        step = next(one for one in init_steps if _place(node) < _place(_node(one)))
        found.setdefault(id(step), []).append(name)
    return {key: tuple(names) for key, names in found.items()}


def _init_nodes(step: Step) -> Iterator[ast.AST]:
    """What of a kept step ``__init__`` evaluates, too."""
    match step:
        case Build(item=item):
            yield item.call
        case Bind(node=node):
            yield node
        case Branch(test=test, body=body, orelse=orelse):
            yield test
            for one in (*body, *orelse):
                yield from _init_nodes(one)
        case Loop(iterable=iterable, body=body):
            yield iterable
            for one in body:
                yield from _init_nodes(one)


def _certain(statement: ast.stmt) -> Iterator[ast.Call]:
    """The calls that run whenever a statement of the method itself does, in order."""
    if isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Expr):
        yield from _calls(statement)


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    if isinstance(node, _PERHAPS):
        return
    for one in ast.iter_child_nodes(node):
        yield from _calls(one)
    if isinstance(node, ast.Call):
        yield node


def _starts_from_key(project: Project, scope: Scope, item: Item) -> bool:
    """Whether the item is a parameter of the module itself that its key decides."""
    if item.kind is not ItemKind.PARAM or item.init is None:
        return False
    maker = item.init.func if isinstance(item.init, ast.Call) else item.init
    return project.resolve(maker, scope) not in _CONSTANT


def _draws_itself(item: Item, streams: Mapping[int, str], init_draws: Collection[int]) -> bool:
    """Whether the item is a variable that may start from a key of the module."""
    inside = any(id(one) in streams for one in walk(item.call))
    return item.kind is ItemKind.VARIABLE and (inside or bool(init_draws))


def _node(step: Step) -> ast.AST:
    return step.item.call if isinstance(step, Build) else step.node


def _end(node: ast.expr) -> _Place:
    return node.end_lineno or 0, node.end_col_offset or 0


def _place(node: ast.AST) -> _Place:
    return node.lineno, node.col_offset  # type: ignore[attr-defined]
