"""What goes around a statement of ``setup``: conditions, helper variables, carried sizes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from nnx_migrate.constructs import layer_of
from nnx_migrate.constructs.common.base import same_call
from nnx_migrate.edit.calls import Argument, call
from nnx_migrate.edit.expressions import Expression, code_of, conjunction, expression, negation
from nnx_migrate.edit.rendering import Renderer, Replacement
from nnx_migrate.edit.statements import (
    Statement,
    assign,
    line,
    skip,
    when,
    with_comments_around,
    with_last_statements,
)
from nnx_migrate.edit.syntax import cst
from nnx_migrate.edit.wrapping import wrap
from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.items import Item
from nnx_migrate.rewrite.classes.reading.evaluation import held_parts
from nnx_migrate.rewrite.classes.setup.properties import Storing
from nnx_migrate.rewrite.classes.uses.references import Edits, Remarks
from nnx_migrate.rewrite.classes.writing.carrying import starts, updates
from nnx_migrate.rewrite.classes.writing.construct import Builder
from nnx_migrate.rewrite.classes.writing.layout import Layout
from nnx_migrate.sizes.result import ClassSizes, LoopCarry, SiteKind
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.other_values import applied_outside
from nnx_migrate.source.walking import walk

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
        carries = self.sizes.loop_carries.get(id(statement), ())
        if carries:
            self._carry(statement, carries, edits)
        if isinstance(statement, ast.If | ast.For | ast.With | ast.Match):
            return
        sites = [self.items[id(one)] for one in walk(statement) if id(one) in self.items]
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
        reached = {one.site.condition if one.site else None for one in sites}
        if len(reached) > 1:
            raise ClassRefused(
                statement,
                "one statement builds submodules that Linen reaches under different conditions",
                "build them on lines of their own",
                RULE,
            )
        condition = next(iter(reached))
        if condition is not None and self._holds_others(statement):
            raise ClassRefused(
                statement,
                "Linen reaches only some of what is stored here under this condition",
                "build each under its own name",
                RULE,
            )
        tests = self._beyond_tests(statement, condition) if condition else []
        previous = edits.get(id(statement))
        indent, unit = statement.col_offset, self.layout.unit
        other = _otherwise(statement, {id(one.call) for one in sites})

        def make(renderer: Renderer) -> Sequence[Statement]:
            if condition == "False":
                return [
                    with_comments_around(
                        skip(), [], "# Linen never calls it, so it has no parameters"
                    )
                ]
            # Under a condition on fields Linen certainly calls it: a size left out is an error then.
            guarded = [] if condition else sites
            sized = [self.builder.guard(one, self.builder(one, renderer)) for one in guarded]
            known = {code_of(one): one for one in sized if one is not None}
            conditions = [*tests, *known.values()]
            inner = made_of(previous, statement, renderer)
            if not conditions:
                return [wrap(one, indent, self.layout.page) for one in inner]
            orelse = [] if other is None else [other.statement(renderer, unit)]
            orelse = orelse or _absent(statement, sites, renderer)
            orelse = orelse or self._unbound(statement, sites, renderer)
            return [when(conjunction(conditions), inner, orelse, unit)]

        edits[id(statement)] = make

    def _holds_others(self, statement: ast.stmt) -> bool:
        """Whether a list or dict holds what was built before as well: ``(first, nn.Dense(3))``."""
        match statement:
            case ast.Assign(value=ast.List() | ast.Tuple() | ast.Dict() as value):
                pending: list[ast.AST] = [value]
            case _:
                return False
        while pending:
            one = pending.pop()
            if isinstance(one, ast.Name) and self.cls.scope.lookup(one.id) is None:
                return True
            pending += () if id(one) in self.items else held_parts(one)
        return False

    def _unbound(
        self, statement: ast.stmt, sites: list[Item], renderer: Renderer
    ) -> list[Statement]:
        """What stands for a layer that is not built, where other code applies it to parameters."""
        match statement:
            case ast.Assign(targets=[ast.Attribute(attr=name) as target], value=value):
                pass
            case _:
                return []
        site = sites[0].site
        if site is None or site.call is not value or site.kind is not SiteKind.LAYER:
            return []
        layer = layer_of(site.symbol)
        if layer is None or set(site.sizes) != {"in_features"} or not layer.has_factory:
            return []
        if name not in applied_outside(self.builder.project):
            return []
        self.remarks.imports.add("nnm")
        first = [Argument(layer.factory)]
        made = same_call("nnm.Unbound", site.call, renderer, first=first, limit=len(layer.fields))
        return [assign(renderer.render(target), made)]

    def _beyond_tests(self, statement: ast.stmt, condition: str) -> list[Expression]:
        """The parts of a condition that no test around the statement asks already."""
        test = ast.parse(condition, mode="eval").body
        is_and = isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And)
        parts = test.values if is_and and isinstance(test, ast.BoolOp) else [test]
        questions = set[str]()
        inner: ast.AST = statement
        for one in self.cls.module.parents.above(statement):
            if isinstance(one, ast.If) and inner in one.body:
                questions.add(ast.unparse(one.test))
            inner = one
        texts = map(ast.unparse, parts)
        return [expression(text) for text in texts if text not in questions]

    def _local_variable(
        self, statement: ast.stmt
    ) -> Callable[[Renderer], Sequence[Statement]] | None:
        """``scale = self.param("scale", ...)`` or ``2 * self.param(...)``: stored first, then read."""
        storing = Storing(self.items, self.builder)
        match statement:
            case ast.Assign(targets=[ast.Name()]) if storing.made_in(statement):
                return storing.before(statement)
            case _:
                return None

    def _width(self, statement: ast.stmt, widths: list[Item], edits: Edits) -> None:
        previous = edits.get(id(statement))
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        if len(widths) > 1 or target is None or statement.value is not widths[0].call:  # type: ignore[attr-defined]
            raise ClassRefused(
                statement,
                "the width of a submodule built inside a larger expression is not known",
                "assign the submodule to an attribute of its own",
                RULE,
            )
        site = widths[0].site
        assert site is not None
        self.remarks.imports.add("nnm")

        def make(renderer: Renderer) -> Sequence[Statement]:
            width = call(
                "nnm.out_features", renderer.render(target), expression(str(site.in_width))
            )
            inner = made_of(previous, statement, renderer)
            return [*inner, assign(str(site.out_variable), width)]

        edits[id(statement)] = make

    def _carry(
        self, statement: ast.stmt, loop_carries: tuple[LoopCarry, ...], edits: Edits
    ) -> None:
        def make(renderer: Renderer) -> Sequence[Statement]:
            before, more = starts(loop_carries), updates(loop_carries)
            inner = renderer.inner(statement)
            if not isinstance(inner, cst.BaseCompoundStatement):
                return [*before, line(inner), *more]
            return [*before, with_last_statements(inner, more)]

        edits[id(statement)] = make


def _absent(statement: ast.stmt, sites: list[Item], renderer: Renderer) -> list[Statement]:
    """What stands for a layer that no round of a loop calls, where its attribute is read all the same."""
    match statement:
        case ast.Assign(targets=[target]) if all(one.site and one.site.is_absent for one in sites):
            return [assign(renderer.render(target), expression("None"))]
    return []


def made_of(
    previous: Replacement | None, node: ast.stmt, renderer: Renderer
) -> Sequence[Statement]:
    """What ``previous`` makes of a statement, or the statement as it is rewritten."""
    if previous is None:
        inner = renderer.inner(node)
        return [inner if isinstance(inner, cst.BaseCompoundStatement) else line(inner)]
    found: Sequence[Statement] = renderer.replacement(previous)
    return found


@dataclass(frozen=True)
class _Otherwise:
    """What ``self.a = Block() if test else None`` stores that is no submodule."""

    target: ast.expr
    test: ast.expr
    holds: bool  # whether it is stored when the test holds
    value: ast.expr

    def statement(self, renderer: Renderer, unit: str) -> Statement:
        """What is stored when the test says that nothing is built."""
        test = renderer.render(self.test)
        stored = assign(renderer.render(self.target), renderer.render(self.value))
        return when(test if self.holds else negation(test), [stored], unit=unit)


def _otherwise(statement: ast.stmt, sites: set[int]) -> _Otherwise | None:
    match statement:
        case ast.Assign(targets=[target], value=ast.IfExp(test=test, body=yes, orelse=no)):
            built = [any(id(node) in sites for node in walk(side)) for side in (yes, no)]
            if built == [True, False]:
                return _Otherwise(target, test, False, no)
            if built == [False, True]:
                return _Otherwise(target, test, True, yes)
    return None
