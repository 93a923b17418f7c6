"""Where a class says that a submodule has no scope of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from nnx_migrate.rewrite.classes.data import Refused
from nnx_migrate.rewrite.classes.items import Item, ItemKind, receiver_of
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import walk

RULE = "share-scope"
SHARE = "flax.linen.share_scope"
_RECIPE = "give the submodule a scope of its own, or write its parameters into this class"


@dataclass(frozen=True)
class Sharing:
    """One submodule that shares the scope.

    Attributes:
      method: where it is built, and held by ``holder`` (``inner``, ``self.inner``), if by anything.
      statement: ``nn.share_scope(...)``, if that says so; its expression or ``self.scope`` is in
        ``marks``.
      field: that holds it, if it is given; ``call`` is that of ``share_scope`` then.
    """

    call: ast.Call
    method: ast.FunctionDef
    marks: tuple[ast.AST, ...]
    holder: str | None = None
    statement: ast.stmt | None = None
    field: str | None = None


@dataclass(frozen=True)
class Adoption:
    """The statement ``nn.share_scope(self, self.<field>)`` with which ``setup`` starts."""

    statement: ast.Expr
    call: ast.Call
    field: str


def adoption_of(project: Project, cls: ClassInfo) -> Adoption | None:
    """Which field of ``cls`` shares its scope, if ``setup`` says so before all else."""
    setup = cls.methods.get("setup")
    if setup is None:
        return None
    is_text = isinstance(setup.body[0], ast.Expr) and isinstance(setup.body[0].value, ast.Constant)
    match setup.body[is_text:]:
        case [
            ast.Expr(
                value=ast.Call(
                    func=function,
                    args=[ast.Name(id=module), ast.Attribute(value=ast.Name(id=owner), attr=field)],
                    keywords=[],
                ) as call
            ) as statement,
            *_,
        ] if module == owner == receiver_of(setup) and any(f.name == field for f in cls.fields):
            is_share = project.resolve(function, cls.scope.enter(setup)) == SHARE
            return Adoption(statement, call, field) if is_share else None
    return None


def refusal(node: ast.AST, reason: str) -> Refused:
    """The refusal of a submodule without a scope of its own."""
    return Refused(node, reason, _RECIPE, RULE)


def stated(
    project: Project,
    cls: ClassInfo,
    items: Mapping[int, Item],
    compact: ast.FunctionDef | None,
) -> Iterator[Sharing]:
    """``nn.share_scope(self, inner)`` as a statement, ``inner`` built before it."""
    for method in cls.methods.values():
        scope = cls.scope.enter(method)
        for statement in walk(method):
            match statement:
                case ast.Expr(value=ast.Call() as call) if (
                    project.resolve(call.func, scope) == SHARE
                ):
                    yield _shared_by(project, cls, method, statement, call, items, compact)


def _shared_by(
    project: Project,
    cls: ClassInfo,
    method: ast.FunctionDef,
    statement: ast.Expr,
    call: ast.Call,
    items: Mapping[int, Item],
    compact: ast.FunctionDef | None,
) -> Sharing:
    adopted = adoption_of(project, cls)
    if adopted is not None and adopted.statement is statement:
        return Sharing(call, method, (call,), ast.unparse(call.args[1]), statement, adopted.field)
    receiver = receiver_of(method)
    match call.args, call.keywords:
        case [ast.Name(id=module), other], [] if module == receiver:
            holder = ast.unparse(other)
        case _:
            raise refusal(call, "share_scope of two other modules")
    built = None
    if method in (compact, cls.methods.get("setup")) and statement in method.body:
        built = _built_before(method.body, statement, holder, items)
    is_local = isinstance(other, ast.Name)
    if built is None or is_local is not (method is compact) or stores(cls, method, holder) != 1:
        raise refusal(
            call, f"which submodule {holder} is, and that its scope is new, is not certain"
        )
    return Sharing(built, method, (call,), holder, statement)


def _built_before(
    body: list[ast.stmt], statement: ast.stmt, holder: str, items: Mapping[int, Item]
) -> ast.Call | None:
    """The construction that ``holder`` was bound to, if nothing was done with it since."""
    for one in reversed(body[: body.index(statement)]):
        match one:
            case ast.Assign(targets=[target], value=ast.Call() as value) if (
                ast.unparse(target) == holder
            ):
                item = items.get(id(value))
                return value if item is not None and item.kind is ItemKind.SITE else None
        if not isinstance(one, ast.Assign | ast.Expr) or _mentions(one, holder):
            return None
    return None


def _mentions(node: ast.AST, holder: str) -> bool:
    return any(
        isinstance(one, ast.Name | ast.Attribute) and ast.unparse(one) == holder
        for one in walk(node)
    )


def stores(cls: ClassInfo, method: ast.FunctionDef, holder: str) -> int:
    """How often the name is bound: a local in its method, an attribute in the class."""
    where = cls.node if "." in holder else method
    return sum(
        isinstance(one, ast.Name | ast.Attribute)
        and not isinstance(one.ctx, ast.Load)
        and ast.unparse(one) == holder
        for one in walk(where)
    )


def given(
    cls: ClassInfo, items: Mapping[int, Item], compact: ast.FunctionDef | None
) -> Iterator[Sharing]:
    """``Inner(..., parent=self.scope)`` in the compact method."""
    for method in cls.methods.values():
        own = f"{receiver_of(method)}.scope"
        for call in (one for one in walk(method) if isinstance(one, ast.Call)):
            given = [one.value for one in call.keywords if one.arg == "parent"]
            if not given or ast.unparse(given[0]) != own or id(call) not in items:
                continue
            if method is not compact:
                raise refusal(call, "a submodule gets self.scope outside of a compact method")
            yield Sharing(call, method, tuple(given), _holder(method, call))


def _holder(method: ast.FunctionDef, call: ast.Call) -> str | None:
    for one in method.body:
        match one:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is call:
                return name
    return None
