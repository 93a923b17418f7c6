"""A submodule that makes its variables in the scope of the module that builds it.

``nn.share_scope(self, inner)`` after ``inner`` is built, or ``Inner(..., parent=self.scope)``: no level is
added to the path (flax 0.12.8, linen/module.py). The converted class holds the submodule in an
``nnm.InScope``. Linen counts the keys of both modules as one, so the parameters of the class that
are made before those of the submodule are named there.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from nnx_migrate.constructs.common.base import PLACEMENT
from nnx_migrate.edit.calls import Argument, call, named
from nnx_migrate.edit.expressions import Written, display, string
from nnx_migrate.edit.statements import GONE, Statement, assign
from nnx_migrate.rewrite.classes.items import Item, receiver_of
from nnx_migrate.rewrite.classes.scopes.children import check_child, check_made, module_fields
from nnx_migrate.rewrite.classes.scopes.field_scopes import check_adopted
from nnx_migrate.rewrite.classes.scopes.finding import Sharing, given, refusal, stated
from nnx_migrate.rewrite.classes.scopes.order import made_before
from nnx_migrate.rewrite.classes.scopes.uses import check_uses
from nnx_migrate.rewrite.classes.uses.references import Edits
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.parents import Parents
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import walk

_KEPT_DECORATORS = frozenset(f"flax.linen.{name}" for name in ("compact", "nowrap"))


@dataclass(frozen=True)
class SharedScope:
    """The submodule, if there is one.

    Attributes:
      call: its construction.
      after: parameters of the class that Linen makes before those of the submodule.
      items: what the class builds; a submodule without a name in Linen has one.
      handled: ids of expressions that need no further reading.
      edits: the statements that go.
      held_by: the field that holds the submodule, if the class is given it; ``call`` says so then.
      moved: submodules that it is given, which have their scopes before it shares this one.
    """

    items: Mapping[int, Item]
    call: ast.Call | None = None
    after: tuple[str, ...] = ()
    handled: frozenset[int] = frozenset()
    edits: Edits = field(default_factory=dict)
    held_by: str | None = None
    moved: tuple[str, ...] = ()

    def statement(self, name: str) -> Statement:
        """The statement of the class body for the submodule's attribute."""
        given: list[Argument | Written] = [*map(string, self.after)]
        given += [named("moved", display(map(string, self.moved)))] if self.moved else []
        return assign(name, call("nnm.InScope", *given))


def shared_scope_of(
    project: Project,
    cls: ClassInfo,
    items: Mapping[int, Item],
    compact: ast.FunctionDef | None,
    is_converted: Callable[[str | None], bool],
    *,
    helps: bool,
) -> SharedScope:
    """The submodule of ``cls`` that shares its scope.

    Args:
      helps: whether helper methods of the class build, too.

    Raises:
      Refused: there are several, or what it does to paths, names or keys is not certain.
    """
    moved: tuple[str, ...] = ()
    found = [*stated(project, cls, items, compact), *given(cls, items, compact)]
    if not found:
        return SharedScope(items)
    first = found[0]
    if len(found) > 1:
        raise refusal(found[1].call, "several submodules share the scope of the module")
    if helps:
        raise refusal(first.call, "a submodule shares the scope of a class whose helpers build")
    _check_class(project, cls, first)
    if first.field is not None:
        moved = _check_field(project, cls, first.field, first.call, is_converted)
    else:
        check_child(project, cls, items[id(first.call)], is_converted)
    after = made_before(project, cls, items, compact, first)
    handled = frozenset(id(node) for one in first.marks for node in walk(one))
    edits: Edits = {} if first.statement is None else {id(first.statement): GONE}
    named = items if first.field is not None else _named(cls, items, first)
    return SharedScope(named, first.call, after, handled, edits, first.field, moved)


def _check_field(
    project: Project,
    cls: ClassInfo,
    name: str,
    at: ast.Call,
    is_converted: Callable[[str | None], bool],
) -> tuple[str, ...]:
    """What the module in the field holds; it is certain which scope it has, and it is the only one."""
    symbol = check_adopted(project, cls, name, at)
    check_made(project, cls, symbol, at, is_converted)
    others = module_fields(project, cls) - {name}
    if others:
        raise refusal(at, f"self.{min(others)} may be a module, beside one that shares the scope")
    child = project.linen.get(symbol)
    return tuple(sorted(module_fields(project, child))) if child is not None else ()


def _check_class(project: Project, cls: ClassInfo, sharing: Sharing) -> None:
    """The class hangs together without surprises: no relatives, no lifts, ``self`` stays here."""
    heirs = [one for one in project.classes.values() if one is not cls and cls in one.mro]
    if heirs or any(one.linen for one in cls.parents):
        raise refusal(
            sharing.call, "a submodule shares the scope of a class that has Linen relatives"
        )
    shared = {id(one) for mark in sharing.marks for one in walk(mark)}
    for method in cls.methods.values():
        if receiver_of(method) != "self" and not method.decorator_list:
            raise refusal(method, "a submodule shares the scope of a class whose methods name it")
        lifts = [
            one
            for one in project.decorators(cls, method)
            if one.startswith("flax.linen.") and one not in _KEPT_DECORATORS
        ]
        if lifts:
            raise refusal(method, f"a submodule shares the scope of a class with {lifts[0]}")
        parents = Parents(method)
        for node in walk(method):
            match node:
                case ast.Name(id=name) if name == receiver_of(method) and id(node) not in shared:
                    if not isinstance(parents.of(node), ast.Attribute):
                        raise refusal(node, f"{name}, whose scope a submodule shares, is handed on")
    check_uses(cls, sharing)


def _named(cls: ClassInfo, items: Mapping[int, Item], sharing: Sharing) -> Mapping[int, Item]:
    """The items, with an attribute name for a submodule that was given a scope."""
    item = items[id(sharing.call)]
    assert item.site is not None
    if sharing.statement is not None:
        return items
    taken = {one.name.value for one in items.values() if isinstance(one.name, ast.Constant)}
    taken |= {one.name for one in cls.fields} | {name for one in cls.mro for name in one.methods}
    name = f"_{item.site.class_name or 'inner'}"
    while name in taken:
        name = f"{name}_"
    site = replace(item.site, call=without_placement(sharing.call))
    return {**items, id(sharing.call): replace(item, site=site, name=ast.Constant(name))}


def without_placement(call: ast.Call) -> ast.Call:
    """The construction without what says where the submodule hangs."""
    keywords = [one for one in call.keywords if one.arg not in PLACEMENT]
    return ast.copy_location(ast.Call(call.func, call.args, keywords), call)
