"""One ``@nn.compact`` method: what moves to ``__init__`` and what the call becomes."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from nnx_migrate.model import SizeArgument
from nnx_migrate.rewrite.classes.construct import Builder, is_inline, operands_of, optional_sizes
from nnx_migrate.rewrite.classes.data import ConversionContext, Refused
from nnx_migrate.rewrite.classes.emit import Emitter, needs_counter, reference
from nnx_migrate.rewrite.classes.evaluation import free_names, own_bound_names
from nnx_migrate.rewrite.classes.flags import flags_of
from nnx_migrate.rewrite.classes.flow import Step, builds, flow_of
from nnx_migrate.rewrite.classes.in_scope import calling_edits, not_here
from nnx_migrate.rewrite.classes.init_updates import updates_by_variable
from nnx_migrate.rewrite.classes.items import Item, ItemKind, receiver_of
from nnx_migrate.rewrite.classes.late_variables import made_by_the_call, parameters_of
from nnx_migrate.rewrite.classes.layout import Layout, indent_of
from nnx_migrate.rewrite.classes.moved import Moves, moves_of, with_keywords, without_keywords
from nnx_migrate.rewrite.classes.naming import Count, Name, names_of
from nnx_migrate.rewrite.classes.references import Edits, Remarks
from nnx_migrate.rewrite.classes.shapes import Shapes, array_parameters
from nnx_migrate.rewrite.classes.slicing import Slicer
from nnx_migrate.rewrite.classes.starting import spent_keys, with_updates
from nnx_migrate.rewrite.classes.taint import Replaced, Taint, taint_of
from nnx_migrate.rewrite.classes.text import GONE
from nnx_migrate.rewrite.classes.told import Told, check_in_call, note_of, renumbering
from nnx_migrate.rewrite.classes.unused import unused_classes
from nnx_migrate.rewrite.render import Renderer
from nnx_migrate.sizes.result import ClassSizes
from nnx_migrate.sizes.scope_functions import COUNTER
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project, Scope

RULE = "compact"


@dataclass(frozen=True)
class CompactPart:
    """What a compact method contributes.

    Attributes:
      lines: statements for ``__init__``.
      edits: edits of the method itself.
      header: lines at the start of the method (the name counter).
      attributes: what is built under a fixed attribute name.
      lazy: variables that only the call can create, by id of their call.
      updates: assignments to variables' values that ``__init__`` does, too, by id.
      spent: draws of keys that only ``__init__`` needs, by id of the call.
    """

    lines: tuple[str, ...]
    edits: Edits
    header: tuple[str, ...]
    attributes: Mapping[str, ast.Call]
    lazy: Mapping[int, Item]
    reads: frozenset[str] = frozenset()  # global names that the lines read
    updates: frozenset[int] = frozenset()
    spent: frozenset[int] = frozenset()


@dataclass
class CompactConverter:
    """Converts one method.

    Args:
      static: calls with another text in ``__init__`` (``self.is_initializing()``), by id.
      numbered: by class, what the base class has numbered where this method starts to build.
      given: parameters of the method that ``__init__`` knows as well.
      common: edits valid in ``__init__`` and in the call (Linen names, parameter reads).
      held: edits of the values of variables, valid in both.
      streams: draws of keys, by id of the call.
    """

    project: Project
    cls: ClassInfo
    method: ast.FunctionDef
    items: Mapping[int, Item]
    sizes: ClassSizes
    context: ConversionContext
    layout: Layout
    remarks: Remarks
    common: Edits
    static: Mapping[int, str]
    parameters: frozenset[str] = frozenset()
    numbered: Mapping[str, Count] = field(default_factory=dict)
    given: frozenset[str] = frozenset()
    held: Edits = field(default_factory=dict)
    streams: Collection[int] = ()
    replaced: dict[int, frozenset[str]] = field(default_factory=dict)
    settled: frozenset[int] = frozenset()  # variables that __init__ moves as Linen's init does

    def convert(self) -> CompactPart:
        """Split the method.

        Raises:
          Refused: what is built depends on what only the call knows.
        """
        granted = frozenset(self.sizes.full_shapes)
        if granted:
            return self._split(granted)[0]
        before = self.remarks.copy()
        try:
            return self._split(frozenset())[0]
        except Refused as refused:
            self.remarks.restore(before)
            shapes = self._wanted()
            if not shapes:
                raise
            found = refused.refusal
            wants = replace(found.wants, shapes=shapes)
            raise Refused(found.node, found.reason, found.recipe, found.rule, wants) from None

    def _wanted(self) -> frozenset[str]:
        """Parameters with whose shape ``__init__`` could build everything."""
        every = Shapes(
            self.project,
            self._scope,
            self.method,
            frozenset(parameters_of(self.method)),
            frozenset(),
        )
        arrays = array_parameters(self.method, every) - {one.name for one in self.cls.fields}
        if self.method.name != "__call__" or not arrays:
            return frozenset()
        try:
            return replace(self, remarks=Remarks(), replaced={})._split(arrays)[1]
        except Refused:
            return frozenset()

    @property
    def _scope(self) -> Scope:
        return self.cls.scope.enter(self.method)

    def _split(self, arrays: frozenset[str]) -> tuple[CompactPart, frozenset[str]]:
        """The parts, and which of the parameters ``arrays`` the shape is read of."""
        self.replaced.clear()
        self.settled = frozenset()
        receiver = receiver_of(self.method)
        # A local named like a size argument is that size: the argument is read in its place.
        sizes = {one.name for one in self.sizes.new_arguments if one.fact is None}
        static = {key: _names_in(text) - sizes for key, text in self._static_texts().items()}
        told = {key: names for key, names in static.items() if key in self.sizes.facts}
        self.replaced |= {key: names for key, names in static.items() if key not in told}
        shapes = Shapes(self.project, self._scope, self.method, arrays, frozenset(self.items))
        fixed = dict(self.replaced)
        self.replaced |= shapes.unread(fixed)
        items = {k: item for k, item in self.items.items() if not is_inline(item)}
        lazy = made_by_the_call(self.method, items, self.replaced)
        items = {k: item for k, item in items.items() if k not in lazy}
        steps = flow_of(self.method.body, items)
        inside = {id(item.call) for item in builds(steps)}
        self.replaced |= {key: frozenset() for key, one in items.items() if not one.is_in_scope}
        taint = self._taint(steps)
        scope = self.cls.scope.enter(self.method)
        moves = moves_of(
            self.project, scope, self.method, items, taint, self.replaced, self.context
        )
        self.replaced |= {key: frozenset() for key in moves.values}
        taint = self._taint(steps)
        shapes.whole = self._whole(items, moves)
        shapes.flags = flags_of(self.project, scope, self.method)
        shapes.held = _holders(self.method, shapes.whole)
        dynamic = frozenset(taint.steps)
        names = names_of(steps, dynamic, self.numbered, goes_on=self._is_function)
        operands = {key: operands_of(items[key], moves.values) for key in inside}
        fixed = {k: v for k, v in self.replaced.items() if k in fixed or k not in shapes.nodes}
        slicer = Slicer(
            frozenset(self._unknown),
            {**fixed, **shapes.needed(fixed), **told},
            operands,
            self._taint(steps, told),
            shapes=shapes if arrays else None,
            fixed={**fixed, **told},
            told=Told(taint, self.replaced) if told else None,
            askable=frozenset(parameters_of(self.method) if self.method.name == "__call__" else ()),
        )
        kept = slicer.run(steps)
        updates = frozenset[int]()
        if not arrays:
            moved = updates_by_variable(self.cls, self.items)
            slicer, kept, updates = with_updates(
                slicer, kept, steps, items, taint, self.replaced, moved.values()
            )
            self.settled = frozenset(key for key, one in moved.items() if one <= updates)
        lines, reads = self._lines(
            kept, items, names, moves, slicer.values, slicer.hoisted, receiver, shapes
        )
        lines = (*self._entered(slicer.entered), *lines)
        edits = self._call_edits(items, names, moves, receiver)
        edits |= self._inline_edits(moves)
        spent = spent_keys(self.method, {k: items[k] for k in inside}, self.streams)
        edits |= {id(one): GONE for one in spent.values() if one is not None}
        counted = needs_counter(steps, names) and not self._is_function
        header = (f"{COUNTER} = nnm.LinenNames()",) if counted else ()
        facts = self._facts(told)
        self.remarks.notes += [(self.method, note_of(one)) for one in facts]
        numbering = renumbering(steps, taint, names, told)
        checked = [one for one in facts if one.name in numbering]
        if checked:
            header = (check_in_call(checked), *header)
            lines = (
                *(f"{self.layout.body}self._{one.name} = {one.name}" for one in checked),
                *lines,
            )
        if counted:
            self.remarks.imports.add("nnm")
            lines = (f"{self.layout.body}{COUNTER} = nnm.LinenNames()", *lines)
        attributes = {
            name.literal: items[key].call
            for key, name in names.items()
            if key in inside and name.literal
        }
        part = CompactPart(lines, edits, header, attributes, lazy, reads, updates, frozenset(spent))
        return part, frozenset(slicer.entered)

    def _whole(self, items: Mapping[int, Item], moves: Moves) -> frozenset[int]:
        """Submodules and parameters that are whole once they are built."""
        completed = {*moves.views, *moves.late}
        for key, item in items.items():
            parts = {id(one) for one in ast.walk(item.call)}
            if parts & moves.values:
                completed.add(key)
        return frozenset(
            key
            for key, item in items.items()
            if item.kind in (ItemKind.SITE, ItemKind.PARAM)
            and not item.is_in_scope
            and key not in completed
        )

    def _facts(self, told: Replaced) -> list[SizeArgument]:
        """The facts of the initial call that conditions of the method are told."""
        read = frozenset().union(*told.values())
        return [one for one in self.sizes.new_arguments if one.fact and one.name in read]

    def _entered(self, names: set[str]) -> list[str]:
        """Statements that give parameters of the call a shape in ``__init__``."""
        lines = []
        for name in sorted(names):
            self.remarks.imports.add("nnm")
            argument = self.sizes.full_shapes.get(name, f"{name}_shape")
            lines.append(f"{self.layout.body}{name} = nnm.abstract_array({argument})")
        return lines

    def _taint(self, steps: tuple[Step, ...], told: Replaced | None = None) -> Taint:
        return taint_of(steps, self._unknown, {**self.replaced, **(told or {})})

    @property
    def _unknown(self) -> list[str]:
        """The parameters that only the call knows."""
        return [one for one in parameters_of(self.method) if one not in self.given]

    @property
    def _is_function(self) -> bool:
        """Whether the method is the body of a function that builds for its callers."""
        return self.cls.function is not None

    def _static_texts(self) -> dict[int, str]:
        inside = {id(node) for node in ast.walk(self.method)}
        texts = {key: text for key, text in self.sizes.dims.items() if key in inside}
        return texts | {key: text for key, text in self.static.items() if key in inside}

    def _lines(
        self,
        kept: tuple[Step, ...],
        items: Mapping[int, Item],
        names: Mapping[int, Name],
        moves: Moves,
        values: set[int],
        hoisted: set[int],
        receiver: str,
        shapes: Shapes,
    ) -> tuple[tuple[str, ...], frozenset[str]]:
        base = Renderer(self.project, self.cls.module, self.common)
        edits: Edits = {**self.held, **shapes.edits(), **self._static_texts()}
        if shapes.abstract:
            self.remarks.imports.add("nnm")
        edits |= self._inline_edits(moves)
        for key, call in moves.partials.items():
            edits[key] = without_keywords(call, moves.values)
        edits |= dict.fromkeys(moves.late_values, "None")
        temporaries: dict[int, str] = {}
        for key, item in items.items():
            name = names.get(key)
            if item.is_in_scope:
                edits[key] = not_here(item)
            if name is None:
                continue
            if name.counted is not None and (key in values or _wants_width(item)):
                temporaries[key] = _temporary(item, len(temporaries), self.method)
            edits[key] = self._reference_edit(item, name, temporaries.get(key), receiver)
        if receiver != "self" and not self._is_function:
            raise Refused(self.method, "the module is not called 'self'", "rename it to self", RULE)
        scope = self.cls.scope.enter(self.method)
        builder = Builder(
            self.project,
            scope,
            self.context,
            self.remarks,
            moves.values - moves.late_values,
            receiver=receiver,
            optional=optional_sizes(self.sizes),
            settled=self.settled,
        )
        emitter = Emitter(
            base.with_edits(edits),
            self.layout,
            names,
            builder,
            self.sizes.carried,
            receiver,
            temporaries,
            hoisted,
            self.parameters,
            lambda node: indent_of(self.cls, node),
            self.sizes.facts,
        )
        if any(item.site and item.site.out_variable for item in builds(kept)):
            self.remarks.imports.add("nnm")
        lines = tuple(emitter.lines(kept, self.layout.body))
        return lines, global_reads(lines) - own_bound_names(self.method)

    def _reference_edit(self, item: Item, name: Name, temporary: str | None, receiver: str):  # type: ignore[no-untyped-def]
        def text(renderer: Renderer) -> str:
            if temporary is not None:
                return temporary
            if name.counted is not None:
                raise Refused(item.call, "its name is only counted at run time", "name it", RULE)
            found = reference(name, receiver, renderer.render)
            return f"{found}[...]" if item.kind is ItemKind.PARAM else found

        return text

    def _call_edits(
        self,
        items: Mapping[int, Item],
        names: Mapping[int, Name],
        moves: Moves,
        receiver: str,
    ) -> Edits:
        edits: Edits = {**calling_edits(items, receiver, self.context)}
        for key, item in items.items():
            if key in names:
                edits[key] = self._used(item, names[key], moves, receiver)
        scope = self.cls.scope.enter(self.method)
        for statement in unused_classes(self.project, scope, self.method, names.keys()):
            edits[id(statement)] = GONE
        nodes = {id(node): node for node in ast.walk(self.method)}
        for key, keywords in moves.calls.items():
            call = nodes[key]
            assert isinstance(call, ast.Call)
            edits[key] = with_keywords(call, keywords)
        return edits

    def _used(  # type: ignore[no-untyped-def]
        self, item: Item, name: Name, moves: Moves, receiver: str
    ):
        view = moves.views.get(id(item.call))
        late = moves.late.get(id(item.call), {})

        def text(renderer: Renderer) -> str:
            found = reference(name, receiver, renderer.render)
            if item.kind is ItemKind.PARAM:
                return f"{found}[...]"
            if late:
                self.remarks.imports.add("nnm")
                fields = ", ".join(f"{key}={renderer.value(one)}" for key, one in late.items())
                found = f"nnm.with_fields({found}, {fields})"
            if view is None:
                return found
            self.remarks.imports.add("nnx")
            given = {one.arg: renderer.render(one.value) for one in view}
            settings = ", ".join(f"{key}={value}" for key, value in given.items())
            return f"nnx.view({found}, raise_if_not_found=False, {settings})"

        return text

    def _inline_edits(self, moves: Moves) -> Edits:
        """Wrappers without variables are built in the call itself."""
        scope = self.cls.scope.enter(self.method)
        builder = Builder(self.project, scope, self.context, self.remarks, moves.values)
        edits: Edits = {}
        for key, item in self.items.items():
            if is_inline(item):
                edits[key] = lambda renderer, one=item: builder(one, renderer)  # type: ignore[misc]
        return edits


def _holders(method: ast.FunctionDef, items: frozenset[int]) -> frozenset[str]:
    """Local names that some statement binds to what an item built."""
    found: set[str] = set()
    for node in ast.walk(method):
        match node:
            case ast.Assign(targets=targets, value=value) if any(
                id(one) in items for one in ast.walk(value)
            ):
                found |= {one.id for one in targets if isinstance(one, ast.Name)}
    return frozenset(found)


def _wants_width(item: Item) -> bool:
    return item.site is not None and item.site.out_variable is not None


def _temporary(item: Item, number: int, method: ast.FunctionDef) -> str:
    taken = {node.id for node in ast.walk(method) if isinstance(node, ast.Name)}
    kind = (item.site.class_name if item.site else None) or "layer"
    stem = f"{kind.lower()}_{number}"
    while stem in taken:
        stem += "_"
    return stem


def _names_in(text: str) -> frozenset[str]:
    return frozenset(free_names(ast.parse(text, mode="eval")))


def global_reads(lines: tuple[str, ...]) -> frozenset[str]:
    """Names that the lines read and do not bind."""
    body = "\n".join(line.replace("\r\n", "\n") for line in lines)
    if not body.strip():
        return frozenset()
    tree = ast.parse("if True:\n" + body)
    read = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    return frozenset(read - own_bound_names(tree))
