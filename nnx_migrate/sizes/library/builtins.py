"""Python's builtins."""

from __future__ import annotations

import ast
from dataclasses import replace

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.values import (
    SPREAD,
    STARRED,
    Array,
    ExtendedList,
    Instance,
    Library,
    Record,
    RepeatedItem,
    Sequence,
    Static,
    Unknown,
    Value,
)
from nnx_migrate.sizes.iteration import Backwards, EnumerateValue, Range, ZipValue
from nnx_migrate.sizes.lengths import note_length
from nnx_migrate.sizes.library.fallback import static_call, unknown_result
from nnx_migrate.sizes.library_call import LibraryCall, Summaries


def _range(call: LibraryCall) -> Value:
    if STARRED in call.args:
        return Range(None, None, counts=False, from_zero=False, arguments=None)
    stop = call.args[-1] if len(call.args) < 3 else None
    last = ex.binary(stop.expr, ast.Sub(), ex.literal(1)) if isinstance(stop, Static) else None
    count = len(call.args)
    from_zero = count == 1 or (count > 1 and call.args[0] == Static(ex.literal(0)))
    end = stop.expr if isinstance(stop, Static) else None
    written = tuple(one.expr for one in call.args if isinstance(one, Static))
    arguments = written if len(written) == count else None
    others = (one for one in call.args if not isinstance(one, Static))
    is_open = not all(isinstance(one, Unknown) and one.is_size for one in others)
    return Range(last, end, count < 3, from_zero, arguments, is_open)


def _enumerate(call: LibraryCall) -> Value:
    start = (*call.args[1:], *call.kwargs.values(), Static(ex.literal(0)))[0]
    if not call.args or not isinstance(start, Static):
        return Unknown("enumerate with a start")
    return EnumerateValue(call.args[0], start.expr)


def _length(call: LibraryCall) -> Value:
    value = call.args[0] if call.args else Unknown()
    note_length(call.interpreter, call.node, value, call.frame)
    if isinstance(value, Sequence):
        return Static(ex.literal(len(value.items)))
    if isinstance(value, RepeatedItem):
        return Static(value.length) if value.length else Unknown("length unknown")
    found = static_call(call)
    is_unknown = isinstance(found, Unknown) and isinstance(value, Array)
    return Unknown("length unknown", is_size=True) if is_unknown else found


def _same_first(call: LibraryCall) -> Value:
    value = call.args[0] if call.args else Sequence((), is_list=True)
    if isinstance(value, Sequence):
        return Sequence(value.items, is_list=call.symbol.endswith("list"))
    if isinstance(value, ExtendedList | RepeatedItem | Record):
        return replace(value)  # a copy: what is done to one is not done to the other
    return value if isinstance(value, Array | EnumerateValue | ZipValue) else static_call(call)


def _reverse(call: LibraryCall) -> Value:
    value = call.args[0] if call.args else Unknown()
    if isinstance(value, Sequence):
        return Sequence(tuple(reversed(value.items)))
    if isinstance(value, RepeatedItem):
        return replace(value, is_reordered=True)
    if isinstance(value, Range | EnumerateValue | ZipValue):
        return Backwards(value)
    return static_call(call)


def _dict(call: LibraryCall) -> Value:
    base: Value = call.args[0] if call.args else Record({})
    known = base.entries if isinstance(base, Record) else {SPREAD: Unknown("some dict")}
    return Record({**known, **call.kwargs})


def _getattr(call: LibraryCall) -> Value:
    base, name = call.args[0], call.args[1] if len(call.args) > 1 else Unknown()
    if isinstance(name, Static) and name.expr.is_constant:
        if isinstance(base, Static) and len(call.args) > 2:
            return static_call(call)
        return call.interpreter.attribute(base, str(name.expr.constant), call.frame)
    if (
        isinstance(base, Instance)
        and isinstance(name, Static)
        and isinstance(name.expr.node, ast.JoinedStr)
    ):
        return _named_attribute(base, name.expr.node)
    return Unknown("getattr of an unknown name")


def _named_attribute(instance: Instance, template: ast.JoinedStr) -> Value:
    """``getattr(self, f"layer_{i}")``: what ``setattr`` with the same template stored."""
    return instance.attributes.get(_template(template), Unknown("no such attribute"))


def _template(node: ast.JoinedStr) -> str:
    parts = [p.value if isinstance(p, ast.Constant) else "*" for p in node.values]
    return "".join(str(part) for part in parts)


def _setattr(call: LibraryCall) -> Value:
    if (
        len(call.args) == 3
        and isinstance(call.args[0], Instance)
        and isinstance(call.args[1], Static)
    ):
        name = call.args[1].expr
        text = _template(name.node) if isinstance(name.node, ast.JoinedStr) else None
        text = str(name.constant) if name.is_constant else text
        if text:
            call.args[0].attributes[text] = call.args[2]
    return Static(ex.literal(None))


def _super(call: LibraryCall) -> Value:
    return Library("<super>")


BUILTINS: Summaries = {
    "range": _range,
    "enumerate": _enumerate,
    "zip": lambda call: ZipValue(call.args),
    "len": _length,
    "list": _same_first,
    "tuple": _same_first,
    "reversed": _reverse,
    "dict": _dict,
    "getattr": _getattr,
    "setattr": _setattr,
    "super": _super,
    "isinstance": unknown_result,
    "callable": unknown_result,
    "hasattr": unknown_result,
    "print": lambda call: Static(ex.literal(None)),
}
