"""What can be lifted: a module class, a method where it is written, a function of a module.

A transform here is a function of scope functions, ``transform(fn, **options)``, that gives a
function ``(scopes, *args)``. Names and behaviour are those of ``flax/linen/transforms.py`` (flax
0.12.8).
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from flax import errors, traceback_util
from flax.core.scope import LazyRng

from nnx_migrate.linen.core.tree import is_module
from nnx_migrate.linen.core.wrapping import get_unbound_fn, wrap_method_once

from .fingerprint import HashableProxy
from .modules import Apart, Rebuilder, refuse_modules, take_apart

traceback_util.register_exclusion(__file__)

Transform = Callable[..., Any]


def lift_transform(
    transform: Transform, target: Any, *args: Any, methods: Any = None, **kwargs: Any
) -> Any:
    """Lifts a module class, or a function that takes a module first.

    Args:
      transform: makes a function of scopes out of one, given ``*args`` and ``**kwargs`` too.
      target: a module class, a ``functools.partial`` of one, or a function or method.
      methods: of a class, the names of the methods to lift (``__call__`` if not given), or a
        dict from names to keyword arguments of the transform.

    Raises:
      TransformTargetError: the target is a module.
      ValueError: ``methods`` is something else.
    """
    return _lift(_LiftedMethod, transform, target, args, methods, kwargs)


def lift_transform_cached(
    transform: Transform, target: Any, *, methods: Any = None, **kwargs: Any
) -> Any:
    """``lift_transform`` for transforms that keep what they traced from call to call.

    The transform's function takes ``(scopes, proxy, *args)``, the proxy being hashable and equal
    for modules that behave the same (``HashableProxy``).
    """
    return _lift(_LiftedOnce, transform, target, (), methods, kwargs)


def lift_direct_transform(
    transform: Transform,
    targets: Sequence[Callable[..., Any]],
    mdl: Any,
    *args: Any,
    multi_scope: bool = True,
    **kwargs: Any,
) -> Any:
    """Lifts functions of a module and calls the result: ``transform(*fns, scopes, *args)``.

    Raises:
      ValueError: a target is a module class, or cannot be called.
    """
    for target in targets:
        if is_module_class(target):
            raise ValueError(
                f"The {transform.__name__} transform can only be applied on a Module method. That "
                "is function that takes a Module instance as its first arg."
            )
        if not callable(target):
            raise ValueError("transform target must be callable")  # noqa: TRY004

    def partial(*fns: Callable[..., Any]) -> Callable[..., Any]:
        return functools.partial(transform, *fns)

    fns = tuple(map(get_unbound_fn, targets))
    return lift_function(partial, fns, multi_scope=multi_scope)(mdl, *args, **kwargs)


def lift_function(
    transform: Transform, fn: Any, *args: Any, multi_scope: bool = True, **kwargs: Any
) -> Callable[..., Any]:
    """Lifts a function, or several of the same arguments, that take a module first.

    Args:
      multi_scope: whether the module may reach other modules that are not its children. Without
        it the transform's function gets one scope.
    """
    fns = fn if isinstance(fn, tuple) else (fn,)
    lifted_function = _LiftedMethod(transform, fns, args, kwargs)
    lifted_function.multi_scope = multi_scope
    return lifted_function.method()


def is_module_class(target: Any) -> bool:
    """Whether the target is a class of modules, or a ``functools.partial`` of one."""
    while isinstance(target, functools.partial):
        target = target.func
    return inspect.isclass(target) and getattr(target, "_try_setup", None) is not None


class _LiftedMethod:
    """One method, or several functions of the same arguments, under a transform.

    Args:
      cls: of a method of a lifted class, the class without the lift; None for functions, which
        are still to be run by the module they are called with.
    """

    multi_scope = True

    def __init__(
        self,
        transform: Transform,
        fns: tuple[Callable[..., Any], ...],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        cls: type | None = None,
    ) -> None:
        self.cls = cls
        self.fns = fns if cls is not None else tuple(map(wrap_method_once, fns))
        self.names = [getattr(fn, "__name__", None) for fn in fns]

        def transform_call(cores: Iterable[Callable[..., Any]]) -> Any:
            return transform(*cores, *args, **kwargs)

        self.transform = transform_call

    def method(self) -> Callable[..., Any]:
        """The lifted method, for the body of a class or to be called with a module."""

        @functools.wraps(self.fns[0])
        def lifted_method(module: Any, *args: Any, **kwargs: Any) -> Any:
            if module.scope is None:
                module = module._nnm_bound_here() or module
            if module.scope is None and module._nnm_is_built_here(self.names[0], args, kwargs):
                return getattr(module, str(self.names[0]))(*args, **kwargs)
            return self.call(module, args, kwargs)

        return lifted_method

    def call(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The method of ``module`` under the transform."""
        state = module._state.export()
        apart = take_apart(module, args, kwargs)

        def core_fn(fn: Any, name: str | None, scopes: Any, /, *args: Any, **kwargs: Any) -> Any:
            return self.inside(fn, name, module, state, apart, scopes, args, kwargs)

        cores = map(functools.partial, itertools.repeat(core_fn), self.fns, self.names)
        return self.transform(cores)(self.scopes_of(apart), *apart.args, **apart.kwargs)

    def scopes_of(self, apart: Apart) -> Any:
        """The scopes as the transform takes them."""
        if self.multi_scope:
            return apart.scopes
        if len(apart.scopes) != 1:
            raise NotImplementedError(
                "This transform does not yet support Modules that include other Modules passed "
                "as arguments."
            )
        return apart.scopes[0]

    def inside(
        self,
        fn: Callable[..., Any],
        name: str | None,
        module: Any,
        state: Any,
        apart: Apart,
        scopes: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """The function of the module that lives in the inner scopes; runs while jax traces."""
        rebuild = Rebuilder(apart, scopes if self.multi_scope else [scopes])
        args, kwargs = rebuild.arguments(args, kwargs)
        inner = rebuild.module(module, self.cls)
        object.__setattr__(inner, "_state", state.export())
        out = fn(inner, *args, **kwargs)
        module._state.reimport(inner._state)
        refuse_modules(out, name)
        return out


class _LiftedOnce(_LiftedMethod):
    """The same, with a transform that is made once and keeps what it traced."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._transformed: Callable[..., Any] | None = None
        self._calls = _Calls()

    def call(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The method of ``module``; what was traced for a module like it serves again."""
        if module.scope is None and self.cls is not None:
            raise AssertionError("a lifted method needs a module that is bound to variables")
        state = module._state.export()
        with _forked_rngs(module):
            if self._transformed is None:
                self._transformed = self.transform(self._cores(state))
            apart = take_apart(module, args, kwargs)
            proxy = HashableProxy.from_module(module)
            self._calls.stack.append((module, apart))
            try:
                return self._transformed(apart.scopes, proxy, *apart.args, **apart.kwargs)
            finally:
                self._calls.stack.pop()

    def _cores(self, state: Any) -> list[Callable[..., Any]]:
        """The function for the transform; it is traced for whichever call runs at that time."""

        def core_fn(scopes: Any, _: HashableProxy, /, *args: Any, **kwargs: Any) -> Any:
            module, apart = self._calls.stack[-1]
            (fn,), (name,) = self.fns, self.names
            return self.inside(fn, name, module, state, apart, scopes, args, kwargs)

        # jax shows the name in programs; Linen gives those of methods, and this one for classes.
        return [core_fn if self.cls is not None else functools.wraps(self.fns[0])(core_fn)]


class _Calls(threading.local):
    """The calls of a lifted method that run in this thread: module, and what it was taken into."""

    def __init__(self) -> None:
        self.stack: list[tuple[Any, Apart]] = []


@contextlib.contextmanager
def _forked_rngs(module: Any) -> Iterator[None]:
    """Gives the module new keys for one call, so that the traced function may fold its own in."""
    scope = module.scope
    if scope is None:
        yield
        return
    before = scope.rngs.copy()
    scope.rngs = {name: LazyRng.create(scope.make_rng(name)) for name in before}
    try:
        yield
    finally:
        scope.rngs = before


def _lift(
    kind: type[_LiftedMethod],
    transform: Transform,
    target: Any,
    args: tuple[Any, ...],
    methods: Any,
    kwargs: dict[str, Any],
) -> Any:
    if is_module_class(target):
        return _lift_class(kind, transform, target, _per_method(methods, args, kwargs))
    if callable(target) and not is_module(target):
        fns = target if isinstance(target, tuple) else (target,)
        return kind(transform, fns, args, kwargs).method()
    raise errors.TransformTargetError(target)


def _per_method(
    methods: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, tuple[tuple[Any, ...], dict[str, Any]]]:
    """The transform's arguments for each method of a class that is to be lifted."""
    if methods is None:
        methods = ("__call__",)
    if isinstance(methods, list | tuple):
        return dict.fromkeys(methods, (args, kwargs))
    if isinstance(methods, dict):
        return {name: ((), options) for name, options in methods.items()}
    raise ValueError("transform methods argument must be None, tuple, list, or dict.")


def _lift_class(
    kind: type[_LiftedMethod], transform: Transform, target: Any, per_method: dict[str, Any]
) -> Any:
    """A subclass with lifted methods, named as Linen names it: that is part of variables' paths."""
    if isinstance(target, functools.partial):
        lifted = _lift_class(kind, transform, target.func, per_method)
        return functools.partial(lifted, *target.args, **target.keywords)
    body = {
        name: kind(transform, (getattr(target, name),), args, kwargs, cls=target).method()
        for name, (args, kwargs) in per_method.items()
    }
    name = transform.__name__.capitalize() + target.__name__
    return type(target)(name, (target,), {"__module__": target.__module__, **body})
