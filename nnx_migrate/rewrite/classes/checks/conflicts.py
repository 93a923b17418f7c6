"""What Linen keeps apart and one NNX object cannot, found before anything is written.

Linen stores variables by collection and name, beside Python's attributes; an NNX module has one
attribute of a name. Two things under one name would replace each other without an error.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping

from nnx_migrate.rewrite.classes.checks.attribute_names import meanings_of
from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.items import (
    Item,
    ItemKind,
    receiver_of,
    self_call,
    submodule_keys,
)
from nnx_migrate.rewrite.classes.reading.attributes import Attribute, Kind
from nnx_migrate.rewrite.classes.variables.presence import made_by
from nnx_migrate.source.bindings import bindings_below, bound_names, changed_names
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.names import named_parameters
from nnx_migrate.source.walking import Comprehension, each, given_values, walk


def check_collections(items: Mapping[int, Item]) -> None:
    """Refuse one literal name for variables of several collections.

    Raises:
      Refused: at the second of the two.
    """
    collections: dict[str, tuple[ItemKind, str | None]] = {}
    for item in items.values():
        if item.kind is ItemKind.STREAM or not isinstance(item.name, ast.Constant):
            continue
        name = str(item.name.value)
        kind = (item.kind, item.collection_text)
        if collections.setdefault(name, kind) != kind:
            raise ClassRefused(
                item.call,
                f"two collections have {name!r}, and an NNX module has one attribute of a name",
                "rename one of them",
                "names",
            )


def check_private_names(items: Iterable[Item]) -> None:
    """Refuse names that Python takes for private in a class: ``self.__w`` is ``_Model__w``, ``"__w"`` is not.

    Raises:
      Refused: at the one that has such a name.
    """
    for item in items:
        names = [item.name.value] if isinstance(item.name, ast.Constant) else []
        if item.name is None and item.site is not None:
            names += [*item.site.numbers, item.site.class_name]
        for name in names:
            if isinstance(name, str) and _is_private(name):
                raise _private_name_refusal(item.call, name)


def check_named_arguments(cls: ClassInfo, items: Mapping[int, Item]) -> None:
    """Refuse ``self.head = Wrap(nn.Dense(4, name="inner"))``: Linen has ``inner`` beside ``head``, NNX in it.

    A local name hides the same: ``inner = nn.Dense(4, name="inner")``, ``self.head = inner``.

    Raises:
      Refused: what ``setup`` builds is given a submodule that has a name of its own, or a local name has one.
    """
    setup = cls.methods.get("setup")
    if setup is None:
        return
    sites = submodule_keys(items)
    built = [one for one in each(setup, ast.Call) if id(one) in sites]
    named = {id(one) for one in built if items[id(one)].name is not None}
    for node in each(setup, ast.Assign):
        if id(node.value) in named and any(isinstance(to, ast.Name) for to in node.targets):
            names = ast.unparse(node.targets[0])
            raise _named(node, f"{names} is a submodule that has a name of its own")
    holders = {
        name
        for target, value in (bindings_below(setup) if named else ())
        if any(id(one) in named for one in walk(value))
        for name in changed_names(target)
    }
    for call in built:
        for one in given_values(call):
            for part in walk(one):
                if id(part) in named or (isinstance(part, ast.Name) and part.id in holders):
                    what = ast.unparse(call.func)
                    raise _named(call, f"{what} is given a submodule that has a name of its own")


def _named(node: ast.AST, reason: str) -> ClassRefused:
    return ClassRefused(
        node, reason, "give the submodule to an attribute first, without a name", "names"
    )


def _is_private(name: str) -> bool:
    return name.startswith("__") and not name.endswith("__")


def _private_name_refusal(node: ast.AST, name: str) -> ClassRefused:
    return ClassRefused(
        node,
        f"Python takes {name!r} for private, and changes it where it is an attribute",
        "rename it",
        "names",
    )


def check_sown(cls: ClassInfo, items: Mapping[int, Item]) -> None:
    """Refuse a variable under whose name the class sows into another collection.

    Values sown come back as attributes, so that a call that makes its variable finds the name taken.

    Raises:
      Refused: at the variable.
    """
    sown: dict[str, str] = {}
    for method in cls.methods.values():
        for node in walk(method):
            match node:
                case ast.Call(
                    func=ast.Attribute(attr="sow"),
                    args=[
                        ast.Constant(value=str() as collection),
                        ast.Constant(value=str() as name),
                        *_,
                    ],
                ):
                    sown[name] = collection
    for item in items.values():
        if item.kind is not ItemKind.VARIABLE or not isinstance(item.name, ast.Constant):
            continue
        stored = str(item.name.value)
        if stored in sown and repr(sown[stored]) != item.collection_text:
            raise ClassRefused(
                item.call,
                f"it sows {stored!r} into another collection, and an NNX module has one attribute of a name",
                "rename one of them",
                "names",
            )


def check_put(cls: ClassInfo, items: Mapping[int, Item]) -> None:
    """Refuse variables that calls put or perturb under a name that something else of the class has.

    ``self.put_variable("cache", "step", x)`` beside a method ``step``: Linen keeps both.

    Raises:
      Refused: at the call that puts it.
    """
    attributes = meanings_of(cls.mro)
    for method in cls.methods.values():
        for call in each(method, ast.Call):
            maker = self_call(call, receiver_of(method))
            if maker not in ("perturb", "put_variable"):
                continue
            collection, name = made_by(maker, call)
            others = [one for one in items.values() if _is_called(one, name)]
            same = all(_is_in(one, collection) for one in others)
            if (name in attributes and not others) or not same:
                raise ClassRefused(
                    call,
                    f"{name!r} names something else as well, and an NNX module has one attribute of a name",
                    "rename one of them",
                    "names",
                )


def _is_called(item: Item, name: str | None) -> bool:
    return isinstance(item.name, ast.Constant) and item.name.value == name


def _is_in(item: Item, collection: str | None) -> bool:
    """Whether an item may be a variable of a collection."""
    if item.kind is ItemKind.VARIABLE:
        return collection is None or item.collection_text == repr(collection)
    return item.kind is ItemKind.PARAM and collection in (None, "params")


def check_own_names(attributes: Iterable[Attribute]) -> None:
    """Refuse a variable or submodule of ``setup`` whose own name is another attribute's.

    ``self.w = self.param("k", ...)`` is stored as ``k``; so is ``self.k = 3``. A list of submodules is read
    by a property, whose name no submodule can have.

    Raises:
      Refused: at the one that has two names.
    """
    known = list(attributes)
    structures = {one.name for one in known if one.kind is Kind.STRUCTURE}
    for one in known:
        if one.kind is Kind.SUBMODULE and one.name in structures:
            raise ClassRefused(
                one.value,
                f"self.{one.name} holds a submodule of its own here and others elsewhere",
                "give each an attribute",
                "names",
            )
        if one.kind is Kind.STRUCTURE and _is_private(one.name):  # its submodules' names are texts
            raise _private_name_refusal(one.value, one.name)
        if one.storage_name is None:
            continue
        for other in known:
            same = (
                other.kind is not Kind.ALIAS
                and (other.storage_name or other.name) == one.storage_name
            )
            if other.name != one.name and (same or other.name == one.storage_name):
                raise ClassRefused(
                    one.value,
                    f"{one.storage_name!r} names self.{one.name} and, as an attribute, self.{other.name}",
                    "rename one of them",
                    "names",
                )


def read_too_early(function: ast.FunctionDef) -> str | None:
    """The first local name that ``function`` reads before any statement that binds it."""
    arguments = function.args
    plain = named_parameters(arguments)
    bound = {one.arg for one in plain}
    local = {name for one in function.body for name in bound_names(one)} - bound
    return _too_early(function.body, local, bound)


def _too_early(body: Iterable[ast.stmt], local: set[str], bound: set[str]) -> str | None:
    """The search in one block; ``bound`` grows by what any branch binds."""
    for statement in body:
        blocks = [getattr(statement, name, []) for name in ("body", "orelse", "finalbody")]
        blocks += [case.body for case in getattr(statement, "cases", [])]
        inner = [one for block in blocks for one in block]
        heads = [one for one in _heads(statement) if one not in inner]
        bound |= {name for one in heads for name in _walrus_names(one)}
        found = next((name for one in heads if (name := _loads(one, local - bound))), None)
        if isinstance(statement, ast.FunctionDef | ast.ClassDef) or found is not None:
            bound |= set(bound_names(statement))
        else:
            bound |= {name for one in heads for name in bound_names(one)}
            found = next((name for one in blocks if (name := _too_early(one, local, bound))), None)
            bound |= set(bound_names(statement))
        if found is not None and not isinstance(statement, ast.FunctionDef | ast.ClassDef):
            return found
    return None


def _heads(statement: ast.stmt) -> Iterator[ast.AST]:
    """What a statement holds besides its blocks; of ``case`` clauses the pattern and the guard."""
    for child in ast.iter_child_nodes(statement):
        if isinstance(child, ast.match_case):
            yield child.pattern
            yield from (() if child.guard is None else (child.guard,))
        else:
            yield child


def _walrus_names(node: ast.AST) -> set[str]:
    """Names that ``:=`` binds while ``node`` is evaluated."""
    return {one.target.id for one in each(node, ast.NamedExpr)}


def _loads(node: ast.AST, names: set[str]) -> str | None:
    """A name of ``names`` that evaluating ``node`` reads; functions inside read theirs later."""
    if isinstance(node, ast.Lambda | ast.FunctionDef | ast.ClassDef):
        return None
    if isinstance(node, Comprehension):
        names = names - {name for one in node.generators for name in bound_names(one.target)}
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names:
        return node.id
    for child in ast.iter_child_nodes(node):
        found = _loads(child, names)
        if found is not None:
            return found
    return None
