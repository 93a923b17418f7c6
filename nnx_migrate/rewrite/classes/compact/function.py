"""One scope function: its body calls what its builder, a function beside it, has built.

``def block(x, width): return nn.relu(nn.Dense(width)(x))`` becomes ``block(module, names, x, width)``
and ``init_block(module, names, *, width, in_features, rngs)``. ``module`` is the caller, whose
attributes the submodules are; ``names`` counts them on as Linen does.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

from nnx_migrate.rewrite.classes.checks.written import check_class, check_init
from nnx_migrate.rewrite.classes.compact.in_scope import builders_of
from nnx_migrate.rewrite.classes.compact.method import CompactMethod
from nnx_migrate.rewrite.classes.compact.split import CompactPart, convert_compact
from nnx_migrate.rewrite.classes.data import (
    ClassRefusal,
    ConversionContext,
    ConvertedFunction,
    Refused,
)
from nnx_migrate.rewrite.classes.fields.parameters import size_annotation
from nnx_migrate.rewrite.classes.items import find_items
from nnx_migrate.rewrite.classes.refusing import or_refusal
from nnx_migrate.rewrite.classes.uses.references import Edits, Remarks, name_edits
from nnx_migrate.rewrite.classes.writing.construct import relaxed
from nnx_migrate.rewrite.classes.writing.layout import WIDTH, Layout, layout_of
from nnx_migrate.rewrite.classes.writing.text import without_gone
from nnx_migrate.rewrite.render import Renderer
from nnx_migrate.sizes.given import defaults_of
from nnx_migrate.sizes.result import ClassSizes
from nnx_migrate.sizes.scope_functions import (
    COUNTER,
    OWNER,
    ScopeFunction,
    builder_name,
    caller_name,
)
from nnx_migrate.source.project import Project

RULE = "scope_function"
OWN = "self"  # the receiver of helper methods


def convert_function(
    project: Project, function: ScopeFunction, sizes: ClassSizes, context: ConversionContext
) -> ConvertedFunction | ClassRefusal:
    """Convert ``function``, or say why not; arguments as of ``convert_class``."""
    return or_refusal(_Conversion(project, function, sizes, context).run, RULE)


@dataclass
class _Conversion:
    project: Project
    function: ScopeFunction
    sizes: ClassSizes
    context: ConversionContext
    remarks: Remarks = field(default_factory=Remarks)

    def run(self) -> ConvertedFunction:
        for node, reason in self.sizes.problems:
            raise Refused(node, reason, "build it in the class", "sizes")
        self.sizes = relaxed(self.sizes)
        cls = self.function.method_of
        self.layout = _layout_of(self.function) if cls is None else layout_of(cls)
        self.items = find_items(self.function.cls, self.sizes)
        method = self.function.cls.methods["__call__"]
        common = name_edits(self.project, self.function.cls, {*self.items}, self.remarks)
        compact = CompactMethod(
            self.project,
            self.function.cls,
            method,
            self.items,
            self.sizes,
            self.context,
            self.layout,
            self.remarks,
            common,
            {},
            given=frozenset(self.function.given),
        )
        part = convert_compact(compact)
        self.remarks.imports.add("nnx")
        takes = self._takes(part)
        counts = self._counts()
        edits = self._edits({**common, **part.edits}, part, takes, counts)
        return ConvertedFunction(
            self.function.symbol,
            edits,
            frozenset(self.remarks.imports),
            takes,
            counts,
            self.stays,
            tuple(self.remarks.notes),
            (*self.remarks.review, *self.sizes.review),
        )

    def _takes(self, part: CompactPart) -> tuple[str, ...]:
        """The given parameters that the builder's lines read."""
        body = "\n".join(line.replace("\r\n", "\n") for line in part.lines)
        tree = ast.parse("if True:\n" + body)
        read = {one.id for one in ast.walk(tree) if isinstance(one, ast.Name)}
        return tuple(one for one in self.function.given if one in read)

    def _counts(self) -> bool:
        return any(one.name is None and not one.is_in_scope for one in self.items.values()) or any(
            one.site.numbers for one in self.items.values() if one.site is not None
        )

    def _edits(
        self, inside: Edits, part: CompactPart, takes: tuple[str, ...], counts: bool
    ) -> Edits:
        node, newline = self.function.node, self.layout.newline
        if self.function.method_of is not None:
            return self._edits_of_method(inside, part, takes, counts)
        spec = node.args
        first = next(iter((*spec.posonlyargs, *spec.args, *spec.kwonlyargs)))
        gap = self._gap(first)
        leading = f",{gap}".join([OWNER, COUNTER] if counts else [OWNER])

        def told(renderer: Renderer) -> str:
            return f"{leading},{gap}{renderer.without(first).inner(first)}"

        plain = Renderer(self.project, self.function.module, inside)
        calling = without_gone(plain.with_edits({id(first): told}).inner(node), newline)
        built = self._builder(plain, part, takes, counts)
        check_class(self.project, self.function.cls, calling + newline * 3 + built)
        check_init(self.function.cls, self.layout, built, builders_of(self.items))
        if not self.stays:
            return {id(node): calling + newline * 3 + built}
        renamed = re.sub(
            rf"^(def\s+){node.name}\b", lambda found: found[1] + caller_name(node.name), calling
        )
        new = (newline * 3).join(["", renamed, built])
        return {id(node): lambda renderer: renderer.without(node).inner(node) + new}

    def _edits_of_method(
        self, inside: Edits, part: CompactPart, takes: tuple[str, ...], counts: bool
    ) -> Edits:
        """Edits of a helper method; its class renders them with those of its own."""
        node, newline = self.function.node, self.layout.newline
        receiver, first = node.args.args[:2]
        if counts:
            inside = {**inside, id(receiver): f"{OWN},{self._gap(first)}{COUNTER}"}
        built = self._builder(
            Renderer(self.project, self.function.module, inside), part, takes, counts
        )
        check_init(self.function.cls, self.layout, built, builders_of(self.items))
        added = newline * 2 + self.layout.indent + built
        return {**inside, id(node): lambda renderer: renderer.without(node).inner(node) + added}

    def _gap(self, first: ast.arg) -> str:
        """What stands before a parameter: a blank, or a new line and its indentation."""
        text = self.function.module.text
        end = self.function.module.lines.span(first).start
        gap = text[len(text[:end].rstrip()) : end]
        return gap if self.layout.newline in gap else " "

    @property
    def stays(self) -> bool:
        return not self.function.users <= self.context.converted

    def _builder(
        self, renderer: Renderer, part: CompactPart, takes: tuple[str, ...], counts: bool
    ) -> str:
        name = self.function.node.name
        is_method = self.function.method_of is not None
        parameters = [OWN if is_method else OWNER, *([COUNTER] if counts else []), "*"]
        parameters += [self._parameter(one, renderer) for one in takes]
        parameters += [f"{one.name}{size_annotation(one)}" for one in self.sizes.new_arguments]
        parameters.append("rngs: nnx.Rngs")
        of_whom = "" if is_method else f" of ``{OWNER}``"
        docstring = f'"""Build the submodules{of_whom} that {name} calls."""'
        lines = [
            _signature(builder_name(name), parameters, self.layout),
            self.layout.body + docstring,
            *(part.lines or [f"{self.layout.body}pass"]),
        ]
        return self.layout.newline.join(lines)

    def _parameter(self, name: str, renderer: Renderer) -> str:
        spec = self.function.node.args
        every = (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)
        argument = next(one for one in every if one.arg == name)
        default = defaults_of(spec).get(name)
        text = renderer.inner(argument)
        if default is None:
            return text
        equals = " = " if argument.annotation is not None else "="
        return f"{text}{equals}{renderer.render(default)}"


def _layout_of(function: ScopeFunction) -> Layout:
    """A builder stands at the left margin; its body is indented as the function's is."""
    lines = function.module.lines
    first = function.node.body[0]
    unit = "    "
    if first.lineno != function.node.lineno:
        text = function.module.text[lines.starts[first.lineno - 1] :]
        unit = text[: len(text) - len(text.lstrip(" \t"))]
    return Layout(lines.newline, "", unit)


def _signature(name: str, parameters: list[str], layout: Layout) -> str:
    line = f"def {name}({', '.join(parameters)}):"
    if len(layout.indent + line) <= WIDTH and "\n" not in line:
        return line
    inner = [f"{layout.body}{one}," for one in parameters]
    return layout.newline.join([f"def {name}(", *inner, f"{layout.indent}):"])
