"""Attributes of parameters and submodules whose names in Linen the class has for something else as well.

Linen keeps variables apart from attributes: a field ``scale: bool`` and ``self.param("scale", ...)`` go together. In
an NNX module they are one attribute, so the parameter becomes ``self.scale_``, and
``@nnm.called_in_linen(scale_="scale")`` gives it Linen's name.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from nnx_migrate.rewrite.classes.checks.nnx_names import PUBLIC
from nnx_migrate.rewrite.classes.data import Refused
from nnx_migrate.rewrite.classes.items import Item, ItemKind
from nnx_migrate.source.bindings import bound_names
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import each, walk

_Items = Mapping[int, Item]


def other_attributes(
    project: Project, cls: ClassInfo, compact: ast.FunctionDef | None, items: _Items
) -> dict[str, str]:
    """Names in Linen that the class has for something else, and the attributes in their place.

    Only names that the compact method alone gives and that no other string of the class has (as in
    ``self.has_variable("params", "scale")``); not where the project has a word for the attribute already.

    Args:
      items: of the class, by id of the call.
    """
    inside = {id(node) for node in walk(compact)} if compact is not None else frozenset[int]()
    given = Counter(filter(None, map(_name, items.values())))
    fixed = {
        _name(one)
        for key, one in items.items()
        if one.kind not in (ItemKind.PARAM, ItemKind.SITE) or key not in inside
    }
    meant = _meanings(project, cls) if given.keys() - fixed else {}
    names = [one for one in given.keys() - fixed if one in meant]
    strings = Counter(one.value for one in each(cls.node, ast.Constant)) if names else Counter()
    return {
        name: f"{name}_"
        for name in names
        if strings[name] == given[name] and not _is_word(project, f"{name}_")
    }


def check_attribute_names(
    project: Project,
    cls: ClassInfo,
    compact: ast.FunctionDef | None,
    items: _Items,
    others: Mapping[str, str],
) -> None:
    """Refuse a name that the class has for something else, where no other attribute takes its place.

    Args:
      others: as `other_attributes`.

    Raises:
      Refused: at what is called so.
    """
    every = [one for one in items.values() if one.kind is not ItemKind.STREAM]
    meant = _meanings(project, cls) if every else {}
    inside = {id(node) for node in walk(compact)} if compact is not None else frozenset[int]()
    for one in every:
        # What setup keeps, it may keep under the name in Linen.
        left = {_OF_NNX} if id(one.call) in inside else {_OF_NNX, _KEPT}
        kept = _kept(cls, one)
        names = _names(cls, one, meant) if one.name else _automatic(one, meant)
        meaning = (word for word in names if meant[word] not in left)
        name = next((word for word in meaning if word != kept or meant[word] != _OF_CLASS), None)
        if name is None or (name in others and _name(one) == name):
            continue
        raise Refused(
            one.call,
            f"{name!r} names {meant[name]} as well, and an NNX module has one attribute of a name",
            f"rename the {meant[name].partition(' ')[2]}",
            "names",
        )


def _kept(cls: ClassInfo, item: Item) -> str | None:
    """The attribute that an item is assigned to: ``w`` in ``self.w = self.param(...)``."""
    match cls.module.parents.above(item.call)[:1]:
        case [
            ast.Assign(targets=[ast.Attribute(attr=name)])
            | ast.AnnAssign(target=ast.Attribute(attr=name))
        ]:
            return name
        case _:
            return None


def _automatic(item: Item, words: Collection[str]) -> Iterator[str]:
    """Those of the words that Linen may number it as: ``Dense_0``."""
    if item.site is None:
        return iter(())
    kinds = "|".join(map(re.escape, filter(None, [*item.site.numbers, item.site.class_name])))
    return filter(re.compile(rf"(?:{kinds})_\d+").fullmatch, words)


def _names(cls: ClassInfo, item: Item, words: Collection[str]) -> Iterator[str]:
    """Those of the words that an item may be called."""
    assert item.name is not None
    strings = {one.value for one in each(cls.node, ast.Constant) if isinstance(one.value, str)}
    called = re.compile(_pattern(item.name, "|".join(map(re.escape, sorted(strings)))))
    return filter(called.fullmatch, words)


def _pattern(name: ast.expr, strings: str) -> str:
    """What an expression may be, as a pattern; what is not taken apart is a number or a string of the class.

    >>> _pattern(ast.parse('f"conv{i}"', mode="eval").body, "left|right")
    'conv(?:\\\\d+|left|right)'
    """
    unknown = rf"(?:\d+|{strings})"
    match name:
        case ast.Constant(value=value):
            return re.escape(str(value))
        case ast.JoinedStr(values=parts):
            return "".join(_pattern(one, strings) for one in parts)
        case ast.IfExp(body=body, orelse=orelse):
            return rf"(?:{_pattern(body, strings)}|{_pattern(orelse, strings)})"
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            return _pattern(left, strings) + _pattern(right, strings)
        case ast.BinOp(op=ast.Mod(), left=ast.Constant(value=str(text))):
            return unknown.join(map(re.escape, re.split(r"%\w", text)))
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(text)), attr="format")):
            return unknown.join(map(re.escape, re.split(r"\{.*?\}", text)))
        case _:
            return unknown


_KEPT, _OF_CLASS, _OF_NNX = "an attribute", "a class attribute", "a method of nnx.Module"


def _meanings(project: Project, cls: ClassInfo) -> dict[str, str]:
    """What objects of the class, and of those that inherit from it, have under names."""
    found = dict.fromkeys(PUBLIC, _OF_NNX)
    heirs = [one for one in project.linen.values() if cls in one.mro]
    owners = dict.fromkeys(owner for one in (cls, *heirs) for owner in one.mro)
    for owner in owners:
        stored = (one for one in each(owner.node, ast.Attribute) if isinstance(one.ctx, ast.Store))
        found |= {one.attr: found.get(one.attr, _KEPT) for one in stored}
    for owner in owners:
        names = (name for one in owner.node.body for name in bound_names(one))
        found |= dict.fromkeys(names, _OF_CLASS)
        found |= dict.fromkeys(owner.methods, "a method")
        found |= {one.name: "a field" for one in owner.own_fields}
    return found


def _is_word(project: Project, name: str) -> bool:
    """Whether a text of the project has this word."""
    word = re.compile(rf"\b{re.escape(name)}\b")
    return any(word.search(one.text) for one in project.modules.values())


def _name(item: Item) -> str:
    match item.name:
        case ast.Constant(value=str(name)):
            return name
        case _:
            return ""
