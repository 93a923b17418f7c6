"""What a Linen module's initial call shows: the shapes every submodule was called with.

Nothing is computed: the initialisation runs under ``jax.eval_shape``, or, where the module's own code
needs values, as it is.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
from flax import linen

from nnx_migrate.linen.core.sizes.arrays import is_array
from nnx_migrate.parity.evaluation.running import NEEDS_VALUES
from nnx_migrate.parity.instantiation.local_classes import place_of

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Call:
    """One call of one submodule method during the initial call.

    ``path`` is the scope path, ``class_name`` the qualified Linen class, ``arguments`` the bound
    array arguments in signature order as ``(name, shape)``; an array inside a structured argument is
    named by its place in it (``graph.nodes``, ``batch['x']``, ``carry[0]``). ``facts`` are what
    constructors of migrated classes are told: ``(name, "given" | "truth", value)``. ``structures``
    are the structured arguments that hold nothing but arrays, as ``(name, structure, shapes)``.
    """

    path: tuple[str, ...]
    class_name: str
    method: str
    arguments: tuple[tuple[str, Shape], ...]
    facts: tuple[tuple[str, str, bool], ...] = ()
    structures: tuple[tuple[str, jax.tree_util.PyTreeDef, tuple[Shape, ...]], ...] = ()

    def fact(self, argument: str, fact: str) -> bool | None:
        """Return whether an argument was ``given`` (not None), or its ``truth`` if it has one."""
        return next((value for *of, value in self.facts if of == [argument, fact]), None)

    def shape(self, argument: str) -> Shape | None:
        """Return the shape of a named argument, or None when it was no array."""
        named = dict(self.arguments)
        head, mark, last = argument.partition("[-")
        if not mark:
            return named.get(argument)
        index, _, rest = last.partition("]")
        count = len({name.removeprefix(head).split("]")[0] for name in named if f"{head}[" in name})
        return named.get(f"{head}[{count - int(index)}]{rest}")

    def shapes(self, argument: str) -> Any:
        """Return the shape of a named argument, or the structure of those of the arrays that it holds."""
        for name, structure, shapes in self.structures:
            if name == argument:
                return jax.tree.unflatten(structure, shapes)
        return self.shape(argument)


def record_calls(
    module: linen.Module,
    inputs: Sequence[Any],
    kwargs: Mapping[str, Any],
    rng_names: Iterable[str] = (),
    method: str | Callable[..., Any] | None = None,
) -> tuple[Call, ...]:
    """Trace ``module.init`` and return its submodule calls in order, without repetitions.

    ``inputs`` are handed over as they are, so Python control flow over numpy inputs still runs;
    only what the module computes is abstract. Raises what the module's own code raises.
    """
    calls: dict[Call, None] = {}

    def intercept(
        function: Callable[..., Any],
        args: Any,
        keywords: Any,
        context: linen.module.InterceptorContext,
    ) -> Any:
        is_below = context.module.scope is not None  # not one whose own __init__ leaves Linen's out
        if context.method_name != "setup" and is_below:
            calls[_call_of(context, args, keywords)] = None
        return function(*args, **keywords)

    key = jax.random.key(0)
    streams = dict.fromkeys(("params", "dropout", *rng_names), key)
    with linen.intercept_methods(intercept):
        try:
            jax.eval_shape(lambda: module.init(streams, *inputs, method=method, **kwargs))
        except NEEDS_VALUES:
            module.init(streams, *inputs, method=method, **kwargs)
    return tuple(calls)


def qualified_name(cls: type) -> str:
    """Return ``package.module.Class``."""
    return ".".join(place_of(cls))


def _call_of(context: linen.module.InterceptorContext, args: Any, keywords: Any) -> Call:
    inputs = _bound(context.orig_method, args, keywords)
    return Call(
        path=tuple(context.module.path),
        class_name=qualified_name(type(context.module)),
        method=context.method_name,
        arguments=tuple(_array_arguments(inputs)),
        facts=tuple(_facts(inputs)),
        structures=tuple(_structures(inputs)),
    )


def _facts(inputs: Mapping[str, Any]) -> Iterable[tuple[str, str, bool]]:
    for name, value in inputs.items():
        yield name, "given", value is not None
        if value is None or isinstance(value, bool | int | str):
            yield name, "truth", bool(value)


def _array_arguments(inputs: Mapping[str, Any]) -> Iterable[tuple[str, Shape]]:
    for name, value in inputs.items():
        for place, leaf in jax.tree_util.tree_leaves_with_path(value):
            if is_array(leaf):
                yield name + jax.tree_util.keystr(place), tuple(leaf.shape)


def _structures(
    inputs: Mapping[str, Any],
) -> Iterable[tuple[str, jax.tree_util.PyTreeDef, tuple[Shape, ...]]]:
    for name, value in inputs.items():
        leaves, structure = jax.tree.flatten(value)
        if leaves and leaves[0] is not value and all(map(is_array, leaves)):
            yield name, structure, tuple(tuple(leaf.shape) for leaf in leaves)


def _bound(
    method: Callable[..., Any], args: Sequence[Any], keywords: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Name the arguments; ``*args`` and ``**kwargs`` are spread, positions without a name counted."""
    try:
        bound = inspect.signature(method).bind(*args, **keywords)
    except (TypeError, ValueError):
        return {**{str(index): value for index, value in enumerate(args)}, **keywords}
    named: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        kind = bound.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_KEYWORD:
            named.update(value)
        elif kind is inspect.Parameter.VAR_POSITIONAL:
            named.update({f"{name}[{index}]": item for index, item in enumerate(value)})
        else:
            named[name] = value
    return named
