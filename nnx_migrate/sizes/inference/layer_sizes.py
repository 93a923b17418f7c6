"""Sizes that a built-in layer needs, and a submodule whose class is one of several."""

from __future__ import annotations

from nnx_migrate.abstract import shapes
from nnx_migrate.abstract.values import Instance, Submodule, Use
from nnx_migrate.constructs import layer_of
from nnx_migrate.sizes.inference.class_analysis import ClassAnalysis
from nnx_migrate.sizes.inference.consensus import agreed_size
from nnx_migrate.sizes.inference.instance_sizes import instance_sizes
from nnx_migrate.sizes.inference.options import IN_FEATURES, field_among, needs_width, own_uses
from nnx_migrate.sizes.inference.size_texts import NOT_FIRST, WHOLE, size_text


def option_sizes(analysis: ClassAnalysis, module: Submodule, uses: list[Use]) -> dict[str, str]:
    """Sizes of a submodule whose class is one of several: all that some class takes."""
    options = module.options
    width = uses and needs_width(analysis, options)
    sizes = layer_sizes(analysis, module, uses) if width else {}
    problem = None
    for option in options:
        if isinstance(option, Instance):
            own = own_uses(option)
            own = [use for use in own if use.primary] or own
            known = dict(analysis.opaque)
            found = instance_sizes(analysis, option, own, without=IN_FEATURES)
            same = all(sizes.get(name, text) == text for name, text in found.items())
            alike = all(one == known.get(name, one) for name, one in analysis.opaque.items())
            problem = problem if same and alike else "sizes of one name that differ"
            sizes |= found
    field = field_among(analysis, options, sizes)
    problem = problem or (f"the size {field}, which is a field of another" if field else None)
    if problem is not None:
        analysis.problems.append(
            (module.call, f"the classes that may be built here need {problem}")
        )
    return sizes


def layer_sizes(analysis: ClassAnalysis, module: Submodule, uses: list[Use]) -> dict[str, str]:
    """Texts of the sizes that the layer's calls show, by their names."""
    sizes: dict[str, str] = {}
    for key in dict.fromkeys(key for use in uses for key in use.sizes):
        size, conditional = agreed_size(uses, key)
        axes = _feature_axes(module) if size is None and key == "in_features" else (-1,)
        if axes == (-1,):
            sizes[key] = size_text(analysis, module, key, size, conditional, NOT_FIRST.get(key))
        elif axes is None:
            analysis.problems.append((module.call, "the axes of this layer are not known here"))
        else:
            shape = size_text(analysis, module, "input_shape", None, conditional, WHOLE)
            parts = ", ".join(f"{shape}[{axis}]" for axis in axes)
            sizes[key] = parts if len(axes) == 1 else f"({parts})"
    return {key: text for key, text in sizes.items() if text}


def _feature_axes(module: Submodule) -> tuple[int, ...] | None:
    """The axes whose sizes are a layer's ``in_features``; None when they are not known."""
    axis = module.arguments.get("axis", module.arguments.get("feature_axes"))
    if axis is None:
        return (-1,)
    sizes = shapes.shape_of(axis) or ()
    known = [one.constant for one in sizes if one is not None and one.is_constant]
    axes = tuple(one for one in known if isinstance(one, int))
    return axes if axes and len(axes) == len(sizes) else None


def unseen_sizes(analysis: ClassAnalysis, module: Submodule) -> dict[str, str]:
    """Sizes of a layer that no analysed call reaches; one that is only applied needs none."""
    layer = layer_of(module.symbol)
    needs = layer is not None and "in_features" in layer.sizes
    applied = id(module.call) in analysis.interpreter.applied_layers
    if needs and not applied:
        assert module.call is not None
        analysis.lazy.add(id(module.call))
    if not needs or not applied:
        return {}
    return {"in_features": size_text(analysis, module, "in_features", None, applied)}
