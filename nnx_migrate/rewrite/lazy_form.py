"""``lazy(Class, ...)``: whether an explicit class has a lazy form, and where that takes its sizes from.

What `nnx_migrate.linen.lazy` reads off the name of a size is not written. The rest is declared as a
``Size``: an input of the call, or the input of a submodule that the call reaches.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from nnx_migrate.edit.calls import Argument, call, named
from nnx_migrate.edit.expressions import Expression, dotted_node, integer, string
from nnx_migrate.model import FACT_PREFIXES, SizeArgument
from nnx_migrate.source.classes import ClassInfo, Field
from nnx_migrate.source.names import parameter_names, positional_names
from nnx_migrate.source.walking import each

_TAKEN = "input_"  # in front of a size whose plain name has another use
_SIZE = re.compile(r"\w+_(features|shape)")
_PART = re.compile(r"(?P<name>\w+)(?:\.(?P<field>\w+)|(?P<items>(?:\[\d+\])*))")


class NoLazyForm(Exception):
    """An explicit class has no lazy form; the message says why."""


def check_fixed_parameters(cls: ClassInfo) -> None:
    """Check that a constructor of the class's own takes no ``*args`` or ``**kwargs``.

    Raises:
      NoLazyForm: it does.
    """
    found = cls.find("__init__")
    if found is None:
        return
    for star, one in (("*", found[1].args.vararg), ("**", found[1].args.kwarg)):
        if one is not None:
            raise NoLazyForm(f"its constructor takes {star}{one.arg}, and the class is used here")


def declarations(cls: ClassInfo, sizes: Iterable[SizeArgument]) -> dict[str, Expression]:
    """The keyword arguments that ``lazy`` needs for a class with such sizes, by the size's name.

    Raises:
      NoLazyForm: its constructor takes unnamed arguments, or a size cannot be declared; the message
        says which.
    """
    check_fixed_parameters(cls)
    for field in cls.fields:
        if _is_keyword(field) and _reads_as_size(cls, field.name):
            raise NoLazyForm(f"the field {field.name} has the name of a size")
    found: dict[str, Expression] = {}
    for one in sizes:
        if one.name in cls.field_names:
            raise NoLazyForm(f"the size {one.name} has the name of a field")
        if not _is_named(cls, one):
            found[one.name] = _declaration(one)
    return found


def _is_named(cls: ClassInfo, one: SizeArgument) -> bool:
    """Whether the size's name says where it comes from, as `nnx_migrate.linen` reads names."""
    if one.method != "__call__":
        return False
    if one.fact is not None:
        return one.name == f"{FACT_PREFIXES[one.fact]}_{one.argument}"
    if one.axis not in (None, -1):
        return False
    if not one.submodule:
        if one.name == "in_features":
            return one.axis == -1 and one.argument == _first(cls, one.method)
        if not _has_input(cls, one) and _reads_plainly(cls, one.name):
            return False  # ``x.x``, where there is ``x``
        is_alone = len(_parameters(cls)) == 1
        names = _names(one, is_alone)
        used_names = {f"{_TAKEN}{name}" for name in names} if _has_input(cls, one) else set()
        return one.name in names or (one.name in used_names and not _reads_plainly(cls, one.name))
    keys = {"in_features"} if one.axis == -1 and one.argument != "carry" else set()
    keys |= _names(one, has_fields=False)
    names = {"_".join([*one.submodule.split("/"), key]) for key in keys}
    return one.name in names and not _reads_as_input(cls, one.name)


def _names(one: SizeArgument, has_fields: bool) -> set[str]:
    """Names that say which input, or which item or field of it, a size is of."""
    found = re.fullmatch(_PART, one.argument or "")
    if found is None or (found["field"] and not has_fields):
        return set()
    part = found["field"] or "_".join([found["name"], *re.findall(r"\d+", found["items"])])
    return {f"{part}_shape" if one.axis is None else f"{part}_features"}


def _is_keyword(field: Field) -> bool:
    """Whether a field may be given by keyword alone."""
    options = (one for one in each(field.node, ast.keyword))
    every = (*options, *field.owner.node.keywords)
    return field.keyword_only or any(one.arg == "kw_only" for one in every)


def _reads_as_size(cls: ClassInfo, name: str) -> bool:
    """Whether ``lazy`` takes a keyword argument of this name for a size or a fact."""
    facts = {f"{start}_{one}" for one in _parameters(cls) for start in FACT_PREFIXES.values()}
    return name in facts or _SIZE.fullmatch(name) is not None


def _has_input(cls: ClassInfo, one: SizeArgument) -> bool:
    return one.argument in _parameters(cls)


def _reads_as_input(cls: ClassInfo, name: str) -> bool:
    """Whether ``lazy`` takes it for the size of an input of the class's own call."""
    return _reads_plainly(cls, name) or _reads_plainly(cls, name.removeprefix(_TAKEN))


def _reads_plainly(cls: ClassInfo, name: str) -> bool:
    return name in {f"{one}_{end}" for one in _parameters(cls) for end in ("features", "shape")}


def _parameters(cls: ClassInfo) -> list[str]:
    found = cls.find("__call__")
    return list(parameter_names(found[1]))[1:] if found is not None else []


def _first(cls: ClassInfo, method: str) -> str | None:
    found = cls.find(method)
    if found is None:
        return None
    spec = found[1].args
    names = positional_names(spec)[1:]
    return names[0] if names else None


def _declaration(one: SizeArgument) -> Expression:
    arguments = [Argument(string(one.argument, '"'))] if one.argument is not None else []
    if one.axis != -1:
        axis = dotted_node("None") if one.axis is None else integer(one.axis)
        arguments.append(Argument(axis) if arguments else named("axis", axis))
    keywords = {"of": one.submodule or "", "method": "" if one.method == "__call__" else one.method}
    keywords["fact"] = one.fact or ""
    arguments += [named(name, string(text, '"')) for name, text in keywords.items() if text]
    return call("Size", *arguments)
