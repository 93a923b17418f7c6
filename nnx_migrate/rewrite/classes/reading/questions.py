"""What a method asks that Linen's ``init`` answers otherwise than later calls: flags, state, keys.

``__init__`` knows what ``init`` does. What a submodule is built *with* Linen computes anew in every call:
``nn.Dropout(0.5, deterministic=self.is_initializing())``, ``Scale(factor=self.count.value)``.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache

from nnx_migrate.rewrite.class_values import CLASS_LIFTS
from nnx_migrate.rewrite.classes.items import Item, receiver_of, self_call
from nnx_migrate.rewrite.classes.reading.evaluation import free_names
from nnx_migrate.rewrite.classes.reading.flow import Step, binds
from nnx_migrate.rewrite.classes.reading.taint import Replaced
from nnx_migrate.source.bindings import bindings_below, names_bound_below
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.growth import grown
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.walking import walk

ANSWER = "<answer>"  # stands for every answer; no name of Python's

# What has another answer in each call, or in ``init`` alone.
QUESTIONS = frozenset(
    {"get_variable", "has_variable", "is_initializing", "is_mutable_collection", "make_rng"}
    | {"variables"}
)
_TRAITS = frozenset({"dtype", "ndim", "shape", "size"})
_STATE = frozenset({"make_rng", "param", "variable"})


def answers_in(
    cls: ClassInfo, method: ast.FunctionDef, items: Mapping[int, Item], init_texts: Replaced
) -> Replaced:
    """What the method's questions read by the texts of ``init_texts``, and `ANSWER`.

    Args:
      items: what the method builds, by id of the call.
    """
    asking, receiver = _asking_members(cls), receiver_of(method)
    found: dict[int, frozenset[str]] = {}
    for node in walk(method):
        is_state = id(node) in items and items[id(node)].site is None
        if is_state or _asks(node, receiver, asking):
            found[id(node)] = init_texts.get(id(node), free_names(node)) | {ANSWER}
    return found


def traits_in(
    project: Project, scope: Scope, method: ast.FunctionDef, answer_texts: Replaced
) -> Replaced:
    """What every call has alike, and so reads no answer: shapes, and a lift's options.

    The axes of a lift may differ in ``init``, which the lifted class knows as Linen does.

    Args:
      answer_texts: what nodes with other texts, and questions, read.
    """
    found: dict[int, frozenset[str]] = {}
    for node in walk(method):
        match node:
            case ast.Attribute(attr=name) if name in _TRAITS:
                found[id(node)] = frozenset()
            case ast.Call(func=function, args=[lifted, *_]) if (
                project.resolve(function, scope) in CLASS_LIFTS
            ):
                found[id(node)] = free_names(lifted, answer_texts)
    return found


def changed_globals(method: ast.FunctionDef, steps: Sequence[Step]) -> frozenset[str]:
    """Names of around that the method changes the objects of, so that each call finds others."""
    changed = frozenset(name for one in binds(steps) for name in one.mutates)
    return changed - names_bound_below(method) - {receiver_of(method)}


def _asks(node: ast.AST, receiver: str, asking: Collection[str]) -> bool:
    """Whether a node is a question, also ``self.is_training()`` or ``self.mode`` where the member asks."""
    match node:
        case ast.Call(func=ast.Attribute(attr=name)) if name in QUESTIONS:
            return True
        case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner == receiver:
            return name in asking or name in QUESTIONS
    return False


@lru_cache(maxsize=256)  # every reading of a method asks
def _asking_members(cls: ClassInfo) -> frozenset[str]:
    """The methods and properties of a class that ask, themselves or through others, and its state's attributes."""
    methods = [(name, one) for owner in cls.mro for name, one in owner.methods.items()]
    return grown(
        (name for _, one in methods for name in _state_attributes(one)),
        lambda asking: (
            name
            for name, one in methods
            if any(_asks(node, receiver_of(one), asking) for node in walk(one))
        ),
    )


def _state_attributes(method: ast.FunctionDef) -> Iterator[str]:
    """Attributes that a method gives parameters, variables or keys."""
    receiver = receiver_of(method)
    for target, value in bindings_below(method):
        match target:
            case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner == receiver:
                if any(self_call(one, receiver) in _STATE for one in walk(value)):
                    yield name
