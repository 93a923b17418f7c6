"""``setup`` becomes the rest of ``__init__``: its statements move, constructions are translated."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from nnx_migrate.rewrite.classes.arrays import (
    Inliner,
    assigned_once,
    emptied,
    may_be_array,
    property_text,
)
from nnx_migrate.rewrite.classes.attributes import Attribute, Kind, setup_attributes, statements
from nnx_migrate.rewrite.classes.construct import Builder
from nnx_migrate.rewrite.classes.data import Refused
from nnx_migrate.rewrite.classes.emit import conjunction, is_attribute_name
from nnx_migrate.rewrite.classes.evaluation import own_bound_names
from nnx_migrate.rewrite.classes.items import Item, ItemKind
from nnx_migrate.rewrite.classes.layout import (
    Layout,
    block_text,
    comments_above,
    docstring_of,
    wrapped,
)
from nnx_migrate.rewrite.classes.lists import ComprehensionLoop, comprehension_loop, listed_items
from nnx_migrate.rewrite.classes.references import Edits, Remarks
from nnx_migrate.rewrite.render import Renderer
from nnx_migrate.sizes.result import Carried, ClassSizes
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project

RULE = "setup"
GONE = "\ue000"  # marks a statement that leaves no line behind
END = "\ue001"  # marks the end of a line whose comment has moved


@dataclass(frozen=True)
class SetupPart:
    """What ``setup`` contributes.

    Attributes:
      text: its statements, without the indentation of the first line.
      properties: attribute -> expression its read-only property returns.
      params: attributes that hold a Param or another variable -> attribute to read instead.
    """

    text: str
    properties: Mapping[str, str]
    attributes: tuple[Attribute, ...]
    built: tuple[str, ...]  # attribute names that hold submodules or variables


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

    def convert(self) -> SetupPart:
        """Translate the method.

        Raises:
          Refused: a construction whose name or place is not clear.
        """
        inside = {id(node) for node in ast.walk(self.method)}
        items = {key: item for key, item in self.items.items() if key in inside}
        found = setup_attributes(self.cls, self.method, items)
        self._check_places(items, found)
        edits: Edits = {k: v for k, v in self.static.items() if k in inside}
        edits |= {k: v for k, v in self.sizes.dims.items() if k in inside}
        for key, item in items.items():
            edits[key] = self._construction(item)
        properties: dict[str, str] = {}
        built: list[str] = []
        for one in found:
            self._attribute(one, items, edits, properties, built)
        for item in listed_items(self.method, found, items):
            self.remarks.imports.add("nnm")
            edits[id(item.call)] = self._named(item)
        self._plain_attributes(found, edits, properties)
        for statement in statements(self.method.body):
            self._around(statement, items, edits)
        renderer = Renderer(self.project, self.cls.module, self.common).with_edits(edits)
        docstring = docstring_of(self.method.body)
        body = [one for one in self.method.body if one is not docstring]
        body = [one for one in body if not isinstance(one, ast.Pass)]
        text = block_text(self.cls, body, renderer) if body else ""
        if body:
            text = comments_above(self.cls, body[0], renderer) + text
        return SetupPart(text, properties, tuple(found), tuple(built))

    def _construction(self, item: Item) -> Callable[[Renderer], str]:
        def text(renderer: Renderer) -> str:
            return self.builder(item, renderer)

        return text

    def _check_places(self, items: Mapping[int, Item], found: list[Attribute]) -> None:
        direct = {id(one.value) for one in found}
        direct |= {
            id(one.value)
            for one in statements(self.method.body)
            if isinstance(one, ast.Assign)
            and len(one.targets) == 1
            and isinstance(one.targets[0], ast.Name)
        }
        for item in items.values():
            if item.kind in (ItemKind.PARAM, ItemKind.VARIABLE) and id(item.call) not in direct:
                raise Refused(
                    item.call,
                    "a parameter or variable is made inside a larger expression of setup",
                    "assign it to an attribute of its own",
                    RULE,
                )

    def _attribute(
        self,
        one: Attribute,
        items: Mapping[int, Item],
        edits: Edits,
        properties: dict[str, str],
        built: list[str],
    ) -> None:
        stored = one.stored or one.name
        match one.kind:
            case Kind.STRUCTURE:
                self._structure(one, items, edits, properties)
            case Kind.ALIAS:
                properties[one.name] = self._alias(one, edits)
            case Kind.SUBMODULE | Kind.PARAM | Kind.VARIABLE:
                built.append(stored)
                if stored != one.name:
                    properties[one.name] = _attribute_text(stored)
                    self._renamed(one, stored, edits)

    def _plain_attributes(
        self, found: list[Attribute], edits: Edits, properties: dict[str, str]
    ) -> None:
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

    def _renamed(self, one: Attribute, stored: str, edits: Edits) -> None:
        if is_attribute_name(stored):
            edits[id(one.target)] = f"self.{stored}"
            return
        if not _is_single(one):
            raise Refused(
                one.statement, "a name that is no identifier", "assign it on a line alone", RULE
            )
        edits[id(one.statement)] = lambda renderer: (
            f"setattr(self, {stored!r}, {renderer.render(one.value)})"
        )

    def _alias(self, one: Attribute, edits: Edits) -> str:
        if not _is_single(one) or one.statement not in self.method.body:
            raise Refused(
                one.statement,
                "a submodule gets a second name here, which would change its path",
                "use one name for it",
                RULE,
            )
        edits[id(one.statement)] = f"# {one.name} is a property below"
        return ast.unparse(one.value)

    def _structure(
        self, one: Attribute, items: Mapping[int, Item], edits: Edits, properties: dict[str, str]
    ) -> None:
        if not _is_single(one):
            raise Refused(
                one.statement,
                "a list of submodules is assigned together with something else",
                "assign it on a line of its own",
                RULE,
            )
        loop = comprehension_loop(one, items)
        if loop is not None and loop.counts and not self._reads_locals(loop):
            edits[id(one.statement)] = self._loop(loop)
            properties[one.name] = loop.property_text(
                Renderer(self.project, self.cls.module, self.common)
            )
            return
        self.remarks.imports.add("nnm")
        for node in ast.walk(one.value):
            item = items.get(id(node))
            if item is not None and item.name is not None:
                edits[id(node)] = self._named(item)
        properties[one.name] = f"nnm.get_submodules(self, {one.name!r})"
        if loop is not None and self.sizes.carried.get(id(loop.node)):
            edits[id(one.statement)] = self._loop(loop, collect=f"{one.name}_list")
            return
        before = f"self.{one.name} + " if isinstance(one.statement, ast.AugAssign) else ""
        edits[id(one.statement)] = lambda renderer: (
            f"nnm.set_submodules(self, {one.name!r}, {before}{renderer.value(one.value)})"
        )

    def _reads_locals(self, loop: ComprehensionLoop) -> bool:
        """Whether the property could not evaluate the loop's header and names."""
        local = own_bound_names(self.method) - {"self"}
        local |= {one.name for one in self.sizes.new_arguments}
        return bool(loop.reads() & local)

    def _loop(
        self, loop: ComprehensionLoop, collect: str | None = None
    ) -> Callable[[Renderer], str]:
        """``self.layers = [Block(...) for i in range(n)]`` as a loop."""
        carried = self.sizes.carried.get(id(loop.node), ())
        indent = self._indent(loop.attribute.statement)
        inner = indent + self.layout.unit

        def text(renderer: Renderer) -> str:
            target = renderer.render(loop.generator.target)
            lines = [f"{indent}{one.name} = {one.before}" for one in carried]
            if collect is not None:
                lines.append(f"{indent}{collect} = []")
            lines.append(f"{indent}for {target} in {renderer.value(loop.generator.iter)}:")
            if collect is not None:
                lines.append(f"{inner}{collect}.append({renderer.render(loop.node.elt)})")
            else:
                value = self.builder(loop.item, renderer)
                stored = f"setattr(self, {loop.name_text(renderer)}, {value})"
                lines.append(wrapped(inner + stored, inner, self.layout))
            lines += [f"{inner}{one.name} = {one.after}" for one in carried]
            if collect is not None:
                name = loop.attribute.name
                lines.append(f"{indent}nnm.set_submodules(self, {name!r}, {collect})")
            return self.layout.newline.join(lines).removeprefix(indent)

        return text

    def _named(self, item: Item) -> Callable[[Renderer], str]:
        def text(renderer: Renderer) -> str:
            assert item.name is not None
            return f"nnm.named({renderer.render(item.name)}, {self.builder(item, renderer)})"

        return text

    def _around(self, statement: ast.stmt, items: Mapping[int, Item], edits: Edits) -> None:
        """Conditions and helper variables that go around a statement."""
        carried = self.sizes.carried.get(id(statement), ())
        if carried:
            self._carry(statement, carried, edits)
        if isinstance(statement, ast.If | ast.For | ast.While | ast.With | ast.Try):
            return
        sites = [items[id(one)] for one in ast.walk(statement) if id(one) in items]
        local = self._local_param(statement, items)
        if local is not None:
            edits[id(statement)] = local
        widths = [one for one in sites if one.site and one.site.out_variable]
        if widths:
            self._width(statement, widths, edits)
        if sites:
            self._guard(statement, sites, edits)

    def _guard(self, statement: ast.stmt, sites: list[Item], edits: Edits) -> None:
        """Build only what Linen's initial call reaches, and what has all its sizes."""
        reached = {one.site.reached if one.site else None for one in sites}
        if len(reached) > 1:
            raise Refused(
                statement,
                "one statement builds submodules that Linen reaches under different conditions",
                "build them on lines of their own",
                RULE,
            )
        condition = next(iter(reached))
        indent = self._indent(statement)
        newline = self.layout.newline
        previous = edits.get(id(statement))

        def text(renderer: Renderer) -> str:
            if condition == "False":
                return "pass  # Linen never calls it, so it has no parameters"
            # Under a condition on fields Linen certainly calls it: a size left out is an error then.
            guarded = [] if condition else sites
            sized = [self.builder.guard(one, self.builder(one, renderer)) for one in guarded]
            conditions = [one for one in (condition, *dict.fromkeys(sized)) if one]
            inner = _rendered(previous, statement, renderer.without(statement))
            if not conditions:
                return wrapped(indent + inner, indent, self.layout).removeprefix(indent)
            head = f"if {conjunction(conditions)}:{newline}{indent}{self.layout.unit}"
            return head + inner.replace(newline, newline + self.layout.unit)

        edits[id(statement)] = text

    def _local_param(
        self, statement: ast.stmt, items: Mapping[int, Item]
    ) -> Callable[[Renderer], str] | None:
        """``scale = self.param("scale", ...)``: stored first, then read."""
        match statement:
            case ast.Assign(targets=[ast.Name(id=local)], value=value) if id(value) in items:
                item = items[id(value)]
            case _:
                return None
        if item.kind not in (ItemKind.PARAM, ItemKind.VARIABLE):
            return None
        name = item.name.value if isinstance(item.name, ast.Constant) else None
        if not isinstance(name, str) or not is_attribute_name(name):
            raise Refused(item.call, "its name is computed", "write it as a string", RULE)
        read = f"self.{name}[...]" if item.kind is ItemKind.PARAM else f"self.{name}"
        indent = self._indent(statement)

        def text(renderer: Renderer) -> str:
            made = self.builder(item, renderer)
            return f"self.{name} = {made}{self.layout.newline}{indent}{local} = {read}"

        return text

    def _width(self, statement: ast.stmt, widths: list[Item], edits: Edits) -> None:
        indent = self._indent(statement)
        previous = edits.get(id(statement))
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        if len(widths) > 1 or target is None or statement.value is not widths[0].call:  # type: ignore[attr-defined]
            raise Refused(
                statement,
                "the width of a submodule built inside a larger expression is not known",
                "assign the submodule to an attribute of its own",
                RULE,
            )
        site = widths[0].site
        assert site is not None
        self.remarks.imports.add("nnm")

        def text(renderer: Renderer) -> str:
            inner = _rendered(previous, statement, renderer)
            built = renderer.render(target)
            width = f"nnm.out_features({built}, {site.sizes['in_features']})"
            return f"{inner}{self.layout.newline}{indent}{site.out_variable} = {width}"

        edits[id(statement)] = text

    def _carry(self, statement: ast.stmt, carried: tuple[Carried, ...], edits: Edits) -> None:
        indent = self._indent(statement)
        inner = indent + self.layout.unit
        newline = self.layout.newline

        def text(renderer: Renderer) -> str:
            before = "".join(f"{one.name} = {one.before}{newline}{indent}" for one in carried)
            after = "".join(f"{newline}{inner}{one.name} = {one.after}" for one in carried)
            return before + renderer.inner(statement) + after

        edits[id(statement)] = text

    def _indent(self, statement: ast.stmt) -> str:
        start = self.cls.module.lines.starts[statement.lineno - 1]
        text = self.cls.module.text[start : start + 200]
        return text[: len(text) - len(text.lstrip(" \t"))]


def _rendered(
    previous: str | Callable[[Renderer], str] | None, node: ast.stmt, renderer: Renderer
) -> str:
    if previous is None:
        return renderer.inner(node)
    return previous if isinstance(previous, str) else previous(renderer)


def _is_single(one: Attribute) -> bool:
    statement = one.statement
    if isinstance(statement, ast.AnnAssign | ast.AugAssign):
        return True
    return isinstance(statement, ast.Assign) and statement.targets == [one.target]


def _attribute_text(name: str) -> str:
    return f"self.{name}" if is_attribute_name(name) else f"getattr(self, {name!r})"
