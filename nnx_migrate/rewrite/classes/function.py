"""One scope function: its body calls what its builder, a function beside it, has built.

``def block(x, width): return nn.relu(nn.Dense(width)(x))`` becomes ``block(module, names, x, width)``
and ``init_block(module, names, *, width, in_features, rngs)``. ``module`` is the caller, whose
attributes the submodules are; ``names`` counts them on as Linen does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from nnx_migrate.edit.expressions import dotted_node, tree_of
from nnx_migrate.edit.page import page_of
from nnx_migrate.edit.rendering import Renderer
from nnx_migrate.edit.signatures import parameter, with_first_parameters
from nnx_migrate.edit.statements import after, blank, define, docstring, skip, without_comments
from nnx_migrate.edit.syntax import cst
from nnx_migrate.edit.wrapping import wrapped_function
from nnx_migrate.rewrite.classes.checks.output import check_class, check_init
from nnx_migrate.rewrite.classes.checks.vocabulary import check_vocabulary
from nnx_migrate.rewrite.classes.compact.method import CompactMethod
from nnx_migrate.rewrite.classes.compact.split import CompactPart, convert_compact
from nnx_migrate.rewrite.classes.data import (
    ClassRefusal,
    ClassRefused,
    ConversionContext,
    ConvertedFunction,
    or_refusal,
)
from nnx_migrate.rewrite.classes.fields.parameters import size_parameter
from nnx_migrate.rewrite.classes.items import find_items
from nnx_migrate.rewrite.classes.uses.references import Edits, Remarks, name_edits
from nnx_migrate.rewrite.classes.writing.construct import relax
from nnx_migrate.rewrite.classes.writing.in_scope import builders_of
from nnx_migrate.rewrite.classes.writing.layout import Layout, layout_of, unit_of
from nnx_migrate.rewrite.render import renderer_of
from nnx_migrate.sizes.result import ClassSizes
from nnx_migrate.sizes.scope_functions import (
    COUNTER,
    OWNER,
    ScopeFunction,
    builder_name,
    caller_name,
)
from nnx_migrate.source.names import defaults_of, named_parameters
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import names_in

RULE = "scope_function"
OWN = "self"  # the receiver of helper methods


def convert_function(
    project: Project, function: ScopeFunction, sizes: ClassSizes, context: ConversionContext
) -> ConvertedFunction | ClassRefusal:
    """Convert ``function``, or say why not; arguments as of ``convert_class``."""
    return or_refusal(_Conversion(project, function, sizes, context).run, RULE, function.node)


@dataclass
class _Conversion:
    project: Project
    function: ScopeFunction
    sizes: ClassSizes
    context: ConversionContext
    remarks: Remarks = field(default_factory=Remarks)

    def run(self) -> ConvertedFunction:
        for node, reason in self.sizes.problems:
            raise ClassRefused(node, reason, "build it in the class", "sizes")
        check_vocabulary(self.project, self.function.cls)
        self.sizes = relax(self.sizes)
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
            known_parameters=frozenset(self.function.known_parameters),
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
        tree = tree_of(part.statements)
        read = names_in(tree)
        return tuple(one for one in self.function.known_parameters if one in read)

    def _counts(self) -> bool:
        return any(one.name is None and not one.is_in_scope for one in self.items.values()) or any(
            one.site.numbers for one in self.items.values() if one.site is not None
        )

    def _edits(
        self, inside: Edits, part: CompactPart, takes: tuple[str, ...], counts: bool
    ) -> Edits:
        node = self.function.node
        is_method = self.function.method_of is not None
        plain = renderer_of(self.function.module, inside)
        # A helper method has the module first already.
        arguments = [COUNTER] if counts else []
        arguments = arguments if is_method else [OWNER, *arguments]
        built = self._builder(plain, part, takes, counts)
        builder = after([blank()] if is_method else [blank(), blank()], built)
        check_init(self.function.cls, tree_of([built]), builders_of(self.items))

        def calling(renderer: Renderer) -> Any:
            found = renderer.with_edits(inside).without(node).inner(node)
            return with_first_parameters(found, arguments, behind=1 if is_method else 0)

        if not is_method:
            both = tree_of([calling(plain), built])
            check_class(self.project, self.function.cls, both)
        if is_method or not self.stays:
            own: Edits = {id(node): lambda renderer: [calling(renderer), builder]}
            return {**inside, **own} if is_method else own

        def beside(renderer: Renderer) -> list[Any]:
            new = calling(renderer_of(self.function.module))
            new = new.with_changes(
                name=new.name.with_changes(value=caller_name(node.name)),
                leading_lines=[blank(), blank()],
            )
            return [renderer.without(node).inner(node), new, builder]

        return {id(node): beside}

    @property
    def stays(self) -> bool:
        return not all(one in self.context.explicit_classes for one in self.function.users)

    def _builder(
        self, renderer: Renderer, part: CompactPart, takes: tuple[str, ...], counts: bool
    ) -> cst.FunctionDef:
        name = self.function.node.name
        is_method = self.function.method_of is not None
        parameters: list[cst.Param | str] = [OWN if is_method else OWNER]
        parameters += [*([COUNTER] if counts else []), "*"]
        parameters += [self._parameter(one, renderer) for one in takes]
        parameters += [size_parameter(one) for one in self.sizes.new_arguments]
        parameters.append(parameter("rngs", dotted_node("nnx.Rngs")))
        of_whom = "" if is_method else f" of ``{OWNER}``"
        documentation = docstring(f"Build the submodules{of_whom} that {name} calls.")
        body = [documentation, *(part.statements or [skip()])]
        unit = self.layout.unit
        made = define(builder_name(name), parameters, body, unit=unit)
        return wrapped_function(made, self.layout.indent, self.layout.page)

    def _parameter(self, name: str, renderer: Renderer) -> cst.Param:
        spec = self.function.node.args
        every = named_parameters(spec)
        argument = next(one for one in every if one.arg == name)
        default = defaults_of(spec).get(name)
        new_default = None if default is None else without_comments(renderer.render(default))
        annotation = argument.annotation
        new_annotation = (
            None if annotation is None else without_comments(renderer.render(annotation))
        )
        return parameter(name, new_annotation, new_default)


def _layout_of(function: ScopeFunction) -> Layout:
    """A builder stands at the left margin; its body is indented as the function's is."""
    lines = function.module.lines
    unit = unit_of(function.module.text, lines.starts, function.node)
    return Layout(lines.newline, 0, page_of(function.module.text, unit or "    "))
