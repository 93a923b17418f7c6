"""Dataclass fields as constructor parameters: same order, defaults and keyword-only marks."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from nnx_migrate.constructs import is_linen
from nnx_migrate.model import SizeArgument
from nnx_migrate.rewrite.classes.data import Refused
from nnx_migrate.rewrite.classes.fields.types import (
    holds_modules,
    is_container,
    is_tuple,
    items_are_called,
    items_are_read,
)
from nnx_migrate.rewrite.classes.reading.evaluation import free_names
from nnx_migrate.rewrite.classes.uses.references import Remarks
from nnx_migrate.rewrite.render import Renderer
from nnx_migrate.sizes.expression import DTYPE
from nnx_migrate.source.classes import ClassInfo, Field
from nnx_migrate.source.project import Project

RULE = "fields"
_FIELD_FUNCTIONS = frozenset(
    {"dataclasses.field", "flax.struct.field", "flax.linen.kw_only_dataclasses.field"}
)
_PLACEMENT = frozenset({"name", "parent"})


@dataclass(frozen=True)
class Parameter:
    """One constructor parameter."""

    name: str
    annotation: str | None
    default: str | None
    value: str | None  # what ``__init__`` assigns to the attribute; None: not assigned here
    keyword_only: bool = False
    structure: bool = False  # a container of submodules

    @property
    def text(self) -> str:
        """As it stands in the signature."""
        head = self.name if self.annotation is None else f"{self.name}: {self.annotation}"
        if self.default is None:
            return head
        return f"{head} = {self.default}" if self.annotation else f"{head}={self.default}"


def parameters_of(
    project: Project, cls: ClassInfo, renderer: Renderer, remarks: Remarks
) -> tuple[Parameter, ...]:
    """Parameters for all fields of ``cls``, inherited ones included.

    Raises:
      Refused: a field that no constructor parameter can stand for.
    """
    everywhere_keyword = _class_keyword_only(cls)
    found = []
    for one in cls.fields:
        if one.name in _PLACEMENT:
            raise Refused(
                one.node,
                f"a field named {one.name!r} shadows Linen's own",
                "rename the field",
                RULE,
            )
        parameter = _parameter(project, cls, one, renderer, remarks, everywhere_keyword)
        if parameter is not None:
            found.append(parameter)
    return tuple(found)


def _class_keyword_only(cls: ClassInfo) -> bool:
    return any(
        keyword.arg == "kw_only"
        and isinstance(keyword.value, ast.Constant)
        and keyword.value.value is True
        for keyword in cls.node.keywords
    )


def _parameter(
    project: Project,
    cls: ClassInfo,
    one: Field,
    renderer: Renderer,
    remarks: Remarks,
    keyword_only: bool,
) -> Parameter | None:
    here = one.owner is cls
    keyword_only = one.keyword_only or (keyword_only and here) or _class_keyword_only(one.owner)
    annotation = renderer.render(one.annotation) if here else _inherited(project, cls, one)
    default = one.default
    structure = holds_modules(project, one) or items_are_called(project, cls, one)
    frozen = not structure and is_container(one.annotation)
    data = (
        not structure and not frozen and is_tuple(one.annotation) and items_are_read(cls, one.name)
    )
    value = f"nnm.constant({one.name})" if data else one.name
    value = f"nnm.freeze({one.name})" if frozen else value
    options = _field_options(project, one)
    if options is not None:
        if _is_false(options.get("init")):
            return None
        keyword_only = keyword_only or _is_true(options.get("kw_only"))
        factory = options.get("default_factory")
        if factory is not None:
            text = _factory_text(project, cls, one, factory, renderer)
            value = f"{text} if {one.name} is None else {one.name}"
            value = f"nnm.freeze({value})" if frozen else value
            remarks.imports |= {"nnm"} if frozen or structure else set()
            return Parameter(one.name, annotation, "None", value, keyword_only, structure)
        default = options.get("default")
    text_default = None if default is None else _default_text(project, cls, one, default, renderer)
    if frozen or data or structure:
        remarks.imports.add("nnm")
    return Parameter(one.name, annotation, text_default, value, keyword_only, structure)


def _inherited(project: Project, cls: ClassInfo, one: Field) -> str | None:
    """The annotation of an inherited field, where it means the same in this file."""
    if one.owner.module is not cls.module:
        return None
    for node in ast.walk(one.annotation):
        is_name = isinstance(node, ast.Name | ast.Attribute)
        if is_name and is_linen(project.resolve(node, one.owner.scope)):  # type: ignore[arg-type]
            return None
    return Renderer(project, one.owner.module).render(one.annotation)


def _field_options(project: Project, one: Field) -> dict[str, ast.expr] | None:
    """Keyword arguments of ``field(...)`` when the default is one."""
    call = one.default
    if not isinstance(call, ast.Call):
        return None
    if project.resolve(call.func, one.owner.scope) not in _FIELD_FUNCTIONS:
        return None
    if call.args or any(keyword.arg is None for keyword in call.keywords):
        raise Refused(call, "field(...) with unpacked arguments", "write them out", RULE)
    return {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}


def _is_false(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def _is_true(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _factory_text(
    project: Project, cls: ClassInfo, one: Field, factory: ast.expr, renderer: Renderer
) -> str:
    if isinstance(factory, ast.Lambda) and not factory.args.args:
        return _default_text(project, cls, one, factory.body, renderer)
    _check_builds_nothing(project, one, ast.Call(factory, [], []))
    return f"{_default_text(project, cls, one, factory, renderer)}()"


def _default_text(
    project: Project, cls: ClassInfo, one: Field, default: ast.expr, renderer: Renderer
) -> str:
    _check_builds_nothing(project, one, default)
    names = free_names(default)
    clash = names & _bound_before(one)
    if clash:
        raise Refused(
            default,
            f"the default reads the field {min(clash)!r} as a class attribute",
            "write the value out",
            RULE,
        )
    if one.owner is cls or one.owner.module is cls.module:
        return renderer.value(default)
    for name in names:
        node = ast.Name(name, ast.Load())
        theirs = project.resolve(node, one.owner.scope)
        if theirs is None and one.owner.scope.lookup(name) is None:
            continue  # a builtin
        if theirs is None or project.resolve(node, cls.scope) != theirs:
            raise Refused(
                cls.node,
                f"the inherited default of {one.name!r} reads {name!r}, unknown in this file",
                f"import {name!r} here, or give the field again with its default",
                RULE,
            )
    return Renderer(project, one.owner.module).value(default)


def _check_builds_nothing(project: Project, one: Field, default: ast.expr) -> None:
    """A module as a default: Linen makes it part of whoever holds it, and NNX has no rngs for it."""
    todo: list[ast.AST] = [default]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Lambda):
            continue  # it runs where the class calls it
        todo += ast.iter_child_nodes(node)
        called = node.func if isinstance(node, ast.Call) else None
        if called is not None and project.resolve(called, one.owner.scope) in project.linen:
            raise Refused(
                node,
                f"the default of {one.name!r} builds a module",
                "let None stand for it and build it in setup or in the call",
                RULE,
            )


def _bound_before(one: Field) -> set[str]:
    """Fields that are class attributes where the default of ``one`` is evaluated."""
    own = [other for other in one.owner.fields if other.owner is one.owner]
    earlier = [other for other in own if other.node.lineno < one.node.lineno]
    return {other.name for other in earlier if other.default is not None}


def signature(
    parameters: tuple[Parameter, ...],
    sizes: tuple[SizeArgument, ...],
    indent: str,
    unit: str,
    newline: str,
    width: int,
) -> str:
    """``def __init__(self, ...):`` in one line where it fits, else one parameter per line."""
    plain = [one for one in parameters if not one.keyword_only]
    keyword = [one for one in parameters if one.keyword_only]
    texts = ["self", *(one.text for one in plain), "*", *(one.text for one in keyword)]
    texts += [*(f"{one.name}{size_annotation(one)}" for one in sizes), "rngs: nnx.Rngs"]
    line = f"{indent}def __init__({', '.join(texts)}):"
    if len(line) <= width and "\n" not in line:
        return line
    inner = indent + (unit if len(unit.expandtabs()) >= 4 else unit * 2)
    lines = [f"{inner}{text}," for text in texts]
    return newline.join([f"{indent}def __init__(", *lines, f"{indent}):"])


def size_annotation(one: SizeArgument) -> str:
    """The annotation of a size argument, with its default if it has one."""
    if one.fact == DTYPE:
        return ""  # no type of a dtype is sure to be imported in the file
    if one.fact is not None:
        return ": bool" if one.default is None else f": bool = {one.default}"
    kind = "int" if one.axis is not None else "tuple[int, ...]"
    if one.each is not None:  # the same for the dict that each submodule needs
        kind = _dict_of(one.each, kind)
    return f": {kind} | None = None" if one.optional else f": {kind}"


def _dict_of(each: str, kind: str) -> str:
    inner = each.removesuffix("_of")
    return f"dict[str, {kind if inner == each else _dict_of(inner, kind)}]"
