"""The kept steps of a compact method as statements of ``__init__``."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from nnx_migrate.edit.calls import call
from nnx_migrate.edit.expressions import (
    Expression,
    attribute,
    dotted_node,
    expression,
    negation,
    string,
)
from nnx_migrate.edit.rendering import Renderer
from nnx_migrate.edit.statements import (
    Statement,
    assign,
    line,
    loop,
    run,
    when,
    without_comments,
)
from nnx_migrate.edit.syntax import cst
from nnx_migrate.edit.wrapping import wrap
from nnx_migrate.rewrite.classes.compact.waiting import by_need
from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.items import Item, ItemKind, is_attribute_name
from nnx_migrate.rewrite.classes.naming import Name, numbered_classes
from nnx_migrate.rewrite.classes.reading.flow import Bind, Branch, Build, Exit, Loop, Step, builds
from nnx_migrate.rewrite.classes.writing.carrying import starts, updates
from nnx_migrate.rewrite.classes.writing.construct import Builder
from nnx_migrate.rewrite.classes.writing.layout import Layout
from nnx_migrate.sizes.result import LoopCarry
from nnx_migrate.sizes.scope_functions import COUNTER
from nnx_migrate.source.walking import walk

_NO_ROUND = "the loops that call it may have no round"


def reference(name: Name, receiver: str, renderer: Renderer) -> Expression:
    """The attribute of an item, as an expression."""
    owner = dotted_node(receiver)
    if name.literal is not None and is_attribute_name(name.literal):
        return attribute(owner, name.literal)
    return call("getattr", owner, name_node(name, renderer))


def name_node(name: Name, renderer: Renderer) -> Expression:
    """The attribute name of an item, as an expression."""
    if name.literal is not None:
        return string(name.literal)
    if name.text is not None:
        return expression(name.text)
    if name.explicit is not None:
        found: Expression = renderer.render(name.explicit)
        return found
    counted = name.counter_argument
    assert counted is not None
    what = expression(counted) if isinstance(counted, str) else renderer.render(counted)
    return call(COUNTER, what)


def assignment(name: Name, value: Expression, receiver: str, renderer: Renderer) -> Statement:
    """The statement that stores ``value`` under the item's name."""
    owner = dotted_node(receiver)
    if name.literal is not None and is_attribute_name(name.literal):
        return assign(attribute(owner, name.literal), value)
    return run(call("setattr", owner, name_node(name, renderer), value))


@dataclass
class Emitter:
    """Makes statements of steps.

    Args:
      renderer: edits valid in ``__init__``; of a built item, its reference.
      builder: builds items.
      temporaries: local variable that holds an item whose name the run-time counter gives.
    """

    renderer: Renderer
    layout: Layout
    names: Mapping[int, Name]
    builder: Builder
    loop_carries: Mapping[int, tuple[LoopCarry, ...]]
    receiver: str
    temporaries: Mapping[int, str] = field(default_factory=dict)
    parameters: Collection[str] = ()  # fields that are parameters, as they come
    initial_conditions: Collection[
        int
    ] = ()  # conditions that hold where Linen's initial call meets them
    draws: Mapping[int, Sequence[str]] = field(default_factory=dict)  # before steps, by their id
    moved_statements: Collection[int] = ()  # statements that stand nowhere else, by id
    certain: bool = False  # Linen's initial call gets here: it has every size
    round_end: Sequence[LoopCarry] = ()  # what every end of a round of the loop around updates

    def statements(self, steps: Sequence[Step], indent: int) -> list[Statement]:
        """Statements for ``steps``, ``indent`` wide from the margin."""
        return [
            one
            for step in by_need(steps, self.names)
            for one in (*self._draw_statements(step), *self._step(step, indent))
        ]

    def _draw_statements(self, step: Step) -> list[Statement]:
        names = self.draws.get(id(step), ())
        return [run(call("nnm.count_draw", "self", "rngs", string(name))) for name in names]

    @property
    def _unit(self) -> str:
        return self.layout.unit

    def _deeper(self, indent: int) -> int:
        return indent + len(self._unit)

    def _step(self, step: Step, indent: int) -> Sequence[Statement]:
        match step:
            case Build(item=item):
                return self._build(item, indent)
            case Bind(
                node=ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.NamedExpr(target=ast.Name(id=name), value=value)
            ) if name in self.parameters and ast.unparse(value) == f"{self.receiver}.{name}":
                return []  # the parameter holds it already
            case Bind(node=ast.NamedExpr(target=target, value=value)):
                render = self.renderer.render
                return [assign(render(target), without_comments(render(value)))]
            case Bind(node=ast.stmt() as node):
                lines = self.renderer.lines(node)
                return (
                    lines
                    if id(node) in self.moved_statements
                    else [without_comments(one) for one in lines]
                )
            case Exit(node=ast.Raise() as node):
                return [without_comments(one) for one in self.renderer.lines(node)]
            case Exit(node=ast.Break() | ast.Continue() as node):
                return [*updates(self.round_end), line(getattr(cst, type(node).__name__)())]
            case Exit(node=node):
                return [line(getattr(cst, type(node).__name__)())]
            case Branch(node=ast.If() as node) if id(node) in self.moved_statements:
                return self.renderer.lines(node)
            case Branch():
                return self._branch(step, indent)
            case Loop():
                return self._loop(step, indent)
        return []

    def _build(self, item: Item, indent: int) -> Sequence[Statement]:
        site = item.site
        reached = site.condition if site is not None else None
        if reached == "False":
            self._check_unbuilt(item, "it is never called")
            return []
        value = self.builder(item, self.renderer)
        # Under a condition on fields Linen certainly calls it: a size left out is an error then.
        sized = None if reached or self.certain else self.builder.guard(item, value)
        if sized is None:
            return self._build_statements(item, value, indent)
        self._check_unbuilt(item, "it may stay without a call")
        inner = self._build_statements(item, value, self._deeper(indent))
        return [when(sized, inner, unit=self._unit)]

    def _check_unbuilt(self, item: Item, why: str) -> None:
        """What is not built takes no number at run time, and Linen gives it one."""
        name = self.names.get(id(item.call), Name())
        if name.counter_argument is not None or name.stem is not None:
            raise ClassRefused(
                item.call,
                f"{why}, and how many of its class come before is not known",
                "give the submodules names",
                "compact",
            )

    def _build_statements(self, item: Item, value: Expression, indent: int) -> Sequence[Statement]:
        name = self.names.get(id(item.call), Name())
        temporary = self.temporaries.get(id(item.call))
        made: list[Statement] = []
        site = item.site
        if item.is_in_scope:
            return [wrap(run(value), indent, self.layout.page, is_moved=True)]
        if temporary is not None:
            made.append(assign(temporary, value))
            value = dotted_node(temporary)
        made.append(assignment(name, value, self.receiver, self.renderer))
        if site is not None and site.out_variable is not None:
            built = (
                reference(name, self.receiver, self.renderer)
                if temporary is None
                else dotted_node(temporary)
            )
            width = call("nnm.out_features", built, expression(str(site.in_width)))
            made.append(assign(site.out_variable, width))
        rounds = self._rounds(item)
        if rounds is None:
            return [wrap(one, indent, self.layout.page, is_moved=True) for one in made]
        inner = [wrap(one, self._deeper(indent), self.layout.page, is_moved=True) for one in made]
        absent = [assignment(name, expression("None"), self.receiver, self.renderer)]
        absent += [assign(temporary, expression("None"))] if temporary is not None else []
        return [when(rounds, inner, absent, self._unit)]

    def _rounds(self, item: Item) -> Expression | None:
        """What has to hold for one of the loops that call it to have a round; Linen counts it anyway.

        Raises:
          Refused: its number, or a size behind it, is only known where it is built.
        """
        site = item.site
        if site is None or site.rounds is None:
            return None
        self._check_unbuilt(item, _NO_ROUND)
        if site.out_variable:
            raise ClassRefused(
                item.call,
                f"{_NO_ROUND}, and its width is needed behind them",
                "build it in the loop",
                "compact",
            )
        return expression(site.rounds)

    def _branch(self, step: Branch, indent: int) -> Sequence[Statement]:
        inner = self._deeper(indent)
        test = without_comments(self.renderer.render(step.test))
        is_initial = any(id(one) in self.initial_conditions for one in walk(step.test))
        within = replace(self, certain=self.certain or is_initial)
        body = within.statements(step.body, inner)
        match step.orelse:
            case (Branch(node=ast.If()) as nested,) if body:
                orelse = within._branch(nested, indent)
            case _:
                orelse = within.statements(step.orelse, inner)
        if not body and not orelse:
            return []
        if not body:
            return [when(negation(test), orelse, unit=self._unit)]
        return [when(test, body, orelse, unit=self._unit)]

    def _loop(self, step: Loop, indent: int) -> Sequence[Statement]:
        inner = indent + len(self._unit) * (1 + len(step.conditions))
        carries = self.loop_carries.get(id(step.node), ())
        body = replace(self, round_end=carries).statements(step.body, inner)
        if not body and not carries:
            return []
        for one in reversed(step.conditions):
            test = without_comments(self.renderer.render(one))
            body = [when(test, body, unit=self._unit)]
        body += updates(carries)
        target = without_comments(self.renderer.render(step.target))
        over = without_comments(self.renderer.render(step.iterable))
        return [*starts(carries), loop(target, over, body, self._unit)]


def needs_counter(steps: Sequence[Step], names: Mapping[int, Name]) -> bool:
    """Whether any built item is named by the run-time counter."""
    return bool(numbered_classes(steps)) or any(
        id(item.call) in names and names[id(item.call)].counter_argument is not None
        for item in builds(steps)
        if item.kind is ItemKind.SITE
    )
