"""``__init__`` and the properties, and where they come in the class."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from nnx_migrate.edit.calls import Argument, call, named
from nnx_migrate.edit.expressions import Expression, attribute, dotted_node, expression, string
from nnx_migrate.edit.rendering import Renderer, Replacement
from nnx_migrate.edit.statements import (
    Statement,
    assign,
    define,
    outer_comments,
    result,
    run,
    with_blank_lines,
    with_comments_around,
    with_first_statements,
    with_members,
)
from nnx_migrate.edit.wrapping import wrap, wrapped_function
from nnx_migrate.model import SizeArgument
from nnx_migrate.rewrite.classes.compact.split import CompactPart, global_reads
from nnx_migrate.rewrite.classes.data import ClassRefused, ConversionContext
from nnx_migrate.rewrite.classes.fields.parameters import Parameter, signature
from nnx_migrate.rewrite.classes.fields.post_init import calls_post_init
from nnx_migrate.rewrite.classes.inheritance import BaseParts
from nnx_migrate.rewrite.classes.setup.body import SetupPart
from nnx_migrate.rewrite.classes.uses.reads import Reads, stream_attribute, stream_name
from nnx_migrate.rewrite.classes.uses.references import Edits, Remarks
from nnx_migrate.rewrite.classes.writing.base_sizes import base_size
from nnx_migrate.rewrite.classes.writing.document import class_docstring, init_docstring
from nnx_migrate.rewrite.classes.writing.layout import Layout
from nnx_migrate.rewrite.classes.writing.local_sizes import with_local_sizes
from nnx_migrate.rewrite.classes.writing.quotes import in_quotes_of
from nnx_migrate.rewrite.render import renderer_of
from nnx_migrate.sizes.result import ClassSizes
from nnx_migrate.source.classes import ClassInfo


@dataclass(frozen=True)
class Constructor:
    """What ``__init__`` of one class is written from."""

    cls: ClassInfo
    sizes: ClassSizes
    context: ConversionContext
    layout: Layout
    base_parts: BaseParts
    parameters: tuple[Parameter, ...]
    setup: SetupPart | None
    compact: CompactPart | None

    def members(self, reads: Reads, own_names: frozenset[str], remarks: Remarks) -> list[Statement]:
        """``__init__``, what comes before it, and the properties.

        Raises:
          Refused: a field would hide a global that the moved code reads.
        """
        remarks.imports.add("nnx")
        body = self._body(reads, own_names)
        self._check_shadows()
        used_names = self._used_names(own_names)
        body = with_local_sizes(body, self.cls.node, used_names, self.layout)
        head = None if self.setup is None else self.setup.method
        made = define(
            "__init__",
            signature(self.parameters, self.new_arguments()),
            body,
            unit=self.layout.unit,
            like=head,
            left=[] if self.setup is None else self.setup.left,
        )
        init = wrapped_function(made, self.layout.indent, self.layout.page)
        return in_quotes_of(self.cls.module.text, with_blank_lines([init, *self._properties()]))

    def _body(self, reads: Reads, own_names: frozenset[str]) -> list[Statement]:
        made: list[Statement] = []
        if class_docstring(self.cls, self.new_arguments(), self.layout) is None:
            made += init_docstring(self.new_arguments(), self.layout)
        made += self._assignments()
        if calls_post_init(self.cls, self.base_parts):
            made.append(run(call("self.__post_init__")))
        for name in reads.own_streams:
            held = stream_attribute(name, own_names)
            made.append(
                assign(f"self.{held}", call("nnm.stream", "rngs", expression(stream_name(name))))
            )
        made += self.setup.statements if self.setup is not None else ()
        made += self.compact.statements if self.compact is not None else ()
        if self.cls.name in self.context.factories and self._needs_width():
            made.append(assign("self.out_features", expression(str(self.sizes.out_features))))
        return made

    def _used_names(self, own_names: frozenset[str]) -> frozenset[str]:
        """Names that a new local of ``__init__`` may not have."""
        names = {one.name for one in self.parameters} | {one.name for one in self.new_arguments()}
        return self.cls.local_names | own_names | names | self.cls.module.table.keys() | {"rngs"}

    def _wrap(self, statement: Statement) -> Statement:
        found: Statement = wrap(statement, self.layout.body, self.layout.page)
        return found

    def new_arguments(self) -> tuple[SizeArgument, ...]:
        """Size arguments: those of the class and those its bases need."""
        known = {one.name for one in self.sizes.new_arguments}
        known |= self.base_parts.size_values.keys()
        extra = [one for one in self.base_parts.size_arguments if one.name not in known]
        return (*self.sizes.new_arguments, *extra)

    def _properties(self) -> list[Statement]:
        properties = dict(self.setup.properties) if self.setup else {}
        for one in self.parameters:
            if one.structure:
                properties[one.name] = call("nnm.get_submodules", "self", string(one.name))
        unit = self.layout.unit
        return [
            define(name, ["self"], [result(value)], decorators=[dotted_node("property")], unit=unit)
            for name, value in properties.items()
        ]

    def _needs_width(self) -> bool:
        parameter_names = {one.name for one in self.parameters}
        if self.setup is not None:
            parameter_names |= {one.name for one in self.setup.attributes}
        return self.sizes.out_features is not None and "out_features" not in parameter_names

    def _assignments(self) -> list[Statement]:
        """What stores the fields, with the comments of their declarations."""
        made: list[Statement] = []
        arguments: list[Argument] = []
        above: list[str] = []
        for one in self.parameters:
            if one.name in self.base_parts.base_fields:
                arguments.append(named(one.name, one.name))
                above += self._comments(one)
            elif one.structure:
                stored = call("nnm.set_submodules", "self", string(one.name), one.value)
                made.append(self._with_comments(run(stored), one))
            else:
                made.append(self._with_comments(assign(f"self.{one.name}", one.value), one))
        if self.base_parts.delegates:
            arguments += [
                named(one.name, self._base_argument(one.name))
                for one in self.base_parts.size_arguments
            ]
            delegated = run(
                call(attribute(call("super"), "__init__"), *arguments, named("rngs", "rngs"))
            )
            made.append(with_comments_around(self._wrap(delegated), above))
        return made

    def _base_argument(self, name: str) -> Expression:
        """What the base's constructor is given for a size argument of its own."""
        text = self.base_parts.size_values.get(name, name)
        plain = {one.name for one in self.parameters if one.plain} - self.cls.post_init_attributes
        return base_size(self.cls, text, plain, {one.name for one in self.new_arguments()})

    def _declaration(self, one: Parameter) -> Any:
        """The line of the class body that declares a field."""
        declared = self.declarations.get(one.name)
        if declared is None:
            return None
        return renderer_of(self.cls.module).line(declared)

    def _comments(self, one: Parameter) -> list[str]:
        line = self._declaration(one)
        return [] if line is None else outer_comments(line)

    def _with_comments(self, statement: Statement, one: Parameter) -> Statement:
        line = self._declaration(one)
        if line is None:
            return statement
        comments, behind = outer_comments(line), line.trailing_whitespace.comment
        return with_comments_around(
            statement, comments if behind is None else comments[:-1], behind and behind.value
        )

    @property
    def declarations(self) -> dict[str, ast.AnnAssign]:
        """The statements of the class' own fields that become parameters."""
        names = {one.name for one in self.parameters}
        own = (one for one in self.cls.fields if one.owner is self.cls and one.name in names)
        if not self.base_parts.delegates:
            own = (one for one in own if one.name not in self.base_parts.base_fields)
        return {one.name: one.node for one in own if isinstance(one.node, ast.AnnAssign)}

    def _check_shadows(self) -> None:
        """A global name that the moved code reads must not be hidden by a parameter."""
        names = {one.name for one in self.parameters}
        read: set[str] = set()
        if self.compact is not None:
            read |= self.compact.reads
        if self.setup is not None:
            read |= global_reads(self.setup.statements)
        clash = (names & read) - {one.name for one in self.new_arguments()}
        if clash:
            raise ClassRefused(
                self.cls.node,
                f"the field {min(clash)!r} would hide the global of the same name in __init__",
                "rename the field or the global",
                "fields",
            )


def insert_header(edits: Edits, method: ast.FunctionDef, header: Sequence[Statement]) -> None:
    """Put statements at the start of ``method``, after its docstring."""
    previous = edits.get(id(method))

    def make(renderer: Renderer) -> list[Statement]:
        first, *more = _statements(previous, method, renderer)
        return [with_first_statements(first, header), *more]

    edits[id(method)] = make


def _statements(previous: Replacement | None, node: ast.stmt, renderer: Renderer) -> Sequence[Any]:
    found: Sequence[Any] = (
        [renderer.inner(node)] if previous is None else renderer.replacement(previous)
    )
    return found


def placed_members(
    cls: ClassInfo, members: Sequence[Statement], edits: Edits
) -> Callable[[Any], Any]:
    """How the new members come into the class: in the place of ``setup``, or before the methods.

    Args:
      edits: gets the edit of ``setup``.
    """
    setup = cls.methods.get("setup")
    if setup is None or setup not in cls.node.body:
        return lambda node: with_members(node, members)
    edits[id(setup)] = members
    return lambda node: node
