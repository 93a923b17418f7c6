"""`Module`: a class of Linen's kind on NNX's graph.

Before `build` a module is a definition: fields, compared and hashed by them, a leaf of pytrees as
Linen's modules are. `build` makes it an NNX module with its children and Variables as attributes.
"""

from __future__ import annotations

import abc
import dataclasses
import inspect
import sys
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any

from flax import errors, nnx
from flax.nnx import module as nnx_module

from nnx_migrate.linen.core.entry import EntryPoints
from nnx_migrate.linen.core.graph import GraphNode
from nnx_migrate.linen.core.lifecycle import Lifecycle
from nnx_migrate.linen.core.linen_interop import class_to_make, is_linen
from nnx_migrate.linen.core.representation import module_repr
from nnx_migrate.linen.core.scope import Scope
from nnx_migrate.linen.core.state import (
    UNINITIALIZED,
    UNSPECIFIED_PARENT,
    ParentDescriptor,
    UnspecifiedParent,
)
from nnx_migrate.linen.core.variables import VariableMethods
from nnx_migrate.linen.core.wrapping import (
    compact,
    local_descriptor_names,
    local_method_names,
    wrap_descriptor_once,
    wrap_eq,
    wrap_hash,
    wrap_method_once,
)
from nnx_migrate.nn.building.protocols import ProtocolMeta

# What Python takes for the module of a class that a call makes: that of the metaclass whose code makes it.
_OF_METACLASSES = frozenset({"abc", "typing"})
_UNWRAPPED = ("__eq__", "__repr__", "__init__", "__hash__", "__post_init__")


class ModuleMeta(ProtocolMeta):
    """Makes definitions plainly: NNX's own bookkeeping begins with `build`.

    It also is the metaclass of protocols, which Linen's modules may inherit from.
    """

    def __init__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any], **kwargs: Any):
        """Ask for abstract methods only where Linen does: below `abc.ABC` and the like."""
        super().__init__(name, bases, body, **kwargs)
        asking = (type(one) for one in cls.__mro__ if not isinstance(one, type(nnx.Pytree)))
        if not any(issubclass(one, abc.ABCMeta) for one in asking):
            cls.__abstractmethods__ = frozenset()

    def __call__(cls, /, *args: Any, **kwargs: Any) -> Any:
        """A new definition, or a module bound to the one whose method runs."""
        return type.__call__(class_to_make(cls), *args, **kwargs)

    @property
    def __signature__(cls) -> inspect.Signature:
        """The constructor's arguments, for `inspect.signature`."""
        own = inspect.signature(cls.__init__)  # type: ignore[misc]
        return own.replace(parameters=[*own.parameters.values()][1:])

    def __instancecheck__(cls, instance: Any) -> bool:
        """Modules that stay Linen, those of other packages among them, are modules too."""
        if type.__instancecheck__(cls, instance):  # ABCMeta's is ten times slower
            return True
        # Not `__subclasscheck__`: abstract bases above ask it, and NNX would take them for its own.
        return cls is Module and is_linen(instance)


class Module(  # type: ignore[misc, override]
    GraphNode,
    EntryPoints,
    VariableMethods,
    Lifecycle,
    nnx_module.Module,
    metaclass=ModuleMeta,
    pytree=False,
):
    """Base class of lazy modules: Linen's interface, NNX's graph. flax 0.12.8: linen/module.py."""

    if (
        TYPE_CHECKING
    ):  # a dataclass makes it; its keyword-only parent and name are in no class's text

        def __init__(self, *args: Any, **kwargs: Any) -> None: ...

    def __init_subclass__(cls, kw_only: bool = False, **kwargs: Any) -> None:
        # NNX evaluates the class's annotations; Linen never looks at them, whatever they hold.
        cls.__no_type_check__ = True
        super().__init_subclass__(pytree=False, **kwargs)
        del cls.__no_type_check__
        if cls.__module__ in _OF_METACLASSES:  # made by a call: ``type("Wide", (Base,), {})``
            cls.__module__ = _module_of_code()
        _make_dataclass(cls, kw_only)
        _wrap_attributes(cls)
        cls._state = UNINITIALIZED
        cls.scope = None
        cls._parent_ref = None
        cls.parent = ParentDescriptor()

    def __repr__(self) -> str:
        return module_repr(self)

    __str__ = object.__str__  # the representation, whoever wrote it; NNX has one of its own

    def _nnm_make_compact_name_scopes(self) -> None:
        if self._compact_name_scope_methods:
            made: Any = CompactNameScope
            self._compact_name_scope_modules = {
                name: made(getattr(type(self), name).inner_fun, lambda: self, name=name)
                for name in self._compact_name_scope_methods
            }


def _module_of_code() -> str:
    """The module whose code is running, of those that are not ours, NNX's or the metaclasses'."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        home = str(frame.f_globals.get("__name__", ""))
        if home.partition(".")[0] not in ("flax", "nnx_migrate", *_OF_METACLASSES):
            return home
        frame = frame.f_back
    return __name__


for _base in Module.__mro__:
    # Annotations are read as fields (`typing.get_type_hints`): Linen's class has none of its own.
    if _base.__module__.startswith(__name__.partition(".")[0]):
        _base.__annotations__ = {}

_ParentType = Module | Scope | UnspecifiedParent | None


def _make_dataclass(cls: Any, kw_only: bool) -> None:
    """Turn a class into a dataclass whose last, keyword-only fields are ``parent`` and ``name``."""
    annotations = inspect.get_annotations(cls)
    if annotations.get("parent", _ParentType) != _ParentType or annotations.get(
        "name", str
    ) not in ("str", str, str | None, "Optional[str]", "str | None"):
        raise errors.ReservedModuleAttributeError(annotations)
    for name in annotations:
        default = vars(cls).get(name)
        if isinstance(default, dataclasses.Field) and not default.init:
            # It is set in `setup`: when modules are compared it may be missing.
            default.compare = default.hash = default.repr = False
    own = {
        "parent": (_ParentType, UNSPECIFIED_PARENT, False),
        "name": (str | None, None, True),
    }
    annotations = {key: kind for key, kind in annotations.items() if key not in own}
    for name, (kind, default, in_repr) in own.items():
        setattr(cls, name, dataclasses.field(default=default, repr=in_repr, kw_only=True))
        annotations[name] = kind
    cls.__annotations__ = annotations
    _keep_kw_only(cls, annotations)
    dataclasses.dataclass(unsafe_hash="__hash__" not in vars(cls), repr=False, kw_only=kw_only)(cls)
    fields = cls.__dataclass_fields__
    for name in own:  # last also where a base class has them already
        fields[name] = fields.pop(name)
    cls.__hash__ = wrap_hash(cls.__hash__)
    if "__eq__" in vars(cls):
        cls.__eq__ = wrap_eq(cls.__eq__)
    cls._nnm_fields = tuple(
        field.name
        for field in dataclasses.fields(cls)
        if field.init and field.name not in ("parent", "name")
    )


def _keep_kw_only(cls: Any, annotations: dict[str, Any]) -> None:
    """A field that is keyword-only in a base class stays so where it is written again."""
    base_fields = getattr(cls, "__dataclass_fields__", {})
    for name in annotations:
        field = base_fields.get(name)
        default = vars(cls).get(name, dataclasses.MISSING)
        if field is None or field.kw_only is not True or name in ("parent", "name"):
            continue
        if isinstance(default, dataclasses.Field):
            default.kw_only = True
        elif default is not dataclasses.MISSING:
            setattr(cls, name, dataclasses.field(default=default, kw_only=True))


def _wrap_attributes(cls: Any) -> None:
    """Let methods and descriptors of the class's body run under the module's care."""
    fields = [field.name for field in dataclasses.fields(cls)]
    for name in local_method_names(cls, exclude=(*fields, *_UNWRAPPED)):
        method = vars(cls)[name]
        if not hasattr(method, "nowrap"):
            setattr(cls, name, wrap_method_once(getattr(cls, name)))
    for name in local_descriptor_names(cls, exclude=(*fields, "parent", "__dict__")):
        if not hasattr(vars(cls)[name], "nowrap"):
            setattr(cls, name, wrap_descriptor_once(vars(cls)[name]))
    scope_methods = {name for name, one in vars(cls).items() if hasattr(one, "compact_name_scope")}
    cls._compact_name_scope_methods = tuple(
        sorted(
            name
            for name in {*cls._compact_name_scope_methods, *scope_methods}
            if hasattr(getattr(cls, name), "compact_name_scope")
        )
    )


class CompactNameScope(Module):
    """The child below whose name a `compact_name_scope` method works."""

    _nnm_keeps_name = True
    fn: Callable[..., Any]
    module_fn: Callable[[], Module]

    @compact
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the method."""
        return self.fn(self.module_fn(), *args, **kwargs)


def merge_param(name: str, a: Any, b: Any) -> Any:
    """The one of two values that is not None: a field, or an argument of the call.

    Raises:
        ValueError: both are None, or neither is.
    """
    if a is None and b is None:
        raise ValueError(f'Parameter "{name}" must be passed to the constructor or at call time.')
    if a is not None and b is not None:
        raise ValueError(
            f'Parameter "{name}" was passed to the constructor and at call time.'
            " Should be passed just once."
        )
    return b if a is None else a


def share_scope(module: Any, other: Any, /) -> None:
    """Let two modules have one path: ``other``'s, unless that is below ``module``'s.

    Raises:
        CallShareScopeOnUnboundModuleError: one of them is not bound.
    """
    if module.scope is None or other.scope is None:
        raise errors.CallShareScopeOnUnboundModuleError()
    around = other.scope
    while around is not None and around is not module.scope:
        around = around.parent
    guest, scope = (other, module.scope) if around is not None else (module, other.scope)
    left = guest.scope
    object.__setattr__(guest, "scope", scope)
    for child in guest._state.children.values():
        child_scope = getattr(child, "scope", None)
        if child_scope is not None and child_scope.parent == left:
            if isinstance(child_scope.name, str):
                scope.reserve(child_scope.name)  # raises where both have such a child
            child_scope.parent = scope
