"""Convert the code outside the classes of small projects in tests."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Mapping

from nnx_migrate.model import Outcome, SizeArgument
from nnx_migrate.rewrite.classes.checks.lazy_module_fields import LazyModuleFields
from nnx_migrate.rewrite.outside import OutsideContext, OutsideResult, convert_outside
from nnx_migrate.rewrite.outside.readers import owned_statements
from nnx_migrate.rewrite.render import renderer_of
from nnx_migrate.source.project import Project, parse

HEAD = """\
import functools
import jax
import jax.numpy as jnp
import flax.linen as nn
class MLP(nn.Module):
    features: int
    @nn.compact
    def __call__(self, x, train=False):
        return nn.Dense(self.features)(x)
    def encode(self, x):
        return x
class Plain(nn.Module):
    def __call__(self, x):
        return nn.relu(x)
class Stays(nn.Module):
    def __call__(self, x):
        return STAYING(x)
class Reads(nn.Module):
    def __call__(self, x):
        return OWNED(x)
"""
SIZES = {"m.MLP": (SizeArgument("in_features", argument="x"),)}
CONVERTED = frozenset({"m.MLP", "m.Plain", "m.Reads"})


def convert_modules(
    texts: Mapping[str, str],
    converted: Collection[str] = CONVERTED,
    sizes: Mapping[str, tuple[SizeArgument, ...]] | None = None,
) -> tuple[dict[str, str], dict[str, OutsideResult]]:
    """New texts and results by module name."""
    modules = {name: parse(name, f"{name}.py", text) for name, text in texts.items()}
    project = Project(modules)
    skip = frozenset(id(cls.node) for cls in project.linen.values())
    given = SIZES if sizes is None else sizes
    owned = owned_statements(project, [project.linen[name] for name in converted])
    context = OutsideContext(
        LazyModuleFields(project, {}, {}),
        frozenset(converted),
        given,
        explicit_statements=owned,
        skip=skip,
    )
    results = {name: convert_outside(project, one, context) for name, one in modules.items()}
    new = {
        name: renderer_of(one, results[name].edits).render_module().code
        for name, one in modules.items()
    }
    return new, results


def convert(
    body: str, converted: Collection[str] = CONVERTED, head: str = HEAD
) -> tuple[str, OutsideResult]:
    """The new text below ``head``, and the result."""
    new, results = convert_modules({"m": head + textwrap.dedent(body)}, converted)
    assert new["m"].startswith(head)
    return new["m"].removeprefix(head), results["m"]


def refusals(result: OutsideResult) -> list[tuple[str, str]]:
    """Kind and message of everything refused."""
    return [(one.kind, one.message) for one in result.findings if one.outcome is Outcome.REFUSED]
