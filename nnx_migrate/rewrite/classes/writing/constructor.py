"""Writing ``__init__`` and the properties, and putting them into the class."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from nnx_migrate.model import SizeArgument
from nnx_migrate.rewrite.classes.compact.emit import is_attribute_name
from nnx_migrate.rewrite.classes.compact.split import CompactPart, global_reads
from nnx_migrate.rewrite.classes.data import ConversionContext, Refused
from nnx_migrate.rewrite.classes.fields.parameters import Parameter, signature
from nnx_migrate.rewrite.classes.fields.post_init import calls_post_init
from nnx_migrate.rewrite.classes.inheritance import Inherited
from nnx_migrate.rewrite.classes.scopes.sharing import SharedScope
from nnx_migrate.rewrite.classes.setup.body import SetupPart
from nnx_migrate.rewrite.classes.uses.reads import Reads, stream_attribute
from nnx_migrate.rewrite.classes.uses.references import Edits, Remarks
from nnx_migrate.rewrite.classes.writing.document import class_docstring, init_docstring
from nnx_migrate.rewrite.classes.writing.layout import WIDTH, Layout, docstring_of, wrapped
from nnx_migrate.rewrite.classes.writing.text import END, GONE, before, without_gone
from nnx_migrate.rewrite.render import Renderer
from nnx_migrate.sizes.result import ClassSizes
from nnx_migrate.source.classes import ClassInfo


@dataclass(frozen=True)
class Constructor:
    """What ``__init__`` of one class is written from."""

    cls: ClassInfo
    sizes: ClassSizes
    context: ConversionContext
    layout: Layout
    inherited: Inherited
    parameters: tuple[Parameter, ...]
    setup: SetupPart | None
    compact: CompactPart | None
    shared: SharedScope
    scopes: tuple[str, ...]

    def text(self, reads: Reads, own_names: frozenset[str], remarks: Remarks) -> str:
        """Text of ``__init__`` and the properties, the first line without indentation.

        Raises:
          Refused: a field would hide a global that the moved code reads.
        """
        layout = self.layout
        remarks.imports.add("nnx")
        lines = [f"{layout.body}{one}" for one in self._assignments()]
        if self.cls.name in self.context.copied:
            remarks.imports.add("nnm")
            names = [one.name for one in self.parameters]
            names += [one.name for one in self.new_arguments()]
            given = ", ".join(["self", "__class__", *(f"{one}={one}" for one in names)])
            lines.insert(0, wrapped(f"{layout.body}nnm.remember({given})", layout.body, layout))
        if calls_post_init(self.cls, self.inherited):
            lines.append(f"{layout.body}self.__post_init__()")
        for name in reads.owned:
            attribute = stream_attribute(name, own_names)
            lines.append(f"{layout.body}self.{attribute} = nnm.stream(rngs, {name!r})")
        if self.setup is not None and self.setup.text.strip(f" \t\r\n{GONE}"):
            lines.append(layout.body + self.setup.text)
        remarks.imports |= {"nnm"} if self.scopes else set()
        lines += [f"{layout.body}self.{name} = nnm.Scope()" for name in self.scopes]
        if self.compact is not None:
            lines += self.compact.lines
        if self.cls.name in self.context.factories and self._needs_width():
            lines.append(f"{layout.body}self.out_features = {self.sizes.out_features}")
        self._check_shadows()
        head = signature(
            self.parameters, self.new_arguments(), layout.indent, layout.unit, layout.newline, WIDTH
        )
        if class_docstring(self.cls, self.new_arguments(), layout.indent) is None:
            lines[:0] = init_docstring(self.new_arguments(), layout)
        text = layout.newline.join([head, *(lines or [f"{layout.body}pass"])])
        before = self._in_scope(remarks)
        return (before + text + self._properties()).removeprefix(layout.indent)

    def new_arguments(self) -> tuple[SizeArgument, ...]:
        """Size arguments: those of the class and those its bases need."""
        known = {one.name for one in self.sizes.new_arguments}
        extra = [one for one in self.inherited.size_arguments if one.name not in known]
        return (*self.sizes.new_arguments, *extra)

    def _properties(self) -> str:
        layout = self.layout
        properties = dict(self.setup.properties) if self.setup else {}
        for one in self.parameters:
            if one.structure:
                properties[one.name] = f"nnm.get_submodules(self, {one.name!r})"
        text = ""
        for name, value in properties.items():
            text += layout.newline.join(
                [
                    "",
                    "",
                    f"{layout.indent}@property",
                    f"{layout.indent}def {name}(self):",
                    f"{layout.body}return {value}",
                ]
            )
        return text

    def _in_scope(self, remarks: Remarks) -> str:
        """The line of the class body for the submodule that has no scope of its own."""
        call = self.shared.call
        if call is None:
            return ""
        held = {
            id(one): name for name, one in (self.compact.attributes if self.compact else {}).items()
        }
        if self.setup is not None:
            held |= {id(one.value): one.stored or one.name for one in self.setup.attributes}
        name = self.shared.held_by or held.get(id(call), "")
        if not is_attribute_name(name):
            reason = "the name of a submodule that shares the scope is not known here"
            raise Refused(call, reason, "give it a name", "share-scope")
        remarks.imports.add("nnm")
        layout = self.layout
        return f"{layout.indent}{self.shared.line(name)}{layout.newline}{layout.newline}"

    def _needs_width(self) -> bool:
        taken = {one.name for one in self.parameters}
        if self.setup is not None:
            taken |= {one.name for one in self.setup.attributes}
        return self.sizes.out_features is not None and "out_features" not in taken

    def _assignments(self) -> list[str]:
        lines = []
        passed = []
        for one in self.parameters:
            if one.name in self.inherited.base_fields:
                passed.append(f"{one.name}={one.name}")
            elif one.structure:
                lines.append(f"nnm.set_submodules(self, {one.name!r}, {one.value})")
            else:
                lines.append(f"self.{one.name} = {one.value}")
        if self.inherited.delegates:
            passed += [f"{one.name}={one.name}" for one in self.inherited.size_arguments]
            lines.append(f"super().__init__({', '.join([*passed, 'rngs=rngs'])})")
        return lines

    def _check_shadows(self) -> None:
        """A global name that the moved code reads must not be hidden by a parameter."""
        names = {one.name for one in self.parameters}
        read: set[str] = set()
        if self.compact is not None:
            read |= self.compact.reads
        if self.setup is not None and self.setup.text.strip():
            text = without_gone(self.layout.body + self.setup.text, self.layout.newline)
            read |= global_reads((text,))
        clash = (names & read) - {one.name for one in self.new_arguments()}
        if clash:
            raise Refused(
                self.cls.node,
                f"the field {min(clash)!r} would hide the global of the same name in __init__",
                "rename the field or the global",
                "fields",
            )


def insert_header(
    edits: Edits, method: ast.FunctionDef, header: tuple[str, ...], layout: Layout
) -> None:
    """Put lines at the start of ``method``, after its docstring."""
    docstring = docstring_of(method.body)
    first = next(one for one in method.body if one is not docstring)
    previous = edits.get(id(first))
    joint = layout.newline + layout.body

    def text(renderer: Renderer) -> str:
        inner = renderer.without(first).inner(first) if previous is None else previous
        shown = inner if isinstance(inner, str) else inner(renderer)
        return joint.join([*header, shown])

    edits[id(first)] = text


def place(edits: Edits, cls: ClassInfo, layout: Layout, init: str, *, needed: bool) -> None:
    """Put ``__init__`` where ``setup`` was, or before the first method.

    Args:
      needed: whether a class without ``setup`` needs an ``__init__`` of its own.
    """
    setup = cls.methods.get("setup")
    if setup is not None:
        edits[id(setup)] = init + END
        return
    if not needed:
        return
    gap = layout.newline * 2 + layout.indent
    body = cls.node.body
    docstring = docstring_of(body)
    methods = (ast.FunctionDef, ast.AsyncFunctionDef)
    first = next((one for one in body if isinstance(one, methods)), None)
    if first is not None:
        edits[id(first)] = before(init + gap, first, edits.get(id(first)))
        return
    last = body[-1]
    if last is docstring:
        edits[id(last)] = lambda renderer: renderer.without(last).inner(last) + gap + init
    elif isinstance(last, ast.Pass) or edits.get(id(last)) == GONE:
        edits[id(last)] = init
    else:
        edits[id(last)] = lambda renderer: renderer.without(last).inner(last) + gap + init
