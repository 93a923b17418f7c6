"""The kept steps of a compact method as lines of ``__init__``."""

from __future__ import annotations

import ast
import keyword
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from nnx_migrate.rewrite.classes.compact.in_scope import numbered
from nnx_migrate.rewrite.classes.data import Refused
from nnx_migrate.rewrite.classes.items import Item, ItemKind
from nnx_migrate.rewrite.classes.naming import Name
from nnx_migrate.rewrite.classes.reading.flow import Bind, Branch, Build, Exit, Loop, Step, builds
from nnx_migrate.rewrite.classes.writing.construct import Builder, asks_its_name
from nnx_migrate.rewrite.classes.writing.layout import Layout, shifted, wrapped
from nnx_migrate.rewrite.render import Renderer
from nnx_migrate.sizes.result import SCOPE_NAME, Carried
from nnx_migrate.sizes.scope_functions import COUNTER


def is_attribute_name(name: str) -> bool:
    """Whether ``self.<name>`` can be written."""
    return name.isidentifier() and not keyword.iskeyword(name)


def stored_name(item: Item) -> str:
    """The attribute that holds a variable made inside an expression.

    Raises:
      Refused: its name is computed, or no identifier.
    """
    name = item.name.value if isinstance(item.name, ast.Constant) else None
    if not isinstance(name, str) or not is_attribute_name(name):
        raise Refused(item.call, "its name is computed", "write it as a string", "setup")
    return name


def reference(name: Name, receiver: str, render: Callable[[ast.AST], str]) -> str:
    """The attribute of an item, as an expression."""
    receiver = holder(name, receiver)
    if name.literal is not None:
        if is_attribute_name(name.literal):
            return f"{receiver}.{name.literal}"
        return f"getattr({receiver}, {name.literal!r})"
    return f"getattr({receiver}, {name_text(name, render)})"


def holder(name: Name, receiver: str) -> str:
    """What holds an item: the module, or a scope in it."""
    return receiver if name.scope is None else f"{receiver}.{name.scope}"


def name_text(name: Name, render: Callable[[ast.AST], str]) -> str:
    """The attribute name of an item, as an expression."""
    if name.literal is not None:
        return repr(name.literal)
    if name.text is not None:
        return name.text
    if name.explicit is not None:
        return render(name.explicit)
    counted = name.counted if isinstance(name.counted, str) else render(name.counted)  # type: ignore[arg-type]
    return f"{COUNTER}({counted})"


def assignment(name: Name, value: str, receiver: str, render: Callable[[ast.AST], str]) -> str:
    """The statement that stores ``value`` under the item's name."""
    receiver = holder(name, receiver)
    if name.literal is not None and is_attribute_name(name.literal):
        return f"{receiver}.{name.literal} = {value}"
    return f"setattr({receiver}, {name_text(name, render)}, {value})"


@dataclass
class Emitter:
    """Prints steps.

    Args:
      renderer: edits valid in ``__init__``; of a built item, its reference.
      builder: builds items.
      temporaries: local variable that holds an item whose name the run-time counter gives.
    """

    renderer: Renderer
    layout: Layout
    names: Mapping[int, Name]
    builder: Builder
    carried: Mapping[int, tuple[Carried, ...]]
    receiver: str
    temporaries: Mapping[int, str] = field(default_factory=dict)
    hoisted: Collection[int] = ()  # items that need the condition sizes found for them
    parameters: Collection[str] = ()  # fields that are parameters, as they come
    origin: Callable[[ast.AST], str] = lambda _: ""
    told: Collection[int] = ()  # conditions that hold where Linen's initial call meets them
    certain: bool = False  # Linen's initial call gets here: it has every size

    def lines(self, steps: Sequence[Step], indent: str) -> list[str]:
        """Lines (without line ends) for ``steps`` at ``indent``."""
        return [line for step in steps for line in self._step(step, indent)]

    def _step(self, step: Step, indent: str) -> list[str]:
        match step:
            case Build(item=item):
                return self._build(item, indent)
            case Bind(node=ast.NamedExpr(target=target, value=value)):
                text = f"{self.renderer.render(target)} = {self.renderer.value(value)}"
                return [self._moved(step.node, text, indent)]
            case Bind(node=ast.Assign(targets=[ast.Name(id=name)], value=value)) if (
                name in self.parameters and ast.unparse(value) == f"{self.receiver}.{name}"
            ):
                return []  # the parameter holds it already
            case Bind(node=node):
                return [self._moved(node, self.renderer.render(node), indent)]
            case Exit(node=node):
                word = "return" if isinstance(node, ast.Return) else type(node).__name__.lower()
                return [indent + word]
            case Branch():
                return self._branch(step, indent, "if")
            case Loop():
                return self._loop(step, indent)
        return []

    def _moved(self, node: ast.AST, text: str, indent: str) -> str:
        return indent + shifted(text, self.origin(node), indent, self.layout.newline)

    def _build(self, item: Item, indent: str) -> list[str]:
        site = item.site
        reached = site.reached if site is not None else None
        if reached == "False":
            self._check_unbuilt(item)
            return []
        value = self.builder(item, self.renderer)
        # Under a condition on fields Linen certainly calls it: a size left out is an error then.
        sized = None if reached or self.certain else self.builder.guard(item, value)
        if id(item.call) not in self.hoisted:
            reached = None
        conditions = [one for one in (reached, sized) if one]
        if not conditions:
            return self._built_lines(item, value, indent)
        inner = self._built_lines(item, value, indent + self.layout.unit)
        return [f"{indent}if {conjunction(conditions)}:", *inner]

    def _check_unbuilt(self, item: Item) -> None:
        """What is not built takes no number from the run-time counter, and Linen gives it one."""
        name = self.names.get(id(item.call), Name())
        if name.counted is not None:
            raise Refused(
                item.call,
                "it is never called, and how many of its class come before is not known",
                "give the submodules names",
                "compact",
            )

    def _built_lines(self, item: Item, value: str, indent: str) -> list[str]:
        name = self.names.get(id(item.call), Name())
        render = self.renderer.render
        value = shifted(value, self.origin(item.call), indent, self.layout.newline)
        temporary = self.temporaries.get(id(item.call))
        lines = []
        site = item.site
        if item.is_in_scope:
            return [wrapped(indent + value, indent, self.layout)]
        if site is not None and asks_its_name(site):
            lines.append(f"{indent}{SCOPE_NAME} = {name_text(name, render)}")
            name = name if name.literal is not None else Name(text=SCOPE_NAME, scope=name.scope)
        if temporary is not None:
            lines.append(f"{indent}{temporary} = {value}")
            value = temporary
        lines.append(indent + assignment(name, value, self.receiver, render))
        if site is not None and site.out_variable is not None:
            built = temporary or reference(name, self.receiver, render)
            width = f"nnm.out_features({built}, {site.in_width})"
            lines.append(f"{indent}{site.out_variable} = {width}")
        return [wrapped(line, indent, self.layout) for line in lines]

    def _branch(self, step: Branch, indent: str, word: str) -> list[str]:
        inner = indent + self.layout.unit
        test = self.renderer.value(step.test)
        told = any(id(one) in self.told for one in ast.walk(step.test))
        within = replace(self, certain=self.certain or told)
        body = within.lines(step.body, inner)
        orelse = within.lines(step.orelse, inner)
        if not body and not orelse:
            return []
        if not body:
            return [f"{indent}{word} not {_operand(test)}:", *orelse]
        lines = [f"{indent}{word} {test}:", *body]
        match step.orelse:
            case (Branch(node=ast.If()) as nested,):
                return [*lines, *within._branch(nested, indent, "elif")]
        return [*lines, f"{indent}else:", *orelse] if orelse else lines

    def _loop(self, step: Loop, indent: str) -> list[str]:
        inner = indent + self.layout.unit
        carried = self.carried.get(id(step.node), ())
        lines = [f"{indent}{one.name} = {one.before}" for one in carried]
        target = self.renderer.render(step.target)
        lines.append(f"{indent}for {target} in {self.renderer.value(step.iterable)}:")
        for one in step.conditions:
            lines.append(f"{inner}if {self.renderer.value(one)}:")
            inner += self.layout.unit
        body = self.lines(step.body, inner)
        if not body and not carried:
            return []
        lines += body
        inner = indent + self.layout.unit
        return [*lines, *(f"{inner}{one.name} = {one.after}" for one in carried)]


def conjunction(conditions: Sequence[str]) -> str:
    """The conditions joined by ``and``, in parentheses where needed."""
    if len(conditions) == 1:
        return conditions[0]
    loose = (ast.BoolOp, ast.IfExp, ast.Lambda)
    parts = []
    for one in conditions:
        tree = ast.parse(one, mode="eval").body
        is_or = isinstance(tree, loose) and not (
            isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And)
        )
        parts.append(f"({one})" if is_or else one)
    return " and ".join(parts)


def _operand(test: str) -> str:
    tree = ast.parse(test, mode="eval").body
    simple = isinstance(tree, ast.Name | ast.Attribute | ast.Call | ast.Subscript)
    return test if simple else f"({test})"


def needs_counter(steps: Sequence[Step], names: Mapping[int, Name]) -> bool:
    """Whether any built item is named by the run-time counter."""
    return bool(numbered(steps)) or any(
        id(item.call) in names and names[id(item.call)].counted is not None
        for item in builds(steps)
        if item.kind is ItemKind.SITE
    )
