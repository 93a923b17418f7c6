"""`lazy`: an explicit NNX class inside lazy and functional code.

``lazy(MlpBlock)(width)(x)`` is Linen's call of a class whose constructor asks for sizes and ``rngs``:
the first call takes the sizes from its inputs and makes the variables, at Linen's path and from
Linen's keys. What the constructor asks for beyond sizes are the fields.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, cast

import jax
from flax import nnx
from flax.core import meta

from nnx_migrate import nn as nnm
from nnx_migrate import sharding
from nnx_migrate.linen.core import inside
from nnx_migrate.linen.core.members import carried, members_of
from nnx_migrate.linen.core.module import Module
from nnx_migrate.linen.core.sizes.declaration import Size
from nnx_migrate.linen.core.sizes.names import NamedSize, size_by_name
from nnx_migrate.linen.core.sizes.solving import solve, solve_part
from nnx_migrate.linen.core.wrapping import nowrap
from nnx_migrate.linen.spmd import LogicallyPartitioned

# Beside the counters of the scope's own keys: what calls drew, and how often it was made.
_DRAWN, _ROUNDS = "explicit draws", "explicit rounds"
_ABSTRACT, _PARTS = "explicit module", "explicit parts"


class _Meta(type(Module)):  # type: ignore[misc]
    """Lazy forms are subclasses of each other as the explicit classes are."""

    _explicit: Any
    _declared: Any

    def __subclasscheck__(cls, other: type) -> bool:
        own = vars(cls).get("_explicit")
        if own is None:
            return type.__subclasscheck__(cls, other)
        return issubclass(getattr(other, "_explicit", other), own)

    def __instancecheck__(cls, instance: Any) -> bool:
        return cls.__subclasscheck__(type(instance))

    def __call__(cls, /, *args: Any, **kwargs: Any) -> Any:
        """A definition; what it is given is a field, also where its name reads as a size."""
        sizes = vars(cls).get("_sizes", {})
        given = [name for name in kwargs if isinstance(sizes.get(name), NamedSize)]
        if not given:
            return super().__call__(*args, **kwargs)
        return _lazy(cls._explicit, cls._declared, frozenset(given))(*args, **kwargs)


class ExplicitInLazy(Module, metaclass=_Meta):
    """A lazy module whose calls are those of an explicit one; see `lazy`."""

    _sizes: ClassVar[Mapping[str, Size]] = {}
    _optional: ClassVar[frozenset[str]] = frozenset()
    _declared: ClassVar[tuple[tuple[str, Size], ...]] = ()

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Definitions are made anew from their fields: their class has no module of its own."""
        if self.scope is not None or self._is_built:
            return super().__reduce_ex__(protocol)
        fields = {name: getattr(self, name) for name in (*self._fields, "name")}
        return _restored, (self._explicit_class(), type(self)._declared, fields)

    @nowrap
    def _explicit_class(self) -> Any:
        raise NotImplementedError

    def __getattr__(self, name: str) -> Any:
        is_private = name.startswith("_") and not hasattr(self._explicit_class(), name)
        if self.scope is None or is_private or name.startswith("__"):
            return super().__getattr__(name)
        return inside.read(self, (), name)

    @nowrap
    def _call_explicit(self, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        held = self._held()
        first = self.scope.is_mutable_collection("params") and (
            not self._holds_own(held) or self._lacks_parameters(held)
        )
        make = self._constructor(method, args, kwargs, None if first else held)
        made = None
        if first:
            model = self._built(make, self._round(), **self._spare(make))
            made = inside.merged(nnm.variables_with(model, _call(method, args, kwargs)), held)
            held = inside.merged(nnm.variables_of(model), held)  # as they were before the call
        model = nnm.abstract(make)
        lacking = set()
        if self.scope.mutable and not first:  # looking for places walks the whole module
            lacking = inside.lacking(model, held, self.scope.is_mutable_collection)
        if lacking:
            # It has the first values of state that is not held yet; its parameters nobody reads.
            spare = {} if "params" in self.scope.rngs else {"params": jax.random.key(0)}
            model = self._built(make, 0, **spare)
        if lacking and method == "__call__":  # which reaches all of it
            held = inside.merged(inside.chosen(nnm.variables_of(model), lacking, None), held)
        is_again = not (first or lacking)
        return self._applied(model, method, held, made, args, kwargs, is_again=is_again)

    @nowrap
    def _holds_own(self, held: dict[str, Any]) -> bool:
        """Whether something is held that no lazy module in the same scope (`share_scope`) has made."""
        taken = self.scope.reservations
        return any(name not in taken for part in held.values() for name in part)

    @nowrap
    def _lacks_parameters(self, held: dict[str, Any]) -> bool:
        """Whether only parts of the module were made in this call, when code called them."""
        if _PARTS not in self.scope.rng_counters:
            return False
        return inside.lacks_parameters(self._abstract(), (), held)

    @nowrap
    def _round(self) -> int:
        """How often the module was made in this place before."""
        counters = self.scope.rng_counters
        counters[_ROUNDS] = counters.get(_ROUNDS, -1) + 1
        return int(counters[_ROUNDS])

    def _with_explicit(self, function: Callable[[Any], Any], part: inside.Path, calls: bool) -> Any:
        """A function of the explicit module that reads one part of it, or calls it."""
        held, model = self._held(), self._abstract()
        made = None
        makes = self.scope.is_mutable_collection("params")
        if makes and inside.lacks_parameters(model, part, held, calls):
            run = function if calls else None
            make = self._part_constructor(held, run)
            built = self._built(make, 0)
            below = inside.place_of(model, part) if calls else None
            wanted = inside.places(model, part, calls)
            made, held = (
                inside.merged(inside.chosen(every, wanted, below), held)
                for every in (nnm.variables_with(built, run), nnm.variables_of(built))
            )
            model = nnm.abstract(make)
            del self.scope.rng_counters[_ABSTRACT]  # more variables show its sizes
            self.scope.rng_counters[_PARTS] = 1
        return self._applied(model, function, held, made, (), {})

    @nowrap
    def _applied(
        self,
        model: Any,
        method: Any,
        held: Any,
        made: Any,
        args: Any,
        kwargs: Any,
        *,
        is_again: bool = False,
    ) -> Any:
        """A call with the variables held; the scope is given those made, and what the call changed."""
        scope, path = self.scope, self._scope_path()
        draws = scope.rng_counters.setdefault(_DRAWN, {})
        draws.update({(path, name): number for name, number in self._drawn().items()})
        outputs, changed = nnm.apply(
            model,
            held,
            *args,
            rngs=self._streams(),
            method=method,
            mutable=scope.mutable or (),
            scope_path=path,
            draws=draws,
            is_init=self.is_initializing(),
            is_again=is_again,
            **kwargs,
        )
        scope.rng_counters.update({name: draws[path, name] for name in scope.rngs})
        # What the call drew from streams shows in what it changed alone.
        made = inside.merged(held if made is None else made, changed)
        for collection, part in made.items():
            if scope.is_mutable_collection(collection):
                for name, value in part.items():
                    scope.put_variable(collection, name, _linens_boxes(value))
        return outputs

    @nowrap
    def _held(self) -> dict[str, Any]:
        """The variables that the scope holds, by collection."""
        return {col: self.scope._collection(col) for col in self.scope.root._variables}

    @nowrap
    def _streams(self) -> dict[str, Any]:
        return {name: rng.rng for name, rng in self.scope.rngs.items()}

    @nowrap
    def _scope_path(self) -> tuple[str, ...]:
        return next((rng.suffix for rng in self.scope.rngs.values()), self.scope.path)

    @nowrap
    def _built(self, make: Callable[..., Any], rounds: int, **spare: Any) -> Any:
        drawn = self._drawn()
        built = nnm.build(
            make,
            rngs={**self._streams(), **spare},
            scope_path=self._scope_path(),
            rounds=rounds,
            drawn=drawn,
        )
        self.scope.rng_counters.update(drawn)
        return built

    @nowrap
    def _spare(self, make: Callable[..., Any]) -> dict[str, Any]:
        """A key for modules without parameters, which Linen's ``init`` asks for none."""
        if "params" in self.scope.rngs or nnx.state(nnm.abstract(make), nnx.Param):
            return {}
        return {"params": jax.random.key(0)}

    @nowrap
    def _drawn(self) -> dict[str, int]:
        """How many keys of the scope itself were drawn: by the module, and by what else shares it."""
        counters = self.scope.rng_counters
        return {name: counters.get(name, 0) for name in self.scope.rngs}

    @nowrap
    def _abstract(self) -> Any:
        """The explicit module without values; its sizes are those that the variables show."""
        counters = self.scope.rng_counters
        if _ABSTRACT not in counters:
            counters[_ABSTRACT] = nnm.abstract(self._part_constructor(self._held(), None))
        return counters[_ABSTRACT]

    @nowrap
    def _part_constructor(self, held: dict[str, Any], run: Any) -> Callable[..., Any]:
        """The class with its arguments, for code that reads a part of it or calls one by ``run``."""
        fields = {field: getattr(self, field) for field in self._fields}
        make = functools.partial(self._explicit_class(), **fields)
        sizes, optional = type(self)._sizes, type(self)._optional
        if not sizes:
            return make
        key = _alike(make, "", (), {}, held) if run is None else None
        found = _known.get(key) if key is not None else None
        if found is None:
            found = solve_part(make, sizes, optional, held, run)
            if key is not None and len(_known) < _MOST:
                _known[key] = found
        return functools.partial(make, **found)

    @nowrap
    def _constructor(
        self, method: str, args: tuple[Any, ...], kwargs: Any, held: Any
    ) -> Callable[..., Any]:
        """The class with all its arguments but ``rngs``; sizes are found once for calls alike."""
        sizes = type(self)._sizes
        fields = {field: getattr(self, field) for field in self._fields}
        make = functools.partial(self._explicit_class(), **fields)
        if not sizes:
            return make
        key = _alike(make, method, args, kwargs, held)
        found = _known.get(key) if key is not None else None
        if found is None:
            found = solve(make, sizes, type(self)._optional, method, args, kwargs, held)
            if key is not None and len(_known) < _MOST:
                _known[key] = found
        return functools.partial(make, **found)


def _call(method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[[Any], Any]:
    return lambda model: getattr(model, method)(*args, **kwargs)


def _linens_boxes(value: Any) -> Any:
    """Names of arrays in the boxes that Linen's callers ask for: ``isinstance(x, nn.Partitioned)``."""
    if isinstance(value, Mapping):  # a tree's map would sort the names
        return {name: _linens_boxes(one) for name, one in value.items()}
    return jax.tree.map(_linens_box, value, is_leaf=meta.is_axis_metadata)


def _linens_box(one: Any) -> Any:
    """The box of ``nnx_migrate.linen`` for one of ``nnx_migrate.nn``."""
    if type(one) is sharding.LogicallyPartitioned:
        return LogicallyPartitioned(one.value, one.names, mesh=cast(Any, one.mesh), rules=one.rules)
    if type(one) is sharding.Partitioned:
        return meta.Partitioned(one.value, one.names, mesh=cast(Any, one.mesh))
    return one


_MOST = 4096  # kinds of calls whose sizes are remembered
_known: dict[Any, dict[str, Any]] = {}


def _alike(
    make: functools.partial[Any], method: str, args: Any, kwargs: Any, held: Any
) -> Any | None:
    """A key that calls with the same sizes have; None where what they are given cannot be one."""
    try:
        leaves, tree = jax.tree.flatten((args, kwargs, held))
        shapes = tuple(
            (one.shape, one.dtype) if hasattr(one, "dtype") else (type(one), one) for one in leaves
        )
        key = (make.func, tuple(make.keywords.items()), method, tree, shapes)
        hash(key)
    except TypeError:
        return None
    return key


def lazy(cls: Any, **sizes: Size) -> Any:
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


def as_lazy(value: Any) -> Any:
    """The lazy class of an explicit one, and any other value as it is.

    For what is taken by a name that only the running program knows: ``as_lazy(getattr(models, name))``.
    """
    is_module = isinstance(value, type) and issubclass(value, nnx.Module)
    return lazy(value) if is_module else value


def explicit(module: Any, *args: Any, rngs: Any, **kwargs: Any) -> Any:
    """The explicit module that ``lazy(Class)(...)`` stands for, built.

    It holds what ``module.init(rngs, *args, **kwargs)`` gives: the sizes are those of the inputs.

    Args:
      module: an instance of a class that `lazy` made, outside of other modules.
      rngs: a key, or keys by stream, as Linen's ``init`` takes them.

    Raises:
      TypeError: it is no such instance.
    """
    if not isinstance(module, ExplicitInLazy):
        raise TypeError(f"expected lazy(Class)(...), found {type(module).__name__}")
    return nnm.build(module._constructor("__call__", args, kwargs, None), rngs=rngs)


@functools.cache
def _lazy(
    cls: Any, declared: tuple[tuple[str, Size], ...], fields: frozenset[str] = frozenset()
) -> Any:
    """See `lazy`; ``fields`` have names of sizes."""
    has_own = cls.__init__ is not nnx.Module.__init__  # an interface has none
    found = inspect.signature(cls.__init__).parameters if has_own else {}
    parameters = dict(list(found.items())[1:])
    parameters.pop("rngs", None)
    inputs = frozenset(inspect.signature(cls.__call__).parameters)
    sizes = dict(declared)
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
        annotated = parameter.annotation is not inspect.Parameter.empty
        annotations[name] = parameter.annotation if annotated else Any
        body[name] = _field(parameter)
    for name, value in members_of(cls).items():
        if name not in body:
            body[name] = carried(cls, name, value, frozenset(annotations))
    optional = {name for name in sizes if parameters[name].default is not inspect.Parameter.empty}
    body |= {
        "__annotations__": annotations,
        "__qualname__": cls.__qualname__,
        "_sizes": sizes,
        "_optional": frozenset(optional),
        "_declared": declared,
        "_explicit_class": nowrap(lambda self: cls),
        "_explicit": cls,
    }
    make: Any = _Meta
    return make(cls.__name__, (ExplicitInLazy,), body)


def _field(parameter: inspect.Parameter) -> Any:
    only = parameter.kind is parameter.KEYWORD_ONLY
    if parameter.default is parameter.empty:
        return dataclasses.field(kw_only=only)
    if type(parameter.default).__hash__ is None:  # dataclasses refuse these
        return dataclasses.field(default_factory=lambda: parameter.default, kw_only=only)
    return dataclasses.field(default=parameter.default, kw_only=only)


def _restored(cls: Any, declared: tuple[tuple[str, Size], ...], fields: dict[str, Any]) -> Any:
    return _lazy(cls, declared)(**fields, parent=None)
