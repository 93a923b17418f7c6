"""Methods of lists; those that change a list rebind the name or attribute that holds it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import replace

from nnx_migrate.abstract.joining import join
from nnx_migrate.abstract.lists import alike, joined_lists
from nnx_migrate.abstract.questions import constant_of
from nnx_migrate.abstract.values import (
    NONE,
    Choice,
    ConcatenatedList,
    ExtendedList,
    Library,
    Partial,
    Record,
    RepeatedItem,
    Sequence,
    Static,
    Unknown,
    Value,
)
from nnx_migrate.sizes.frames import Frame, Function
from nnx_migrate.source.changes import CHANGING, changed_names

_MUTABLE = (Sequence, RepeatedItem, ExtendedList, ConcatenatedList, Record, Choice)
# Methods of lists, tuples and dicts that change nothing; any other may.
READING = frozenset({"index", "count", "copy", "get", "keys", "items", "values"}) | {
    f"__{name}__" for name in ("getitem", "len", "iter", "contains", "eq", "add", "mul")
}

# Builtins that give a list or dict of their own: the text of such a value says what it was at first.
_MAKERS = frozenset({"bytearray", "dict", "list", "set", "sorted"})


def list_method(
    base: Sequence | RepeatedItem | ExtendedList | ConcatenatedList,
    name: str,
    args: tuple[Value, ...],
    node: ast.Call,
    frame: Frame,
) -> Value:
    """``base.name(*args)``; a list that nobody knows afterwards is Unknown."""
    match name:
        case "append" if len(args) == 1:
            hold(_extend(base, Sequence(args)), node, frame)
            return NONE
        case "extend" if len(args) == 1:
            hold(_extend(base, args[0]), node, frame)
            return NONE
        case "pop":
            return _pop(base, args, node, frame)
    if name not in READING:
        hold(Unknown(f"a list after {name}"), node, frame)
    return Unknown(f"sequence method {name}")


def extend_each(
    choice: Choice, name: str, args: tuple[Value, ...], node: ast.Call, frame: Frame
) -> bool:
    """Append to, or extend, one of several lists, whichever it is; whether that is what ``name`` does."""
    if name not in ("append", "extend") or len(args) != 1:
        return False
    lists = [one for one in choice.options if isinstance(one, Sequence)]
    if len(lists) < len(choice.options):
        return False
    added = Sequence(args) if name == "append" else args[0]
    options = tuple(_extend(one, added) for one in lists)
    hold(replace(choice, options=options), node, frame)
    return True


def hold(value: Value, node: ast.Call, frame: Frame) -> None:
    """Bind what holds the list of a method call to its new value."""
    holder = node.func.value if isinstance(node.func, ast.Attribute) else None
    if isinstance(holder, ast.Name):
        frame.change(holder.id, value)
    elif isinstance(holder, ast.Attribute) and frame.instance is not None:
        frame.instance.attributes[holder.attr] = value
    elif holder is not None:
        lose(holder, frame)


def lose(place: ast.expr, frame: Frame) -> None:
    """Something inside what a local holds is changed: nothing is known of the whole any more."""
    while isinstance(place, ast.Attribute | ast.Subscript):
        place = place.value
    value = frame.env.get(place.id) if isinstance(place, ast.Name) else None
    if isinstance(place, ast.Name) and isinstance(value, (*_MUTABLE, Static)):
        frame.change(place.id, Unknown("something inside it is changed"))
        for part in _inside(value):
            frame.forget(part)


def lose_arguments(values: Iterable[Value], frame: Frame) -> None:
    """What a function that nobody reads is given may be changed by it: ``heapq.heappush(widths, 3)``."""
    for value in values:
        for part in (value, *_inside(value)):
            if is_changeable(part) and frame.is_held(part):
                frame.forget(part)
        if isinstance(value, Function) and value.home is not None:
            for name in changed_names(value.node) & value.home.env.keys():
                value.home.change(name, Unknown("a function that is handed on may change it"))


def lose_bound(base: Value, name: str, frame: Frame) -> None:
    """A method that is not called where it is read may change its list at any later call: ``push = ws.append``."""
    if name in CHANGING and is_changeable(base):
        lose_arguments((base,), frame)


def lose_text(name: str, node: ast.Call, frame: Frame) -> None:
    """``ws.pop()`` of a list whose text is known: ``list(self.widths)`` is what it was before."""
    if name in CHANGING:
        hold(Unknown(f"a list after {name}"), node, frame)


def is_changeable(value: Value) -> bool:
    """Whether a value is, as far as is known, one that can be changed in place."""
    return isinstance(value, _MUTABLE) or (isinstance(value, Static) and _is_new(value.expr.node))


def _is_new(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id=name)):
            return name in _MAKERS
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in {"copy", "deepcopy", "tolist"}
        case ast.BinOp(left=one, right=other) | ast.IfExp(body=one, orelse=other):
            return _is_new(one) or _is_new(other)
    return isinstance(
        node, ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp
    )


def _inside(value: Value) -> Iterator[Value]:
    """Everything that a value holds and that can be changed in place."""
    parts: Iterable[Value] = ()
    match value:
        case Partial(target=Library(), args=args, kwargs=kwargs):
            parts = (*args, *kwargs.values())
        case Sequence(items=parts) | Choice(options=parts):
            pass
        case Record(entries=entries):
            parts = entries.values()
        case RepeatedItem(item=item):
            parts = (item,)
        case ConcatenatedList():
            parts = (alike(value).item,)
    for part in parts:
        if isinstance(part, _MUTABLE):
            yield part
            yield from _inside(part)


def _extend(
    base: Sequence | RepeatedItem | ExtendedList | ConcatenatedList, values: Value
) -> Value:
    if isinstance(base, Sequence) and isinstance(values, Sequence):
        return Sequence((*base.items, *values.items), is_list=True)
    return joined_lists(base, values)


def _any(items: tuple[Value, ...]) -> Value:
    result = items[0]
    for one in items[1:]:
        result = join(None, result, one)
    return result


def _pop(
    base: Sequence | RepeatedItem | ExtendedList | ConcatenatedList,
    args: tuple[Value, ...],
    node: ast.Call,
    frame: Frame,
) -> Value:
    match base:
        case ConcatenatedList():
            hold(Unknown("a list after pop"), node, frame)
            return Unknown("an item nobody knows")
        case RepeatedItem(item=item):
            hold(RepeatedItem(item), node, frame)
            return item
        case ExtendedList(first=first, rest=rest):
            item = _any((rest.item, *first))
            hold(RepeatedItem(item), node, frame)
            return item
        case Sequence(items=items):
            index = _index(args)
            if index is None or not -len(items) <= index < len(items):
                hold(Unknown("a list after pop"), node, frame)
                return Unknown("an item nobody knows")
            kept = list(items)
            item = kept.pop(index)
            hold(Sequence(tuple(kept), is_list=True), node, frame)
            return item


def _index(args: tuple[Value, ...]) -> int | None:
    number = constant_of(args[0]) if args else -1
    return number if isinstance(number, int) else None
