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
from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.items import Item, ItemKind
from nnx_migrate.source.bindings import bound_names
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import each, walk

_Items = Mapping[int, Item]


def checked_attributes(
    project: Project, cls: ClassInfo, compact: ast.FunctionDef | None, items: _Items
) -> dict[str, str]:
    """Names in Linen that the class has for something else, and the attributes in their place.

    Args:
      items: of the class, by id of the call.

    Raises:
      Refused: no other attribute can take the place.
    """
    every = [one for one in items.values() if one.kind is not ItemKind.STREAM]
    if not every:
        return {}
    heirs = [one for one in project.linen.values() if cls in one.mro]
    owners = dict.fromkeys(owner for one in (cls, *heirs) for owner in one.mro)
    meant = meanings_of(owners)
    meant |= {name: _OF_NNX for name in PUBLIC if meant.get(name, _KEPT) == _KEPT}
    inside = {id(node) for node in walk(compact)} if compact is not None else frozenset[int]()
    strings = Counter(
        one.value for one in each(cls.node, ast.Constant) if isinstance(one.value, str)
    )
    others = _others(project, meant, inside, items, strings)
    pattern = "|".join(map(re.escape, sorted(strings)))
    for one in every:
        # What setup keeps, it may keep under the name in Linen.
        left = {_OF_NNX} if id(one.call) in inside else {_OF_NNX, _KEPT}
        names = _automatic(one, meant) if one.name is None else _words(one.name, pattern, meant)
        found = (word for word in names if meant[word] not in left)
        name = next((word for word in found if not _is_kept(cls, one, word, meant)), None)
        if name is None or (name in others and _name(one) == name):
            continue
        raise ClassRefused(
            one.call,
            f"{name!r} names {meant[name]} as well, and an NNX module has one attribute of a name",
            f"rename the {meant[name].partition(' ')[2]}",
            "names",
        )
    return others


def _others(
    project: Project,
    meant: Mapping[str, str],
    inside: Collection[int],
    items: _Items,
    strings: Mapping[str, int],
) -> dict[str, str]:
    """The attributes in place of names that stand for something else.

    Only of names that the compact method alone gives and that no other string of the class has (as in
    ``self.has_variable("params", "scale")``); not where the project has a word for the attribute already.

    Args:
      inside: ids of the nodes of the compact method.
      strings: how often the class has each.
    """
    counts = Counter(filter(None, map(_name, items.values())))
    fixed = {
        _name(one)
        for key, one in items.items()
        if one.kind not in (ItemKind.PARAM, ItemKind.SITE) or key not in inside
    }
    return {
        name: f"{name}_"
        for name in counts
        if name in meant and name not in fixed
        if strings[name] == counts[name] and not _is_word(project, f"{name}_")
    }


def _is_kept(cls: ClassInfo, item: Item, name: str, meant: Mapping[str, str]) -> bool:
    """Whether an item is assigned to a class attribute of its name: ``self.w = self.param("w", ...)``."""
    match cls.module.parents.of(item.call) if meant[name] == _OF_CLASS else None:
        case (
            ast.Assign(targets=[ast.Attribute(attr=attribute)])
            | ast.AnnAssign(target=ast.Attribute(attr=attribute))
        ):
            return attribute == name
        case _:
            return False


def _automatic(item: Item, words: Collection[str]) -> Iterator[str]:
    """Those of the words that Linen may number it as: ``Dense_0``."""
    if item.site is None:
        return iter(())
    kinds = "|".join(map(re.escape, filter(None, [*item.site.numbers, item.site.class_name])))
    return filter(re.compile(rf"(?:{kinds})_\d+").fullmatch, words)


def _words(name: ast.expr, strings: str, words: Collection[str]) -> Iterator[str]:
    """Those of the words that an expression may be."""
    return filter(re.compile(_pattern(name, strings)).fullmatch, words)


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


def meanings_of(owners: Collection[ClassInfo]) -> dict[str, str]:
    """What objects of the classes have under names: fields, methods, and what classes and methods assign."""
    found: dict[str, str] = {}
    for owner in owners:
        stored = (one for one in each(owner.node, ast.Attribute) if isinstance(one.ctx, ast.Store))
        found |= {one.attr: _KEPT for one in stored}
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
