"""The sizes that a migrated class needs and its Linen original inferred from the initial call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from nnx_migrate.model import ClassMap, SizeArgument
from nnx_migrate.parity.instantiation.calls import Call, Shape

Size = Any  # an axis; a shape, or a structure of those of several arrays

# Names that the factories of nnx_migrate.nn give to sizes, with the argument that decides them.
_CONVENTIONS = {
    "in_features": SizeArgument("in_features"),
    "input_shape": SizeArgument("input_shape", axis=None),
    "in_shape": SizeArgument("in_shape", axis=None),
    "in_kv_features": SizeArgument("in_kv_features", argument="inputs_k"),
    "in_v_features": SizeArgument("in_v_features", argument="inputs_v"),
}

# Sizes that a built-in layer takes beside ``in_features``, which its factory passes on unseen.
_BUILT_IN = {
    "flax.linen.attention.MultiHeadDotProductAttention": ("in_kv_features", "in_v_features"),
    "flax.linen.attention.MultiHeadAttention": ("in_kv_features", "in_v_features"),
    "flax.linen.linear.ConvLocal": ("input_shape",),
}

_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def parameters_of(constructor: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the parameters a class or factory is constructed with, without ``self``.

    A constructor with ``**kwargs`` passes them on: the bases' parameters are added.
    """
    if not isinstance(constructor, type):
        return dict(inspect.signature(constructor).parameters)
    found: dict[str, inspect.Parameter] = {}
    for cls in constructor.__mro__[:-1]:
        own = vars(cls).get("__init__")
        if not inspect.isfunction(own):
            continue
        named = list(inspect.signature(own).parameters.values())[1:]
        found = {**{parameter.name: parameter for parameter in named}, **found}
        if all(parameter.kind is not inspect.Parameter.VAR_KEYWORD for parameter in named):
            break
    return found


def sizes_for(
    constructor: Callable[..., Any],
    field_names: Iterable[str],
    class_map: ClassMap | None,
    calls: Sequence[Call],
    path: tuple[str, ...] | None,
    linen_class: str,
) -> tuple[dict[str, Size], tuple[str, ...]]:
    """Return the traced sizes to pass, and the names of required ones that the trace lacks.

    ``field_names`` are the constructor arguments that are already known (fields). ``path`` is the scope
    path of the module, or None when only its class is known.
    """
    size_arguments = _size_arguments(parameters_of(constructor), set(field_names), class_map)
    size_arguments += [(_CONVENTIONS[name], False) for name in _BUILT_IN.get(linen_class, ())]
    found: dict[str, Size] = {}
    missing = []
    for size, is_required in size_arguments:
        value = _value(size, calls, path, linen_class)
        if value is not None:
            found[size.name] = value
        elif is_required:
            missing.append(size.name)
    return found, tuple(missing)


def _size_arguments(
    parameters: dict[str, inspect.Parameter], field_names: set[str], class_map: ClassMap | None
) -> list[tuple[SizeArgument, bool]]:
    """List the size arguments with whether the constructor insists on them."""
    sizes_by_name = {size.name: size for size in class_map.size_arguments} if class_map else {}
    size_arguments = []
    for name, parameter in parameters.items():
        if name == "rngs" or name in field_names or parameter.kind in _VARIADIC:
            continue
        size = sizes_by_name.get(name) or _by_name(name)
        is_required = parameter.default is inspect.Parameter.empty
        if size is not None and (is_required or parameter.kind is inspect.Parameter.KEYWORD_ONLY):
            size_arguments.append((size, is_required))
        elif is_required:
            size_arguments.append((SizeArgument(name, argument=""), True))
    return size_arguments


def _by_name(name: str) -> SizeArgument | None:
    """Read a size argument's name: ``in_features``, ``<argument>_features``, ``<argument>_shape``."""
    if name in _CONVENTIONS:
        return _CONVENTIONS[name]
    if name.endswith("_features"):
        return SizeArgument(name, argument=name.removesuffix("_features"))
    if name.endswith("_shape"):
        return SizeArgument(name, argument=name.removesuffix("_shape"), axis=None)
    return None


def _value(
    size: SizeArgument,
    calls: Sequence[Call],
    path: tuple[str, ...] | None,
    linen_class: str,
) -> Size | None:
    """Return one size, or None when the trace lacks it or gives several answers."""
    if size.submodule is not None:
        target = (path or ()) + _parts(size.submodule)
        own, exact = [call for call in calls if call.path == target], True
    else:
        of_class = [call for call in calls if call.class_name == linen_class]
        own = [call for call in of_class if call.path == path]
        exact = bool(own)
        own = own or of_class
    own = [call for call in own if call.method == size.method] or own
    if size.fact is not None:
        facts_of_calls = [call.fact(size.argument or "", size.fact) for call in own]
        facts = {size.default if one is None else one for one in facts_of_calls}
        return facts.pop() if len(facts) == 1 else None
    values = [one for call in own if (one := _shown(size, call)) is not None]
    # Linen's parameters take the shape of the first call. Without the module's own scope path the
    # answer counts only when every instance of the class gives the same one.
    if not values or (not exact and any(one != values[0] for one in values)):
        return None
    return values[0]


def _shown(size: SizeArgument, call: Call) -> Size | None:
    """Return what one call shows of a size; None where it has no such array."""
    shape: Size
    if size.argument is None:
        shape = _first(call)
    else:
        shape = (call.shapes if size.axis is None else call.shape)(size.argument)
    if not shape:
        return None
    return shape if size.axis is None else shape[size.axis]


def _parts(path: str | None) -> tuple[str, ...]:
    return tuple(path.replace("/", ".").split(".")) if path else ()


def _first(call: Call) -> Shape | None:
    """Return the shape of the first array argument; a built-in cell's carry is not its input."""
    if call.class_name.startswith("flax.linen.") and call.shape("inputs"):
        return call.shape("inputs")
    arrays = [(name, shape) for name, shape in call.arguments if shape]
    whole = [shape for name, shape in arrays if name.isidentifier()]
    return next(iter(whole or [shape for _, shape in arrays]), None)
