"""What runs the explicit class of a lazy module: calls with the variables and keys of its scope."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import jax
from flax import nnx
from flax.core import meta

from nnx_migrate import nn as nnm
from nnx_migrate import sharding
from nnx_migrate.linen.core import submodule_views
from nnx_migrate.linen.core.context import context
from nnx_migrate.linen.core.lazy_submodules import LazySubmodules, on_trial
from nnx_migrate.linen.core.sizes.declaration import UnknownSize
from nnx_migrate.linen.core.sizes.guards import refusal
from nnx_migrate.linen.core.sizes.sizing import Sizing
from nnx_migrate.linen.core.sizes.trials import class_of, giving_keys
from nnx_migrate.linen.spmd import LogicallyPartitioned
from nnx_migrate.nn.calls.initial import called_on
from nnx_migrate.nn.calls.objects import replayable
from nnx_migrate.nn.seeding.draw_owners import DrawCounts
from nnx_migrate.nn.streams.linen_streams import set_streams
from nnx_migrate.nn.variables.sharing import is_lazy

# Beside the counters of the scope's own keys: those of the scopes below it, by path and stream.
_DRAWN = "explicit draws"
_ABSTRACT, _PARTS, _WHOLE = "explicit module", "explicit parts", "explicit whole"


@dataclass(frozen=True)
class ExplicitCalls:
    """The explicit class in a scope of lazy code.

    Attributes:
      scope: what holds the variables and keys, and counts the keys that are drawn.
      sizing: the class with its fields, and where its sizes come from.
    """

    scope: Any
    sizing: Sizing

    def call(self, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a method; one that may makes the variables that are not held."""
        args, kwargs = replayable((args, kwargs))
        with on_trial(self.scope, self.scope_variables(), self.sizing.fields) as lazy:
            try:
                model, variables, made, lacking = self._prepare_call(method, args, kwargs, lazy)
            except Exception:
                sizing = self.sizing
                own = refusal(sizing.make, sizing.sizes, method, args, kwargs)
                if own is None:
                    raise
                raise own from None
        run = method if method == "__call__" else functools.partial(self._handing, method)
        is_again = made is None and not lacking
        return self._apply(
            model, run, variables, made, args, kwargs, is_again=is_again, lacking=lacking
        )

    def _give_keys(self, model: Any) -> None:
        """Give a module on trial the keys of the call, whose draws may decide what it reaches."""
        path = self._path()
        draws = self.scope.rng_counters.get(_DRAWN, {})
        own = {(path, name): number for name, number in self._key_counts().items()}
        set_streams(model, self._streams(), path, {**draws, **own})

    def _with_keys(self, run: Callable[[Any], Any], model: Any) -> Any:
        self._give_keys(model)
        return run(model)

    def _handing(self, method: str, model: Any, *args: Any, **kwargs: Any) -> Any:
        """Run a method of a copy of the module; a lazy submodule that it returns is found inside of this one."""
        value = getattr(model, method)(*args, **kwargs)
        return submodule_views.to_linen_value(self, model, value) if is_lazy(value) else value

    def _prepare_call(
        self, method: str, args: tuple[Any, ...], kwargs: dict[str, Any], lazy: LazySubmodules
    ) -> tuple[Any, dict[str, Any], dict[str, Any] | None, set[submodule_views.Place]]:
        """The module without values, the variables before the call, those it makes, and where it had
        none before that it makes."""
        variables = self.scope_variables()
        with giving_keys(self._give_keys):
            make, first = self._maker(
                variables, functools.partial(self.sizing.for_call, method, args, kwargs)
            )
        made = None
        if first:
            is_part = self._holds_own(variables)
            absent = (
                submodule_views.missing_places(nnm.abstract(make), variables) if is_part else None
            )
            model, draw_counts = self._build_module(make, absent, **self._spare(make))
            run = functools.partial(self._with_keys, called_on(method, args, kwargs))
            call_variables = nnm.variables_with(model, run, lazy.places)
            self._count(draw_counts, call_variables)
            made = submodule_views.merge(call_variables, variables)
            # before the call
            variables = submodule_views.merge(self._mutable(nnm.variables_of(model)), variables)
            self.scope.rng_counters[_WHOLE] = 1
        model = nnm.abstract(make)
        lacking: set[submodule_views.Place] = set()
        if self.scope.mutable and not first:  # looking for places walks the whole module
            lacking = submodule_views.missing_state(
                model, variables, self.scope.is_mutable_collection
            )
        if lacking:
            # It has the first values of state that is not held yet; its parameters nobody reads.
            model, draw_counts = self._build_module(make, lacking)
        if lacking and method == "__call__":  # which reaches all of it
            call_variables = submodule_views.select(nnm.variables_of(model), lacking, None)
            self._count(draw_counts, call_variables)
            variables = submodule_views.merge(call_variables, variables)
        return model, variables, made, lacking

    def with_part(
        self,
        function: Callable[[Any], Any],
        part: submodule_views.Path,
        calls: bool,
        input_shapes: tuple[tuple[int, ...], ...] = (),
    ) -> Any:
        """A function of the explicit module that reads one part of it, or calls it.

        Args:
          input_shapes: the shapes of the inputs of that call.
        """
        with on_trial(self.scope, self.scope_variables(), self.sizing.fields):
            model, variables, made = self._prepare_part(function, part, calls, input_shapes)
        return self._apply(model, function, variables, made, (), {})

    def _prepare_part(
        self,
        function: Callable[[Any], Any],
        part: submodule_views.Path,
        calls: bool,
        input_shapes: tuple[tuple[int, ...], ...],
    ) -> tuple[Any, dict[str, Any], dict[str, Any] | None]:
        """The module without values, the variables it has, and those that reading the part makes."""
        variables, model = self.scope_variables(), self.abstract(input_shapes)
        made = None
        makes = self.scope.is_mutable_collection("params")
        if makes and submodule_views.lacks_parameters(model, part, variables, calls):
            run = function if calls else None
            below = submodule_views.place_of(model, part) if calls else None
            places = submodule_views.places(model, part, calls)
            with _with_size_note(self.sizing.make, part):
                make = self.sizing.for_part(variables, run, input_shapes)
                built, draw_counts = self._build_module(make)
                call_variables, whole = (
                    submodule_views.select(every, places, below)
                    for every in (nnm.variables_with(built, run), nnm.variables_of(built))
                )
            self._count(draw_counts, call_variables)
            made, variables = (
                submodule_views.merge(call_variables, variables),
                submodule_views.merge(whole, variables),
            )
            model = nnm.abstract(make)
            self.scope.rng_counters.pop(_ABSTRACT, None)  # more variables show its sizes
            self.scope.rng_counters[_PARTS] = 1
        return model, variables, made

    def scope_variables(self) -> dict[str, Any]:
        """The variables that the scope holds, by collection."""
        return {name: self.scope._collection(name) for name in self.scope.root._variables}

    def abstract(self, input_shapes: tuple[tuple[int, ...], ...] = ()) -> Any:
        """The explicit module without values; its sizes are those that the variables show.

        Args:
          input_shapes: the shapes of a call's inputs, which one of the module itself may have.
        """
        with on_trial(self.scope, self.scope_variables(), self.sizing.fields):
            if input_shapes and any(size.is_whole for size in self.sizing.sizes.values()):
                return nnm.abstract(
                    self.sizing.for_part(self.scope_variables(), None, input_shapes)
                )
            counters = self.scope.rng_counters
            if _ABSTRACT not in counters:
                counters[_ABSTRACT] = nnm.abstract(
                    self.sizing.for_part(self.scope_variables(), None)
                )
            return counters[_ABSTRACT]

    def _apply(
        self,
        model: Any,
        method: Any,
        variables: Any,
        new_variables: Any,
        args: Any,
        kwargs: Any,
        *,
        is_again: bool = False,
        lacking: Collection[submodule_views.Place] = (),
    ) -> Any:
        """A call with the variables held; the scope is given those made, and what the call changed."""
        scope, path = self.scope, self._path()
        draws = scope.rng_counters.setdefault(_DRAWN, {})
        draws.update({(path, name): number for name, number in self._key_counts().items()})
        lazy = LazySubmodules(scope, variables, self.sizing.fields)
        with context.outside(), context.binding(lazy.bind):
            outputs, changes = nnm.apply(
                model,
                variables,
                *args,
                rngs=self._streams(),
                method=method,
                mutable=scope.mutable or (),
                scope_path=path,
                draws=draws,
                is_init=scope.get_flag("initializing", False),
                is_again=is_again,
                new_paths=lacking,
                **kwargs,
            )
        scope.rng_counters.update({name: draws[path, name] for name in scope.rngs})
        # What the call drew from streams shows in what it changed alone.
        new_variables = submodule_views.merge(
            variables if new_variables is None else new_variables, changes
        )
        lazy.hand_back()
        for collection, part in lazy.without_unmade(new_variables).items():
            if scope.is_mutable_collection(collection):
                for name, value in part.items():
                    scope.put_variable(collection, name, _linens_boxes(value))
        lazy.hand_over()
        return outputs

    # ---- which variables there are

    def _holds_own(self, variables: dict[str, Any]) -> bool:
        """Whether something is held that no lazy module in the same scope (`share_scope`) has made."""
        reservations = self.scope.reservations
        return any(name not in reservations for part in variables.values() for name in part)

    def _maker(
        self, variables: dict[str, Any], make_for: Callable[[Any], Callable[..., Any]]
    ) -> tuple[Callable[..., Any], bool]:
        """The class with its sizes, and whether it makes parameters: all of them, or some that lack.

        Those are held that the caller gave, or that parts made which code called.
        """
        makes, counters = self.scope.is_mutable_collection("params"), self.scope.rng_counters
        if makes and not self._holds_own(variables):
            return make_for(None), True
        if makes and _PARTS in counters:
            first = submodule_views.lacks_parameters(self.abstract(), (), variables)
            return make_for(None if first else variables), first
        if not makes:
            return make_for(variables), False
        if _WHOLE in counters:  # this call may have what the first lacked: a flag, an input
            make = make_for(variables)
            return make, submodule_views.lacks_parameters(nnm.abstract(make), (), variables)
        try:
            make = make_for(variables)
        except UnknownSize:
            return make_for(None), True  # it shows in what lacks
        if submodule_views.lacks_parameters(nnm.abstract(make), (), variables):
            return make_for(None), True
        return make, False

    def _mutable(self, variables: dict[str, Any]) -> dict[str, Any]:
        """Those that the call may make."""
        mutable = self.scope.is_mutable_collection
        return {name: part for name, part in variables.items() if mutable(name)}

    # ---- building, with the scope's keys

    def _build_module(
        self,
        make: Callable[..., Any],
        lacking: set[submodule_views.Place] | None = None,
        **spare: Any,
    ) -> tuple[Any, DrawCounts]:
        """The module with values, and how many keys each scope has drawn if the call reaches it."""
        path = self._path()
        draw_counts: DrawCounts = {
            ((), name): number for name, number in self._key_counts().items()
        }
        for (where, name), number in self.scope.rng_counters.get(_DRAWN, {}).items():
            if len(where) > len(path) and where[: len(path)] == path:
                draw_counts[where[len(path) :], name] = number
        rngs = {**self._streams(), **spare}
        built = nnm.build(
            make, rngs=rngs, scope_path=path, draw_counts=draw_counts, lacking=lacking
        )
        return built, draw_counts

    def _count(self, draw_counts: DrawCounts, call_variables: Mapping[str, Any]) -> None:
        """Count the keys that the scope itself drew, and those below it whose variables are made."""
        counters, path = self.scope.rng_counters, self._path()
        counters.update(
            {
                name: n
                for (where, name), n in draw_counts.items()
                if not where and name in self.scope.rngs
            }
        )
        below = counters.setdefault(_DRAWN, {})
        for (where, name), number in draw_counts.items():
            if where and any(
                submodule_views.holds(tree, where) for tree in call_variables.values()
            ):
                below[(*path, *where), name] = number

    def _spare(self, make: Callable[..., Any]) -> dict[str, Any]:
        """A key for modules without parameters, which Linen's ``init`` asks for none."""
        if "params" in self.scope.rngs or nnx.state(nnm.abstract(make), nnx.Param):
            return {}
        return {"params": jax.random.key(0)}

    def _streams(self) -> dict[str, Any]:
        return {name: rng.rng for name, rng in self.scope.rngs.items()}

    def _path(self) -> tuple[str, ...]:
        return next((rng.suffix for rng in self.scope.rngs.values()), self.scope.path)

    def _key_counts(self) -> dict[str, int]:
        """How many keys of the scope itself were drawn: by the module, and by what else shares it."""
        counters = self.scope.rng_counters
        return {name: counters.get(name, 0) for name in self.scope.rngs}


@contextlib.contextmanager
def _with_size_note(make: Any, part: submodule_views.Path) -> Iterator[None]:
    """Let errors of a part's first call say what an explicit class cannot do."""
    try:
        yield
    except (TypeError, ValueError) as error:
        where = "/".join(map(str, part)) or "it"
        error.add_note(
            f"{class_of(make).__name__} is explicit: {where} has the sizes that its constructor gives"
            " it, and not those of the first call, as Linen's has. Call it with inputs of such sizes,"
            " or keep the class lazy (`rewrite --form lazy`)."
        )
        raise


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
