"""``array[index]``: which axes stay and how long they are."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract import slices
from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.values import Array, Static, Unknown, Value, as_array
from nnx_migrate.sizes.frames import Frame

if TYPE_CHECKING:
    from nnx_migrate.sizes.interpreter import Interpreter


def index_array(interpreter: Interpreter, array: Array, index: ast.expr, frame: Frame) -> Value:
    """Basic indexing of an array; what it does to the last axes."""
    array = interpreter.ranks.settled(array)
    parts = list(index.elts) if isinstance(index, ast.Tuple) else [index]
    has_dots = any(isinstance(p, ast.Constant) and p.value is Ellipsis for p in parts)
    consumed = sum(1 for p in parts if not _adds_axis(p) and not _is_dots(p))
    interpreter.prove(array, least=consumed)
    if array.rank is None:
        array = replace(array, least=max(array.least, consumed))
    if has_dots:
        after = parts[next(i for i, p in enumerate(parts) if _is_dots(p)) + 1 :]
        before = parts[: len(parts) - len(after) - 1]
        return _index_tail(interpreter, array, before, after, frame)
    if array.rank is None:
        return _index_open(interpreter, array, parts, consumed, frame)
    missing = array.rank - consumed
    if missing < 0:
        return Unknown("too many indices")
    fill = [ast.Slice() for _ in range(missing)]
    return _index_known(interpreter, array, [*parts, *fill], frame)


def _index_open(
    interpreter: Interpreter, array: Array, parts: list[ast.expr], consumed: int, frame: Frame
) -> Value:
    """Indexing an array of unknown rank: the axes behind the indexed ones stay."""
    while parts and _is_full(parts[-1:]):  # they change nothing
        parts, consumed = parts[:-1], consumed - 1
    if not parts:
        return array
    picks = [part for part in parts if not isinstance(part, ast.Slice) and not _adds_axis(part)]
    added = sum(1 for part in parts if _adds_axis(part))
    values = [interpreter.evaluate(part, frame) for part in picks]
    rest = interpreter.ranks.behind(array, consumed - 1, added - len(picks))
    if all(isinstance(value, Static) for value in values):
        return rest
    return replace(rest, grown=None)  # an index that is an array brings axes of its own


def _is_dots(part: ast.expr) -> bool:
    return isinstance(part, ast.Constant) and part.value is Ellipsis


def _adds_axis(part: ast.expr) -> bool:
    if isinstance(part, ast.Constant):
        return part.value is None
    return isinstance(part, ast.Attribute) and part.attr == "newaxis"


def _is_full(parts: list[ast.expr]) -> bool:
    return all(isinstance(p, ast.Slice) and not (p.lower or p.upper or p.step) for p in parts)


def _index_tail(
    interpreter: Interpreter,
    array: Array,
    before: list[ast.expr],
    after: list[ast.expr],
    frame: Frame,
) -> Value:
    consumed = sum(1 for p in after if not _adds_axis(p))
    kept = list(array.known(consumed)) if consumed else []
    tail: list[Expr | None] = []
    for part in after:
        if _adds_axis(part):
            tail.append(ex.literal(1))
            continue
        size = kept.pop(0)
        if isinstance(part, ast.Slice):
            tail.append(_sliced(interpreter, size, part, frame))
    removed = sum(1 for p in before if not isinstance(p, ast.Slice) and not _adds_axis(p))
    changed = sum(1 for p in before if not _adds_axis(p))
    more = sum(1 for p in before if _adds_axis(p)) - removed + len(tail) - consumed
    if array.rank is not None:
        untouched = max(array.rank - consumed - changed, 0)
    else:
        untouched = max(array.depth - consumed - changed, 0) if before else 1
    front = array.known(consumed + untouched)[:untouched]
    fancy = [interpreter.evaluate(p, frame) for p in before if not isinstance(p, ast.Slice)]
    found = array.of((*front, *tail), more)
    return found if all(isinstance(one, Static) for one in fancy) else Array(found.tail)


def _index_known(
    interpreter: Interpreter, array: Array, parts: list[ast.expr], frame: Frame
) -> Value:
    sizes = list(array.known(array.rank or 0))
    out: list[Expr | None] = []
    advanced: list[Array] = []
    for part in parts:
        if _adds_axis(part):
            out.append(ex.literal(1))
            continue
        size = sizes.pop(0)
        if isinstance(part, ast.Slice):
            out.append(_sliced(interpreter, size, part, frame))
            continue
        picked = as_array(interpreter.evaluate(part, frame))
        if picked is not None:
            if not advanced:
                if picked.rank is None:
                    rest = _index_known_tail(
                        interpreter, sizes, parts[parts.index(part) + 1 :], frame
                    )
                    sure = len(out) + len(rest)
                    return Array(rest or (None,), least=sure)
                out.extend(picked.known(picked.rank))
            advanced.append(picked)
    return Array(tuple(out), len(out))


def _index_known_tail(
    interpreter: Interpreter, sizes: list[Expr | None], parts: list[ast.expr], frame: Frame
) -> tuple[Expr | None, ...]:
    if not all(isinstance(part, ast.Slice) for part in parts):
        return ()
    pairs = zip(sizes, parts, strict=False)
    return tuple(
        _sliced(interpreter, size, p, frame) for size, p in pairs if isinstance(p, ast.Slice)
    )


def _sliced(
    interpreter: Interpreter, size: Expr | None, part: ast.Slice, frame: Frame
) -> Expr | None:
    bounds = [part.lower, part.upper, part.step]
    if not any(bounds):
        return size
    values = [interpreter.evaluate(one, frame) if one else None for one in bounds]
    low, high, step = (value.expr if isinstance(value, Static) else None for value in values)
    if part.step is not None or (part.lower and low is None) or (part.upper and high is None):
        return None if step is None or part.step else size
    return slices.sliced(size, low, high)
