"""Attributes of ``setup`` that hold None, or something else, until or unless a submodule comes.

NNX does not let a module replace a static value (flax 0.12.8, nnx/pytreelib.py), so a None that a
submodule or a variable may follow is stored as data, and so is a submodule that follows a function::

    self.proj = identity
    if self.width:
        self.proj = nnx.data(nnx.Linear(in_features, self.width, rngs=rngs))

A Param is read as ``self.b[...]``; where it may be None it is read through ``nnm.read``.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Sequence

from nnx_migrate.edit.calls import call
from nnx_migrate.edit.expressions import Expression, string
from nnx_migrate.edit.rendering import Renderer, Replacement
from nnx_migrate.edit.statements import Statement, run
from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.reading.attributes import Attribute, Kind
from nnx_migrate.rewrite.classes.uses.references import Edits, Remarks
from nnx_migrate.source.walking import is_none_literal, walk

RULE = "setup"
_BUILT = (Kind.SUBMODULE, Kind.STRUCTURE, Kind.PARAM, Kind.VARIABLE, Kind.ALIAS)


def optional_attributes(attributes: Iterable[Attribute]) -> frozenset[str]:
    """Names that hold what is built in one assignment and something plain in another."""
    attributes = list(attributes)
    plain = {one.name for one in attributes if one.kind is Kind.PLAIN}
    return frozenset(plain & {one.name for one in attributes if one.kind in _BUILT})


def optional_edits(
    attributes: Iterable[Attribute], method: ast.FunctionDef, constructions: Edits, remarks: Remarks
) -> tuple[Edits, frozenset[int]]:
    """Edits of such attributes, and the ids of the plain values among them.

    Args:
      constructions: what becomes of the calls that build.

    Raises:
      Refused: a variable or several submodules replace another value than None, or what is built is stored
        under another name.
    """
    attributes = list(attributes)
    names = optional_attributes(attributes)
    edits: Edits = {}
    values: set[int] = set()
    for one in attributes:
        if one.name not in names or one.kind is not Kind.PLAIN:
            continue
        others = [other for other in attributes if other.name == one.name and other.kind in _BUILT]
        replacing = [two for two in others if not _exclusive(method, one.statement, two.statement)]
        _check(one, others, _can_follow(one, replacing, method, constructions))
        values.add(id(one.value))
        if any(other.kind is Kind.STRUCTURE for other in others):
            remarks.imports.add("nnm")
            edits[id(one.statement)] = _without_statement(one)
        elif is_none_literal(one.value):
            remarks.imports.add("nnx")
            edits[id(one.value)] = call("nnx.data", "None")
        else:
            remarks.imports.add("nnx")
            edits |= {id(two.value): _as_data(constructions[id(two.value)]) for two in replacing}
    return edits, frozenset(values)


def inherited_edits(
    attributes: Iterable[Attribute], plain: Collection[str], constructions: Edits, remarks: Remarks
) -> Edits:
    """Edits of submodules that follow what the ``setup`` of a base gave their attribute.

    Args:
      plain: the attributes to which a base gave something that it did not build.

    Raises:
      Refused: it is more than the call of a submodule that follows.
    """
    edits: Edits = {}
    for one in attributes:
        if one.name not in plain or one.kind not in _BUILT:
            continue
        is_plain = _is_built(one, constructions) and one.storage_name in (None, one.name)
        if one.kind is not Kind.SUBMODULE or not is_plain:
            raise ClassRefused(
                one.statement,
                f"self.{one.name} holds something else after the setup of a base",
                "use one attribute for each",
                RULE,
            )
        remarks.imports.add("nnx")
        edits[id(one.value)] = _as_data(constructions[id(one.value)])
    return edits


def _as_data(construction: Replacement) -> Callable[[Renderer], Expression]:
    """The construction of a submodule that follows a static value."""
    return lambda renderer: call("nnx.data", renderer.replacement(construction))


def _can_follow(
    one: Attribute, others: Iterable[Attribute], method: ast.FunctionDef, constructions: Edits
) -> bool:
    """Whether submodules that replace a value all come after it, each by a call that builds it."""
    return all(
        one.statement in method.body
        and one.statement.lineno < two.statement.lineno
        and _is_built(two, constructions)
        for two in others
    )


def _is_built(one: Attribute, constructions: Edits) -> bool:
    """Whether the value is a call that builds, and nothing around it."""
    return isinstance(one.value, ast.Call) and id(one.value) in constructions


def _without_statement(one: Attribute) -> Callable[[Renderer], Sequence[Statement]]:
    def make(renderer: Renderer) -> Sequence[Statement]:
        value = renderer.render(one.value)
        return [run(call("nnm.set_submodules", "self", string(one.name), value))]

    return make


def _check(one: Attribute, others: Collection[Attribute], can_follow: bool) -> None:
    alone = isinstance(one.statement, ast.Assign) and one.statement.targets == [one.target]
    renamed = any(other.storage_name not in (None, one.name) for other in others)
    aliased = any(other.kind is Kind.ALIAS for other in others)
    listed = any(other.kind is Kind.STRUCTURE for other in others)
    holds_variable = any(other.kind in (Kind.PARAM, Kind.VARIABLE) for other in others)
    plain = not is_none_literal(one.value)
    if (
        renamed
        or aliased
        or (listed and not alone)
        or (plain and (holds_variable or listed or not can_follow))
    ):
        raise ClassRefused(
            one.statement,
            f"self.{one.name} holds what is built in one place and something else here",
            "use one attribute for each, or None for what is left out",
            RULE,
        )


def _exclusive(method: ast.FunctionDef, one: ast.stmt, two: ast.stmt) -> bool:
    """Whether the statements stand in different branches of one ``if``."""
    for node in walk(method):
        if isinstance(node, ast.If):
            body = {id(child) for part in node.body for child in walk(part)}
            orelse = {id(child) for part in node.orelse for child in walk(part)}
            if (id(one) in body and id(two) in orelse) or (id(two) in body and id(one) in orelse):
                return True
    return False
