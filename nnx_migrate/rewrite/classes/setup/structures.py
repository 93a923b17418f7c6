"""Attributes of ``setup`` that hold a list, tuple or dict of submodules."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from nnx_migrate.rewrite.classes.data import Refused
from nnx_migrate.rewrite.classes.items import Item
from nnx_migrate.rewrite.classes.reading.comprehensions import refuse_leaks
from nnx_migrate.rewrite.classes.setup.attributes import Attribute
from nnx_migrate.rewrite.classes.setup.lists import ComprehensionLoop, comprehension_loop
from nnx_migrate.rewrite.classes.uses.references import Edits, Remarks
from nnx_migrate.rewrite.classes.writing.construct import Builder
from nnx_migrate.rewrite.classes.writing.layout import Layout, indent_of, wrapped
from nnx_migrate.rewrite.render import Renderer
from nnx_migrate.sizes.result import SCOPE_NAME, ClassSizes
from nnx_migrate.source.bindings import names_bound_below
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project

RULE = "setup"


@dataclass(frozen=True)
class Structures:
    """Converts the structures of one ``setup``."""

    project: Project
    cls: ClassInfo
    method: ast.FunctionDef
    items: Mapping[int, Item]
    sizes: ClassSizes
    builder: Builder
    layout: Layout
    remarks: Remarks
    common: Edits

    def add(self, one: Attribute, edits: Edits, properties: dict[str, str]) -> None:
        """Store the submodules of ``one`` under Linen's names, and give it a property.

        Raises:
          Refused: it is assigned together with something else.
        """
        if not is_single(one):
            raise Refused(
                one.statement,
                "a list of submodules is assigned together with something else",
                "assign it on a line of its own",
                RULE,
            )
        loop = comprehension_loop(one, self.items)
        if loop is not None and loop.counts and not self._reads_locals(loop):
            edits[id(one.statement)] = self._loop(loop)
            properties[one.name] = loop.property_text(
                Renderer(self.project, self.cls.module, self.common)
            )
            return
        self.remarks.imports.add("nnm")
        for node in ast.walk(one.value):
            item = self.items.get(id(node))
            if item is not None and item.name is not None:
                edits[id(node)] = named(item, self.builder)
        properties[one.name] = f"nnm.get_submodules(self, {one.name!r})"
        asks_index = loop is not None and loop.asks_name and loop.item.name is None
        if loop is not None and (self.sizes.carried.get(id(loop.node)) or asks_index):
            edits[id(one.statement)] = self._loop(loop, collect=f"{one.name}_list")
            return
        before = f"self.{one.name} + " if isinstance(one.statement, ast.AugAssign) else ""
        edits[id(one.statement)] = lambda renderer: (
            f"nnm.set_submodules(self, {one.name!r}, {before}{renderer.value(one.value)})"
        )

    def _reads_locals(self, loop: ComprehensionLoop) -> bool:
        """Whether the property could not evaluate the loop's header and names."""
        local = names_bound_below(self.method) - {"self"}
        local |= {one.name for one in self.sizes.new_arguments}
        return bool(loop.reads() & local)

    def _loop(
        self, loop: ComprehensionLoop, collect: str | None = None
    ) -> Callable[[Renderer], str]:
        """``self.layers = [Block(...) for i in range(n)]`` as a loop."""
        refuse_leaks(self.method, {id(loop.node): loop}, RULE)
        carried = self.sizes.carried.get(id(loop.node), ())
        indent = indent_of(self.cls, loop.attribute.statement)
        inner = indent + self.layout.unit

        def text(renderer: Renderer) -> str:
            target = renderer.render(loop.generator.target)
            lines = [f"{indent}{one.name} = {one.before}" for one in carried]
            if collect is not None:
                lines.append(f"{indent}{collect} = []")
            lines.append(f"{indent}for {target} in {renderer.value(loop.generator.iter)}:")
            if collect is not None:
                if loop.asks_name:
                    lines.append(
                        f'{inner}{SCOPE_NAME} = f"{loop.attribute.name}_{{len({collect})}}"'
                    )
                lines.append(f"{inner}{collect}.append({renderer.render(loop.node.elt)})")
            else:
                value = self.builder(loop.item, renderer)
                name = loop.name_text(renderer)
                if loop.asks_name:
                    lines.append(f"{inner}{SCOPE_NAME} = {name}")
                    name = SCOPE_NAME
                stored = f"setattr(self, {name}, {value})"
                lines.append(wrapped(inner + stored, inner, self.layout))
            lines += [f"{inner}{one.name} = {one.after}" for one in carried]
            if collect is not None:
                name = loop.attribute.name
                lines.append(f"{indent}nnm.set_submodules(self, {name!r}, {collect})")
            return self.layout.newline.join(lines).removeprefix(indent)

        return text


def named(item: Item, builder: Builder) -> Callable[[Renderer], str]:
    """Edit: a submodule that carries its own name into the structure that holds it."""

    def text(renderer: Renderer) -> str:
        assert item.name is not None
        name = renderer.render(item.name)
        return f"nnm.named({name}, {builder(item, renderer, name)})"

    return text


def is_single(one: Attribute) -> bool:
    """Whether the statement assigns this attribute and nothing else."""
    statement = one.statement
    if isinstance(statement, ast.AnnAssign | ast.AugAssign):
        return True
    return isinstance(statement, ast.Assign) and statement.targets == [one.target]
