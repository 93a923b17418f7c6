"""``linen.remat``: a module class (or function) recomputed in the backward pass."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

import jax
from flax import nnx

from nnx_migrate.nn.lifts.pure import PureCall
from nnx_migrate.nn.variables.parts import NewVariable, Values
from nnx_migrate.nn.variables.state import note_lift

T = TypeVar("T")
PASSES_ON = "_passes_on"  # of a class whose calls go on to those of its base


def remat(
    target: T,
    *,
    static_argnums: int | Sequence[int] = (),
    prevent_cse: bool = True,
    policy: Callable[..., bool] | None = None,
    counts_self: bool = True,
) -> T:
    """A subclass of ``target`` whose ``__call__`` goes through ``jax.checkpoint``.

    A function that takes the module first is wrapped itself. Only variables that the call changed
    come back: ``nnx.remat`` returns all of them, which a scan around it would stack anew.

    Constructor, variables and paths are those of ``target``. Its name, which automatic submodule
    names count, is the one Linen gives: ``CheckpointBlock`` for ``nn.remat``,
    ``Core_remat_staticBlock`` for ``flax.linen.partitioning.remat`` (flax 0.12.8,
    linen/transforms.py and linen/partitioning.py; the same in 0.12.12).

    Args:
      target: an ``nnx.Module`` class, a ``functools.partial`` of one, or a plain function.
      static_argnums: positions of call arguments that are not traced.
      prevent_cse, policy: as in ``jax.checkpoint``.
      counts_self: whether position 0 is ``self``, as ``nn.remat`` has it; with False it is the
        first argument after it, as ``flax.linen.partitioning.remat`` has it.

    Raises:
      TypeError: ``target`` is none of these.
      ValueError: a position is negative, or names ``self``.
    """
    positions = _positions(static_argnums, counts_self)
    options = {"static_argnums": positions, "prevent_cse": prevent_cse, "policy": policy}
    if isinstance(target, functools.partial):
        inner = remat(
            target.func,
            static_argnums=static_argnums,
            prevent_cse=prevent_cse,
            policy=policy,
            counts_self=counts_self,
        )
        return cast(T, functools.partial(inner, *target.args, **target.keywords))
    if inspect.isfunction(target):
        return cast(T, _checkpoint_call(target, options))
    if not (isinstance(target, type) and issubclass(target, nnx.Module)):
        raise TypeError(f"expected a transformation to get an nnx.Module class, found {target!r}")
    prefix = "Checkpoint" if counts_self else "Core_remat_static"
    kind: Any = target
    body = {"__module__": kind.__module__, "__doc__": kind.__doc__, PASSES_ON: True}
    body["__call__"] = _checkpoint_call(kind.__call__, options)
    return cast(T, type(prefix + kind.__name__, (kind,), body))


def _checkpoint_call(
    function: Callable[..., Any], options: Mapping[str, Any]
) -> Callable[..., Any]:
    """``function(module, ...)`` as a pure function of the modules' variables, checkpointed."""

    @note_lift(lambda _: (True,))
    @functools.wraps(function)
    def call(module: Any, *args: Any, **kwargs: Any) -> Any:
        run = PureCall.of(module, args, kwargs)
        streams = run.parts.random_state()  # closed over: those not drawn from leave no trace

        new_variables: dict[str, NewVariable] = {}

        def pure(values: Values, *args: Any, **kwargs: Any) -> tuple[Any, Values, dict[str, Any]]:
            outputs, copies = run.run(function, values | streams, args, kwargs)
            new_variables.update(made := run.parts.new_variables(copies))
            new = {name: one.variable.get_value() for name, one in made.items()}
            return outputs, run.parts.changes(copies, values | streams, made), new

        checkpoint = jax.checkpoint(pure, **options)
        outputs, changes, made = checkpoint(run.parts.values(), *run.args, **run.kwargs)
        run.parts.put_back(changes)
        for name, value in made.items():
            new_variables[name].put(run.modules, value)
        return outputs

    return call


def _positions(static_argnums: int | Sequence[int], counts_self: bool) -> tuple[int, ...]:
    """The positions counted with ``self`` as 0."""
    positions = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    with_self = tuple(position if counts_self else position + 1 for position in positions)
    if any(position < 1 for position in with_self):
        first = 1 if counts_self else 0
        raise ValueError(
            f"expected static_argnums of call arguments (from {first} on), found {positions}"
        )
    return with_self
