"""Classes of random programs, written from pieces that stand in setup or in a compact method.

A piece names what it builds ``@name``: an attribute in ``setup``, a local in a compact method.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

HEADER = """\
import dataclasses
import functools
from functools import partial
from typing import Any, Callable, ClassVar, Mapping, Optional, Sequence

import flax.linen as nn
import jax
import jax.numpy as jnp


"""


@dataclass(frozen=True)
class Piece:
    """Lines that build, lines that change ``x``, and what the class and its file need for them."""

    built: tuple[str, ...]
    called: tuple[str, ...]
    only: str = ""  # "compact" or "setup": the other form cannot say it
    fields: tuple[str, ...] = ()
    options: tuple[str, ...] = ()  # arguments that a constructor call may set
    methods: tuple[str, ...] = ()
    top: tuple[str, ...] = ()  # definitions in front of the class


@dataclass(frozen=True)
class Written:
    """A class of the program.

    ``args`` are the arguments of the constructor call that is drawn next, ``options`` those it is
    drawn from; all of ``required`` are among them, each an argument or the name of a field
    that takes a submodule.
    """

    name: str
    text: str
    takes_train: bool
    options: tuple[str, ...] = ("flag=False", "flag=True")
    required: tuple[str, ...] = ()
    args: str = ""
    is_setup: bool = False
    top: tuple[str, ...] = ()

    @property
    def made(self) -> str:
        """The constructor call."""
        return f"{self.name}({self.args})"


def piece(
    built: str | Sequence[str],
    *called: str,
    compact: bool = False,
    setup: bool = False,
    fields: Sequence[str] = (),
    options: Sequence[str] = (),
    methods: Sequence[str] = (),
    top: Sequence[str] = (),
) -> Piece:
    """A piece from its lines."""
    lines = (built,) if isinstance(built, str) else tuple(built)
    lines = tuple(one for one in lines if one)
    only = "compact" if compact else "setup" if setup else ""
    return Piece(lines, called, only, tuple(fields), tuple(options), tuple(methods), tuple(top))


def local(lines: Sequence[str]) -> list[str]:
    """Lines as a compact method has them."""
    return [re.sub(r"@(?=[a-z]+\d)", "", one) for one in lines]


def attribute(lines: Sequence[str]) -> list[str]:
    """Lines as ``setup`` and the methods beside it have them."""
    return [re.sub(r"@(?=[a-z]+\d)", "self.", one) for one in lines]


def indented(lines: Sequence[str], by: int = 4) -> list[str]:
    """Lines further right."""
    return [" " * by + one if one else one for one in lines]


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


def replaced(one: Written, args: str) -> Written:
    """The class with these arguments."""
    return replace(one, args=args)
