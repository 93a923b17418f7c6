"""One Linen class to one NNX class, whole or not at all."""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass, field

from nnx_migrate.model import ClassMap, Confidence, SizeArgument
from nnx_migrate.rewrite.classes.attributes import Attribute, Kind, setup_attributes
from nnx_migrate.rewrite.classes.compact import CompactConverter, CompactPart, global_reads
from nnx_migrate.rewrite.classes.conflicts import (
    check_automatic,
    check_collections,
    check_stored,
    read_too_early,
)
from nnx_migrate.rewrite.classes.construct import (
    Builder,
    optional_sizes,
    relaxed,
    without_applied_only,
)
from nnx_migrate.rewrite.classes.data import (
    ClassRefusal,
    ConversionContext,
    ConvertedClass,
    Refused,
)
from nnx_migrate.rewrite.classes.evaluation import bound_names, own_bound_names
from nnx_migrate.rewrite.classes.fields import Parameter, parameters_of, signature
from nnx_migrate.rewrite.classes.inheritance import Inherited, inherited_by
from nnx_migrate.rewrite.classes.items import ItemKind, defined_names, find_items
from nnx_migrate.rewrite.classes.layout import WIDTH, Layout, docstring_of, layout_of
from nnx_migrate.rewrite.classes.reads import Reader, Reads, stream_attribute
from nnx_migrate.rewrite.classes.references import Edits, Remarks, name_edits
from nnx_migrate.rewrite.classes.reviews import handed_on, lazy_note, unguarded_updates
from nnx_migrate.rewrite.classes.setup import END, GONE, SetupConverter, SetupPart
from nnx_migrate.rewrite.classes.sharing import local_names, shared_paths
from nnx_migrate.rewrite.classes.text import before, lazy_text, without_gone
from nnx_migrate.rewrite.classes.tied import tied_layer
from nnx_migrate.rewrite.render import Renderer, Unrenderable
from nnx_migrate.rewrite.rules import is_linen
from nnx_migrate.rewrite.rules.base import IMPORT_LINES
from nnx_migrate.sizes.result import ClassSizes
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project

RULE = "class"
_REMOVED_DECORATORS = frozenset({"flax.linen.compact", "flax.linen.nowrap"})
_DATACLASS = frozenset({"dataclasses.dataclass", "flax.struct.dataclass"})


def convert_class(
    project: Project, cls: ClassInfo, sizes: ClassSizes, context: ConversionContext
) -> ConvertedClass | ClassRefusal:
    """Convert ``cls``, or say why not.

    Args:
      sizes: what size inference found for the class.
      context: what is decided about the other classes.
    """
    try:
        return _Conversion(project, cls, sizes, context).run()
    except Refused as refused:
        return refused.refusal
    except Unrenderable as error:
        recipe = "write the expression outside of the f-string"
        return ClassRefusal(error.node, error.reason, recipe, RULE)


@dataclass
class _Conversion:
    project: Project
    cls: ClassInfo
    sizes: ClassSizes
    context: ConversionContext
    remarks: Remarks = field(default_factory=Remarks)

    def run(self) -> ConvertedClass:
        for node, reason in self.sizes.problems:
            raise Refused(
                node,
                reason,
                "give the size as a field, or run `nnx-migrate record`",
                "sizes",
            )
        self.inferred = frozenset(one.name for one in self.sizes.new_arguments)
        self.sizes = relaxed(without_applied_only(self.cls, self.sizes))
        self.layout: Layout = layout_of(self.cls)
        self.items = find_items(self.cls, self.sizes)
        self.inherited: Inherited = inherited_by(self.project, self.cls, self.context)
        self._check_methods()
        self._check_items()
        attributes = self._setup_attributes()
        reads = self._reads(attributes)
        common: Edits = dict(reads.call)
        handled = self._handled()
        common |= name_edits(self.project, self.cls, handled, self.remarks)
        base = Renderer(self.project, self.cls.module, common)
        parameters = parameters_of(self.project, self.cls, base, self.remarks)
        setup = self._setup(common, reads)
        compact = self._compact(common, reads, parameters)
        edits = self._edits(common, setup, compact, parameters, reads)
        return self._finish(edits, setup, compact, parameters, reads)

    # What the class has -------------------------------------------------------------------

    def _check_methods(self) -> None:
        for name in ("__post_init__", "__init__", "__getattr__", "__setattr__"):
            if name in self.cls.methods:
                raise Refused(
                    self.cls.methods[name],
                    f"the class defines {name}",
                    "move what it does to setup",
                    RULE,
                )
        for name in ("rngs",):
            if any(one.name == name for one in self.cls.fields):
                raise Refused(
                    self.cls.node, "a field is named 'rngs'", "rename the field", "fields"
                )

    def _check_items(self) -> None:
        self._check_item_names()
        check_collections(self.items)
        homes = {id(one) for one in (self.cls.methods.get("setup"), self._compact_method())}
        for name, method in self.cls.methods.items():
            if id(method) in homes:
                continue
            for node in ast.walk(method):
                item = self.items.get(id(node))
                if item is None or item.kind in (ItemKind.STREAM, ItemKind.VARIABLE):
                    continue
                raise Refused(
                    node,
                    f"it is built in the helper method {name!r}",
                    "build it in setup or in the compact method",
                    "helper",
                )

    def _check_item_names(self) -> None:
        """Linen keeps variables apart from Python attributes; NNX does not."""
        fields = {one.name for one in self.cls.fields}
        methods = {name for cls in self.cls.mro for name in cls.methods}
        check_automatic(self.items, fields | methods, self._compact_method())
        for item in self.items.values():
            name = item.name.value if isinstance(item.name, ast.Constant) else None
            if item.kind is ItemKind.STREAM or name not in fields | methods:
                continue
            kind = "a field" if name in fields else "a method"
            raise Refused(
                item.call,
                f"{name!r} names {kind} as well, and an NNX module has one attribute of a name",
                f"rename the {kind.partition(' ')[2]}",
                "names",
            )

    def _compact_method(self) -> ast.FunctionDef | None:
        found = [one for one in self.cls.methods.values() if self.project.is_compact(self.cls, one)]
        with_items = [
            one
            for one in found
            if any(
                id(node) in self.items and self.items[id(node)].kind is not ItemKind.STREAM
                for node in ast.walk(one)
            )
        ]
        return next(iter(with_items or found), None)

    def _handled(self) -> set[int]:
        """Nodes whose Linen names someone else replaces."""
        handled = set(self.items)
        for method in self.cls.methods.values():
            for decorator in method.decorator_list:
                if self._symbol(decorator) in _REMOVED_DECORATORS:
                    handled.add(id(decorator))
        return handled

    def _symbol(self, node: ast.expr) -> str | None:
        return self.project.resolve(node, self.cls.scope)

    def _setup_attributes(self) -> list[Attribute]:
        found = list(self.inherited.attributes)
        setup = self.cls.methods.get("setup")
        if setup is not None:
            found += setup_attributes(self.cls, setup, self.items)
        check_stored(found)
        return found

    def _reads(self, attributes: list[Attribute]) -> Reads:
        params = {one.name: one.stored or one.name for one in attributes if one.kind is Kind.PARAM}
        variables = {
            one.name: one.stored or one.name for one in attributes if one.kind is Kind.VARIABLE
        }
        own = defined_names(self.cls) | {one.name for one in self.cls.fields}
        own |= {one.name for one in attributes}
        self.own_names = frozenset(own)
        self.remarks.review += handed_on(attributes)
        self.remarks.review += unguarded_updates(self.cls, self.items, frozenset(variables))
        self.tied_sites = {
            one.name: self.items[id(one.value)]
            for one in attributes
            if id(one.value) in self.items and one.kind is Kind.SUBMODULE
        }
        reader = Reader(
            self.items, params, variables, self.own_names, self.remarks, self._tied_layer
        )
        for method in self.cls.methods.values():
            reader.read(method)
        return reader.found

    def _tied_layer(self, child: str, node: ast.expr, renderer: Renderer) -> str:
        item = self.tied_sites.get(child)
        if item is None:
            raise Refused(
                node,
                f"self.{child}.apply(...) of a submodule that setup does not build",
                "build it in setup",
                "tied",
            )
        setup = self.cls.methods.get("setup")
        return tied_layer(item, node, renderer, self._builder(), setup, self.inferred)

    def _builder(self) -> Builder:
        method = self.cls.methods.get("setup")
        scope = self.cls.scope.enter(method) if method else self.cls.scope
        return Builder(
            self.project, scope, self.context, self.remarks, optional=optional_sizes(self.sizes)
        )

    # The parts ----------------------------------------------------------------------------

    def _setup(self, common: Edits, reads: Reads) -> SetupPart | None:
        method = self.cls.methods.get("setup")
        if method is None:
            return None
        common = dict(common)
        for node in self.inherited.super_setup:
            common[id(node)] = GONE
        converter = SetupConverter(
            self.project,
            self.cls,
            method,
            {k: one for k, one in self.items.items() if one.kind is not ItemKind.STREAM},
            self.sizes,
            self._builder(),
            self.layout,
            self.remarks,
            common,
            reads.static,
        )
        return converter.convert()

    def _compact(
        self, common: Edits, reads: Reads, parameters: tuple[Parameter, ...]
    ) -> CompactPart | None:
        method = self._compact_method()
        if method is None:
            return None
        inside = {id(node) for node in ast.walk(method)}
        items = {
            k: one
            for k, one in self.items.items()
            if k in inside and one.kind is not ItemKind.STREAM
        }
        converter = CompactConverter(
            self.project,
            self.cls,
            method,
            items,
            self.sizes,
            self.context,
            self.layout,
            self.remarks,
            common,
            reads.static,
            frozenset(one.name for one in parameters if one.value == one.name),
        )
        return converter.convert()

    def _lazy_edits(self, compact: CompactPart | None) -> Edits:
        """Variables that calls create: in helper methods, or because only the call sizes them."""
        done = self.cls.methods.get("setup"), self._compact_method()
        inside = {id(node) for one in done if one is not None for node in ast.walk(one)}
        lazy = dict(compact.lazy) if compact else {}
        for key, item in self.items.items():
            if item.kind is ItemKind.VARIABLE and key not in inside:
                lazy[key] = item
        edits: Edits = {}
        for key, item in lazy.items():
            self.remarks.imports.add("nnm")
            self.remarks.review.append(lazy_note(item))
            edits[key] = lazy_text(item)
        return edits

    # The text -----------------------------------------------------------------------------

    def _edits(
        self,
        common: Edits,
        setup: SetupPart | None,
        compact: CompactPart | None,
        parameters: tuple[Parameter, ...],
        reads: Reads,
    ) -> Edits:
        edits: Edits = dict(common)
        edits |= self._lazy_edits(compact)
        if compact is not None:
            edits |= compact.edits
        edits |= self._decorators()
        for one in self.cls.node.body:
            if isinstance(one, ast.AnnAssign) and self._is_field(one):
                edits[id(one)] = GONE
        init = self._init(setup, compact, parameters, reads)
        self._check_names(init)
        if compact is not None and compact.header:
            self._insert_header(edits, compact.header)
        self._place(edits, init)
        return edits

    def _is_field(self, node: ast.AnnAssign) -> bool:
        if any(one.node is node for one in self.cls.fields):
            return True
        return ast.unparse(node.annotation).endswith("KW_ONLY")

    def _decorators(self) -> Edits:
        edits: Edits = {}
        for method in self.cls.methods.values():
            for one in method.decorator_list:
                if self._symbol(one) in _REMOVED_DECORATORS:
                    edits[id(one)] = GONE
        for one in self.cls.node.decorator_list:
            target = one.func if isinstance(one, ast.Call) else one
            if self._symbol(target) in _DATACLASS:
                edits[id(one)] = GONE
        return edits

    def _insert_header(self, edits: Edits, header: tuple[str, ...]) -> None:
        method = self._compact_method()
        assert method is not None
        docstring = docstring_of(method.body)
        first = next(one for one in method.body if one is not docstring)
        previous = edits.get(id(first))
        joint = self.layout.newline + self.layout.body

        def text(renderer: Renderer) -> str:
            inner = renderer.without(first).inner(first) if previous is None else previous
            shown = inner if isinstance(inner, str) else inner(renderer)
            return joint.join([*header, shown])

        edits[id(first)] = text

    def _init(
        self,
        setup: SetupPart | None,
        compact: CompactPart | None,
        parameters: tuple[Parameter, ...],
        reads: Reads,
    ) -> str:
        """Text of ``__init__`` and the properties, the first line without indentation."""
        self.new_arguments = self._new_arguments()
        layout = self.layout
        self.remarks.imports.add("nnx")
        lines = [f"{layout.body}{one}" for one in self._assignments(parameters)]
        for name in reads.streams:
            attribute = stream_attribute(name, self.own_names)
            lines.append(f"{layout.body}self.{attribute} = nnm.stream(rngs, {name!r})")
        if setup is not None and setup.text.strip(f" \t\r\n{GONE}"):
            lines.append(layout.body + setup.text)
        if compact is not None:
            lines += compact.lines
        if self.cls.name in self.context.factories and self._needs_width(parameters, setup):
            lines.append(f"{layout.body}self.out_features = {self.sizes.out_features}")
        self._check_shadows(parameters, setup, compact)
        head = signature(
            parameters, self.new_arguments, layout.indent, layout.unit, layout.newline, WIDTH
        )
        text = layout.newline.join([head, *(lines or [f"{layout.body}pass"])])
        properties = dict(setup.properties) if setup else {}
        for one in parameters:
            if one.structure:
                properties[one.name] = f"nnm.get_submodules(self, {one.name!r})"
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
        return text.removeprefix(layout.indent)

    def _needs_width(self, parameters: tuple[Parameter, ...], setup: SetupPart | None) -> bool:
        taken = {one.name for one in parameters}
        if setup is not None:
            taken |= {one.name for one in setup.attributes}
        return self.sizes.out_features is not None and "out_features" not in taken

    def _new_arguments(self) -> tuple[SizeArgument, ...]:
        known = {one.name for one in self.sizes.new_arguments}
        extra = [one for one in self.inherited.size_arguments if one.name not in known]
        return (*self.sizes.new_arguments, *extra)

    def _assignments(self, parameters: tuple[Parameter, ...]) -> list[str]:
        lines = []
        passed = []
        for one in parameters:
            if one.name in self.inherited.base_fields:
                passed.append(f"{one.name}={one.name}")
            elif one.structure:
                lines.append(f"nnm.set_submodules(self, {one.name!r}, {one.name})")
            else:
                lines.append(f"self.{one.name} = {one.value}")
        if self.inherited.delegates:
            passed += [f"{one.name}={one.name}" for one in self.inherited.size_arguments]
            lines.append(f"super().__init__({', '.join([*passed, 'rngs=rngs'])})")
        return lines

    def _check_shadows(
        self,
        parameters: tuple[Parameter, ...],
        setup: SetupPart | None,
        compact: CompactPart | None,
    ) -> None:
        """A global name that the moved code reads must not be hidden by a parameter."""
        names = {one.name for one in parameters}
        read: set[str] = set()
        if compact is not None:
            read |= compact.reads
        if setup is not None and setup.text.strip():
            text = without_gone(self.layout.body + setup.text, self.layout.newline)
            read |= global_reads((text,))
        clash = (names & read) - {one.name for one in self.new_arguments}
        if clash:
            raise Refused(
                self.cls.node,
                f"the field {min(clash)!r} would hide the global of the same name in __init__",
                "rename the field or the global",
                "fields",
            )

    def _place(self, edits: Edits, init: str) -> None:
        """Put ``__init__`` where ``setup`` was, or before the first method."""
        layout = self.layout
        setup = self.cls.methods.get("setup")
        if setup is not None:
            edits[id(setup)] = init + END
            return
        if not self.inherited.needs_init:
            return
        gap = layout.newline * 2 + layout.indent
        body = self.cls.node.body
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

    def _finish(
        self,
        edits: Edits,
        setup: SetupPart | None,
        compact: CompactPart | None,
        parameters: tuple[Parameter, ...],
        reads: Reads,
    ) -> ConvertedClass:
        node, newline = self.cls.node, self.layout.newline

        def text(renderer: Renderer) -> str:
            return without_gone(renderer.with_edits(edits).without(node).inner(node), newline)

        shown = text(Renderer(self.project, self.cls.module))
        self._check_text(shown)
        arguments = {one.name: one.name for one in parameters}
        review = (*self.remarks.review, *self.sizes.review)
        return ConvertedClass(
            edits={id(node): text},
            imports=frozenset(self.remarks.imports),
            class_map=ClassMap(
                linen=self.cls.name,
                nnx=self.cls.name,
                fields=arguments,
                size_arguments=self.new_arguments,
                attributes=self._shared(setup, compact),
                rng_streams=tuple(reads.streams),
            ),
            new_arguments=self.new_arguments,
            confidence=Confidence.REVIEW if review else Confidence.EXACT,
            review=review,
            notes=tuple(self.remarks.notes),
        )

    def _shared(self, setup: SetupPart | None, compact: CompactPart | None) -> dict[str, str]:
        """Where NNX lists submodules that several modules hold."""
        held: dict[str, ast.Call] = dict(compact.attributes) if compact else {}
        if setup is not None:
            held |= {
                one.stored or one.name: one.value
                for one in setup.attributes
                if one.kind is Kind.SUBMODULE and isinstance(one.value, ast.Call)
            }
        local: dict[str, str] = {}
        for method in (self.cls.methods.get("setup"), self._compact_method()):
            if method is not None:
                local |= local_names(method, held)
        return shared_paths(self.project, self.cls, held, local)

    def _check_names(self, init: str) -> None:
        """Every name that ``__init__`` reads is a parameter, a local, a global or a builtin."""
        text = without_gone(self.layout.indent + init, self.layout.newline)
        tree = ast.parse("if True:\n" + text)
        function = next(one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef))
        early = read_too_early(function)
        if early is not None:
            raise Refused(
                self.cls.node,
                f"a size in the converted __init__ needs {early!r} before it is known",
                "build the submodule where its input is known, or give the size as a field",
                "sizes",
            )
        known = set(dir(builtins)) | set(IMPORT_LINES) | {"__class__"} | self._class_names()
        functions = [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)]
        for one in functions:
            own = own_bound_names(function if one in ast.walk(function) else one) - {one.name}
            self._check_known(one, known | own)

    def _check_known(self, function: ast.FunctionDef, known: set[str]) -> None:
        for node in ast.walk(function):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                found = node.id in known or self.cls.scope.lookup(node.id) is not None
                if not found and not self.cls.module.stars:
                    raise Refused(
                        self.cls.node,
                        f"the converted __init__ reads {node.id!r}, which is not known there",
                        "report this: the rewriter missed a name",
                        RULE,
                    )

    def _class_names(self) -> set[str]:
        return {name for one in self.cls.node.body for name in bound_names(one)}

    def _check_text(self, text: str) -> None:
        """The new text parses and names no Linen symbol."""
        indent = " " * self.cls.node.col_offset
        tree = ast.parse("if True:\n" + indent + text if indent else text)
        for one in ast.walk(tree):
            if isinstance(one, ast.Attribute | ast.Name) and isinstance(one.ctx, ast.Load):
                symbol = self.project.resolve(one, self.cls.scope)
                if is_linen(symbol):
                    raise Refused(
                        self.cls.node,
                        f"{symbol} would remain in the converted class",
                        "report this: the rewriter missed a use",
                        RULE,
                    )
