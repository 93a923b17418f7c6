"""What a submodule must be whose variables another module holds as its own."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from nnx_migrate.constructs import layer_of
from nnx_migrate.rewrite.classes.items import Item, own_nodes, receiver_of
from nnx_migrate.rewrite.classes.scopes.finding import refusal
from nnx_migrate.sizes.result import SiteKind
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.parents import Parents
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import walk

# Annotations that hold no module.
_PLAIN = frozenset(
    "int float complex str bool tuple list Tuple List Sequence Iterable Optional Union typing".split()  # noqa: SIM905
)
# What depends on the module's place, or makes variables later than the constructor.
_PLACED = frozenset(
    "scope path name parent variables variable sow perturb get_variable put_variable has_variable"  # noqa: SIM905
    " make_rng has_rng init apply bind unbind clone copy".split()
)


def check_child(
    project: Project, cls: ClassInfo, item: Item, is_converted: Callable[[str | None], bool]
) -> None:
    """Check the submodule ``item`` of ``cls``.

    Raises:
      Refused: its variables may stand elsewhere, come later, or meet names of ``cls``.
    """
    site = item.site
    assert site is not None
    if site.kind not in (SiteKind.LAYER, SiteKind.CLASS):
        raise refusal(item.call, "what a submodule that shares the scope makes is not known")
    if site.symbol in project.linen and (
        site.holds or any(_may_hold(project, cls, one) for one in _arguments(item))
    ):
        raise refusal(item.call, "a submodule that shares the scope holds others as fields")
    check_made(project, cls, site.symbol or "", item.call, is_converted)


def check_made(
    project: Project,
    cls: ClassInfo,
    symbol: str,
    at: ast.Call,
    is_converted: Callable[[str | None], bool],
) -> None:
    """Check what a submodule of the class ``symbol`` makes in the scope of ``cls``.

    Raises:
      Refused: its variables may stand elsewhere, come later, or meet names of ``cls``.
    """
    layer = layer_of(symbol)
    if layer is not None and layer.variables:
        _check_names(cls, at, layer.variables)
        return
    child = project.linen.get(symbol)
    if child is None or not is_converted(symbol):
        raise refusal(at, "what a submodule that shares the scope makes is not known")
    for one in child.mro:
        _check_class(project, one, at)
    held = module_fields(project, child)
    _check_names(cls, at, {*held, *(name for one in child.mro for name in _names_in(one))})


def module_fields(project: Project, cls: ClassInfo) -> frozenset[str]:
    """Names of the fields that may hold modules."""
    fields = [one for one in cls.fields if not is_plain(project, one.annotation, one.owner)]
    return frozenset(one.name for one in fields)


def _arguments(item: Item) -> list[ast.expr]:
    return [*item.call.args, *(one.value for one in item.call.keywords if one.arg != "parent")]


def _may_hold(project: Project, cls: ClassInfo, value: ast.expr) -> bool:
    """Whether an argument builds a module, or is a field that may hold one."""
    fields = {one.name: one for one in cls.fields}
    for node in walk(value):
        if isinstance(node, ast.Call):
            symbol = project.resolve(node.func, cls.scope) or ""
            if symbol in project.linen or symbol.startswith("flax.linen."):
                return not symbol.startswith("flax.linen.initializers.")
        if isinstance(node, ast.Attribute) and node.attr in fields:
            field = fields[node.attr]
            if not is_plain(project, field.annotation, field.owner):
                return True
    return False


def is_plain(project: Project, annotation: ast.expr, owner: ClassInfo) -> bool:
    """Whether a field of this annotation holds numbers, texts or a config."""
    for node in walk(annotation):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
            known = project.classes.get(project.resolve(node, owner.scope) or "")
            if known is not None and not known.linen:
                return True
            if isinstance(node, ast.Name) and node.id not in _PLAIN:
                return False
        if isinstance(node, ast.Constant) and node.value is not None:
            return False
    return True


def _check_class(project: Project, child: ClassInfo, at: ast.Call) -> None:
    """Nothing in the class asks where it stands, or hands itself on."""
    for method in child.methods.values():
        receiver, parents = receiver_of(method), Parents(method)
        if not receiver:
            continue
        lifts = [
            one
            for one in project.decorators(child, method)
            if one.startswith("flax.linen.") and one != "flax.linen.compact"
        ]
        if lifts:
            raise refusal(at, f"{child.node.name}, which shares the scope, has {lifts[0]}")
        for node in own_nodes(method):
            if not (isinstance(node, ast.Name) and node.id == receiver):
                continue
            above = parents.of(node)
            if not isinstance(above, ast.Attribute):
                raise refusal(at, f"{child.node.name}, which shares the scope, hands itself on")
            if above.attr in _PLACED:
                raise refusal(
                    at,
                    f"{child.node.name}, which shares the scope, has {receiver}.{above.attr}",
                )


def _names_in(child: ClassInfo) -> Iterator[str]:
    """Names that its variables and submodules may have, as far as they are written out."""
    for method in child.methods.values():
        for node in walk(method):
            match node:
                case ast.Call(
                    func=ast.Attribute(attr="param"), args=[ast.Constant(value=name), *_]
                ):
                    yield str(name)
                case ast.keyword(arg="name", value=ast.Constant(value=str(name))):
                    yield name
                case ast.Attribute(attr=name, ctx=ast.Store()) if method.name == "setup":
                    yield name


def _check_names(cls: ClassInfo, at: ast.Call, names: tuple[str, ...] | set[str]) -> None:
    taken = {one.name for one in cls.fields} | {name for one in cls.mro for name in one.methods}
    taken |= {
        node.attr
        for method in cls.methods.values()
        for node in walk(method)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    }
    clash = sorted(taken.intersection(names))
    if clash:
        raise refusal(
            at,
            f"{clash[0]!r} names a variable of the submodule that shares the scope, and an attribute",
        )
