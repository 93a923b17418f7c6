"""``setup`` becomes the rest of ``__init__``: its statements move, constructions are translated."""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping
from dataclasses import dataclass

from nnx_migrate.edit.calls import call
from nnx_migrate.edit.expressions import Expression, dotted_node, string
from nnx_migrate.edit.statements import (
    GONE,
    Statement,
    as_block,
    is_docstring,
    is_pass,
    leaving,
    rewritten_block,
    run,
)
from nnx_migrate.edit.syntax import cst
from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.items import Item, is_attribute_name
from nnx_migrate.rewrite.classes.reading.arrays import Inliner
from nnx_migrate.rewrite.classes.reading.attributes import Attribute, Kind, statements
from nnx_migrate.rewrite.classes.setup.dependence import dependence_in
from nnx_migrate.rewrite.classes.setup.hoisting import Hoisting
from nnx_migrate.rewrite.classes.setup.kept_values import KeptValues
from nnx_migrate.rewrite.classes.setup.lists import listed_items, listed_params
from nnx_migrate.rewrite.classes.setup.names import check_names
from nnx_migrate.rewrite.classes.setup.optional import inherited_edits, optional_edits
from nnx_migrate.rewrite.classes.setup.plain import PlainAttributes
from nnx_migrate.rewrite.classes.setup.properties import (
    ComputedAttributes,
    Storing,
    certain_items,
    check_assignments,
    reads_of,
)
from nnx_migrate.rewrite.classes.setup.structures import Structures, is_single, named
from nnx_migrate.rewrite.classes.setup.surroundings import Surroundings
from nnx_migrate.rewrite.classes.setup.variable_attributes import attributes_of
from nnx_migrate.rewrite.classes.uses.references import Edits, Remarks
from nnx_migrate.rewrite.classes.writing.construct import Builder
from nnx_migrate.rewrite.classes.writing.layout import Layout, docstring_of
from nnx_migrate.rewrite.render import nodes_of, renderer_of
from nnx_migrate.sizes.result import ClassSizes
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import walk

RULE = "setup"


@dataclass(frozen=True)
class SetupPart:
    """What ``setup`` contributes.

    Attributes:
      statements: what ``__init__`` does in its place.
      left: comments below them.
      method: the method as it is written, whose lines above and head stay.
      properties: attribute -> expression its read-only property returns.
      params: attributes that hold a Param or another variable -> attribute to read instead.
    """

    statements: tuple[Statement, ...]
    left: list[cst.EmptyLine]
    method: cst.FunctionDef
    properties: Mapping[str, Expression]
    attributes: tuple[Attribute, ...]
    submodule_names: tuple[str, ...]  # attribute names that hold submodules or variables


@dataclass
class SetupConverter:
    """Converts the ``setup`` method of one class."""

    project: Project
    cls: ClassInfo
    method: ast.FunctionDef
    items: Mapping[int, Item]
    sizes: ClassSizes
    builder: Builder
    layout: Layout
    remarks: Remarks
    common: Edits
    static: Mapping[int, str]
    plain_in_bases: frozenset[str] = frozenset()

    def convert(self) -> SetupPart:
        """Translate the method.

        Raises:
          Refused: a construction whose name or place is not clear.
        """
        inside = {id(node) for node in walk(self.method)}
        items = {key: item for key, item in self.items.items() if key in inside}
        found = attributes_of(self.cls, self.method, items)
        check_assignments(self.method, found, dependence_in(self.cls, self.method))
        self._check_places(items, found)
        edits: Edits = nodes_of({k: v for k, v in self.static.items() if k in inside})
        edits |= nodes_of({k: v for k, v in self.sizes.dims.items() if k in inside})
        edits |= {key: functools.partial(self.builder, item) for key, item in items.items()}
        properties: dict[str, Expression] = {}
        built: list[str] = []
        structures = Structures(
            self.project,
            self.cls,
            self.method,
            items,
            self.sizes,
            self.builder,
            self.layout,
            self.remarks,
            self.common,
        )
        for one in found:
            self._attribute(one, structures, edits, properties, built)
        listed = listed_items(self.method, found, items)
        check_names(self.method, found, items, listed)
        for item in listed:
            self.remarks.imports.add("nnm")
            edits[id(item.call)] = named(item, self.builder)
        optional, done = optional_edits(found, self.method, edits, self.remarks)
        edits |= optional
        edits |= inherited_edits(found, self.plain_in_bases, edits, self.remarks)
        kept_values = KeptValues(self.project, self.cls, self.method)
        plain = PlainAttributes(
            self.project,
            self.cls,
            self.method,
            self.sizes,
            self.remarks,
            self.common,
            self.static,
            kept_values,
        )
        plain.add([one for one in found if id(one.value) not in done], edits, properties)
        self._add_properties(found, items, edits, properties, kept_values)
        around = Surroundings(self.cls, items, self.sizes, self.builder, self.layout, self.remarks)
        hoisting = Hoisting(self.cls, self.method, self.sizes, self.layout, structures.loops)
        for statement in statements(self.method.body):
            around.add(statement, edits)
            hoisting.add(statement, edits)
        renderer = renderer_of(self.cls.module, self.common).with_edits(edits)
        method = renderer.without(self.method).inner(self.method)
        made, left = self._statements(method)
        return SetupPart(made, left, method, properties, tuple(found), tuple(built))

    def _statements(
        self, method: cst.FunctionDef
    ) -> tuple[tuple[Statement, ...], list[cst.EmptyLine]]:
        """The body without its docstring, and the comments that no statement is left for."""
        has_docstring = docstring_of(self.method.body) is not None
        first, *rest = as_block(method.body).body
        body = rest if has_docstring and is_docstring(first) else [first, *rest]
        found, left = rewritten_block((one, GONE if is_pass(one) else None) for one in body)
        return tuple(found), left

    def _check_places(self, items: Mapping[int, Item], attributes: list[Attribute]) -> None:
        direct = {id(one.value) for one in attributes if one.kind is not Kind.COMPUTED}
        for one in attributes:
            if one.kind is Kind.COMPUTED:
                direct |= set(certain_items(one.value, items))
            elif one.kind is Kind.STRUCTURE and is_single(one):
                direct |= set(listed_params(one, items))
        for statement in statements(self.method.body):
            match statement:
                case ast.Assign(targets=[ast.Name()], value=value):
                    direct |= set(certain_items(value, items))
        for item in items.values():
            if item.is_own_variable and id(item.call) not in direct:
                raise ClassRefused(
                    item.call,
                    "a parameter or variable is made inside a larger expression of setup",
                    "assign it to an attribute of its own",
                    RULE,
                )

    def _add_properties(
        self,
        attributes: list[Attribute],
        items: Mapping[int, Item],
        edits: Edits,
        properties: dict[str, Expression],
        kept_values: KeptValues,
    ) -> None:
        """Properties of what follows a variable."""
        storing = Storing(items, self.builder)
        unknown = frozenset({"rngs", *(one.name for one in self.sizes.new_arguments)})
        structures = (one for one in attributes if one.kind is Kind.STRUCTURE)
        listed = {key for one in structures for key in listed_params(one, items)}
        made = [one for one in storing.made_in(self.method) if id(one.call) not in listed]
        inliner = Inliner(self.method, unknown, kept_values.changed_locals, reads_of(made))
        known = {k: v for k, v in edits.items() if k in self.sizes.dims or k in self.static}
        renderer = renderer_of(self.cls.module, self.common).with_edits(known)
        computed = ComputedAttributes(self.method, storing, inliner, kept_values)
        computed.add(attributes, renderer, edits, properties)

    def _attribute(
        self,
        one: Attribute,
        structures: Structures,
        edits: Edits,
        properties: dict[str, Expression],
        submodule_names: list[str],
    ) -> None:
        stored = one.storage_name or one.name
        match one.kind:
            case Kind.STRUCTURE:
                structures.add(one, edits, properties)
            case Kind.ALIAS:
                properties[one.name] = self._alias(one, edits)
            case Kind.PARAM | Kind.VARIABLE if isinstance(one.value, ast.Name):
                edits[id(one.statement)] = GONE  # the variable has its own attribute already
                if stored != one.name:
                    properties[one.name] = _attribute(stored)
            case Kind.SUBMODULE | Kind.PARAM | Kind.VARIABLE:
                submodule_names.append(stored)
                if stored != one.name:
                    properties[one.name] = _attribute(stored)
                    self._rename(one, stored, edits)

    def _rename(self, one: Attribute, storage_name: str, edits: Edits) -> None:
        if is_attribute_name(storage_name):
            edits[id(one.target)] = dotted_node(f"self.{storage_name}")
            return
        if not is_single(one):
            raise ClassRefused(
                one.statement, "a name that is no identifier", "assign it on a line alone", RULE
            )
        edits[id(one.statement)] = lambda renderer: [
            run(call("setattr", "self", string(storage_name), renderer.render(one.value)))
        ]

    def _alias(self, one: Attribute, edits: Edits) -> Expression:
        if not is_single(one) or one.statement not in self.method.body:
            raise ClassRefused(
                one.statement,
                "a submodule gets a second name here, which would change its path",
                "use one name for it",
                RULE,
            )
        edits[id(one.statement)] = leaving(f"# {one.name} is a property below")
        value: Expression = renderer_of(self.cls.module).render(one.value)
        return value


def _attribute(name: str) -> Expression:
    if is_attribute_name(name):
        return dotted_node(f"self.{name}")
    return call("getattr", "self", string(name))
