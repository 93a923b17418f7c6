"""What goes around a statement of ``setup``: conditions, helper variables, carried sizes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from nnx_migrate.rewrite.classes.compact.emit import conjunction
from nnx_migrate.rewrite.classes.data import Refused
from nnx_migrate.rewrite.classes.items import Item
from nnx_migrate.rewrite.classes.setup.computed import Storing
from nnx_migrate.rewrite.classes.uses.references import Edits, Remarks
from nnx_migrate.rewrite.classes.writing.construct import Builder
from nnx_migrate.rewrite.classes.writing.layout import Layout, indent_of, wrapped
from nnx_migrate.rewrite.render import Renderer
from nnx_migrate.sizes.result import Carried, ClassSizes
from nnx_migrate.source.classes import ClassInfo

RULE = "setup"


@dataclass(frozen=True)
class Surroundings:
    """Puts conditions and helper variables around the statements of one ``setup``."""

    cls: ClassInfo
    items: Mapping[int, Item]
    sizes: ClassSizes
    builder: Builder
    layout: Layout
    remarks: Remarks

    def add(self, statement: ast.stmt, edits: Edits) -> None:
        """Add what goes around ``statement`` to ``edits``.

        Raises:
          Refused: it builds several submodules that need different conditions or widths.
        """
        carried = self.sizes.carried.get(id(statement), ())
        if carried:
            self._carry(statement, carried, edits)
        if isinstance(statement, ast.If | ast.For | ast.While | ast.With | ast.Try | ast.Match):
            return
        sites = [self.items[id(one)] for one in ast.walk(statement) if id(one) in self.items]
        local = self._local_variable(statement)
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
        indent = indent_of(self.cls, statement)
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
            step = newline + indent + self.layout.unit
            guarded_text = inner.replace(newline, newline + self.layout.unit)
            lines = f"if {conjunction(conditions)}:{step}{guarded_text}"
            if other is None:
                return lines
            return f"{lines}{newline}{indent}elif {other.text(renderer, step)}"

        other = _otherwise(statement, {id(one.call) for one in sites})
        edits[id(statement)] = text

    def _local_variable(self, statement: ast.stmt) -> Callable[[Renderer], str] | None:
        """``scale = self.param("scale", ...)`` or ``2 * self.param(...)``: stored first, then read."""
        storing = Storing(self.items, self.builder, self.layout)
        match statement:
            case ast.Assign(targets=[ast.Name()]) if storing.made_in(statement):
                return storing.before(statement, indent_of(self.cls, statement))
            case _:
                return None

    def _width(self, statement: ast.stmt, widths: list[Item], edits: Edits) -> None:
        indent = indent_of(self.cls, statement)
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
            width = f"nnm.out_features({built}, {site.in_width})"
            return f"{inner}{self.layout.newline}{indent}{site.out_variable} = {width}"

        edits[id(statement)] = text

    def _carry(self, statement: ast.stmt, carried: tuple[Carried, ...], edits: Edits) -> None:
        indent = indent_of(self.cls, statement)
        inner = indent + self.layout.unit
        newline = self.layout.newline

        def text(renderer: Renderer) -> str:
            before = "".join(f"{one.name} = {one.before}{newline}{indent}" for one in carried)
            after = "".join(f"{newline}{inner}{one.name} = {one.after}" for one in carried)
            return before + renderer.inner(statement) + after

        edits[id(statement)] = text


def _rendered(
    previous: str | Callable[[Renderer], str] | None, node: ast.stmt, renderer: Renderer
) -> str:
    if previous is None:
        return renderer.inner(node)
    return previous if isinstance(previous, str) else previous(renderer)


@dataclass(frozen=True)
class _Otherwise:
    """What ``self.a = Block() if test else None`` stores that is no submodule."""

    target: ast.expr
    test: ast.expr
    holds: bool  # whether it is stored when the test holds
    value: ast.expr

    def text(self, renderer: Renderer, step: str) -> str:
        """The test and the statement, ``step`` between them."""
        test = renderer.render(self.test)
        negated = (
            f"not {test}" if isinstance(self.test, ast.Name | ast.Attribute) else f"not ({test})"
        )
        stored = f"{renderer.render(self.target)} = {renderer.render(self.value)}"
        return f"{test if self.holds else negated}:{step}{stored}"


def _otherwise(statement: ast.stmt, sites: set[int]) -> _Otherwise | None:
    match statement:
        case ast.Assign(targets=[target], value=ast.IfExp(test=test, body=yes, orelse=no)):
            built = [any(id(node) in sites for node in ast.walk(side)) for side in (yes, no)]
            if built == [True, False]:
                return _Otherwise(target, test, False, no)
            if built == [False, True]:
                return _Otherwise(target, test, True, yes)
    return None
