"""Arrays of the shape that a call asks for: ``jnp.zeros(shape)``."""

from __future__ import annotations

from nnx_migrate.abstract import shapes
from nnx_migrate.abstract.values import Sequence, Unknown, Value
from nnx_migrate.sizes.library_call import LibraryCall


def with_shape(call: LibraryCall) -> Value:
    """What has the sizes that ``shape=`` says."""
    from nnx_migrate.sizes.attributes import OpenShape, ShapeOf

    shape = call.get(0, "shape")
    if isinstance(shape, ShapeOf) and not isinstance(shape, Sequence):
        return shape.shape_of
    if isinstance(shape, OpenShape):
        return shape.array
    sizes = shapes.shape_of(shape) if shape is not None else None
    return shapes.array_of(sizes) if sizes is not None else Unknown("shape unknown")
