"""``linen.jit``: calls of a module compiled on their own, and ``linen.fold_rngs``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import jax

from nnx_migrate.nn.lifts.forks import MARK
from nnx_migrate.nn.lifts.methods import lift_calls
from nnx_migrate.nn.lifts.pure import PureCall
from nnx_migrate.nn.streams.forked import Draws, forked
from nnx_migrate.nn.variables.parts import Parts, Values
from nnx_migrate.nn.variables.state import asked_of_call, is_initializing

T = TypeVar("T")


def jit(
    target: T,
    *,
    static_argnums: int | Iterable[int] = (),
    static_argnames: str | Iterable[str] = (),
    donate_argnums: int | Iterable[int] = (),
    device: Any = None,
    backend: str | None = None,
    methods: Any = None,
) -> T:
    """A subclass of ``target`` whose ``__call__`` goes through ``jax.jit``; a function, wrapped.

    Constructor, variables and paths are those of ``target``; its name, which automatic submodule
    names count, is ``Jit<target>``. Only variables that the call changed come back. Modules of the
    same structure share one compilation, as in Linen (flax 0.12.8, linen/transforms.py,
    ``lift_transform_cached``).

    Args:
      target: an ``nnx.Module`` class, a ``functools.partial`` of one, or a function that takes the
        module first.
      static_argnums, static_argnames, donate_argnums, device, backend: as in ``jax.jit``; position 0
        is ``self``.
      methods: names of the methods to compile in place of ``__call__``, or a dict from each to its
        own options.

    Raises:
      TypeError: ``target`` is none of these.
    """
    given: dict[str, Any] = {
        "static_argnums": static_argnums,
        "static_argnames": static_argnames,
        "donate_argnums": donate_argnums,
    }
    given |= {"device": device} if device is not None else {}
    given |= {"backend": backend} if backend is not None else {}
    marks = {MARK: methods is None}
    return lift_calls(target, "Jit", _compiled, given, methods, marks)


def _compiled(function: Callable[..., Any], options: Mapping[str, Any]) -> Callable[..., Any]:
    """``function(module, ...)`` as a pure function of the modules' variables, compiled."""

    def shifted(name: str) -> tuple[int, ...]:
        """Positions after the three arguments that stand for ``self``."""
        given = options.get(name, ())
        positions = (given,) if isinstance(given, int) else tuple(given)
        return tuple(position + 2 for position in positions if position > 0)

    def pure(
        key: _Structure, values: Values, streams: Values, *args: Any, **kwargs: Any
    ) -> tuple[Any, Values]:
        return key.call.changes(function, values | streams, args, kwargs)

    pure.__name__ = getattr(function, "__name__", "pure")
    compiled = jax.jit(
        pure,
        **{
            **options,
            "static_argnums": (0, *shifted("static_argnums")),
            "donate_argnums": shifted("donate_argnums"),
        },
    )

    draws: dict[_Structure, Draws] = {}  # of each compilation

    @functools.wraps(function)
    def call(module: Any, *args: Any, **kwargs: Any) -> Any:
        if is_initializing():  # bridged modules make their variables: a compiled call cannot
            return function(module, *args, **kwargs)
        with forked(module) as fork:
            lifted = PureCall.of(module, args, kwargs)
            parts, before = lifted.parts, fork.drawn()
            structure, start = _Structure.of(lifted, before), fork.start(parts)
            outputs, changed = compiled(
                structure, parts.values(), start, *lifted.args, **lifted.kwargs
            )
            new = {key: count - before.get(key, 0) for key, count in fork.drawn().items()}
            if structure not in draws and any(new.values()):
                draws[structure] = new
            elif not any(new.values()):
                fork.draw(draws.get(structure, {}))
        parts.put_back(fork.own_counts(parts, start) | changed)
        return outputs

    setattr(call, MARK, 1 + getattr(function, MARK, 0))
    return call


@dataclass(frozen=True)
class _Structure:
    """What a compilation depends on besides arrays: equal for modules that compute the same."""

    key: Hashable
    call: PureCall = field(compare=False)  # without values: a compilation outlives them

    @classmethod
    def of(cls, call: PureCall, drawn: Draws) -> _Structure:
        parts = call.parts
        metadata = [one.get_metadata() for one in parts.variables]
        variables = tuple(
            type(one).from_metadata(None, dict(given))
            for one, given in zip(parts.variables, metadata, strict=True)
        )
        empty = PureCall(Parts(parts.graphdef, parts.paths, variables, ()), (), {})
        kinds = tuple(map(type, parts.variables))
        key = (
            parts.graphdef,
            parts.paths,
            kinds,
            tuple(map(_as_tuple, metadata)),
            frozenset(drawn.items()),
            asked_of_call(),
        )
        try:
            hash(key)
        except TypeError:  # metadata or attributes without a hash: compiled for this call alone
            return cls(object(), empty)
        return cls(key, empty)


def _as_tuple(metadata: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(sorted(metadata.items()))
