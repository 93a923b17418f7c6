"""``layers = self.scope.push("layers")`` and submodules with ``parent=layers.push(str(i))``.

Scopes made by hand give a submodule a path of two parts and no number (flax 0.12.8, core/scope.py). The
converted class holds an ``nnm.Scope`` under the first part, and in it the submodules.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from nnx_migrate.edit.statements import GONE
from nnx_migrate.rewrite.classes.items import Item, is_attribute_name, receiver_of
from nnx_migrate.rewrite.classes.scopes.sharing import without_placement
from nnx_migrate.rewrite.classes.uses.references import Edits
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.parents import Parents
from nnx_migrate.source.walking import walk


@dataclass(frozen=True)
class PushedScopes:
    """The scopes that a compact method makes by hand.

    Attributes:
      items: what the class builds; those in such a scope know it.
      names: of the scopes.
      handled: ids of expressions that need no further reading.
      edits: the statements that go.
    """

    items: Mapping[int, Item]
    names: tuple[str, ...] = ()
    handled: frozenset[int] = frozenset()
    edits: Edits = field(default_factory=dict)


def pushed_scopes(
    cls: ClassInfo, items: Mapping[int, Item], compact: ast.FunctionDef | None
) -> PushedScopes:
    """The scopes that are understood; reads of ``self.scope`` that are not are refused elsewhere."""
    found = PushedScopes(items)
    if compact is None:
        return found
    for statement, variable, name, scope in _pushes(compact):
        uses = _uses(compact, variable, items)
        others = [one for key, one in items.items() if uses is not None and key not in uses]
        if (
            uses is None
            or _may_be_automatic(name)
            or name in found.names
            or name in _taken(cls, others)
        ):
            continue
        inside = {key: _placed(items[key], name, push) for key, push in uses.items()}
        found = PushedScopes(
            {**found.items, **inside},
            (*found.names, name),
            found.handled | {id(scope)},
            {**found.edits, id(statement): GONE},
        )
    return found


def _pushes(compact: ast.FunctionDef) -> Iterator[tuple[ast.stmt, str, str, ast.expr]]:
    """``variable = self.scope.push(name)`` of the method's own block."""
    for statement in compact.body:
        match statement:
            case ast.Assign(
                targets=[ast.Name(id=variable)],
                value=ast.Call(
                    func=ast.Attribute(
                        value=ast.Attribute(value=ast.Name(id=owner), attr="scope") as scope,
                        attr="push",
                    ),
                    args=[ast.Constant(value=str(name))],
                    keywords=[],
                ),
            ) if owner == receiver_of(compact) and is_attribute_name(name):
                yield statement, variable, name, scope


def _uses(
    compact: ast.FunctionDef, variable: str, items: Mapping[int, Item]
) -> dict[int, ast.expr] | None:
    """The submodules in the scope, with their names there; None where it is used otherwise."""
    parents = Parents(compact)
    arguments = [one.arg for one in walk(compact) if isinstance(one, ast.arg)]
    named = [one for one in walk(compact) if isinstance(one, ast.Name) and one.id == variable]
    loads = [one for one in named if isinstance(one.ctx, ast.Load)]
    if len(named) != len(loads) + 1 or variable in arguments:
        return None
    found: dict[int, ast.expr] = {}
    for one in loads:
        push = parents.called_by(one)
        keyword = parents.of(push) if push is not None else None
        call = parents.of(keyword) if keyword is not None else None
        match push, keyword:
            case (
                ast.Call(func=ast.Attribute(attr="push"), args=[name], keywords=[]),
                ast.keyword(arg="parent"),
            ) if id(call) in items and _is_text(name) and _is_own(parents, call):
                found[id(call)] = name
            case _:
                return None
    return found


def _is_text(name: ast.expr) -> bool:
    match name:
        case ast.Constant(value=str()) | ast.JoinedStr():
            return True
        case ast.Call(func=ast.Name(id="str"), args=[_], keywords=[]):
            return True
    return False


def _is_own(parents: Parents, call: ast.AST | None) -> bool:
    """Whether the method itself builds it, not a function inside."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
    around = parents.above(call) if call is not None else []
    return sum(isinstance(one, functions) for one in around) == 1


def _taken(cls: ClassInfo, items: Iterable[Item]) -> set[str]:
    """Names of attributes that the class has, automatic and computed ones aside."""
    taken = {str(one.name.value) for one in items if isinstance(one.name, ast.Constant)}
    taken |= {one.name for one in cls.fields} | {name for one in cls.mro for name in one.methods}
    taken |= {
        node.attr
        for one in cls.mro
        for node in walk(one.node)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    }
    return taken


def _may_be_automatic(name: str) -> bool:
    return name.rpartition("_")[2].isdigit()


def _placed(item: Item, scope: str, name: ast.expr) -> Item:
    assert item.site is not None
    site = replace(item.site, call=without_placement(item.call))
    return replace(item, site=site, name=name, scope=scope)
