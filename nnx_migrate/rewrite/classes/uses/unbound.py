"""``module, variables = self.step.unbind()``, and the pure calls ``module.apply(variables, x)`` after it.

A raw ``jax.lax.scan`` in a method needs a function of arrays. ``nnm.unbind`` gives the same pair, and
``nnm.apply`` calls a copy of the module that holds what it is given: the loop closes over no variable
(flax 0.12.8, linen/module.py).
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from nnx_migrate.edit.calls import call as made_call
from nnx_migrate.edit.expressions import Expression
from nnx_migrate.edit.rendering import Renderer, Replacement
from nnx_migrate.rewrite.classes.data import Refused
from nnx_migrate.rewrite.classes.items import own_nodes, receiver_of
from nnx_migrate.rewrite.classes.uses.references import Edits, Remarks
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.walking import walk

RULE = "module-api"


@dataclass
class Unbound:
    """Edits of the calls, and ids of the ``self.step.unbind`` expressions that are spoken for."""

    edits: Edits = field(default_factory=dict)
    handled: set[int] = field(default_factory=set)


def unbound_calls(
    cls: ClassInfo, submodules: Collection[str], spoken_for: Collection[int], remarks: Remarks
) -> Unbound:
    """The calls in all methods of ``cls``.

    Args:
      submodules: attributes that hold one submodule each.
      spoken_for: ids of the ``self.<method>`` expressions that stay as they are.

    Raises:
      Refused: the module that ``unbind`` gives is used for anything but ``apply``.
    """
    found = Unbound()
    for method in cls.methods.values():
        for name, call in _unbinding(method, submodules):
            uses = _uses(method, name)
            if uses is None:
                continue
            remarks.imports.add("nnm")
            assert isinstance(call.func, ast.Attribute)
            found.handled.add(id(call.func))
            found.edits[id(call)] = _unbind(call.func.value)
            found.edits |= {id(use): _apply(use, name) for use in uses}
        _refuse_others(method, {*found.handled, *spoken_for})
    return found


def _refuse_others(method: ast.FunctionDef, handled: Collection[int]) -> None:
    for node in own_nodes(method):
        match node:
            case ast.Call(func=ast.Attribute(attr="unbind", value=owner)) if id(
                node.func
            ) not in handled and _root(owner) == receiver_of(method):
                raise Refused(
                    node,
                    f"{ast.unparse(node)} gives a module that is used for more than apply",
                    "write `module, variables = self.child.unbind()` and call only module.apply",
                    RULE,
                )


def _root(node: ast.expr) -> str | None:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _unbinding(
    method: ast.FunctionDef, submodules: Collection[str]
) -> Iterator[tuple[str, ast.Call]]:
    for node in own_nodes(method):
        match node:
            case ast.Assign(
                targets=[ast.Tuple(elts=[ast.Name(id=name), ast.Name()])],
                value=ast.Call(
                    func=ast.Attribute(
                        value=ast.Attribute(value=ast.Name(id=owner), attr=attr), attr="unbind"
                    ),
                    args=[],
                    keywords=[],
                ) as call,
            ) if owner == receiver_of(method) and attr in submodules:
                yield name, call


def _uses(method: ast.FunctionDef, name: str) -> list[ast.Call] | None:
    """The calls ``name.apply(...)``; None when the name is bound again or used otherwise."""
    calls = [
        node
        for node in own_nodes(method)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "apply"
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == name
    ]
    named = [node for node in own_nodes(method) if isinstance(node, ast.Name) and node.id == name]
    arguments = [node for node in walk(method) if isinstance(node, ast.arg) and node.arg == name]
    return calls if len(named) == len(calls) + 1 and not arguments else None


def _unbind(module: ast.expr) -> Replacement:
    return lambda renderer: made_call("nnm.unbind", renderer.render(module))


def _apply(call: ast.Call, name: str) -> Replacement:
    def make(renderer: Renderer) -> Expression:
        given = [*map(renderer.argument, call.args), *map(renderer.keyword, call.keywords)]
        return made_call("nnm.apply", name, *given, unit=renderer.unit)

    return make
