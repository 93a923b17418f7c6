"""Classes of random programs, written from pieces that stand in setup or in a compact method.

A piece names what it builds ``@name``: an attribute in ``setup``, a local in a compact method.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

HEADER = """\
from functools import partial
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp


"""


@dataclass(frozen=True)
class Piece:
    """Lines that build, and lines that change ``x``."""

    built: tuple[str, ...]
    called: tuple[str, ...]
    is_compact: bool = False  # only a compact method can say it


@dataclass(frozen=True)
class Written:
    """A class of the program."""

    name: str
    text: str
    takes_train: bool


def piece(built: str | Sequence[str], *called: str, compact: bool = False) -> Piece:
    """A piece from its lines."""
    lines = (built,) if isinstance(built, str) else tuple(built)
    return Piece(tuple(one for one in lines if one), called, compact)


def local(lines: Sequence[str]) -> list[str]:
    """Lines as a compact method has them."""
    return [one.replace("@", "") if not _decorates(one) else one for one in lines]


def attribute(lines: Sequence[str]) -> list[str]:
    """Lines as ``setup`` and the methods beside it have them."""
    return [re.sub(r"@(?=\w)", "self.", one) if not _decorates(one) else one for one in lines]


def _decorates(line: str) -> bool:
    return line.lstrip().startswith(("@nn.", "@partial"))


def indented(lines: Sequence[str], by: int = 4) -> list[str]:
    """Lines further right."""
    return [" " * by + one for one in lines]


def class_text(
    name: str,
    fields: Sequence[str],
    methods: Sequence[Sequence[str]],
    base: str = "nn.Module",
    decorators: Sequence[str] = (),
) -> str:
    """The text of a class."""
    body = [*fields, *(line for one in methods for line in ("", *one))]
    return "\n".join(
        [*decorators, f"class {name}({base}):", *indented(body or ["pass"]), "", "", ""]
    )
