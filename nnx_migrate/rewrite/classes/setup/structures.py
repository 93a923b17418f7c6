"""Attributes of ``setup`` that hold a list, tuple or dict of submodules."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from nnx_migrate.edit.calls import call
from nnx_migrate.edit.expressions import (
    Expression,
    dotted_node,
    operation,
    string,
)
from nnx_migrate.edit.rendering import Renderer
from nnx_migrate.edit.statements import (
    Statement,
    loop,
    run,
    with_inner_comments,
)
from nnx_migrate.edit.syntax import cst
from nnx_migrate.edit.wrapping import wrap
from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.items import Item
from nnx_migrate.rewrite.classes.reading.attributes import Attribute
from nnx_migrate.rewrite.classes.reading.comprehensions import refuse_leaks
from nnx_migrate.rewrite.classes.setup.lists import (
    ComprehensionLoop,
    comprehension_loop,
    free_local,
)
from nnx_migrate.rewrite.classes.uses.references import Edits, Remarks
from nnx_migrate.rewrite.classes.writing.carrying import starts, updates
from nnx_migrate.rewrite.classes.writing.construct import Builder
from nnx_migrate.rewrite.classes.writing.layout import Layout
from nnx_migrate.rewrite.render import renderer_of
from nnx_migrate.sizes.result import ClassSizes
from nnx_migrate.source.bindings import names_bound_below
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import walk

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
    loops: set[int] = field(default_factory=set)  # comprehensions that became loops

    def add(self, one: Attribute, edits: Edits, properties: dict[str, Expression]) -> None:
        """Store the submodules of ``one`` under Linen's names, and give it a property.

        Raises:
          Refused: it is assigned together with something else.
        """
        if not is_single(one):
            raise ClassRefused(
                one.statement,
                "a list of submodules is assigned together with something else",
                "assign it on a line of its own",
                RULE,
            )
        found = comprehension_loop(one, self.items)
        if found is not None and found.is_nameless:
            found = replace(found, index=free_local(self.cls, "i"))
        if found is not None and found.counts and not self._reads_locals(found):
            edits[id(one.statement)] = self._loop(found)
            self.loops.add(id(found.node))
            properties[one.name] = found.property_value(renderer_of(self.cls.module, self.common))
            return
        self.remarks.imports.add("nnm")
        for node in walk(one.value):
            item = self.items.get(id(node))
            if item is not None and item.name is not None:
                edits[id(node)] = named(item, self.builder)
        properties[one.name] = call("nnm.get_submodules", "self", string(one.name))
        is_added = isinstance(one.statement, ast.AugAssign)

        def make(renderer: Renderer) -> Sequence[Statement]:
            value = renderer.render(one.value)
            if is_added:
                value = operation(dotted_node(f"self.{one.name}"), cst.Add, value)
            return [run(call("nnm.set_submodules", "self", string(one.name), value))]

        edits[id(one.statement)] = make

    def _reads_locals(self, loop: ComprehensionLoop) -> bool:
        """Whether the property could not evaluate the loop's header and names."""
        local = names_bound_below(self.method) - {"self"}
        local |= {one.name for one in self.sizes.new_arguments}
        return bool(loop.reads() & local)

    def _loop(self, comprehension: ComprehensionLoop) -> Callable[[Renderer], Sequence[Statement]]:
        """``self.layers = [Block(...) for i in range(n)]`` as a loop that stores each by its name."""
        refuse_leaks(self.method, {id(comprehension.node): comprehension}, RULE)
        carries = self.sizes.loop_carries.get(id(comprehension.node), ())
        statement, unit = comprehension.attribute.statement, self.layout.unit
        inner = statement.col_offset + len(unit)

        def make(renderer: Renderer) -> Sequence[Statement]:
            value, name = (
                self.builder(comprehension.item, renderer),
                comprehension.name_node(renderer),
            )
            stored = wrap(run(call("setattr", "self", name, value)), inner, self.layout.page)
            target, over = (
                comprehension.target(renderer),
                renderer.render(comprehension.generator.iter),
            )
            rounds = loop(target, over, [stored, *updates(carries)], unit)
            made = [*starts(carries), rounds]
            return with_inner_comments(made, renderer.sources.pairs[id(statement)])

        return make


def named(item: Item, builder: Builder) -> Callable[[Renderer], Expression]:
    """Edit: a submodule that carries its own name into the structure that holds it."""

    def make(renderer: Renderer) -> Expression:
        assert item.name is not None
        name = renderer.render(item.name)
        return call("nnm.named", name, builder(item, renderer))

    return make


def is_single(one: Attribute) -> bool:
    """Whether the statement assigns this attribute and nothing else."""
    statement = one.statement
    if isinstance(statement, ast.AnnAssign | ast.AugAssign):
        return True
    return isinstance(statement, ast.Assign) and statement.targets == [one.target]
