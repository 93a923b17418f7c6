"""Methods decorated with ``nn.scan`` or ``nn.vmap``: the body sees inputs without the lifted axis.

A class is analysed as its body sees the inputs. Whoever constructs it knows the inputs of the decorated
method, so that the last size of a slice may be another axis of what the caller passes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from nnx_migrate.abstract.joining import as_array
from nnx_migrate.abstract.questions import constant, is_none
from nnx_migrate.abstract.values import Array, Lift, Record, Sequence, Value
from nnx_migrate.sizes.frames import Frame
from nnx_migrate.sizes.lifts import is_whole, number_of
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.names import positional_names

if TYPE_CHECKING:
    from nnx_migrate.sizes.interpreter import Interpreter

_LIFTS = {"flax.linen.scan": True, "flax.linen.vmap": False}  # whether the call carries


class UnplacedAxis(Exception):
    """Which axis of the caller's argument a size is, is not known; the message says why."""


def lifts_of(interpreter: Interpreter, cls: ClassInfo, method: ast.FunctionDef) -> tuple[Lift, ...]:
    """The lifted transformations that decorate a method, outermost first."""
    return tuple(_lifts(interpreter, cls, method)) if method.decorator_list else ()


def _lifts(interpreter: Interpreter, cls: ClassInfo, method: ast.FunctionDef) -> Iterator[Lift]:
    project, frame = interpreter.project, Frame(cls.scope, {})
    for decorator in method.decorator_list:
        values: dict[str, Value] = {}
        target: ast.expr = decorator
        if isinstance(decorator, ast.Call):
            if project.resolve(decorator.func, cls.scope) != "functools.partial":
                continue
            target = decorator.args[0] if decorator.args else decorator
            named = ((one.arg, one.value) for one in decorator.keywords)
            values = {name: interpreter.evaluate(value, frame) for name, value in named if name}
        carries = _LIFTS.get(project.resolve(target, cls.scope) or "")
        if carries is not None:
            first = constant(0)
            axes = values.get("in_axes", first), values.get("out_axes", first)
            shares = shares_all(values.get("variable_axes"))
            call = decorator if isinstance(decorator, ast.Call) and not shares else None
            yield Lift(*axes, carries, call)


def shares_all(axes: Value | None) -> bool:
    """Whether ``variable_axes`` surely stack nothing."""
    if axes is None:
        return True
    return isinstance(axes, Record) and all(is_none(one) is True for one in axes.entries.values())


def callers_axis(interpreter: Interpreter, method: str, path: str, axis: int | None) -> int | None:
    """The axis, in what callers pass, of axis ``axis`` of a method's argument as its body sees it.

    Args:
      path: the argument, maybe followed by attributes and indices.
      axis: from the front or the end; None for the whole shape.

    Raises:
      UnplacedAxis: the decorators do not say.
    """
    found = interpreter.root.info.find(method)
    lifts = lifts_of(interpreter, *found) if found is not None else ()
    if found is None or not lifts:
        return axis
    spec = found[1].args
    names = positional_names(spec)[1:]
    head = re.findall(r"\w+", path)[0]
    if head not in names:
        return axis
    rank = interpreter.ranks.with_rank(Array(path=path))
    for lift in reversed(lifts):
        position, count = names.index(head) - int(lift.carries), len(names) - int(lift.carries)
        if position >= 0:
            axis = _outside(lift.in_axes, position, count, axis, rank)
    return axis


def _outside(axes: Value, position: int, count: int, axis: int | None, body: Array) -> int | None:
    """One lift further out."""
    if isinstance(axes, Sequence) and len(axes.items) == count:
        axes = axes.items[position]
    if is_whole(axes):
        return axis
    lifted = number_of(axes)
    if lifted is None:
        raise UnplacedAxis("which axis of it the decorator of the method takes away is not known")
    if axis is None or (axis >= 0 and lifted < 0):
        raise UnplacedAxis("the decorator of the method takes an axis away")
    if axis >= 0:
        return axis if axis < lifted else axis + 1
    if lifted < 0:
        return axis if -axis < -lifted else axis - 1
    if body.rank is None and axis < -1 and lifted > 0:
        raise UnplacedAxis("the decorator of the method takes an axis away")
    if body.rank is None and body.depth + axis < lifted and lifted > 1:
        raise UnplacedAxis(
            f"whether axis {lifted}, which the decorator takes away, is its last one"
        )
    # Axis 1 is that of steps behind the batch, not the last one: callers show it (takes_last).
    return axis - 1 if body.rank is not None and body.rank + axis < lifted else axis


def takes_last(lifts: tuple[Lift, ...], args: tuple[Value, ...]) -> bool:
    """Whether a call passes an array whose last axis, counted from the front, is taken away."""
    for lift in lifts[:1]:
        arguments = args[int(lift.carries) :]
        axes = lift.in_axes
        each = axes.items if isinstance(axes, Sequence) else [axes] * len(arguments)
        for value, axis in zip(arguments, each, strict=False):
            array, lifted = as_array(value), number_of(axis)
            if array is not None and lifted is not None and 0 < lifted + 1 == array.rank != 1:
                return True
    return False
