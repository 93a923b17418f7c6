"""Convert the Linen classes of a source text, as a whole project would be."""

from __future__ import annotations

import sys
import textwrap
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from nnx_migrate.rewrite.classes import (
    ClassRefusal,
    ConversionContext,
    ConvertedClass,
    convert_class,
)
from nnx_migrate.rewrite.render import renderer_of
from nnx_migrate.sizes import analyse
from nnx_migrate.source.project import Project, parse

HEADER = """\
import functools
from functools import partial
from typing import Any, Callable, Sequence
import dataclasses
import jax
import jax.numpy as jnp
from flax import linen as nn
from flax import nnx
from nnx_migrate import nn as nnm


"""


def convert(body: str) -> dict[str, ConvertedClass | ClassRefusal]:
    """Results of all classes of ``model`` (``HEADER`` plus ``body``), by class name."""
    return _convert(body)[1]


def _convert(body: str) -> tuple[Project, dict[str, ConvertedClass | ClassRefusal]]:
    project = Project({"model": parse("model", "model.py", HEADER + body)})
    sizes = analyse(project)
    context = ConversionContext(
        explicit_classes=frozenset(project.linen),
        new_arguments={name: one.new_arguments for name, one in sizes.items()},
        sizes_of=sizes.get,
    )
    found = {
        name.removeprefix("model."): convert_class(project, cls, sizes[name], context)
        for name, cls in project.linen.items()
    }
    return project, found


def converted(body: str) -> str:
    """The text of ``body`` with every class converted.

    Raises:
      AssertionError: a class was refused.
    """
    body = textwrap.dedent(body)
    project, found = _convert(body)
    edits: dict[int, Any] = {}
    for name, one in found.items():
        assert isinstance(one, ConvertedClass), f"{name}: {one.reason}"
        edits |= one.edits
    text = renderer_of(project.modules["model"], edits).render_module().code
    return text.removeprefix(HEADER)


def refusal(body: str) -> ClassRefusal:
    """The only refusal among the classes of ``body``."""
    found = [
        one for one in convert(textwrap.dedent(body)).values() if isinstance(one, ClassRefusal)
    ]
    assert len(found) == 1, f"expected one refusal, found {[one.reason for one in found]}"
    return found[0]


@contextmanager
def loaded(text: str, name: str) -> Iterator[types.ModuleType]:
    """A module made from ``text``, while it is needed."""
    module = types.ModuleType(name)
    sys.modules[name] = module
    try:
        exec(compile(HEADER + text, f"{name}.py", "exec"), module.__dict__)  # noqa: S102
        yield module
    finally:
        del sys.modules[name]
