"""What the annotation and the uses of a field say about its value."""

from __future__ import annotations

import ast

from nnx_migrate.rewrite.classes.reading.annotations import (
    CHOICES,
    is_array,
    is_container,
    is_tuple,
    last_word,
    without_quotes,
    words_of,
)
from nnx_migrate.sizes.fields.constructor_arguments import values_of_field
from nnx_migrate.source.classes import ClassInfo, Field
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import each, is_none_literal, is_self, names_in, walk

_MODULE = "flax.linen.Module"
_PART = ast.Subscript | ast.Attribute
_NAME = ast.Name | ast.Attribute
_FROZEN_METHODS = frozenset({"copy", "pop", "pretty_repr", "unfreeze"})


def is_read_as_frozen(cls: ClassInfo, name: str) -> bool:
    """Whether methods call what only a FrozenDict has or does otherwise: ``self.options.copy({"a": 1})``."""
    return any(
        isinstance(one.value, ast.Attribute)
        and is_self(one.value.value)
        and one.value.attr == name
        and one.attr in _FROZEN_METHODS
        for method in cls.every_method
        for one in each(method, ast.Attribute)
    )


def makes_container(factory: ast.expr) -> bool:
    """Whether a default factory makes a list or a dict: ``dict``, ``lambda: [1, 2]``."""
    match factory:
        case ast.Name(id="dict" | "list"):
            return True
        case ast.Lambda(body=ast.Dict() | ast.List() | ast.ListComp() | ast.DictComp()):
            return True
        case ast.Lambda(body=ast.Call(func=made)):
            return makes_container(made)
    return False


def may_be_none(project: Project, cls: ClassInfo, one: Field) -> bool:
    """Whether None is a value of a field: by its annotation, by a test of a method, or given by a call."""
    if {"None", "Optional"} & words_of(one.annotation):
        return True
    if any(is_none_literal(value) for value in values_of_field(project, (cls.name, one.name))):
        return True
    return any(
        is_none_literal(other) and ast.unparse(test.left) == f"self.{one.name}"
        for method in cls.every_method
        for test in each(method, ast.Compare)
        for other in test.comparators
    )


def holds_modules(project: Project, one: Field) -> bool:
    """Whether the annotation is a container of modules: ``dict[str, nn.Module]``, ``Sequence[Block]``."""
    annotation = one.annotation
    if not (is_container(annotation) or is_tuple(annotation)):
        return False
    for node in walk(annotation):
        match node:
            case ast.Subscript(slice=inside) if last_word(node.value) not in CHOICES:
                parts = inside.elts if isinstance(inside, ast.Tuple) else [inside]
                symbols = {project.resolve(part, one.owner.scope) for part in parts}
                if any(found in project.linen or found == _MODULE for found in symbols if found):
                    return True
    return False


def items_are_called(project: Project, cls: ClassInfo, one: Field) -> bool:
    """Whether a field may be a container of modules by its uses: ``self.layers["a"](x)``.

    Other values, functions among them, are kept as they are in such a container too. What is annotated as one
    module may be a dict of them.
    """
    is_any = project.resolve(one.annotation, one.owner.scope) in ("typing.Any", _MODULE)
    if not (is_any or is_container(one.annotation) or is_tuple(one.annotation)):
        return False
    return any(_calls_items(method, one.name) for method in cls.every_method)


def _calls_items(method: ast.FunctionDef, name: str) -> bool:
    """Also of items that have a name: ``for index, layer in enumerate(self.layers): layer(x)``."""
    items: set[str] = set()
    for node in walk(method):
        match node:
            case ast.For(target=target, iter=over) | ast.comprehension(target=target, iter=over):
                pass
            case ast.Assign(targets=[target], value=ast.Subscript(value=over)):
                pass
            case _:
                continue
        if any(_is_field(part, name) for part in walk(over)):
            items |= names_in(target)
    for node in walk(method):
        match node:
            case ast.Call(func=ast.Subscript(value=content)) if _is_field(content, name):
                return True
            case ast.Call(func=ast.Name(id=called)) if called in items:
                return True
    return False


def _is_field(node: ast.AST, name: str) -> bool:
    match node:
        case ast.Attribute(value=ast.Name("self"), attr=attr):
            return attr == name
    return False


def is_indexed(cls: ClassInfo, name: str) -> bool:
    """Whether a method takes an item of the field by its number, as of a tuple; no ``config["dim"]``."""
    for method in cls.every_method:
        for node in walk(method) if method.name != "__post_init__" else ():
            match node:
                case ast.Subscript(
                    value=content,
                    slice=ast.Constant(value=int())
                    | ast.UnaryOp(operand=ast.Constant(value=int())),
                ) if _is_field(content, name):
                    return True
    return False


def is_operand(cls: ClassInfo, name: str) -> bool:
    """Whether a method computes with parts of the field: ``x - self.stats["mean"]``, ``[m * 2 for m in self.means]``."""
    nodes = (
        inner for one in cls.every_method if one.name != "__post_init__" for inner in walk(one)
    )
    return any(_computes_with(one, name) for one in nodes)


def _computes_with(node: ast.AST, name: str) -> bool:
    match node:
        case (
            ast.ListComp(generators=[ast.comprehension(target=target, iter=content), *_])
            | ast.For(target=target, iter=content)
        ) if _is_field(content, name):
            items = names_in(target)
            operands = (one for inner in walk(node) for one in _operands(inner))
            return any(isinstance(one, ast.Name) and one.id in items for one in operands)
    parts = (one.value for one in _operands(node) if isinstance(one, _PART))
    return any(_is_field(one, name) for one in parts)


def _operands(node: ast.AST) -> list[ast.expr]:
    match node:
        case ast.BinOp(left=left, right=right):
            return [left, right]
        case ast.AugAssign(value=value):
            return [value]
    return []


def is_record_of_arrays(project: Project, cls: ClassInfo, one: Field) -> bool:
    """Whether the annotation is a class of arrays, or of anything that methods compute with: a NamedTuple, a
    dataclass."""
    names = (node for node in walk(without_quotes(one.annotation)) if isinstance(node, _NAME))
    symbols = (project.resolve(node, one.owner.scope) for node in names)
    for found in (project.definition(symbol) for symbol in symbols if symbol is not None):
        if found is not None and isinstance(found[1], ast.ClassDef):
            parts = [part.annotation for part in found[1].body if isinstance(part, ast.AnnAssign)]
            is_any = any("Any" in words_of(part) for part in parts)
            return any(map(is_array, parts)) or (is_any and is_operand(cls, one.name))
    return False


def items_are_read(cls: ClassInfo, name: str) -> bool:
    """Whether a method takes the field apart: its items may be arrays, which NNX keeps as data.

    A tuple that only goes into a layer whole (a kernel size) is never one of arrays.
    """
    for owner in cls.mro:
        for node in (inner for method in owner.methods.values() for inner in walk(method)):
            match node:
                case ast.Subscript(value=ast.Attribute(value=ast.Name("self"), attr=attr)):
                    is_own = attr == name
                case ast.Assign(
                    targets=[ast.Tuple()], value=ast.Attribute(value=ast.Name("self"), attr=attr)
                ):
                    is_own = attr == name
                case _:
                    continue
            if is_own:
                return True
    return False
