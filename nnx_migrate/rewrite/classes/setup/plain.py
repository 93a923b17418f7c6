"""Attributes of ``setup`` that hold neither submodules nor variables."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from nnx_migrate.edit.calls import call
from nnx_migrate.edit.expressions import Expression
from nnx_migrate.edit.rendering import Renderer
from nnx_migrate.edit.statements import GONE, skip
from nnx_migrate.rewrite.classes.items import receiver_of
from nnx_migrate.rewrite.classes.reading.annotations import may_hold_arrays
from nnx_migrate.rewrite.classes.reading.arrays import (
    Inliner,
    assigned_once,
    local_values,
    may_be_array,
    property_value,
)
from nnx_migrate.rewrite.classes.reading.attributes import (
    Attribute,
    Kind,
    set_by_name,
    statements,
)
from nnx_migrate.rewrite.classes.reading.unread import dead_assignments, with_empty_ifs
from nnx_migrate.rewrite.classes.setup.changing_objects import check_objects
from nnx_migrate.rewrite.classes.setup.containers import Containers
from nnx_migrate.rewrite.classes.setup.kept_values import KeptValues
from nnx_migrate.rewrite.classes.uses.references import Edits, Remarks
from nnx_migrate.rewrite.render import renderer_of
from nnx_migrate.sizes.result import ClassSizes
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import each, is_self, walk


@dataclass(frozen=True)
class PlainAttributes:
    """Converts the plain attributes of one ``setup``."""

    project: Project
    cls: ClassInfo
    method: ast.FunctionDef
    sizes: ClassSizes
    remarks: Remarks
    common: Edits
    static: Mapping[int, str]
    kept_values: KeptValues

    def add(
        self, attributes: list[Attribute], edits: Edits, properties: dict[str, Expression]
    ) -> None:
        """Arrays become properties; lists and dicts are frozen as Linen freezes them.

        Raises:
          Refused: an attribute holds what calls change, or what they would find anew.
        """
        renderer = renderer_of(self.cls.module, self.common).with_edits(
            {k: v for k, v in edits.items() if k in self.sizes.dims or k in self.static}
        )
        unknown = frozenset({"rngs", *(one.name for one in self.sizes.new_arguments)})
        inliner = Inliner(self.method, unknown, self.kept_values.changed_locals)
        scope, local = self.cls.scope.enter(self.method), local_values(self.method)
        containers = Containers(self.project, scope, self.method, self.cls)
        receiver = receiver_of(self.method)
        for statement in statements(self.method.body):
            stored = set_by_name(statement, receiver)
            if stored is not None and containers.has(stored):
                has_arrays = may_be_array(self.project, scope, stored, local)
                self._frozen(stored, has_arrays, edits)
        removals: set[int] = set()
        for one in attributes:
            if one.kind is not Kind.PLAIN:
                continue
            check_objects(self.project, scope, one.value)
            has_arrays = may_be_array(self.project, scope, one.value, local)
            if has_arrays:
                self.kept_values.check(one)
            if containers.has(one.value):
                self._frozen(one.value, has_arrays, edits)
            elif has_arrays:
                value = property_value(inliner, one.value, renderer)
                if value is None or not (
                    assigned_once(attributes, one) and self.kept_values.is_steady(one)
                ):
                    is_named = isinstance(one.value, ast.Name)  # it may be a list
                    function = "nnm.as_field" if is_named else "nnm.constant"
                    self._wrap(one.value, function, edits)
                    continue
                properties[one.name] = value
                removals.add(id(one.statement))
        body = self.method.body
        removed_nodes = {
            id(node) for one in statements(body) if id(one) in removals for node in walk(one)
        }
        removals = with_empty_ifs(
            self.project,
            scope,
            body,
            removals | dead_assignments(self.project, scope, body, removed_nodes),
        )
        for statement in statements(self.method.body):
            if id(statement) in removals:
                edits[id(statement)] = GONE
        for statement in statements(self.method.body):
            for block in (getattr(statement, "body", []), getattr(statement, "orelse", [])):
                if (
                    block
                    and id(statement) not in removals
                    and all(id(one) in removals for one in block)
                ):
                    edits[id(block[0])] = (skip(),)

    def _frozen(self, value: ast.expr, has_arrays: bool, edits: Edits) -> None:
        """Freeze a container with arrays of its own, or of a field: ``[mean * 2 for mean in self.means]``."""
        read = {one.attr for one in each(value, ast.Attribute) if is_self(one.value)}
        fields = (one.annotation for one in self.cls.fields if one.name in read)
        has_arrays = has_arrays or any(map(may_hold_arrays, fields))
        self._wrap(value, "nnm.as_field" if has_arrays else "nnm.freeze", edits)

    def _wrap(self, value: ast.expr, function: str, edits: Edits) -> None:
        self.remarks.imports.add("nnm")
        previous = edits.get(id(value))

        def make(renderer: Renderer) -> Expression:
            inner = renderer.inner(value) if previous is None else renderer.replacement(previous)
            return call(function, inner)

        edits[id(value)] = make
