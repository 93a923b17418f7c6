"""What a class must not have, whatever it builds."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from nnx_migrate.rewrite.class_values import CLASS_LIFTS
from nnx_migrate.rewrite.classes.checks.conflicts import (
    check_collections,
    check_named_arguments,
    check_private_names,
    check_put,
    check_sown,
)
from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.items import Item, ItemKind, receiver_of
from nnx_migrate.rewrite.classes.setup.dependence import dependence_in
from nnx_migrate.rewrite.classes.variables.submodule_names import check_questions
from nnx_migrate.sizes.result import SiteKind
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import each, given_values, is_self, walk

RULE = "class"
_FUNCTIONAL = ("init", "init_with_output", "lazy_init", "apply", "bind", "unbind")
_SPECIAL = ("__init__", "__getattr__", "__setattr__")
_TAKEN = ("rngs", "cls")  # by the constructor, by the metaclass of NNX modules


def constructs_nothing(cls: ClassInfo, items: Mapping[int, Item]) -> bool:
    """Whether the class' own ``__init__`` takes any keyword and does nothing, in Linen as in NNX.

    It may stay then: there is no field that it could set, and nothing that it could build.
    """
    init = cls.methods.get("__init__")
    if init is None or init.args.kwarg is None or init.decorator_list or cls.fields or items:
        return False
    linen_parents = [one for one in cls.parents if one.linen]
    is_empty = all(
        isinstance(one, ast.Pass)
        or (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
        for one in init.body
    )
    return is_empty and not linen_parents and "setup" not in cls.methods


def check_methods(project: Project, cls: ClassInfo, items: Mapping[int, Item]) -> None:
    """Refuse methods and fields that take part in construction.

    Raises:
      Refused: the class defines one.
    """
    for name in _SPECIAL:
        if name == "__init__" and constructs_nothing(cls, items):
            continue
        if name in cls.methods:
            raise ClassRefused(
                cls.methods[name],
                f"the class defines {name}",
                "move what it does to setup",
                RULE,
            )
    for one in cls.fields:
        if one.name in _TAKEN:
            raise ClassRefused(
                cls.node, f"a field is named '{one.name}'", "rename the field", "fields"
            )
    for item in items.values():
        if any(one.id == "rngs" for one in each(item.call, ast.Name)):
            raise ClassRefused(item.call, "its code uses the name 'rngs'", "rename it", "names")
    for method in cls.methods.values():
        if _builds_itself(project, cls, method):
            reason = f"its class method {method.name} builds it"
            raise ClassRefused(method, reason, "write a function that builds it", RULE)
    for node in walk(cls.node):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Call(func=ast.Name("super")), attr=name)
            ) if name in _FUNCTIONAL:
                raise ClassRefused(
                    node,
                    f"it calls {name} of linen.Module, which NNX modules do not have",
                    "write a function that builds the module and calls it",
                    RULE,
                )
            case ast.Call(func=ast.Attribute(attr="unbind", value=owner)) if any(
                is_self(one) for one in walk(owner)
            ):
                reason = "it calls unbind, for pure functions of a submodule's variables"
                raise ClassRefused(node, reason, "lift the loop", RULE)
            case ast.Call(func=ast.Attribute(value=other, attr="setup"), args=[ast.Name("self")]):
                raise ClassRefused(
                    node,
                    f"it runs the setup of {ast.unparse(other)}, which NNX has in __init__",
                    f"inherit from {ast.unparse(other)}, or write out what it sets",
                    RULE,
                )


def _builds_itself(project: Project, cls: ClassInfo, method: ast.FunctionDef) -> bool:
    """Whether a class method calls the class: ``return cls(width)``, without sizes and streams."""
    arguments = (*method.args.posonlyargs, *method.args.args)
    if not arguments or "classmethod" not in project.decorators(cls, method):
        return False
    calls = (node.func for node in each(method, ast.Call))
    return any(isinstance(one, ast.Name) and one.id == arguments[0].arg for one in calls)


def check_generic(project: Project, cls: ClassInfo) -> None:
    """Refuse module classes that are written with their types, ``Block[int](3)``.

    Raises:
      Refused: a method has one as a value; as an annotation or a base it only names the class.
    """
    for method in cls.methods.values():
        annotations = {
            id(one)
            for node in walk(method)
            for field in ("annotation", "returns")
            for part in (getattr(node, field, None),)
            for one in (walk(part) if part is not None else ())
        }
        for node in walk(method):
            if not isinstance(node, ast.Subscript) or id(node) in annotations:
                continue
            symbol = project.resolve(node.value, cls.scope)
            if project.linen.get(symbol or "") is not None:
                raise ClassRefused(
                    node,
                    f"{ast.unparse(node.value)} is written with its types, as a generic class is",
                    f"write {ast.unparse(node.value)} alone: types say nothing when the code runs",
                    RULE,
                )


_TEXT = {
    "repr": "__repr__",
    "ascii": "__repr__",
    "str": "__str__",
    "format": "__str__",
    "hash": "__hash__",
}
_LOGS = frozenset({"debug", "info", "warning", "warn", "error", "exception", "log"})


def check_text(cls: ClassInfo) -> None:
    """Refuse the text or hash of the module itself: Linen makes them of the fields, NNX does not.

    What only a person reads may differ: messages of errors, and what is printed.

    Raises:
      Refused: a method computes one for anything else.
    """
    for method in cls.methods.values():
        read = {id(one) for node in walk(method) if _is_told(node) for one in walk(node)}
        for node in walk(method):
            function = _text_of(node, receiver_of(method))
            if function is None or id(node) in read or _TEXT[function] in cls.method_names:
                continue
            raise ClassRefused(
                node,
                f"{function} of the module itself, which NNX writes otherwise",
                "write it from the fields",
                "module-api",
            )


def _text_of(node: ast.AST, receiver: str) -> str | None:
    """The built-in function of the module that an expression computes."""
    match node:
        case ast.Call(func=ast.Name(id=function), args=[ast.Name(id=name), *_]) if (
            name == receiver and function in _TEXT
        ):
            return function
        case ast.FormattedValue(value=ast.Name(id=name), conversion=conversion) if name == receiver:
            return "format" if conversion == -1 else "repr" if conversion == ord("r") else "str"
    return None


def _is_told(node: ast.AST) -> bool:
    """Whether a person reads what a statement computes, and no program."""
    match node:
        case ast.Raise() | ast.Expr(value=ast.Call(func=ast.Name(id="print"))):
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr))):
            return name in ("logging", "logger", "log", "warnings") and attr in _LOGS
    return False


def check_lazy(
    project: Project, cls: ClassInfo, method: ast.FunctionDef, lazy: Mapping[int, Item]
) -> None:
    """Refuse variables that only the call can make where a transformation runs it.

    Raises:
      Refused: the method is decorated with one, and makes such a variable.
    """
    lifted = [one for one in project.decorators(cls, method) if one in CLASS_LIFTS]
    for item in lazy.values() if lifted else ():
        raise ClassRefused(
            item.call,
            f"the shape of this variable is only known in the call, which {lifted[0]} transforms",
            "read its shape from fields, or make it in a method that is not transformed",
            RULE,
        )


def check_items(
    cls: ClassInfo,
    items: Mapping[int, Item],
    in_helpers: Mapping[int, Item],
    compact: ast.FunctionDef | None,
) -> None:
    """Refuse names that meet, and what is built in helper methods that are not converted.

    Args:
      in_helpers: the parameters of those that are.

    Raises:
      Refused: an item has such a name or place.
    """
    every = {**items, **in_helpers}
    check_collections(every)
    check_private_names(every.values())
    check_sown(cls, every)
    check_put(cls, every)
    check_questions(cls, every)
    check_named_arguments(cls, items)
    homes = {id(one) for one in (cls.methods.get("setup"), compact)}
    for name, method in cls.methods.items():
        if id(method) in homes:
            continue
        for node in walk(method):
            item = items.get(id(node))
            if item is None or item.kind in (ItemKind.STREAM, ItemKind.VARIABLE):
                continue
            raise ClassRefused(
                node,
                f"it is built in the helper method {name!r}",
                "build it in setup or in the compact method",
                "helper",
            )


def check_field_parameters(cls: ClassInfo, items: Mapping[int, Item]) -> None:
    """Refuse a parameter that a submodule of a class of the project gets as a field.

    Linen builds the submodule at every call; ``__init__`` would hand it the first value for good.

    Raises:
      Refused: a field follows a variable.
    """
    for method in cls.methods.values():
        sites = [items[id(node)] for node in walk(method) if id(node) in items]
        calls = [one.call for one in sites if one.site and one.site.kind is not SiteKind.LAYER]
        dependence = dependence_in(cls, method) if calls else None
        for call in calls:
            site = items[id(call)].site
            arguments = given_values(call)
            if site is not None and site.kind is SiteKind.FUNCTION:
                arguments = [*site.scope_arguments.values()]
            if dependence is not None and any(map(dependence.of, arguments)):
                raise ClassRefused(
                    call,
                    "a submodule gets a parameter or variable as a field, and would keep its value",
                    "pass it in the call",
                    RULE,
                )
