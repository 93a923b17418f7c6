"""Dataclass fields as constructor parameters: same order, defaults and keyword-only marks."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from nnx_migrate.constructs import is_linen
from nnx_migrate.edit.calls import call
from nnx_migrate.edit.expressions import Expression, dotted_node, either, expression, is_none
from nnx_migrate.edit.rendering import Renderer
from nnx_migrate.edit.signatures import parameter
from nnx_migrate.edit.syntax import cst
from nnx_migrate.model import SizeArgument
from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.fields.declarations import is_declaration, may_make_declaration
from nnx_migrate.rewrite.classes.fields.frozen import may_be_given_container
from nnx_migrate.rewrite.classes.fields.making import factory_value, makes_the_same
from nnx_migrate.rewrite.classes.fields.types import (
    holds_modules,
    is_indexed,
    is_operand,
    is_read_as_frozen,
    is_record_of_arrays,
    items_are_called,
    items_are_read,
    makes_container,
    may_be_none,
)
from nnx_migrate.rewrite.classes.reading.annotations import is_container, is_tuple, may_hold_arrays
from nnx_migrate.rewrite.classes.reading.evaluation import free_names
from nnx_migrate.rewrite.classes.uses.references import Remarks
from nnx_migrate.rewrite.render import renderer_of
from nnx_migrate.source.classes import ClassInfo, Field
from nnx_migrate.source.constants import class_constants, written_out
from nnx_migrate.source.names import table_of
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import each, is_name, walk

RULE = "fields"
_PLACEMENT = frozenset({"name", "parent"})
_OPTIONS = frozenset({"default", "default_factory", "init", "kw_only", "repr"})


@dataclass(frozen=True)
class Parameter:
    """One constructor parameter."""

    name: str
    annotation: Expression | None
    default: Expression | None
    value: Expression  # what ``__init__`` assigns to the attribute
    keyword_only: bool = False
    structure: bool = False  # a container of submodules
    plain: bool = False  # whether the value is the parameter itself

    @property
    def node(self) -> cst.Param:
        """As it stands in the signature."""
        return parameter(self.name, self.annotation, self.default)


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
            raise ClassRefused(
                one.node,
                f"a field named {one.name!r} shadows Linen's own",
                "rename the field",
                RULE,
            )
        found.append(_parameter(project, cls, one, renderer, remarks, everywhere_keyword))
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
) -> Parameter:
    here = one.owner is cls
    keyword_only = one.keyword_only or (keyword_only and here) or _class_keyword_only(one.owner)
    annotation = renderer.render(one.annotation) if here else _base_annotation(project, cls, one)
    default = one.node.value
    structure = holds_modules(project, one) or items_are_called(project, cls, one)
    options = _field_options(project, one)
    factory = options.get("default_factory") if options is not None else None
    is_frozen = is_container(one.annotation) or is_read_as_frozen(cls, one.name)
    is_frozen = is_frozen or (factory is not None and makes_container(factory))
    is_frozen = is_frozen or may_be_given_container(project, cls, one)
    frozen = not structure and is_frozen
    data = not structure and not frozen and _may_be_arrays(project, cls, one)
    has_arrays = may_hold_arrays(one.annotation) or items_are_read(cls, one.name)
    freeze = "nnm.as_field" if has_arrays else "nnm.freeze"
    value: Expression = call("nnm.constant", one.name) if data else dotted_node(one.name)
    value = call(freeze, one.name) if frozen else value
    if options is not None:
        if _is_false(options.get("init")):
            raise ClassRefused(
                one.node,
                f"no argument of the constructor gives the field {one.name!r}, its default does",
                "make it a constant of the class",
                RULE,
            )
        keyword_only = keyword_only or _is_true(options.get("kw_only"))
        if factory is not None:
            if may_be_none(project, cls, one):
                raise ClassRefused(
                    one.node,
                    f"None is a value of the field {one.name!r}, and its default is made anew",
                    "give it a plain default",
                    RULE,
                )
            made = _made_by(project, cls, one, factory, renderer)
            if not makes_the_same(project, one, factory):
                raise ClassRefused(
                    one.node,
                    f"the default of {one.name!r} may be another each time it is made",
                    "give it a plain default, or None and make it where it is read",
                    RULE,
                )
            value = either(is_none(dotted_node(one.name)), made, dotted_node(one.name))
            value = call(freeze, value) if frozen else value
            remarks.imports |= {"nnm"} if frozen or structure else set()
            none = dotted_node("None")
            return Parameter(one.name, annotation, none, value, keyword_only, structure)
        default = options.get("default")
    node = None if default is None else _default(project, cls, one, default, renderer)
    if frozen or data or structure:
        remarks.imports.add("nnm")
    plain = not (frozen or data)
    return Parameter(one.name, annotation, node, value, keyword_only, structure, plain)


def _may_be_arrays(project: Project, cls: ClassInfo, one: Field) -> bool:
    """Whether a field may be a tuple, dict or record of arrays."""
    is_object = is_name(one.annotation, "object")
    if is_object or project.resolve(one.annotation, one.owner.scope) == "typing.Any":
        return is_indexed(cls, one.name) or is_operand(cls, one.name)
    if is_record_of_arrays(project, cls, one):
        return True
    may_hold = may_hold_arrays(one.annotation) or items_are_read(cls, one.name)
    return is_tuple(one.annotation) and may_hold


def _base_annotation(project: Project, cls: ClassInfo, one: Field) -> Expression | None:
    """The annotation of an inherited field, where it means the same in this file."""
    if one.owner.module is not cls.module:
        return None
    for node in walk(one.annotation):
        is_name = isinstance(node, ast.Name | ast.Attribute)
        if is_name and is_linen(project.resolve(node, one.owner.scope)):  # type: ignore[arg-type]
            return None
    found: Expression = renderer_of(one.owner.module).render(one.annotation)
    return found


def _field_options(project: Project, one: Field) -> dict[str, ast.expr] | None:
    """Keyword arguments of ``field(...)`` when the default is one."""
    made = one.node.value
    if not is_declaration(project, one):
        if may_make_declaration(project, one):
            raise ClassRefused(
                made or one.node,
                f"the default of {one.name!r} may be a dataclasses.field(...) that is made elsewhere",
                "write field(...) where the class has it",
                RULE,
            )
        return None
    assert isinstance(made, ast.Call)
    if made.args or any(keyword.arg is None for keyword in made.keywords):
        raise ClassRefused(made, "field(...) with unpacked arguments", "write them out", RULE)
    found = {keyword.arg: keyword.value for keyword in made.keywords if keyword.arg}
    for name in sorted(found.keys() - _OPTIONS):
        if name == "metadata" and not _reads_metadata(project):
            continue  # it says something to whoever asks dataclasses for fields
        raise ClassRefused(
            made,
            f"{name}= of field(...) says more of {one.name!r} than its default",
            f"leave out {name}=, or keep the class lazy",
            RULE,
        )
    made_value = factory_value(found["default_factory"]) if "default_factory" in found else None
    if made_value is None:
        return found
    rest = {name: value for name, value in found.items() if name != "default_factory"}
    return {"default": made_value, **rest}


def _reads_metadata(project: Project) -> bool:
    """Whether code reads ``metadata`` of any object."""
    nodes = (
        one for module in project.modules.values() for one in module.by_word.get("metadata", ())
    )
    return any(isinstance(one, ast.Attribute) for one in nodes)


def _is_false(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def _is_true(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _made_by(
    project: Project, cls: ClassInfo, one: Field, factory: ast.expr, renderer: Renderer
) -> Expression:
    if isinstance(factory, ast.Lambda) and not factory.args.args:
        return _default(project, cls, one, factory.body, renderer)
    _check_builds_nothing(project, one, ast.Call(factory, [], []))
    return call(_default(project, cls, one, factory, renderer))


def _default(
    project: Project, cls: ClassInfo, one: Field, default: ast.expr, renderer: Renderer
) -> Expression:
    _check_builds_nothing(project, one, default)
    constants = _constants(cls, one)
    names = free_names(written_out(default, constants))
    clash = names & _bound_before(cls, one)
    if clash:
        raise ClassRefused(
            default,
            f"the default reads the field {min(clash)!r} as a class attribute"
            if one.owner is cls
            else f"the default reads {min(clash)!r} of its class body",
            "write the value out",
            RULE,
        )
    values = {key: partial(Renderer.render, node=value) for key, value in constants.items()}
    if one.owner is cls or one.owner.module is cls.module:
        found: Expression = renderer.with_edits(values).render(default)
        return found
    for name in names:
        node = ast.Name(name, ast.Load())
        theirs = project.resolve(node, one.owner.scope)
        if theirs is None and one.owner.scope.lookup(name) is None:
            continue  # a builtin
        if is_linen(theirs):
            continue  # what stands for it is imported
        if theirs is None or project.resolve(node, cls.scope) != theirs:
            raise ClassRefused(
                cls.node,
                f"the inherited default of {one.name!r} reads {name!r}, unknown in this file",
                f"import {name!r} here, or give the field again with its default",
                RULE,
            )
    theirs_edits = {**renderer.edits, **values}
    theirs_node: Expression = renderer_of(one.owner.module, theirs_edits).render(default)
    return theirs_node


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
            raise ClassRefused(
                node,
                f"the default of {one.name!r} builds a module",
                "let None stand for it and build it in setup or in the call",
                RULE,
            )


def _constants(cls: ClassInfo, one: Field) -> Mapping[int, ast.expr]:
    """The values of names that a default reads from its class body and ``__init__`` does not have.

    That of the same class stands in it, and sees its class attributes.
    """
    constants = class_constants(one.owner.node)
    if one.owner is not cls:
        return constants
    fields = {other.name for other in cls.own_fields}
    names = (node for node in each(cls.node, ast.Name) if id(node) in constants)
    return {id(node): constants[id(node)] for node in names if node.id in fields}


def _bound_before(cls: ClassInfo, one: Field) -> set[str]:
    """Names of its class body that the default of ``one`` sees, and ``__init__`` does not."""
    body = one.owner.node.body
    earlier = body[: body.index(one.node)]
    if one.owner is not cls:
        return {*table_of(earlier, one.owner.module.package)[0]}
    fields = [other for other in cls.own_fields if other.node in earlier]
    return {other.name for other in fields if other.node.value is not None}


def signature(
    parameters: tuple[Parameter, ...], sizes: tuple[SizeArgument, ...]
) -> list[cst.Param | str]:
    """The parameters of ``__init__``."""
    plain = [one.node for one in parameters if not one.keyword_only]
    keyword = [one.node for one in parameters if one.keyword_only]
    streams = parameter("rngs", dotted_node("nnx.Rngs"))
    return [parameter("self"), *plain, "*", *keyword, *map(size_parameter, sizes), streams]


def size_parameter(one: SizeArgument) -> cst.Param:
    """A size argument with its annotation, and its default if it has one."""
    if one.fact is not None:
        default = None if one.default is None else expression(str(one.default))
        return parameter(one.name, dotted_node("bool"), default)
    kind = "int" if one.axis is not None else "tuple[int, ...]"
    if one.optional:
        return parameter(one.name, expression(f"{kind} | None"), dotted_node("None"))
    return parameter(one.name, expression(kind))
