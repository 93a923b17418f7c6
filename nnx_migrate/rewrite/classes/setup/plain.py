"""Attributes of ``setup`` that hold neither submodules nor variables."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from nnx_migrate.rewrite.classes.setup.arrays import (
    Inliner,
    assigned_once,
    emptied,
    may_be_array,
    property_text,
)
from nnx_migrate.rewrite.classes.setup.attributes import Attribute, Kind, statements
from nnx_migrate.rewrite.classes.uses.references import Edits, Remarks
from nnx_migrate.rewrite.classes.writing.text import GONE
from nnx_migrate.rewrite.render import Renderer
from nnx_migrate.sizes.result import ClassSizes
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project


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

    def add(self, found: list[Attribute], edits: Edits, properties: dict[str, str]) -> None:
        """Arrays become properties; lists and dicts are frozen as Linen freezes them."""
        renderer = Renderer(self.project, self.cls.module, self.common).with_edits(
            {k: v for k, v in edits.items() if k in self.sizes.dims or k in self.static}
        )
        unknown = frozenset({"rngs", *(one.name for one in self.sizes.new_arguments)})
        inliner = Inliner(self.method, unknown)
        scope = self.cls.scope.enter(self.method)
        gone: set[int] = set()
        for one in found:
            if one.kind is not Kind.PLAIN:
                continue
            if isinstance(one.value, ast.List | ast.Dict | ast.ListComp | ast.DictComp):
                self._wrapped(one, "nnm.freeze", edits)
            elif may_be_array(self.project, scope, one.value):
                text = property_text(inliner, one.value, renderer)
                if text is None or not assigned_once(found, one):
                    self._wrapped(one, "nnm.constant", edits)
                    continue
                properties[one.name] = text
                gone.add(id(one.statement))
        gone = emptied(self.method.body, gone)
        for statement in statements(self.method.body):
            if id(statement) in gone:
                edits[id(statement)] = GONE
        for statement in statements(self.method.body):
            for block in (getattr(statement, "body", []), getattr(statement, "orelse", [])):
                if block and id(statement) not in gone and all(id(one) in gone for one in block):
                    edits[id(block[0])] = "pass"

    def _wrapped(self, one: Attribute, function: str, edits: Edits) -> None:
        self.remarks.imports.add("nnm")
        value = one.value
        previous = edits.get(id(value))

        def text(renderer: Renderer) -> str:
            if previous is None:
                inner = renderer.without(value).inner(value)
            else:
                inner = previous if isinstance(previous, str) else previous(renderer)
            return f"{function}({inner})"

        edits[id(value)] = text
