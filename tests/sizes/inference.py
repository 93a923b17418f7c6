"""Size inference over source text, in a form that tests can compare."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Mapping

from nnx_migrate.sizes import ClassSizes, analyse
from nnx_migrate.sizes.result import Site
from nnx_migrate.source.project import Project, parse

PRELUDE = """\
import functools
from typing import Any, Callable, Sequence

import flax.linen as nn
import jax
import jax.numpy as jnp
"""


def project_of(files: Mapping[str, str]) -> Project:
    """A project of modules by name; every one gets the usual imports first."""
    modules = {
        name: parse(name, f"{name}.py", PRELUDE + textwrap.dedent(text))
        for name, text in files.items()
    }
    return Project(modules)


def sizes_of(source: str, cls: str = "Model", **others: str) -> ClassSizes:
    """Sizes of class ``cls`` of module ``main``; keyword arguments are other modules."""
    return analyse(project_of({"main": source, **others}))[f"main.{cls}"]


def compact(body: str, fields: str = "", arguments: str = "x", before: str = "") -> str:
    """A class ``Model`` with one compact call."""
    lines = [
        *textwrap.dedent(before).splitlines(),
        "",
        "class Model(nn.Module):",
        *(f"    {line}" for line in fields.split(";") if line),
        "    @nn.compact",
        f"    def __call__(self, {arguments}):",
        *(f"        {line}" for line in textwrap.dedent(body).strip("\n").splitlines()),
    ]
    return "\n".join(lines) + "\n"


# The size of a submodule that takes its sizes in its own first call: no argument can name it.
LAZY = "lazy"


def sites(result: ClassSizes) -> dict[str, dict[str, str]]:
    """Sizes by the text of the constructor call: ``{"in_features": LAZY}`` where its first call tells them."""
    return {ast.unparse(site.call): _sizes(site) for site in result.sites.values()}


def in_features(result: ClassSizes) -> list[str | None]:
    """``in_features`` of every submodule in the order of their constructor calls, or `LAZY`."""
    ordered = sorted(
        result.sites.values(), key=lambda one: (one.call.end_lineno, one.call.end_col_offset)
    )
    return [_sizes(site).get("in_features") for site in ordered]


def _sizes(site: Site) -> dict[str, str]:
    """The sizes of a submodule; a lazy one must have none, whatever they would be called."""
    if site.is_lazy:
        assert not site.sizes
        return {"in_features": LAZY}
    return dict(site.sizes)


def arguments(result: ClassSizes) -> list[str]:
    """Names of the new constructor arguments."""
    return [one.name for one in result.new_arguments]


def dims(result: ClassSizes) -> set[str]:
    """Texts of the expressions that read shapes."""
    return set(result.dims.values())


def carried(result: ClassSizes) -> list[tuple[str, str, str]]:
    """Every size that a loop changes: name, value before, value after one iteration."""
    return [
        (one.name, one.before, one.after) for many in result.loop_carries.values() for one in many
    ]


def problems(result: ClassSizes) -> list[str]:
    """Reasons that make the class unconvertible."""
    return [reason for _, reason in result.problems]
