"""Names that every NNX module has and no Linen module: what code finds under them changes.

``class Net(nn.Module, Mode)``: in Linen ``self.train`` is the mixin's, which stands behind a class
without that name; nnx.Module has one, and hides it. ``hasattr(self, "train")`` is True of it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.items import receiver_of
from nnx_migrate.source.bindings import bound_names
from nnx_migrate.source.classes import ClassInfo, is_linen_class
from nnx_migrate.source.walking import each

# flax 0.12.8 to 0.12.12: what nnx.Module has and linen.Module has not, special methods aside.
PUBLIC = frozenset({"eval", "iter_children", "iter_modules", "set_attributes", "train"})
# NNX calls these of every module: a class that has its own is none that NNX can use.
INTERNAL = frozenset(
    "_check_valid_context _check_value _graph_node_clear _graph_node_create_empty "  # noqa: SIM905
    "_graph_node_flatten _graph_node_init _graph_node_pop_key _graph_node_set_key _object__nodes "
    "_object__state _pytree__flatten _pytree__flatten_with_paths _pytree__has_int_keys "
    "_pytree__is_pytree _pytree__nodes _pytree__unflatten _setattr".split()
)
_ASKS = frozenset({"getattr", "hasattr"})


def check_nnx_names(cls: ClassInfo) -> None:
    """Refuse classes that would find NNX's member where Linen's class has another one, or none.

    Raises:
      Refused: a base behind the module class defines such a name, the class asks whether it has one,
        or it defines one that NNX itself uses.
    """
    in_bodies = {name: owner for owner in reversed(cls.mro) for name in _body_names(owner)}
    for attribute in sorted(_instance_names(cls) & INTERNAL):
        raise ClassRefused(
            cls.node, f"NNX uses {attribute!r} of its modules itself", "rename it", "names"
        )
    for owner in _behind(cls):
        hidden = {name for name in _body_names(owner) & PUBLIC if in_bodies[name] is owner}
        if hidden:
            raise ClassRefused(
                cls.node,
                f"nnx.Module has {min(hidden)!r}, too, and stands before its base {owner.name}",
                f"name {owner.name} before nn.Module",
                "inheritance",
            )
    for method in cls.methods.values():
        for call in each(method, ast.Call):
            name = _hasattr_name(call, receiver_of(method))
            if name in PUBLIC - in_bodies.keys():
                raise ClassRefused(
                    call,
                    f"it asks for {name!r}, which every NNX module has",
                    "rename what is asked for, or ask for a field",
                    "names",
                )


def _behind(cls: ClassInfo) -> Iterator[ClassInfo]:
    """Plain classes that stand behind nn.Module among the class's own bases."""
    is_behind = False
    plain = {one.qualname: one for one in cls.parents if not one.linen}
    linen = {one.qualname for one in cls.parents if one.linen}
    for symbol in cls.bases:
        if is_behind and symbol in plain:
            yield from plain[symbol].mro
        is_behind = is_behind or symbol in linen or is_linen_class(symbol)


def _body_names(cls: ClassInfo) -> set[str]:
    """What the body of a class binds."""
    return {name for one in cls.node.body for name in bound_names(one)}


def _instance_names(cls: ClassInfo) -> set[str]:
    """What the bodies of a class and its bases bind, and what their methods assign."""
    stored = (each(one.node, ast.Attribute) for one in cls.mro)
    names = {node.attr for found in stored for node in found if isinstance(node.ctx, ast.Store)}
    return names.union(*map(_body_names, cls.mro))


def _hasattr_name(call: ast.Call, receiver: str) -> str | None:
    """``train`` of ``hasattr(self, "train")``."""
    match call:
        case ast.Call(
            func=ast.Name(id=function),
            args=[ast.Name(id=name), ast.Constant(value=str() as question), *_],
        ) if function in _ASKS and name == receiver:
            return question
    return None
