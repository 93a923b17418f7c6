"""Linen's functional methods on the module itself: ``self.apply``, ``self.init`` and their kin.

Training helpers of a class (``create_train_state``) use them from outside of any call. ``self.apply``
has an exact counterpart, ``nnm.apply``. ``self.init`` makes variables from a key alone, and an NNX
module cannot be built without its constructor's arguments: such a call is left as it is, a stale call
site that raises AttributeError when it is reached, and is reported with its place.

In a method that ``__call__`` or ``setup`` reach these calls stay refused with the whole class.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from nnx_migrate.edit.calls import call as made_call
from nnx_migrate.rewrite.classes.items import own_nodes, receiver_of
from nnx_migrate.rewrite.classes.uses.api_calls import carried_call
from nnx_migrate.rewrite.classes.uses.references import Edits, Remarks
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.walking import walk

_STALE = {
    "init": "build a module with new rngs instead and take nnm.variables_of(module)",
    "init_with_output": "build a module with new rngs instead and call it",
    "lazy_init": "build a module with new rngs instead",
    "tabulate": "use nnx.tabulate",
    "bind": "use nnm.bind(module, variables)",
    "unbind": "use nnx.split",
}
_NOT_CARRIED = frozenset({"capture_intermediates"})


@dataclass
class Functional:
    """Functional calls of one class.

    Attributes:
      edits: calls that are rewritten.
      handled: ids of the ``self.<method>`` expressions that are spoken for.
      stale: call sites that stay, and what to do about them.
    """

    edits: Edits = field(default_factory=dict)
    handled: set[int] = field(default_factory=set)
    stale: list[tuple[ast.AST, str]] = field(default_factory=list)


def functional_calls(
    cls: ClassInfo, compact: ast.FunctionDef | None, own: frozenset[str], remarks: Remarks
) -> Functional:
    """Functional calls in the methods that no forward pass reaches.

    Args:
      own: names that the class defines itself, which shadow Linen's.
    """
    found = Functional()
    reached = _reached(cls, compact)
    for name, method in cls.methods.items():
        if name not in reached:
            _in_method(method, own, remarks, found)
    return found


def _in_method(
    method: ast.FunctionDef, own: frozenset[str], remarks: Remarks, found: Functional
) -> None:
    receiver = receiver_of(method)
    calls = {id(node.func): node for node in own_nodes(method) if isinstance(node, ast.Call)}
    for node in own_nodes(method):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attr, ctx=ast.Load()):
                if name != receiver or attr in own:
                    continue
            case _:
                continue
        call = calls.get(id(node))
        if attr == "apply" and (call is None or _is_plain(call)):
            remarks.imports.add("nnm")
            place = call or node
            found.edits[id(place)] = (
                carried_call("apply", call) if call else made_call("nnm.apply_fn", receiver)
            )
            found.handled.add(id(node))
        elif attr in _STALE:
            message = f"self.{attr} stays and raises AttributeError; {_STALE[attr]}"
            found.stale.append((call or node, message))
            found.handled.add(id(node))


def _is_plain(call: ast.Call) -> bool:
    """Whether ``nnm.apply`` takes the arguments as they stand."""
    starred = any(isinstance(one, ast.Starred) for one in call.args[:1])
    named = {one.arg for one in call.keywords}
    return bool(call.args) and not starred and None not in named and not named & _NOT_CARRIED


def _reached(cls: ClassInfo, compact: ast.FunctionDef | None) -> frozenset[str]:
    """Names of the methods that ``setup``, ``__call__`` or the compact method run."""
    todo = ["setup", "__call__", *([compact.name] if compact is not None else [])]
    reached: set[str] = set()
    while todo:
        name = todo.pop()
        if name in reached:
            continue
        reached.add(name)
        todo += [one for owner in cls.mro for one in _used(owner.methods.get(name))]
    return frozenset(reached)


def _used(method: ast.FunctionDef | None) -> Iterator[str]:
    if method is None:
        return
    receiver = receiver_of(method)
    for node in walk(method):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == receiver:
                yield attr
