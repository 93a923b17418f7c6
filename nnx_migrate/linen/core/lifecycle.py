"""The life of a module: definition, binding, setup, calls, copies.

A definition holds fields and nothing else. `Lifecycle.__post_init__` binds it to a scope as soon as
its parent and name are known; `setup` runs at the first use after that; every method runs between
`_call_wrapped_method`'s entry and exit. flax 0.12.8: linen/module.py.
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable
from typing import Any, Self

import jax
from flax import config, errors
from flax.ids import uuid

from nnx_migrate.linen.core import linen_interop
from nnx_migrate.linen.core.context import CallInfo, InterceptorContext, context
from nnx_migrate.linen.core.scope import TestScope, adopted_modules, is_scope
from nnx_migrate.linen.core.state import (
    UNINITIALIZED,
    UNSPECIFIED_PARENT,
    CallState,
    SetupState,
)
from nnx_migrate.linen.core.tree import freeze_attr, is_module, map_modules, map_submodules
from nnx_migrate.linen.core.wrapping import (
    derive_profiling_name,
    get_fn_name,
    named_call_enabled,
    wrap_method_once,
)

_COPY_AND_PICKLE = frozenset(
    {
        "__getstate__",
        "__setstate__",
        "__getnewargs_ex__",
        "__reduce__",
        "__reduce_ex__",
        "__copy__",
        "__deepcopy__",
    }
)


class Lifecycle:
    """Naming, binding, setup and calls of a module."""

    _nnm_fields: tuple[str, ...] = ()  # constructor's fields, without parent and name
    _compact_name_scope_methods: tuple[str, ...] = ()
    _state: CallState = UNINITIALIZED
    _nnm_is_built = False
    _nnm_keeps_name = False  # also when an attribute adopts it
    _parent_ref: Any = None
    scope: Any = None
    parent: Any
    name: str | None
    _id: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "_id", uuid())
        object.__setattr__(self, "_state", CallState())
        if self.parent is UNSPECIFIED_PARENT:
            object.__setattr__(self, "parent", context.innermost)
        parent = self.parent
        if parent is None:
            return  # bound later: as an attribute of a module, or by init, apply and bind
        if is_module(parent):
            if parent._state.in_setup and self.name is None:
                return  # named by the attribute that it is assigned to
            self._nnm_attach(parent)
        elif is_scope(parent):
            object.__setattr__(self, "scope", parent)
        else:
            raise ValueError("parent must be None, Module or Scope")
        if self.scope is not None:
            for field in self._nnm_fields:
                self._register_submodules(field, getattr(self, field))
            recorder = context.recorder
            if recorder is not None:
                recorder.modules.setdefault(self.scope.path, self)
        self._state.is_initialized = True

    def _nnm_attach(self, parent: Any) -> None:
        """Become a child of ``parent``: take a name, and a scope below its scope."""
        if not parent._initialization_allowed:
            raise errors.AssignSubModuleError(type(self).__name__)
        state = parent._state
        if self.name is None:
            prefix = type(self).__name__
            number = state.autoname_cursor.get(prefix, 0)
            self.name = f"{prefix}_{number}"
            state.autoname_cursor[prefix] = number + 1
        # Inside a transformation `setup` runs a second time, over the scopes of the first.
        reuse = state.in_setup and state.setup_called == SetupState.TRANSFORMED
        if parent._name_taken(self.name, reuse_scopes=reuse):
            raise errors.NameInUseError("submodule", self.name, type(parent).__name__)
        state.children[self.name] = self
        object.__setattr__(self, "scope", parent.scope.push(self.name, reuse=reuse))

    # --- attributes

    def __setattr__(self, name: str, val: Any) -> None:
        if not self._state.in_setup:
            if not self._state.is_initialized or name.startswith("__"):
                object.__setattr__(self, name, val)
                return
            raise errors.SetAttributeFrozenModuleError(type(self).__name__, name, val)
        if name in self._nnm_fields or name in ("parent", "name"):
            raise errors.SetAttributeInModuleSetupError()
        self._register_submodules(name, val)

    def __getattr__(self, name: str) -> Any:
        # Reached when the attribute is not there: `setup` may not have run yet.
        if name in _COPY_AND_PICKLE:
            raise AttributeError(name)
        self._try_setup()
        if name in vars(self):
            return vars(self)[name]
        message = f'"{type(self).__name__}" object has no attribute "{name}".'
        if self.scope is None:
            message += (
                f" If \"{name}\" is defined in '.setup()', remember these fields are only"
                " accessible from inside 'init' or 'apply', or after"
                " nnx_migrate.linen.build(module, *inputs, rngs=...)."
            )
        raise AttributeError(message)

    def __dir__(self) -> list[str]:
        self._try_setup()
        return list(object.__dir__(self))

    def _register_submodules(self, name: str, val: Any) -> None:
        """Set an attribute; modules in it become children with names made from the attribute's."""
        guests = adopted_modules(self.scope)
        keeps_names = getattr(
            type(self), "preserve_adopted_names", config.flax_preserve_adopted_names
        )
        new: list[Any] = []

        def adopt(suffix: str, module: Any) -> Any:
            own_name = None
            if module.parent is None:
                # It was made outside of any module: what is bound is a copy, one for all who hold it.
                if keeps_names or getattr(type(module), "_nnm_keeps_name", False):
                    own_name = object.__getattribute__(module, "name")
                key = module._id
                if key not in guests:
                    module = module.clone(name=None)
                    guests[key] = module
                module = guests[key]
            if module.name is None:
                object.__setattr__(module, "parent", linen_interop.parent_for(module, self))
                object.__setattr__(module, "name", own_name or f"{name}{suffix}")
                new.append(module)
            return module

        object.__setattr__(self, name, freeze_attr(map_modules(adopt, val)))
        for module in new:
            module.__post_init__()

    # --- setup

    def setup(self) -> None:
        """Make submodules and variables before the first method runs; to be overridden."""

    def _try_setup(self, shallow: bool = False) -> None:
        """Run `setup` if the module is bound and it has not run; shallow: bind fields only."""
        state = self._state
        if not self.scope or state.in_setup or state.setup_called == SetupState.DONE:
            return
        try:
            state.in_setup = True
            for field in self._nnm_fields:
                self._register_submodules(field, getattr(self, field))
            if not shallow:
                self.setup()
                self._nnm_make_compact_name_scopes()
            elif state.setup_called == SetupState.NEW:
                self._validate_setup()
        finally:
            state.in_setup = False
            if not shallow:
                state.setup_called = SetupState.DONE

    def _nnm_make_compact_name_scopes(self) -> None:
        raise NotImplementedError  # in Module: it makes modules

    def _validate_setup(self) -> None:
        """Run `setup` abstractly, so that its errors come before those of a transformation."""

        def run(x: Any) -> Any:
            with TestScope({}, rngs={}, mutable=True).temporary() as root:
                return wrap_method_once(lambda module, x: x)(self.clone(parent=root), x)

        jax.eval_shape(run, 0)

    def _name_taken(
        self, name: str, reuse_scopes: bool = False, collection: str | None = None
    ) -> bool:
        return not reuse_scopes and self.scope.name_reserved(name, collection)

    @property
    def _initialization_allowed(self) -> bool:
        state = self._state
        return not state.is_initialized or state.in_setup or state.in_compact_method

    # --- calls

    def _call_wrapped_method(
        self, fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Run a method: `setup` before it, the module on the stack, names free again after it."""
        if self.scope is None:
            bound = self._nnm_bound_here()
            if bound is not None:
                return bound._call_wrapped_method(fun, args, kwargs)
            if self._nnm_is_built_here(get_fn_name(fun), args, kwargs):
                return getattr(self, get_fn_name(fun))(*args, **kwargs)
        state = self._state
        name = get_fn_name(fun)
        is_setup, is_compact = name == "setup", hasattr(fun, "compact")
        if is_setup:
            if self.scope is None:
                raise errors.CallSetupUnboundModuleError()
            is_recurrent, state.in_setup = state.in_setup, True
        else:
            self._try_setup()
        if is_compact:
            if self.scope is None:
                return self._nnm_call_unbound(name, args, kwargs)
            is_recurrent, state.in_compact_method = state.in_compact_method, True
        stack = context.module_stack
        stack.append(self)
        try:
            return self._nnm_run(fun, name, args, kwargs, is_setup)
        finally:
            stack.pop()
            if is_compact:
                object.__setattr__(self, "scope", self.scope.rewound())
            # A method may call its base class's: then the outer one is still running.
            if (is_compact or is_setup) and not is_recurrent:
                state.reset()

    def _nnm_bound_here(self) -> Any:
        """The bound copy of a definition that a Linen or an explicit module holds whose call runs, or None."""
        return linen_interop.bound_in_linen(self) or context.bound(self)

    def _nnm_is_built_here(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether the explicit module that holds a definition is being built, and this call builds it."""
        builder = context.builder
        return builder is not None and builder(self, name, args, kwargs)

    def _nnm_call_unbound(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        raise unbound_error(self)

    def _nnm_run(
        self, fun: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], is_setup: bool
    ) -> Any:
        infos = context.call_info_stack
        is_tabulated = bool(infos) and not is_setup
        # As Linen's tabulate: a copy that no module owns runs elsewhere, but has no row.
        assert not is_tabulated or self.scope is not None, (
            f"{type(self).__name__} is bound to no module"
        )
        index = infos[-1].get_call_index() if is_tabulated else 0
        run = functools.partial(run_interceptors, fun) if context.interceptors else fun
        label = (
            jax.named_scope(derive_profiling_name(self, fun))
            if named_call_enabled()
            else contextlib.nullcontext()
        )
        with label:
            result = run(self, *args, **kwargs)
        captures = context.capture_stack
        if captures and captures[-1] and captures[-1](self, name):
            self.sow("intermediates", name, result)
        if is_tabulated:
            self._nnm_note_call(infos[-1], index, fun.__name__, args, kwargs, result)
        return result

    def _nnm_note_call(
        self, infos: Any, index: int, name: str, args: Any, kwargs: Any, y: Any
    ) -> None:
        from nnx_migrate.linen.core.tables.values import represent_tree

        args, kwargs, y = represent_tree((args, kwargs, y))
        scope = self.scope
        infos.calls.append(
            CallInfo(
                index, scope.path, self.clone(), scope.rngs, scope.mutable, name, args, kwargs, y
            )
        )

    # --- copies

    def clone(
        self,
        *,
        parent: Any = None,
        _deep_clone: Any = False,
        _reset_names: bool = False,
        **updates: Any,
    ) -> Self:
        """A definition with the same fields but for ``updates``, bound to ``parent`` if given.

        ``_deep_clone``: copy the modules in fields too, each once (a mapping: the copies so far).
        ``_reset_names``: without their names.
        """
        attrs = {field: getattr(self, field) for field in self._nnm_fields}
        attrs["name"] = self.name
        attrs |= {"parent": parent, **updates}
        if _deep_clone is not False:
            copies = weakref.WeakValueDictionary() if _deep_clone is True else _deep_clone
            options = {"_reset_names": True, "name": None} if _reset_names else {}

            def copy(module: Any) -> Any:
                if not hasattr(module, "_id"):
                    return module  # its __post_init__ has not run, or it stands in for one
                if module._id not in copies:
                    # Bound to a name before it is stored: the mapping alone would not keep it.
                    made = module.clone(_deep_clone=copies, **options)
                    copies[module._id] = made
                    return made
                return copies[module._id]

            for field, value in attrs.items():
                if field != "parent":
                    attrs[field] = map_submodules(copy, value)
        made: Self = self._nnm_definition_class()(**attrs)
        return made

    def copy(
        self, *, parent: Any = UNSPECIFIED_PARENT, name: str | None = None, **updates: Any
    ) -> Self:
        """A deep copy with other fields, a child of the running module unless told otherwise."""
        return self.clone(parent=parent, name=name, _deep_clone=True, _reset_names=False, **updates)

    @classmethod
    def _nnm_definition_class(cls) -> Any:
        return cls


def unbound_error(
    module: Any, error_class: Callable[[], Exception] = errors.CallCompactUnboundModuleError
) -> Exception:
    """What calls raise that need variables, of a module to which nothing has given them."""
    error = error_class()
    kind = type(module).__name__
    error.add_note(
        f"{kind} has no variables yet. Call it inside another module, through {kind}(...).init and"
        " .apply, or build it first: nnx_migrate.linen.build(module, *inputs, rngs=...)."
    )
    return error


def run_interceptors(
    orig_method: Callable[..., Any], module: Any, *args: Any, **kwargs: Any
) -> Any:
    """Run a method inside of all interceptors, the one entered last innermost."""
    bound = functools.partial(orig_method, module)
    info = InterceptorContext(module, get_fn_name(orig_method), bound)
    fun: Callable[..., Any] = bound
    for interceptor in context.interceptors:
        fun = _with_interceptor(interceptor, fun, info)
    return fun(*args, **kwargs)


def _with_interceptor(interceptor: Any, fun: Callable[..., Any], info: Any) -> Callable[..., Any]:
    @functools.wraps(fun)
    def call_interceptor(*args: Any, **kwargs: Any) -> Any:
        return interceptor(fun, args, kwargs, info)

    return call_interceptor
