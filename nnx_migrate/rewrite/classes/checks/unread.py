"""Submodules of ``setup`` that no method reads: Linen's ``init`` gives them no parameters."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.items import Item
from nnx_migrate.rewrite.classes.reading.attributes import Attribute
from nnx_migrate.sizes.expressions.subscripts import key_text
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import has_starred, walk

RULE = "setup"


def check_unread(
    project: Project, cls: ClassInfo, attributes: Sequence[Attribute], items: Mapping[int, Item]
) -> None:
    """Refuse such a submodule, also as an item of a list or dict of an attribute.

    Raises:
      Refused: the NNX module would have parameters that Linen's does not.
    """
    for value, what in _unread(project, cls, attributes, items):
        raise ClassRefused(
            value,
            f"no method reads {what}: Linen's init makes no parameters for a submodule"
            " that is never called",
            "remove it",
            RULE,
        )


def _unread(
    project: Project, cls: ClassInfo, attributes: Sequence[Attribute], items: Mapping[int, Item]
) -> Iterator[tuple[ast.expr, str]]:
    names = [one.name for one in attributes]
    for one in attributes:
        shared = sum(other.value is one.value for other in attributes) > 1
        if shared or names.count(one.name) > 1 or not _builds(one.value, items):
            continue
        reads = _reads(project, cls, one.name)
        if not reads:
            yield one.value, f"self.{one.name}"
            continue
        for keys, value in _entries(one.value):
            read_keys = {_key(read) for read in reads}
            if _builds(value, items) and read_keys.isdisjoint({None, *keys}):
                yield value, f"self.{one.name}[{keys[0]}]"


def _builds(value: ast.expr, items: Mapping[int, Item]) -> bool:
    """Whether what a value builds has variables before it is called."""
    found = (items.get(id(one)) for one in walk(value))
    return any(
        one is not None and one.site is not None and not (one.free_of_variables or one.site.is_lazy)
        for one in found
    )


def _reads(project: Project, cls: ClassInfo, name: str) -> list[ast.AST]:
    """What stands around every read of the attribute in the class's family, or mention in a string.

    A module that another class reads (``self.encoder.embed``) may be called there in one program and
    not in the next.
    """
    family = {id(one.node): one.node for one in cls.mro}
    family |= {id(one.node): one.node for one in project.linen.values() if cls in one.mro}
    return [read for node in family.values() for read in _reads_in(node, name)]


def _reads_in(tree: ast.AST, name: str) -> list[ast.AST]:
    named, computed = _all_reads(tree)
    return [*named.get(name, ()), *computed]


@lru_cache(maxsize=1 << 12)  # every attribute of every class asks
def _all_reads(tree: ast.AST) -> tuple[dict[str, list[ast.AST]], list[ast.AST]]:
    """What stands around every read of an attribute, by its name, and reads of computed names."""
    named: dict[str, list[ast.AST]] = {}
    computed: list[ast.AST] = []
    for node in walk(tree):
        for child in ast.iter_child_nodes(node):
            match child:
                case ast.Attribute(attr=attr, ctx=ast.Load()):
                    named.setdefault(attr, []).append(node)
                case ast.Constant(value=str(text)):
                    for word in {*text.split(".")}:
                        named.setdefault(word, []).append(node)
                case ast.Call(func=ast.Name(id="getattr" | "vars")):
                    computed.append(child)
    return named, computed


def _key(read: ast.AST) -> str | None:
    """The item of a list or dict that is read, where that is written out."""
    match read:
        case ast.Subscript(slice=ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(key)))):
            return str(-key)
        case ast.Subscript(slice=key):
            return key_text(key)
    return None


def _entries(value: ast.expr) -> Iterator[tuple[tuple[str, ...], ast.expr]]:
    """The items of a list or dict, each with its keys: ("1", "-1") for the last of two."""
    match value:
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            if not has_starred(parts):
                for index, one in enumerate(parts):
                    yield (str(index), str(index - len(parts))), one
        case ast.Dict(keys=keys, values=values):
            texts = [key_text(one) for one in keys]
            if None not in texts:
                yield from (((text or "",), one) for text, one in zip(texts, values, strict=True))
