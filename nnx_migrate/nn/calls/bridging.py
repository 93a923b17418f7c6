"""Variables of Linen modules behind ``nnx.bridge.ToNNX``, made as ``init`` of the model makes them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from flax import nnx

from nnx_migrate.nn.variables.linen_variables import attributes_of
from nnx_migrate.nn.variables.parts import CAPTURES
from nnx_migrate.nn.variables.state import initializing
from nnx_migrate.nn.variables.variables import is_moved_by_init

_MAKING = frozenset({"perturb", "put_variable", "lazy_variable"})
F = TypeVar("F", bound=Callable[..., Any])


def makes_state(module: nnx.Module) -> bool:
    """Whether a call of the model may make variables that its constructor leaves to it.

    So do methods that call ``nnm.perturb``, ``nnm.put_variable`` or ``nnm.lazy_variable``.
    """
    kinds = {type(node) for _, node in nnx.iter_graph(module) if isinstance(node, nnx.Module)}
    owners = {base for kind in kinds for base in kind.__mro__ if not _is_library(base)}
    methods = (one for owner in owners for one in vars(owner).values() if callable(one))
    codes = (getattr(inspect.unwrap(one), "__code__", None) for one in methods)
    return any(code is not None and _MAKING & {*code.co_names} for code in codes)


def _is_library(kind: type[Any]) -> bool:
    """Whether a class is one of flax's or ours: those know their variables."""
    return kind.__module__.partition(".")[0] in ("builtins", "flax", "nnx_migrate")


def give_variables(bridge: nnx.bridge.ToNNX, values: Mapping[str, Any]) -> None:
    """Store Linen's variables of the module, by collection, in a bridge that has none yet."""
    for name, one in attributes_of(values).items():
        setattr(bridge, name, nnx.data(one))


def has_variables(bridge: nnx.bridge.ToNNX) -> bool:
    """Whether a bridge has been given its variables."""
    names = (name for name in vars(bridge) if not name.startswith(("to_nnx__", "_pytree__")))
    return any(name != CAPTURES for name in names)


def lazy_init(fn: F, *args: Any, **kwargs: Any) -> F:
    """Give every ``ToNNX`` in a model its variables; return ``fn``, a module or its method.

    As ``nnx.bridge.lazy_init`` (flax/nnx/bridge/wrappers.py, 0.12.8), which calls the model once, but
    that call leaves no trace in the variables the model had before: Linen's ``init`` does not move
    running statistics, and an NNX layer beside the bridge does. Those that Linen's ``init`` moves
    (made by ``nnm.variable``) are moved. Keys that were drawn stay drawn. Logical
    axis names stay on the variables and shard nothing, so that no mesh is needed, as in Linen.
    Raises ValueError when ``fn`` is a function that belongs to no module, and what the model raises.
    """
    module = fn if isinstance(fn, nnx.Module) else getattr(fn, "__self__", None)
    before = [
        (node, node.get_value())
        for _, node in nnx.iter_graph(module)
        if isinstance(node, nnx.Variable)
        and not isinstance(node, nnx.RngState)
        and not is_moved_by_init(node)
    ]
    with initializing(), nnx.use_eager_sharding(False):
        nnx.bridge.lazy_init(fn, *args, **kwargs)
    for variable, value in before:
        variable.set_value(value)
    return fn
