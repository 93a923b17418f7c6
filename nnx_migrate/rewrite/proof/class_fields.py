"""Fields that hold classes of modules, as code around the classes compares and replaces them.

Explicit code holds a maker of NNX's layer: ``net.norm is nn.LayerNorm`` is false of it, and a table has no
entry for it. ``net.clone(norm=nn.RMSNorm)`` gives it a class of Linen's, which takes no ``rngs``.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping

from nnx_migrate.constructs import layer_of
from nnx_migrate.rewrite.attempt import Attempt
from nnx_migrate.rewrite.proof.doubt import Doubt
from nnx_migrate.rewrite.proof.members import classes_of
from nnx_migrate.sizes.candidates import candidates_of
from nnx_migrate.sizes.fields.constructor_arguments import COPYING
from nnx_migrate.source.attribute_uses import attribute_uses
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.names import last_name
from nnx_migrate.source.other_values import is_no_module
from nnx_migrate.source.project import Module, Project, Scope
from nnx_migrate.source.walking import is_self

_COMPARED = "a class is compared here, and {} holds a maker of NNX's for it"

Holders = Mapping[str, Mapping[str, tuple[str, ...]]]  # by field and class: what it may hold


def class_field_doubts(project: Project, attempt: Attempt) -> Iterator[tuple[str, Doubt]]:
    """Converted classes with such a field that some code around them replaces, or compares with a class."""
    holders = _holders(project, attempt)
    for module in project.modules.values() if holders else ():
        for node in module.nodes:
            match node:
                case ast.Call():
                    yield from _replacement_doubts(project, module, node, holders)
                case ast.Compare() | ast.Dict():
                    yield from _comparison_doubts(project, module, node, holders)
                case ast.Attribute(attr=name, ctx=ast.Load()) if name in holders:
                    yield from _read(project, module, node, holders[name])


def _holders(project: Project, attempt: Attempt) -> Holders:
    candidates = candidates_of(project)
    holders: dict[str, dict[str, tuple[str, ...]]] = {}
    for name in attempt.decisions.conversions:
        cls = project.linen[name]
        for one in cls.fields:
            symbols = tuple(found.symbol for found in candidates.factories(cls, one.name))
            if any(symbol in project.linen or layer_of(symbol) for symbol in symbols):
                holders.setdefault(one.name, {})[name] = symbols
    return holders


def _replacement_doubts(
    project: Project, module: Module, call: ast.Call, holders: Holders
) -> Iterator[tuple[str, Doubt]]:
    """``net.clone(norm=...)``, ``dataclasses.replace(net, norm=...)``, ``issubclass(net.norm, ...)``."""
    called = last_name(call.func)
    names = [one.arg for one in call.keywords] if called in COPYING else []
    if called == "issubclass" and call.args and isinstance(call.args[0], ast.Attribute):
        names = [call.args[0].attr]
    is_any = called == "clone" and None in names
    fields = [one for one in holders if is_any or one in names]
    if not fields or _class_around(project, module, call) is not None:
        return
    for field in fields:
        reason = f"{field}, which holds a class of modules, is replaced or asked about here"
        yield from ((cls, Doubt(module.path, call.lineno, reason)) for cls in holders[field])


def _read(
    project: Project,
    module: Module,
    node: ast.Attribute,
    classes: Collection[str],
) -> Iterator[tuple[str, Doubt]]:
    """``block.conv`` of another module, which is one of the classes: others build with it as Linen does."""
    if is_self(node.value) or is_no_module(project, module, node.value):
        return
    if attribute_uses(project).of(module, node) == frozenset():  # printed, compared
        return
    owners = classes_of(project, module, node.value)
    reason = f"{node.attr}, which holds a class of modules, is read here"
    for cls in classes:
        if owners is None or cls in owners:
            yield cls, Doubt(module.path, node.lineno, reason)


def _comparison_doubts(
    project: Project, module: Module, node: ast.Compare | ast.Dict, holders: Holders
) -> Iterator[tuple[str, Doubt]]:
    """``net.norm is nn.LayerNorm``, ``net.norm in (A, B)``, ``{A: "a"}[net.norm]``."""
    values = [node.left, *node.comparators] if isinstance(node, ast.Compare) else node.keys
    named = [part for one in values if one is not None for part in _names(one)]
    if not named or _class_around(project, module, node) is not None:
        return
    scope = Scope(module).around(node)
    symbols = {project.resolve(one, scope) for one in named}
    for field, classes in holders.items():
        for cls, field_names in classes.items():
            if not symbols.isdisjoint(field_names):
                yield cls, Doubt(module.path, node.lineno, _COMPARED.format(field))


def _names(value: ast.expr) -> list[ast.expr]:
    """What an operand names as it is, or in a tuple; not what is called or read of it."""
    inner = value.elts if isinstance(value, ast.Tuple | ast.List | ast.Set) else [value]
    return [one for one in inner if isinstance(one, ast.Name | ast.Attribute)]


def _class_around(project: Project, module: Module, node: ast.AST) -> ClassInfo | None:
    """The class of modules in whose text a node stands: its own conversion reads that."""
    for one in module.parents.above(node):
        cls = project.by_node.get(id(one))
        if cls is not None and cls.linen:
            return cls
    return None
