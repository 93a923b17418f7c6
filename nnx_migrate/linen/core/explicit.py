"""`lazy_class`: an explicit NNX class inside lazy and functional code.

``lazy(MlpBlock)(width)(x)`` is Linen's call of a class whose constructor asks for sizes and ``rngs``:
the first call takes the sizes from its inputs and makes the variables, at Linen's path and from
Linen's keys. What the constructor asks for beyond sizes are the fields.
"""

from __future__ import annotations

import copyreg
import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar

from flax import errors, nnx
from flax.nnx.pytreelib import PytreeState

from nnx_migrate import nn as nnm
from nnx_migrate.linen.core import submodule_views
from nnx_migrate.linen.core.build import build
from nnx_migrate.linen.core.explicit_calls import ExplicitCalls
from nnx_migrate.linen.core.lazy_submodules import on_trial
from nnx_migrate.linen.core.lifecycle import unbound_error
from nnx_migrate.linen.core.members import lazy_member, members_of, plain_bases
from nnx_migrate.linen.core.module import Module
from nnx_migrate.linen.core.scope import Scope
from nnx_migrate.linen.core.sizes.declaration import Size
from nnx_migrate.linen.core.sizes.names import size_by_name
from nnx_migrate.linen.core.sizes.sizing import Sizing
from nnx_migrate.linen.core.wrapping import nowrap
from nnx_migrate.nn.variables.sharing import definitions_in

C = TypeVar("C")


class _Meta(type(Module)):  # type: ignore[misc]
    """Lazy forms are subclasses of each other as the explicit classes are."""

    _nnm_explicit: Any
    _nnm_size_declarations: Any

    def __subclasscheck__(cls, other: type) -> bool:
        own = vars(cls).get("_nnm_explicit")
        if own is None:
            return type.__subclasscheck__(cls, other)
        return issubclass(getattr(other, "_nnm_explicit", other), own)

    def __instancecheck__(cls, instance: Any) -> bool:
        return cls.__subclasscheck__(type(instance))

    def __setattr__(cls, name: str, value: Any) -> None:
        """Refuse to replace a member: modules that explicit code builds would still have the old one."""
        if "_nnm_is_made" in vars(cls) and hasattr(cls._nnm_explicit, name):
            raise AttributeError(
                f"{name} of lazy({cls.__name__}) cannot be set: explicit code builds {cls.__name__} itself. Set it "
                f"on {cls._nnm_explicit.__module__}.{cls.__name__}, or rewrite that with `--form lazy`."
            )
        super().__setattr__(name, value)

    def __call__(cls, /, *args: Any, **kwargs: Any) -> Any:
        """A definition; what it is given is a field, also where its name reads as a size."""
        size_names = vars(cls).get("_nnm_sizes", {}).keys() & kwargs.keys()
        if not size_names:
            return super().__call__(*args, **kwargs)
        return _lazy(cls._nnm_explicit, cls._nnm_size_declarations, frozenset(size_names))(
            *args, **kwargs
        )


class ExplicitInLazy(Module, metaclass=_Meta):
    """A lazy module whose calls are those of an explicit one; see `lazy_class`."""

    _nnm_sizes: ClassVar[Mapping[str, Size]] = {}
    _nnm_optional: ClassVar[frozenset[str]] = frozenset()
    _nnm_size_declarations: ClassVar[tuple[tuple[str, Size], ...]] = ()
    _nnm_constructor_fields: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        values = {name: getattr(self, name) for name in self._nnm_fields}
        changes = _set_after_init(self._nnm_explicit_class(), values)
        # The constructor runs `__post_init__` itself, so it takes the values from before.
        vars(self)["_nnm_before"] = {name: values[name] for name in changes}
        for name, value in changes.items():
            setattr(self, name, value)
        super().__post_init__()

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Definitions are made anew from their fields: their class has no module of its own."""
        if self.scope is not None or self._nnm_is_built:
            return super().__reduce_ex__(protocol)
        fields = {name: getattr(self, name) for name in (*self._nnm_fields, "name")}
        return _restore, (self._nnm_explicit_class(), type(self)._nnm_size_declarations, fields)

    @nowrap
    def _nnm_explicit_class(self) -> Any:
        raise NotImplementedError

    def __getattr__(self, name: str) -> Any:
        is_private = name.startswith("_") and not hasattr(self._nnm_explicit_class(), name)
        if self.scope is None or is_private or name.startswith("__"):
            return super().__getattr__(name)
        return submodule_views.read(self._nnm_calls(), (), name)

    @nowrap
    def _nnm_field_values(self) -> dict[str, Any]:
        before: dict[str, Any] = vars(self).get("_nnm_before", {})
        # Of its own class: code may make subclasses, ``type("Named", (lazy(Net),), {...})``.
        own = type(self)._nnm_constructor_fields
        return {name: getattr(self, name) for name in self._nnm_fields if name in own} | before

    @nowrap
    def _nnm_sizing(self) -> Sizing:
        make = functools.partial(self._nnm_explicit_class(), **self._nnm_field_values())
        return Sizing(make, type(self)._nnm_sizes, type(self)._nnm_optional)

    @nowrap
    def _nnm_calls(self) -> ExplicitCalls:
        return ExplicitCalls(self.scope, self._nnm_sizing())

    @nowrap
    def _nnm_call_unbound(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a method that needs fields alone, as Linen does for classes with `setup`."""
        module = _with_fields_alone(self._nnm_explicit_class(), self._nnm_field_values())
        try:
            return getattr(module, name)(*args, **kwargs)
        except AttributeError as lack:
            if not isinstance(lack.obj, self._nnm_explicit_class()):
                raise
            raise unbound_error(self, CallCompactUnboundModuleError) from lack


class CallCompactUnboundModuleError(errors.CallCompactUnboundModuleError, AttributeError):
    """Linen raises the first where the class is compact, the second where it has `setup`."""

    def __init__(self) -> None:
        Exception.__init__(self, *errors.CallCompactUnboundModuleError().args)  # flax's text


def lazy_class(cls: Any, **sizes: Size) -> Any:
    """The lazy class of an explicit one, for places that build and call modules as Linen does.

    Args:
      cls: a class of `flax.nnx.Module`; one that is lazy already, as ``nn.remat(lazy(Block))`` is, is
        its own lazy class.
      sizes: where each size comes from. Keyword-only arguments (without a default, or with None or a
        truth value) need not be listed if their names say it: ``in_features``, ``x_shape``,
        ``head_in_features``; see `nnx_migrate.linen.core.sizes.names`.

    Raises:
      TypeError: it is no such class, or its constructor takes ``*args`` or ``**kwargs``.
    """
    if not isinstance(cls, type) or not issubclass(cls, nnx.Module):
        raise TypeError(f"expected a class of flax.nnx.Module to make lazy, found {cls!r}")
    return cls if issubclass(cls, Module) else _lazy(cls, tuple(sorted(sizes.items())))


def lazily(decorator: Callable[[Any], Any], **sizes: Size) -> Callable[[C], C]:
    """A decorator that gives another one the lazy class, and leaves the explicit one as it is.

    For what keeps classes for others to build: ``@lazily(register("mlp"))``.

    Args:
      decorator: it is called with the lazy class; what it returns is left aside.
      sizes: as of `lazy_class`.
    """

    def decorate(cls: C) -> C:
        decorator(lazy_class(cls, **sizes))
        return cls

    return decorate


def explicit(module: Any, *args: Any, rngs: Any, **kwargs: Any) -> Any:
    """The explicit module that ``lazy(Class)(...)`` stands for, built.

    It holds what ``module.init(rngs, *args, **kwargs)`` gives: the sizes are those of the inputs.

    Args:
      module: an instance of a class that `lazy_class` made, outside of other modules.
      rngs: a key, or keys by stream, as Linen's ``init`` takes them.

    Raises:
      TypeError: it is no such instance.
    """
    if not isinstance(module, ExplicitInLazy):
        raise TypeError(f"expected lazy(Class)(...), found {type(module).__name__}")
    keys = rngs if isinstance(rngs, Mapping) else {"params": rngs}
    sizing = module._nnm_sizing()
    scope = Scope({}, keys, mutable=True, flags={"initializing": True})
    with on_trial(scope, {}, sizing.fields):
        make = sizing.for_call("__call__", args, kwargs, None)
    model = nnm.build(make, rngs=rngs)
    return build(model, *args, rngs=rngs, **kwargs) if definitions_in(model) else model


@functools.cache
def _lazy(
    cls: Any, declarations: tuple[tuple[str, Size], ...], fields: frozenset[str] = frozenset()
) -> Any:
    """See `lazy_class`; ``fields`` have names of sizes."""
    has_own = cls.__init__ is not nnx.Module.__init__  # an interface has none
    found = inspect.signature(cls.__init__).parameters if has_own else {}
    parameters = {name: found[name] for name in _by_class(cls) if name in found}
    inputs = frozenset(inspect.signature(cls.__call__).parameters)
    sizes = dict(declarations)
    annotations: dict[str, Any] = {}
    body: dict[str, Any] = {"__module__": cls.__module__, "__doc__": cls.__doc__}
    for name, parameter in parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise TypeError(
                f"{cls.__qualname__}: a lazy class needs named arguments, found *{name}"
            )
        if name in sizes:
            continue
        size = size_by_name(parameter, inputs)
        if size is not None and name not in fields:
            sizes[name] = size
            continue
        has_annotation = parameter.annotation is not inspect.Parameter.empty
        annotations[name] = parameter.annotation if has_annotation else Any
        body[name] = _field(parameter)
    for name, value in members_of(cls).items():
        if name not in body:
            body[name] = lazy_member(cls, name, value, frozenset(annotations))
    optional = {name for name in sizes if parameters[name].default is not inspect.Parameter.empty}
    body |= {
        "__annotations__": annotations,
        "__qualname__": cls.__qualname__,
        "_nnm_sizes": sizes,
        "_nnm_optional": frozenset(optional),
        "_nnm_size_declarations": declarations,
        "_nnm_constructor_fields": frozenset(annotations),
        "_nnm_explicit_class": nowrap(lambda self: cls),
        "_nnm_explicit": cls,
    }
    bases = plain_bases(cls)
    if any(vars(one).get("_is_protocol") for one in bases):
        body["_is_protocol"] = False  # as their hook would say
    meta: Any = _Meta
    made = meta(cls.__name__, (ExplicitInLazy, *bases), body)
    # What the class overrides under a private name stays with it, and is no less there.
    made.__abstractmethods__ = getattr(cls, "__abstractmethods__", frozenset())
    made._nnm_is_made = True
    return made


def _by_class(cls: Any) -> list[str]:
    """The constructor's arguments but ``rngs`` in the order of Linen's fields: those of a base first."""
    bases = [one for one in reversed(cls.__mro__) if issubclass(one, nnx.Module)]
    makers = [vars(one)["__init__"] for one in bases if "__init__" in vars(one)]
    every = (name for one in makers for name in [*inspect.signature(one).parameters][1:])
    return [name for name in dict.fromkeys(every) if name != "rngs"]


def _set_after_init(cls: Any, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that the ``__post_init__`` of an explicit class changes; what it refuses is refused here.

    The constructor runs it too, but only in the first call, which knows the sizes. A callable may hold the
    module that it ran on here, which nobody else has.
    """
    check = getattr(cls, "__post_init__", None)
    if check is None:
        return {}
    module = _with_fields_alone(cls, fields)
    check(module)
    found = {name: vars(module)[name] for name in fields.keys() & vars(module).keys()}
    return {
        name: value
        for name, value in found.items()
        if value is not fields[name] and not callable(value)
    }


def _with_fields_alone(cls: Any, fields: Mapping[str, Any]) -> Any:
    """An instance as NNX makes it before its constructor runs, with values for the fields."""
    module = object.__new__(cls)
    vars(module).update(fields, _pytree__state=PytreeState(), _pytree__nodes=cls._pytree__nodes)
    return module


def _field(parameter: inspect.Parameter) -> Any:
    only = parameter.kind is parameter.KEYWORD_ONLY
    if parameter.default is parameter.empty:
        return dataclasses.field(kw_only=only)
    if type(parameter.default).__hash__ is None:  # dataclasses refuse these
        return dataclasses.field(default_factory=lambda: parameter.default, kw_only=only)
    return dataclasses.field(default=parameter.default, kw_only=only)


def _reduce(cls: Any) -> Any:
    """How pickle finds a lazy class: by the explicit one; others by their names, as any class."""
    own = vars(cls).get("_nnm_explicit")
    return cls.__qualname__ if own is None else (_lazy, (own, cls._nnm_size_declarations))


copyreg.pickle(_Meta, _reduce)


def _restore(cls: Any, declarations: tuple[tuple[str, Size], ...], fields: dict[str, Any]) -> Any:
    return _lazy(cls, declarations)(**fields, parent=None)
