"""What the methods of a class read of what it builds, and how that is read of an NNX module."""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping, Sequence

from nnx_migrate.edit.expressions import Expression
from nnx_migrate.edit.rendering import Renderer
from nnx_migrate.rewrite.classes.checks.conflicts import check_own_names
from nnx_migrate.rewrite.classes.checks.reviews import handed_on, updates_at_init
from nnx_migrate.rewrite.classes.checks.unread import check_unread
from nnx_migrate.rewrite.classes.class_parts import ClassParts
from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.items import Item
from nnx_migrate.rewrite.classes.reading.attributes import Attribute, Kind
from nnx_migrate.rewrite.classes.reading.children import children_of
from nnx_migrate.rewrite.classes.setup.optional import optional_attributes
from nnx_migrate.rewrite.classes.setup.tied_weights import tied_layer
from nnx_migrate.rewrite.classes.setup.variable_attributes import attributes_of
from nnx_migrate.rewrite.classes.uses.reader import Reader
from nnx_migrate.rewrite.classes.uses.reads import Reads
from nnx_migrate.rewrite.classes.uses.references import Remarks
from nnx_migrate.rewrite.classes.variables.presence import asked_in_init, is_made_later
from nnx_migrate.rewrite.classes.writing.construct import Builder, optional_sizes


def setup_attributes(parts: ClassParts) -> list[Attribute]:
    """What ``setup`` assigns, that of the bases first.

    Raises:
      Refused: an attribute cannot be read, or two things share it.
    """
    found = list(parts.base_parts.attributes)
    if parts.setup is not None:
        own = attributes_of(parts.cls, parts.setup, parts.items)
        check_unread(parts.project, parts.cls, own, parts.items)
        found += own
    check_own_names(found)
    return found


def own_names(parts: ClassParts, attributes: Sequence[Attribute]) -> frozenset[str]:
    """The names of its methods, fields and attributes."""
    fields = (one.name for one in parts.cls.fields)
    return frozenset({*parts.cls.method_names, *fields, *(one.name for one in attributes)})


def class_reads(
    parts: ClassParts, attributes: Sequence[Attribute], names: frozenset[str], remarks: Remarks
) -> Reads:
    """Read all methods of a class.

    Args:
      attributes: as `setup_attributes`.
      names: as `own_names`.

    Raises:
      Refused: a read has no counterpart in NNX.
    """
    cls, items = parts.cls, parts.items
    params = _places(attributes, Kind.PARAM)
    variables = _places(attributes, Kind.VARIABLE)
    computed = [one for one in attributes if one.kind is Kind.COMPUTED and one.storage_name]
    remarks.review += handed_on(attributes)
    remarks.review += updates_at_init(cls, items, frozenset(variables))
    reader = Reader(
        items,
        params,
        variables | _places(computed, Kind.COMPUTED),
        names,
        remarks,
        functools.partial(
            _tied_layer, parts, _items_by_attribute(parts, attributes, Kind.SUBMODULE), remarks
        ),
        lambda node: parts.project.resolve(node, cls.scope),
        children_of(parts.project, cls, attributes, items),
        parts.context.lazy.__contains__,
        functools.partial(asked_in_init, cls, items),
        functools.partial(is_made_later, cls),
        _items_by_attribute(parts, attributes, Kind.VARIABLE),
        optional_attributes(attributes),
        frozenset(one.name for one in cls.fields) - cls.post_init_attributes,
    )
    for method in cls.methods.values():
        reader.read(method)
    return reader.reads


def builder_of(parts: ClassParts, remarks: Remarks) -> Builder:
    """What builds the layers of ``setup``."""
    scope = parts.cls.scope if parts.setup is None else parts.cls.scope.enter(parts.setup)
    optional = optional_sizes(parts.sizes)
    return Builder(parts.project, scope, parts.context, remarks, optional=optional)


def _places(attributes: Sequence[Attribute], kind: Kind) -> dict[str, str]:
    """Under which names attributes of a kind are stored, by their own."""
    return {one.name: one.storage_name or one.name for one in attributes if one.kind is kind}


def _items_by_attribute(
    parts: ClassParts, attributes: Sequence[Attribute], kind: Kind
) -> dict[str, Item]:
    """What attributes of a kind are built by."""
    return {
        one.name: parts.items[id(one.value)]
        for one in attributes
        if one.kind is kind and id(one.value) in parts.items
    }


def _tied_layer(
    parts: ClassParts,
    layers: Mapping[str, Item],
    remarks: Remarks,
    child: str,
    node: ast.expr,
    renderer: Renderer,
) -> Expression:
    """``self.child.apply(...)``: the layer that the call builds.

    Raises:
      Refused: ``setup`` does not build it.
    """
    if child not in layers:
        raise ClassRefused(
            node,
            f"self.{child}.apply(...) of a submodule that setup does not build",
            "build it in setup",
            "tied",
        )
    builder = builder_of(parts, remarks)
    return tied_layer(layers[child], node, renderer, builder, parts.setup, parts.inferred)
