"""What the settings of a case may be: the first that cannot be is named before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

MOST = 2**32 - 1  # what a seed of jax may be; more steps or devices nobody waits for


def fault(values: Mapping[str, Any]) -> str | None:
    """One line on the first setting that is of another kind; ``values`` are settings by name."""
    for name, (holds, expected) in _SETTINGS.items():
        value = values.get(name)
        if value is not None and not holds(value):
            is_one_name = holds is _are_names and isinstance(value, str)
            hint = f": write {name}=({value!r},)" if is_one_name else ""
            return f"{name}: expected {expected}, found {value!r}{hint}"
    return _absent_axis(values)


def _absent_axis(values: Mapping[str, Any]) -> str | None:
    """One line on the first rule that leads to an axis which the mesh does not have."""
    mesh = values.get("mesh")
    mesh_axes = tuple(mesh if isinstance(mesh, Mapping) else getattr(mesh, "axis_names", ()))
    for rule in (values.get("axis_rules") or ()) if mesh_axes else ():
        _, to = rule
        for axis in (to,) if isinstance(to, str) else to or ():
            if axis not in mesh_axes:
                return (
                    f"axis_rules: expected axes of the mesh ({', '.join(mesh_axes)}), found {axis!r} in "
                    f"{tuple(rule)!r}: leave the rule out, or add the axis to mesh (1 is a size, too)"
                )
    return None


def _is_whole(value: Any, least: int = 0) -> bool:
    integral = hasattr(value, "__index__") and not isinstance(value, bool)
    return integral and getattr(value, "shape", ()) == () and least <= int(value) <= MOST


def _is_mesh(value: Any) -> bool:
    """Sizes by axis; any other object is a mesh of jax's, and is looked at where it is used."""
    if not isinstance(value, Mapping):
        return hasattr(value, "devices")
    return all(isinstance(axis, str) and _is_whole(size, 1) for axis, size in value.items())


def _are_rngs(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(name, str) and (_is_whole(one) or hasattr(one, "dtype"))
        for name, one in value.items()
    )


def _are_names(value: Any) -> bool:
    return (
        isinstance(value, Sequence | set | frozenset)
        and not isinstance(value, str)
        and all(isinstance(name, str) for name in value)
    )


def _are_rules(value: Any) -> bool:
    return isinstance(value, Sequence) and all(
        isinstance(rule, Sequence)
        and not isinstance(rule, str)
        and len(rule) == 2
        and isinstance(rule[0], str)
        and _are_axes(rule[1])
        for rule in value
    )


def _are_axes(value: Any) -> bool:
    """None, a mesh axis, or several."""
    several = isinstance(value, Sequence) and all(isinstance(axis, str) for axis in value)
    return value is None or several


def _are_paths(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(path, str) for pair in value.items() for path in pair
    )


_WHOLE = f"a whole number from 0 to {MOST}"
_SETTINGS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "rngs": (_are_rngs, "{stream: seed or key}"),
    "collections": (_are_names, "a sequence of names"),
    "mesh": (_is_mesh, "{axis: size} with sizes of at least 1, or a Mesh"),
    "axis_rules": (
        _are_rules,
        "a sequence of pairs (logical name, mesh axes), axes as None, a name or names",
    ),
    "optimizer": (
        lambda value: (
            callable(getattr(value, "init", None)) and callable(getattr(value, "update", None))
        ),
        "an optimizer of optax, as optax.adam(1e-3)",
    ),
    "path_map": (_are_paths, "{Linen path: NNX path}"),
    "steps": (_is_whole, _WHOLE),
    "seed": (_is_whole, _WHOLE),
    "gradient_accumulation_steps": (
        lambda value: _is_whole(value, 1),
        "a whole number of at least 1",
    ),
    "method": (lambda value: isinstance(value, str) or callable(value), "the name of a method"),
    "tolerance": (lambda value: isinstance(value, int | float), "a number"),
}
