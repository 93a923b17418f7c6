"""Linen collections as NNX variable types, and Linen's rules for choosing a random stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar, runtime_checkable

import jax
from flax import nnx

T = TypeVar("T")


def variable_type(collection: str) -> type[nnx.Variable[Any]]:
    """The NNX variable type of a Linen collection; an unknown name gets a type of its own.

    ``params``, ``batch_stats``, ``cache``, ``intermediates`` and ``perturbations`` are the types
    that ``flax.nnx`` registers for them, so ``nnx.split`` and the Linen bridge agree.
    """
    return nnx.variable_type_from_name(collection, allow_register=True)


def collection_of(kind: type[nnx.Variable[Any]]) -> str:
    """The Linen collection of a variable type; a subclass belongs to its base's."""
    for base in kind.__mro__:
        if base is nnx.Variable or not issubclass(base, nnx.Variable):
            continue
        try:
            return str(nnx.variable_name_from_type(base))
        except ValueError:
            continue
    return kind.__name__


def variable(
    collection: str, value: Any, *, moved_by_init: bool = True, **metadata: Any
) -> nnx.Variable[Any]:
    """A variable of ``collection`` holding ``value`` (Linen's ``self.variable``).

    ``nnm.lazy_init`` and ``nnm.variables_of`` with inputs change it as the call of Linen's ``init`` does,
    unless ``moved_by_init=False``: so for layers that change their state in calls without asking
    whether ``init`` runs.
    """
    return variable_type(collection)(value, moved_by_init=moved_by_init, **metadata)


def lacks(module: nnx.Module, name: str) -> bool:
    """Whether a module has nothing under a name that a variable may have: ``train`` of NNX is in no one's way."""
    is_of_class = getattr(type(module), name, None) is not getattr(nnx.Module, name, None)
    return not is_of_class and vars(module).get(name) is None


def is_moved_by_init(one: Any) -> bool:
    """Whether the call of Linen's ``init`` updates a leaf; plain arrays are none of Linen's."""
    return isinstance(one, nnx.Variable) and bool(one.get_metadata().get("moved_by_init", False))


def param(rngs: nnx.Rngs, init: Callable[..., Any], *args: Any, **options: Any) -> nnx.Param[Any]:
    """``self.param`` of Linen: ``nnx.Param(init(rngs.params(), *args))``.

    With the key that Linen would use this is Linen's value, bit for bit, when both run under
    ``jax.jit``; eager initialisers can differ from compiled ones in the last place.
    """
    return nnx.Param(init(param_key(rngs), *args, **options))


def param_key(rngs: nnx.Rngs | nnx.RngStream) -> jax.Array:
    """The next key for an initialiser."""
    return make_rng(rngs, "params")


def stream_of(rngs: nnx.Rngs | nnx.RngStream, name: str) -> nnx.RngStream:
    """The stream that ``make_rng(name)`` draws from: ``name``, else ``params``, else ``default``.

    Linen falls back to ``params`` and NNX to ``default``; both are tried, Linen's first.

    Raises:
      KeyError: none of the three exists.
      TypeError: ``rngs`` is neither ``nnx.Rngs`` nor ``nnx.RngStream``.
    """
    if isinstance(rngs, nnx.RngStream):
        return rngs
    if not isinstance(rngs, nnx.Rngs):
        raise TypeError(f"expected rngs to be nnx.Rngs or nnx.RngStream, found {type(rngs)}")
    for candidate in (name, "params", "default"):
        if candidate in rngs:
            found: nnx.RngStream = rngs[candidate]
            return found
    raise KeyError(
        f"no random stream named '{name}', 'params' or 'default' in rngs: "
        f"construct with nnx.Rngs({name}=...)"
    )


def make_rng(rngs: nnx.Rngs | nnx.RngStream, name: str = "params") -> jax.Array:
    """The next key of the stream ``name`` under Linen's fallback rule (see :func:`stream_of`)."""
    return stream_of(rngs, name)()


def count_draw(module: nnx.Module, rngs: nnx.Rngs | nnx.RngStream, name: str = "params") -> None:
    """Note that the module's call draws a key of the stream ``name`` before it makes what follows.

    Linen counts such draws with those of the parameters where ``name`` falls back to ``params``. Only
    streams with Linen's keys count; others draw nothing.
    """
    found = stream_of(rngs, name)
    if isinstance(found, CountsDraws):
        found.count_draw(module)


@runtime_checkable
class CountsDraws(Protocol):
    """A stream that knows which module draws."""

    def count_draw(self, module: nnx.Module) -> None:
        """Draw a key that no variable starts from."""


def stream(rngs: nnx.Rngs | nnx.RngStream, name: str) -> nnx.RngStream:
    """A stream for one module to own, forked from ``name``: ``self.noise_rng = stream(rngs, "noise")``.

    Forking draws one key, so that no two modules that own a stream share keys.
    """
    return nnx.RngStream(stream_of(rngs, name)(), tag=name)


def merge_param(name: str, a: T | None, b: T | None) -> T:
    """The one of ``a`` (constructor) and ``b`` (call) that is not None, as ``nn.merge_param``.

    Raises:
      ValueError: both are None, or neither is.
    """
    if a is None and b is None:
        raise ValueError(
            f"expected '{name}' as a constructor argument or as a call argument, found neither"
        )
    if a is not None and b is not None:
        raise ValueError(
            f"expected '{name}' either as a constructor argument or as a call argument, found both"
        )
    if a is None:
        assert b is not None
        return b
    return a


def mode(name: str, own: bool | None, in_call: bool | None, *, is_fixed: bool) -> bool:
    """``deterministic`` or the like, of a layer or of its call.

    What ``model.train()`` and ``model.eval()`` set yields to the call, what the constructor set
    (``is_fixed``) does not.

    Raises:
      ValueError: the constructor and the call say it, or nothing does.
    """
    return merge_param(name, own if is_fixed or in_call is None else None, in_call)
