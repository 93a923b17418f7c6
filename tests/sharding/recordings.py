"""The specs that MaxText recorded for its Linen stack, from the tables in ``golden/``.

A table's line is: where, what or dtype, shape, names, spec; ``-`` stands for None, ``+`` joins
mesh axes, ``()`` is empty, ``?`` in place of names: constrained by mesh axes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from jax.sharding import AbstractMesh, PartitionSpec

GOLDEN = Path(__file__).parent / "golden"
FILES = tuple(sorted(path.stem for path in GOLDEN.glob("*.yml")))


@dataclass(frozen=True)
class Row:
    """One array or activation."""

    name: str
    shape: tuple[int, ...]
    names: tuple[Any, ...] | None
    spec: PartitionSpec


@dataclass(frozen=True)
class Recorded:
    """All that was recorded for one model, rules and mesh."""

    rules: str
    mesh: AbstractMesh
    arrays: tuple[Row, ...]
    activations: tuple[Row, ...]


@cache
def recorded(file: str) -> Recorded:
    content = yaml.safe_load((GOLDEN / f"{file}.yml").read_text(encoding="utf-8"))
    arrays = []
    for line in content["arrays"].splitlines():
        where, path, *rest = line.split()
        arrays += [_row(f"{part}/{path}", *rest) for part in where.split(",")]
    activations = [
        _row(f"{number}/{where}/{dtype}", *rest)
        for number, line in enumerate(content["activations"].splitlines())
        for where, dtype, *rest in [line.split()]
    ]
    mesh = AbstractMesh(tuple(content["mesh"].values()), tuple(content["mesh"]))
    return Recorded(content["rules"], mesh, tuple(arrays), tuple(activations))


def _row(name: str, shape: str, names: str, spec: str) -> Row:
    sizes = () if shape == "()" else tuple(map(int, shape.split("x")))
    return Row(
        name, sizes, None if names == "?" else _entries(names), PartitionSpec(*_entries(spec))
    )


def _entries(text: str) -> tuple[Any, ...]:
    return () if text == "()" else tuple(map(_entry, text.split(",")))


def _entry(text: str) -> Any:
    if text == "-":
        return None
    return tuple(text.split("+")) if "+" in text else text
