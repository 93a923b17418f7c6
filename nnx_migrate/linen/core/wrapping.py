"""What happens around every method of a module: decorators, and the wrapper that runs it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

from flax import config, errors

from nnx_migrate.linen.core.tree import is_module

_named_call = config.flax_profile


def named_call_enabled() -> bool:
    """Whether methods run under `jax.named_scope`."""
    return bool(_named_call)


def set_named_call(enable: bool) -> bool:
    """Switch named scopes on or off; returns what was before."""
    global _named_call
    before, _named_call = bool(_named_call), enable
    return before


def compact(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Mark the method of a module in which submodules and variables may be made where they are used.

    At most one compact method of a module may run in a call.
    """
    fun.compact = True  # type: ignore[attr-defined]
    return fun


def nowrap(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a method that is called as it stands: no `setup` before it, no scope, no interceptors."""
    fun.nowrap = True  # type: ignore[attr-defined]
    return fun


def compact_name_scope(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Make a method compact, its submodules and variables below a name of its own: the method's."""
    name = fun.__name__

    @functools.wraps(fun)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not hasattr(self, "_compact_name_scope_modules"):
            raise ValueError(
                f"Cannot call compact_name_scope method {name!r} on a Module that has not been "
                f"setup: {name!r} was called from outside of init or apply."
            )
        return self._compact_name_scope_modules[name](*args, **kwargs)

    wrapper.compact_name_scope = True  # type: ignore[attr-defined]
    wrapper.inner_fun = fun  # type: ignore[attr-defined]
    wrapper.nowrap = True  # type: ignore[attr-defined]
    return wrapper


def get_fn_name(fn: Any) -> str:
    """The name of a function, also of a partial one."""
    while isinstance(fn, functools.partial):
        fn = fn.func
    return getattr(fn, "__name__", "unnamed_function")


def derive_profiling_name(module: Any, fn: Any) -> str:
    """What a profile calls the method: the module's name, with the method's unless `__call__`."""
    name = get_fn_name(fn)
    return (module.name or type(module).__name__) + ("" if name == "__call__" else f".{name}")


def get_unbound_fn(method_or_fn: Any) -> Callable[..., Any]:
    """A function that takes the module first, also from a method of an instance.

    Raises:
        ApplyModuleInvalidMethodError: it is no such function.
    """
    if inspect.ismethod(method_or_fn) and is_module(method_or_fn.__self__):
        method_or_fn = method_or_fn.__func__
    if not callable(method_or_fn) or not inspect.signature(method_or_fn).parameters:
        raise errors.ApplyModuleInvalidMethodError(method_or_fn)
    function: Callable[..., Any] = method_or_fn
    return function


def wrap_method_once(fun: Callable[..., Any]) -> Callable[..., Any]:
    """The method, run by its module; a method that is wrapped already stays as it is.

    The wrapper has to be the innermost one: transformations are put around it.
    """
    if hasattr(fun, "method_handler_wrapped"):
        return fun

    @functools.wraps(fun)
    def wrapped_module_method(*args: Any, **kwargs: Any) -> Any:
        # A callable in the class's body need not be a method: then it goes as it came.
        if args and is_module(args[0]):
            return args[0]._call_wrapped_method(fun, args[1:], kwargs)
        return fun(*args, **kwargs)

    wrapped_module_method.method_handler_wrapped = True  # type: ignore[attr-defined]
    return wrapped_module_method


def local_method_names(cls: type, exclude: Iterable[str] = ()) -> tuple[str, ...]:
    """Methods written in the class itself, without class methods, static methods and classes."""
    return tuple(
        name
        for name, value in vars(cls).items()
        if callable(value)
        and not inspect.isclass(value)
        and not isinstance(value, staticmethod | classmethod)
        and name not in exclude
    )


def local_descriptor_names(cls: type, exclude: Iterable[str] = ()) -> tuple[str, ...]:
    """Properties and other descriptors written in the class itself."""
    return tuple(
        name
        for name, value in vars(cls).items()
        if not callable(value)
        and any(hasattr(value, hook) for hook in ("__get__", "__set__", "__delete__"))
        and not isinstance(value, staticmethod | classmethod)
        and name not in exclude
    )


class DescriptorWrapper:
    """A descriptor of a module whose AttributeErrors do not look like a missing attribute.

    Python would otherwise ask ``__getattr__`` for the property itself, and hide what really failed.
    """


def wrap_descriptor_once(descriptor: Any) -> Any:
    """The descriptor in a `DescriptorWrapper` that has the same hooks; wrapped ones stay."""
    if isinstance(descriptor, DescriptorWrapper):
        return descriptor
    hooks = ("__set__", "__delete__", "__set_name__")
    body = {name: _forward(name) for name in hooks if hasattr(descriptor, name)}
    if hasattr(descriptor, "__get__"):
        body["__get__"] = _get
    if hasattr(descriptor, "__isabstractmethod__"):
        body["__isabstractmethod__"] = descriptor.__isabstractmethod__
    body["__getattr__"] = _wrapped_attribute
    wrapper = type("DescriptorWrapper", (DescriptorWrapper,), body)()
    vars(wrapper)["wrapped"] = descriptor
    return wrapper


def _get(self: Any, *args: Any) -> Any:
    try:
        return self.wrapped.__get__(*args)
    except AttributeError as error:
        raise errors.DescriptorAttributeError() from error


def _forward(name: str) -> Callable[..., Any]:
    def forward(self: Any, *args: Any) -> Any:
        return getattr(self.wrapped, name)(*args)

    return forward


def _wrapped_attribute(self: Any, name: str) -> Any:
    if "wrapped" not in vars(self):
        raise AttributeError(name)
    return getattr(self.wrapped, name)


def wrap_hash(hash_fn: Callable[[Any], int]) -> Callable[[Any], int]:
    """The hash of a module's fields, with errors that say what cannot be hashed."""
    if getattr(hash_fn, "checks_module", False):
        return hash_fn

    @functools.wraps(hash_fn)
    def wrapper(self: Any) -> int:
        if self.scope is not None:
            raise TypeError("Can't call __hash__ on modules that hold variables.")
        if self._nnm_is_built:
            return id(self)
        try:
            return hash_fn(self)
        except TypeError as error:
            raise TypeError(
                "Failed to hash Flax Module.  The module probably contains unhashable attributes."
                f"  Module={self}"
            ) from error

    wrapper.checks_module = True  # type: ignore[attr-defined]
    return wrapper


def wrap_eq(eq_fn: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Equality by fields of definitions; of modules that hold variables, identity.

    Two models with the same fields and other weights are not the same static argument.
    """
    if getattr(eq_fn, "checks_module", False):
        return eq_fn

    @functools.wraps(eq_fn)
    def wrapper(self: Any, other: Any) -> Any:
        if self is not other and (self._nnm_is_built or getattr(other, "_nnm_is_built", False)):
            return False
        return eq_fn(self, other)

    wrapper.checks_module = True  # type: ignore[attr-defined]
    return wrapper
