"""Modules as scopes and back: what a lift takes apart on the way in and puts together inside.

A lifted function sees a module through its scope, and through the scopes of every module and
variable it can reach: the ones in its fields and the ones among its arguments. ``take_apart``
lists these scopes. Inside the transform ``Rebuilder`` makes the same modules over the inner
scopes, each of them once, so that what was shared stays shared.

Reaches what ``flax/linen/transforms.py`` (flax 0.12.8) reaches, in the same order.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
from flax import errors, nnx, traceback_util
from flax.core.scope import Variable as CoreVariable

from nnx_migrate.linen.core.linen_interop import flax_scope, is_linen_class
from nnx_migrate.linen.core.tree import is_module
from nnx_migrate.linen.core.variable import Variable

traceback_util.register_exclusion(__file__)


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True, eq=False)
class Stub:
    """Stands for a module or a variable among the arguments while they go through a transform.

    It is static to jax, and equal to itself only. ``original`` gives the class, or of a variable
    its collection and name; ``attrs`` are a module's fields, with stubs for modules in them.
    """

    original: Any
    attrs: dict[str, Any]


@dataclasses.dataclass
class Apart:
    """A call of a lifted method: its scopes, and its arguments with stubs in place of modules.

    ``numbers`` gives the number of the scope for each module and variable, by its ``_id``.
    """

    scopes: list[Any] = dataclasses.field(default_factory=list)
    numbers: dict[Any, int] = dataclasses.field(default_factory=dict)
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = dataclasses.field(default_factory=dict)

    def add(self, owner: Any) -> None:
        """Notes the scope of a module or variable."""
        self.numbers[owner._id] = len(self.scopes)
        self.scopes.append(owner.scope)


def take_apart(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Apart:
    """Scopes that a method of ``module`` can reach, and its arguments without the modules."""
    apart = Apart()
    stubs: dict[Any, Stub] = {}

    def stub(x: Any) -> Any:
        if not _is_bound(x):
            return x
        if x._id not in stubs:
            apart.add(x)
            attrs = {}
            if is_module(x):
                x._try_setup(shallow=True)
                attrs = _map(stub, fields_of(x))
            stubs[x._id] = Stub(x, attrs)
        return stubs[x._id]

    def visit(owner: Any) -> None:
        owner._try_setup(shallow=True)
        for x in jax.tree.leaves(fields_of(owner), is_leaf=_is_leaf):
            if _is_bound(x) and x._id not in apart.numbers:
                visit(x) if is_module(x) else apart.add(x)
        apart.add(owner)

    apart.args, apart.kwargs = _map(stub, (args, kwargs))
    if module._id not in apart.numbers:
        visit(module)
    return apart


class Rebuilder:
    """Makes the modules and variables of one call again, over the scopes of one trace.

    Args:
      apart: what ``take_apart`` found in the call.
      scopes: the scopes inside, in the order of ``apart.scopes``.
    """

    def __init__(self, apart: Apart, scopes: Sequence[Any]) -> None:
        self._numbers = apart.numbers
        self._scopes = scopes
        self._made: dict[Any, Any] = {}

    def arguments(self, args: Any, kwargs: Any) -> Any:
        """Arguments with the modules and variables that their stubs stand for."""

        def unstub(x: Any) -> Any:
            if not isinstance(x, Stub):
                return x
            return self._once(x.original, lambda: _map(unstub, x.attrs))

        return _map(unstub, (args, kwargs))

    def module(self, module: Any, cls: type | None = None) -> Any:
        """The module over its inner scope; of class ``cls`` where that is another one."""

        def fields() -> dict[str, Any]:
            attrs = fields_of(module)
            if cls is not None and _is_changed_by_construction(cls):
                # Linen makes the unlifted module first and copies it: fields are derived twice.
                attrs = fields_of(cls(parent=None, **attrs))
            return self._fields(attrs)

        if cls is not None:
            # Not the one that stands among the arguments: that one has the lift.
            return make(cls, self._scopes[self._numbers[module._id]], fields())
        return self._once(module, fields)

    def _fields(self, attrs: dict[str, Any]) -> dict[str, Any]:
        def inner(x: Any) -> Any:
            if not _is_bound(x):
                return x
            return self._once(x, lambda: self._fields(fields_of(x)))

        fields: dict[str, Any] = _map(inner, attrs)
        return fields

    def _once(self, x: Any, fields: Callable[[], dict[str, Any]]) -> Any:
        if x._id not in self._made:
            scope = self._scopes[self._numbers[x._id]]
            self._made[x._id] = (
                make(type(x), scope, fields())
                if is_module(x)
                else type(x)(scope, x.collection, x.name, unbox=x.unbox)
            )
        return self._made[x._id]


def make(cls: Any, scope: Any, attrs: dict[str, Any]) -> Any:
    """A module of class ``cls`` bound to ``scope``; Linen's own classes ask for a scope of flax."""
    return cls(parent=flax_scope(scope) if is_linen_class(cls) else scope, **attrs)


def fields_of(module: Any) -> dict[str, Any]:
    """The module's fields as its constructor takes them, but for its parent."""
    return {
        field.name: getattr(module, field.name)
        for field in dataclasses.fields(module)
        if field.name != "parent" and field.init
    }


def refuse_modules(tree: Any, method: str | None) -> None:
    """Raises ``TransformedMethodReturnValueError`` if a lifted method returns a module."""
    if any(map(_is_owner, jax.tree.leaves(tree, is_leaf=_is_owner))):
        raise errors.TransformedMethodReturnValueError(method)


def _is_owner(x: Any) -> bool:
    return is_module(x) or isinstance(x, Variable | CoreVariable)


def _is_bound(x: Any) -> bool:
    return _is_owner(x) and x.scope is not None


def _is_changed_by_construction(cls: Any) -> bool:
    """Whether a class of the user's own derives fields when it is made."""
    own = cls.__post_init__
    return not getattr(own, "__module__", "").startswith(("nnx_migrate.linen.", "flax.linen."))


def _is_leaf(x: Any) -> bool:
    # Modules are pytrees; here they stay whole, those of plain NNX too.
    return isinstance(x, Stub | nnx.Module) or _is_owner(x)


def _map(fn: Callable[[Any], Any], tree: Any) -> Any:
    return jax.tree.map(fn, tree, is_leaf=_is_leaf)
