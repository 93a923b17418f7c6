"""Trees of lazy modules and of Linen modules that stay Linen.

Linen looks for the module around a new one on its own stack, and asks whether it is a Linen module.
So a lazy module shows itself there as a `host`: a Linen module with the lazy one's scope and state.
The other way round, a lazy module in a field or in the `setup` of a Linen module is bound when it is
first called. Everything below rests on flax 0.12.8 to 0.12.12, linen/module.py and core/scope.py.
"""

from __future__ import annotations

import functools
from typing import Any

from nnx_migrate.linen.core.context import SharedStack, context, linen_module
from nnx_migrate.linen.core.scope import Scope
from nnx_migrate.linen.core.tree import modules_in


def is_linen(module: Any) -> bool:
    """Whether ``module`` is a module of flax.linen and no lazy one."""
    return is_linen_class(type(module))


def is_linen_class(cls: type) -> bool:
    """Whether ``cls`` is a class of flax.linen's modules and of no lazy ones."""
    linen = linen_module()
    return linen is not None and issubclass(cls, linen.Module) and not hasattr(cls, "_nnm_is_built")


def parent_for(child: Any, parent: Any) -> Any:
    """``parent`` as ``child`` has to see it."""
    return host(parent) if is_linen(child) else parent


def host(module: Any) -> Any:
    """The Linen module that stands for a lazy one; what is a Linen module stands for itself."""
    linen: Any = linen_module()
    if isinstance(module, linen.Module):
        return module
    found = vars(module).get("_linen_host")
    if found is None:
        found = object.__new__(_host_class())
        object.__setattr__(found, "lazy", module)
        object.__setattr__(module, "_linen_host", found)
    return found


class _LinenTwin:
    """First base of a twin: keeps hooks of the user's and of Linen from seeing it."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        pass


def class_to_make(cls: Any) -> Any:
    """The class itself, or inside a Linen module's method its twin that Linen takes for a module.

    Linen lifts what it recognises as a module, with its scope. A definition made outside of all
    modules needs no twin: it is bound where it is called.
    """
    if not is_linen(context.innermost):
        return cls
    return _twin(cls)


@functools.cache
def _twin(cls: Any) -> Any:
    linen: Any = linen_module()
    if issubclass(cls, linen.Module):
        return cls
    body = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
    return type(cls)(cls.__name__, (_LinenTwin, cls, linen.Module), body)


SharedStack.host = staticmethod(host)


@functools.cache
def _host_class() -> Any:
    linen: Any = linen_module()

    class Host(linen.Module):  # type: ignore[misc]
        """Passes on what a new Linen module asks its parent."""

    Host.scope = property(lambda self: flax_scope(self.lazy.scope))
    Host._state = property(lambda self: self.lazy._state)
    Host.name = property(lambda self: self.lazy.name)
    return Host


def flax_scope(scope: Any) -> Any:
    """A scope of flax at the same place: same variables, names and counters."""
    if not isinstance(scope, Scope):
        return scope
    from flax.core.scope import Scope as FlaxScope

    found = FlaxScope(
        scope._variables,
        rngs=scope.rngs,
        name=scope.name,
        mutable=scope.mutable,
        parent=scope.parent,
        path=scope.path,
        debug_path=scope.debug_path,
        flags=scope.flags,
    )
    found.rng_counters = scope.rng_counters
    found.reservations = scope.reservations
    if scope.parent is None:
        # The tree's root is the scope of ours: its collections may grow after this view was made.
        found._root = scope  # type: ignore[assignment]
    return found


def bound_in_linen(module: Any) -> Any:
    """The bound copy of a lazy module that a Linen module holds and now calls; None for others.

    The child's name is that of the attribute which holds it, as if Linen itself had found it there.
    """
    parent = context.innermost
    if parent is None or not is_linen(parent) or parent.scope is None:
        return None
    # Linen copies its own modules for every call and shares the rest: ours are copied here.
    bound = vars(parent).setdefault("_lazy_children", {})
    if module._id not in bound:
        name = _attribute_of(module, parent)
        if name is None:
            return None
        in_setup, parent._state.in_setup = parent._state.in_setup, True
        try:
            bound[module._id] = module.clone(parent=parent, name=name, _deep_clone=True)
        finally:
            parent._state.in_setup = in_setup
    return bound[module._id]


def _attribute_of(module: Any, parent: Any) -> str | None:
    for attribute, value in vars(parent).items():
        if attribute.startswith("_") or attribute in ("scope", "name", "parent"):
            continue
        for suffix, submodule in modules_in(value):
            if submodule is module:
                return module.name or f"{attribute}{suffix}"
    return None
