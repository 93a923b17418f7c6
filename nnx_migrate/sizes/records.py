"""Methods of dicts, named tuples and dataclasses with known entries."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.questions import constant_of
from nnx_migrate.abstract.values import NONE, SPREAD, Record, Sequence, Static, Unknown, Value
from nnx_migrate.sizes.frames import Frame
from nnx_migrate.sizes.lists import READING, hold

if TYPE_CHECKING:
    from nnx_migrate.sizes.interpreter import Interpreter

_REPLACING = ("_replace", "replace")
_CHANGING = ("pop", "popitem", "setdefault", "clear")


def record_method(
    interpreter: Interpreter,
    base: Record,
    name: str,
    args: tuple[Value, ...],
    kwargs: dict[str, Value],
    node: ast.Call,
    frame: Frame,
) -> Value:
    """``base.name(*args, **kwargs)``; what changes a dict binds its holder anew."""
    if name in _REPLACING:
        return Record({**base.entries, **kwargs}, base.default)
    if name == "copy":
        return replace(base, entries={**base.entries, **kwargs})
    if name in ("get", "pop") and args and isinstance(args[0], Static):
        return _entry(base, name, args, node, frame)
    if name in ("items", "values", "keys") and SPREAD in base.entries:
        return Unknown("the entries of a dict that is not known whole")
    if name == "items":
        pairs = base.entries.items()
        return Sequence(tuple(Sequence((Static(ex.literal(k)), v)) for k, v in pairs))
    if name == "values":
        return Sequence(tuple(base.entries.values()))
    if name == "update":
        hold(_update(base, args, kwargs), node, frame)
        return NONE
    if name in base.entries and name not in _CHANGING:
        return interpreter.call_value(base.entries[name], args, kwargs, node)
    if name not in READING:
        hold(Unknown(f"a dict after {name}"), node, frame)
    return Unknown(f"dict method {name}")


def _entry(base: Record, name: str, args: tuple[Value, ...], node: ast.Call, frame: Frame) -> Value:
    """``base.get(key)`` or ``base.pop(key)``."""
    is_known = isinstance(args[0], Static) and args[0].expr.is_constant
    key = str(constant_of(args[0])) if is_known else None
    if name == "pop":
        rest = {one: value for one, value in base.entries.items() if one != key}
        hold(replace(base, entries=rest) if key is not None else Unknown(), node, frame)
    if key is None:
        return Unknown("the entry of a key that nobody knows", made_by=ast.unparse(node))
    if key in base.entries:
        return base.entries[key]
    if SPREAD in base.entries:
        return Unknown(f"the entry {key!r} of a dict that is not known whole")
    return args[1] if len(args) > 1 else NONE if name == "get" else Unknown()


def _update(base: Record, args: tuple[Value, ...], kwargs: dict[str, Value]) -> Value:
    """``base`` after ``base.update(*args, **kwargs)``."""
    if any(not isinstance(one, Record) for one in args):
        return Unknown("a dict updated with what nobody knows")
    entries = {
        key: value for one in args if isinstance(one, Record) for key, value in one.entries.items()
    }
    return replace(base, entries={**base.entries, **entries, **kwargs})
