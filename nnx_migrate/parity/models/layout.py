"""How the NNX variant of a built-in model is sharded: without devices, without values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import jax
from flax import nnx
from jax.sharding import AbstractMesh, AxisType, NamedSharding

from nnx_migrate.parity.evaluation.shardings import layout_on, logical_names, show
from nnx_migrate.parity.models.load import load
from nnx_migrate.parity.models.options import ModelOptions
from nnx_migrate.parity.words import BadWord
from nnx_migrate.sharding import DescribedSharding, abstract_sharded, describe_shardings

HEAD = ("array", "shape", "logical names", "spec", "bytes per device")


@dataclass(frozen=True)
class Row:
    """One parameter: its spec has no mesh axes of size 1, its bytes are those of one device."""

    path: str
    shape: tuple[int, ...]
    names: tuple[str | None, ...] | None
    spec: str
    bytes: int

    def cells(self) -> tuple[str, ...]:
        """The row as text, in the order of ``HEAD``."""
        shape = "x".join(map(str, self.shape)) or "scalar"
        names = "none" if self.names is None else ",".join(name or "-" for name in self.names)
        return self.path, shape, names, self.spec, f"{self.bytes:,}"


def rows(options: ModelOptions) -> tuple[Row, ...]:
    """The parameters in the order of the state.

    Raises:
        BadWord: the mesh splits an axis of a parameter unevenly.
    """
    model = load(f"{options.model.family}.nnx.model").Transformer
    rules = options.rules.logical_axis_rules
    sizes = options.mesh
    kinds = (AxisType.Auto,) * len(sizes)
    mesh = AbstractMesh(tuple(sizes.values()), tuple(sizes), axis_types=kinds)
    try:
        _, state = abstract_sharded(lambda: model(options.config, rngs=nnx.Rngs(0)), mesh, rules)
        params = nnx.filter_state(state, nnx.Param)
        descriptions = describe_shardings(params, mesh, rules)
    except ValueError as error:
        raise BadWord(f"mesh: {error}") from error
    item_sizes = [array.dtype.itemsize for array in jax.tree.leaves(params)]
    return tuple(_row(one, size) for one, size in zip(descriptions, item_sizes, strict=True))


def table(rows_of_layout: Sequence[Row]) -> list[str]:
    """The rows under their heads, in columns, and the sum of the bytes."""
    cells = [HEAD, *(row.cells() for row in rows_of_layout)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in cells]
    return [*lines, f"{len(rows_of_layout)} arrays, {_total(rows_of_layout):,} bytes per device"]


def changes(before: Sequence[Row], after: Sequence[Row], rules: tuple[str, str]) -> list[str]:
    """What other rules change of the same model, and the sums of the bytes."""
    differing_pairs = [
        (one, other) for one, other in zip(before, after, strict=True) if one.spec != other.spec
    ]
    lines = [
        f"{one.path}: {one.spec} -> {other.spec}, {one.bytes:,} -> {other.bytes:,} bytes per device"
        for one, other in differing_pairs
    ]
    total = (
        f"{len(differing_pairs)} of {len(before)} arrays change from {rules[0]} to {rules[1]}, "
        f"{_total(before):,} -> {_total(after):,} bytes per device"
    )
    return [*lines, total]


def _row(description: DescribedSharding, item_size: int) -> Row:
    (shape,), (sharding,) = description.shapes, description.shardings
    names = description.names
    assert not isinstance(names, NamedSharding)  # the models give logical names
    return Row(
        description.path,
        shape,
        logical_names(names),
        show(layout_on(sharding)),
        math.prod(sharding.shard_shape(shape)) * item_size,
    )


def _total(rows_of_layout: Sequence[Row]) -> int:
    return sum(row.bytes for row in rows_of_layout)
