"""``linen.map_variables`` of parameters: a module that computes with a view of what it stores."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from flax import nnx

from nnx_migrate.nn.building.factory import Factory
from nnx_migrate.nn.lifts.methods import lift_calls, lift_factory
from nnx_migrate.nn.lifts.pure import PureCall
from nnx_migrate.nn.variables.linen_variables import leaves, nested
from nnx_migrate.nn.variables.parts import Parts, Values, take_apart

T = TypeVar("T")
Trans = Callable[[dict[str, Any]], Any]
_PREFIX = "Map_variables"
_COLLECTION = "params"
_MARK = "_maps_variables"


def map_variables(
    target: T,
    *,
    trans_in_fn: Trans = lambda variables: variables,
    trans_out_fn: Trans = lambda variables: variables,
) -> T:
    """``target`` whose call sees ``trans_in_fn`` of the stored parameters.

    Of a class: a subclass ``Map_variables<class>`` that stores what Linen's initial call with
    ``init=True`` does: ``trans_out_fn`` of the initial parameters, seen through ``trans_in_fn`` and
    stored by ``trans_out_fn`` once more. Of a function that takes the module first: a function with the
    same parameters; what its module stores stays as it is (flax 0.12.8, linen/transforms.py and
    core/lift.py).

    Args:
      target: an ``nnx.Module`` class, a ``functools.partial`` of one, a factory of built-in layers, or
        a function.
      trans_in_fn, trans_out_fn: from ``{"params": nested dict of arrays}`` to one of the same paths;
        arrays may get other values, shapes and dtypes.

    Raises:
      TypeError: ``target`` is none of these.
      ValueError: paths changed, the call changed a parameter, or a submodule stores what another
        ``map_variables`` made (Linen stores such parameters once more for every level).
    """
    functions = (trans_out_fn, trans_in_fn, trans_out_fn)
    options: Mapping[str, Any] = {"trans_in_fn": trans_in_fn}
    if isinstance(target, functools.partial):
        inner = map_variables(target.func, trans_in_fn=trans_in_fn, trans_out_fn=trans_out_fn)
        return cast(T, functools.partial(inner, *target.args, **target.keywords))
    if isinstance(target, Factory):
        factory: Factory[Any, Any] = target

        def make(*args: Any, **kwargs: Any) -> Any:
            layer = factory(*args, **kwargs)
            _store(layer, functions, kwargs.get("rngs"))
            return layer

        def lifted(kind: type[Any]) -> type[Any]:
            return lift_calls(kind, _PREFIX, _mapped, options, marks={_MARK: True})

        return cast(T, lift_factory(factory, _PREFIX, make, lifted))
    found = lift_calls(target, _PREFIX, _mapped, options, marks={_MARK: True})
    if isinstance(target, type):
        _store_at_the_end(cast(type[Any], found), target, functions)
    return found


def _store_at_the_end(kind: type[Any], target: type[Any], functions: tuple[Trans, ...]) -> None:
    @functools.wraps(target.__init__)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        target.__init__(self, *args, **kwargs)
        _store(self, functions, kwargs.get("rngs"))

    kind.__init__ = __init__


def _store(module: nnx.Module, functions: tuple[Trans, ...], rngs: Any) -> None:
    """Replace the initial parameters by what is stored."""
    kinds = [type(one) for _, one in nnx.iter_modules(module)] + list(type(module).__mro__[1:])
    if sum(_MARK in vars(kind) for kind in kinds) > 1:
        raise ValueError(
            f"{type(module).__name__} has parameters that map_variables maps twice: expected one"
        )
    streams = [rngs[name] for name in rngs] if isinstance(rngs, nnx.Rngs) else [rngs]
    if any(getattr(one, "only_structure", False) for one in streams):
        return  # layers of a stack may be missing, and nobody needs the values
    parts = take_apart((module,))
    values = parts.values()
    for function, name in zip(
        functions, ("trans_out_fn", "trans_in_fn", "trans_out_fn"), strict=True
    ):
        values |= _view(parts, values, function, name)
    parts.put_back(values)


def _mapped(function: Callable[..., Any], options: Mapping[str, Any]) -> Callable[..., Any]:
    """``function(module, ...)`` on a copy that holds the view."""

    @functools.wraps(function)
    def call(module: Any, *args: Any, **kwargs: Any) -> Any:
        lifted = PureCall.of(module, args, kwargs)
        parts, values = lifted.parts, lifted.parts.values()
        view = _view(parts, values, options["trans_in_fn"], "trans_in_fn")
        start = values | view | parts.random_state()
        outputs, changed = lifted.changes(function, start, lifted.args, lifted.kwargs)
        for index in view.keys() & changed.keys():
            raise ValueError(
                f"the call changed the parameter '{_name(parts, index)}', which it sees through "
                "trans_in_fn: expected it to be read only"
            )
        parts.put_back(changed)
        return outputs

    return call


def _view(parts: Parts, values: Values, function: Trans, name: str) -> Values:
    """``function`` of the parameters of each module of ``parts``, by position."""
    found: Values = {}
    for top in dict.fromkeys(path[0] for path in parts.paths):
        places = {
            (_COLLECTION, *map(str, path[1:])): index
            for index, path in enumerate(parts.paths)
            if path[0] == top and isinstance(parts.variables[index], nnx.Param)
        }
        given = nested({path: values[index] for path, index in places.items()})
        made = dict(leaves(function(given)))
        if made.keys() != places.keys():
            wrong = sorted("/".join(path) for path in made.keys() ^ places.keys())
            raise ValueError(
                f"{name} made other variables than it was given, among them {wrong[0]!r}: expected "
                "the same paths"
            )
        found |= {places[path]: one for path, one in made.items()}
    return found


def _name(parts: Parts, index: int) -> str:
    return "/".join(map(str, parts.paths[index][1:]))
