"""The things a class builds: submodules, parameters, variables, random streams."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from keyword import iskeyword

from nnx_migrate.constructs import layer_of
from nnx_migrate.edit.expressions import Expression
from nnx_migrate.edit.rendering import Renderer
from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.sizes.result import ClassSizes, Site, SiteKind
from nnx_migrate.source.bindings import names_bound_below
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.names import Assignment, Import, defaults_of, named_parameters
from nnx_migrate.source.walking import has_starred, is_none_literal

RULE = "class"


class ItemKind(StrEnum):
    """What a call in a method builds."""

    SITE = "site"  # a submodule
    PARAM = "param"  # self.param(...)
    VARIABLE = "variable"  # self.variable(...)
    STREAM = "stream"  # self.make_rng(...)


@dataclass(frozen=True)
class Item:
    """One call that builds something ``__init__`` must own."""

    kind: ItemKind
    call: ast.Call
    site: Site | None = None
    name: ast.expr | None = None  # explicit name, as an expression
    collection: ast.expr | None = None  # of a variable: a string, a field, or a global
    init: ast.expr | None = None  # initialiser of a parameter or variable
    arguments: tuple[ast.expr, ...] = ()
    keywords: tuple[ast.keyword, ...] = ()

    @property
    def is_own_variable(self) -> bool:
        """Whether it is a parameter or variable of the class itself."""
        return self.kind in (ItemKind.PARAM, ItemKind.VARIABLE)

    @property
    def free_of_variables(self) -> bool:
        """Whether Linen creates no variable for it, so that building it early changes nothing."""
        if self.kind is ItemKind.STREAM:
            return True
        layer = layer_of(self.site.symbol) if self.site is not None else None
        return layer is not None and layer.is_stateless

    @property
    def may_stay_uncalled(self) -> bool:
        """Whether it may be built where no call of it follows: that makes no variables, as in Linen."""
        return self.free_of_variables or (self.site is not None and self.site.is_lazy)

    @property
    def is_in_scope(self) -> bool:
        """Whether it is the call of a function that builds submodules for its caller."""
        return self.site is not None and self.site.kind is SiteKind.FUNCTION

    def collection_node(self, renderer: Renderer) -> Expression:
        """The collection as an expression."""
        found: Expression = renderer.render(self.collection or ast.Constant(None))
        return found

    @property
    def collection_text(self) -> str:
        """The collection as it is written."""
        return "None" if self.collection is None else ast.unparse(self.collection)


_BUILDERS = {
    "param": ItemKind.PARAM,
    "variable": ItemKind.VARIABLE,
    "make_rng": ItemKind.STREAM,
}


def is_variable(value: ast.AST, items: Mapping[int, Item]) -> bool:
    """Whether an expression is ``self.variable(...)``."""
    item = items.get(id(value))
    return item is not None and item.kind is ItemKind.VARIABLE


def self_call(node: ast.AST, receiver: str) -> str | None:
    """Name of the method when ``node`` is ``self.<method>(...)``."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr)) if name == receiver:
            return attr
        case _:
            return None


def receiver_of(method: ast.FunctionDef) -> str:
    """The name that ``method`` gives to the module (``self``); empty for a static method."""
    arguments = (*method.args.posonlyargs, *method.args.args)
    return arguments[0].arg if arguments else ""


def initializers_in(items: Iterable[Item]) -> frozenset[int]:
    """Ids of the expressions that built-in layers and parameters call as initialiser, by position."""
    found: list[ast.expr] = []
    for item in items:
        if item.site is not None and item.site.kind is SiteKind.LAYER:
            found += [one.value for one in item.call.keywords]
        elif item.kind is ItemKind.PARAM and item.init is not None and not item.keywords:
            found.append(item.init)
    return frozenset(map(id, found))


def find_items(
    cls: ClassInfo, sizes: ClassSizes, elsewhere: Collection[int] = ()
) -> dict[int, Item]:
    """Every item of the class' own methods by ``id`` of its call.

    Methods whose ``id`` is in ``elsewhere`` are converted on their own.
    """
    found: dict[int, Item] = {}
    for method in cls.methods.values():
        if id(method) in elsewhere:
            continue
        receiver = receiver_of(method)
        for node in own_nodes(method):
            if not isinstance(node, ast.Call):
                continue
            site = sizes.sites.get(id(node))
            name = self_call(node, receiver)
            if site is not None:
                named = None if site.kind is SiteKind.FUNCTION else explicit_name(node)
                if named is not None and _may_be_none(named, cls, method):
                    raise ClassRefused(node, _UNNAMED, "give a name in both cases", RULE)
                found[id(node)] = Item(ItemKind.SITE, node, site, named)
            elif name in _BUILDERS and name not in cls.method_names:
                found[id(node)] = _built_here(_BUILDERS[name], node, cls, method)
    return found


@lru_cache(maxsize=4096)  # a conversion asks for those of its methods again and again
def own_nodes(node: ast.AST) -> tuple[ast.AST, ...]:
    """Nodes below ``node`` that do not belong to a class nested in it, as the text has them."""
    found: list[ast.AST] = []
    todo = [node]
    while todo:
        one = todo.pop()
        found.append(one)
        children = [*ast.iter_child_nodes(one)]
        todo += [child for child in reversed(children) if not isinstance(child, ast.ClassDef)]
    return tuple(found[1:])


def explicit_name(call: ast.Call) -> ast.expr | None:
    """The value of ``name=``; None when absent or ``None``.

    Raises:
      Refused: ``name="head" if self.tied else None``.
    """
    for keyword in call.keywords:
        if keyword.arg == "name":
            options = [is_none_literal(one) for one in _options(keyword.value)]
            if any(options) and not all(options):
                raise ClassRefused(call, _UNNAMED, "give a name in both cases", RULE)
            return None if all(options) else _plain(keyword.value)
    return None


_UNNAMED = "the name is None under a condition, and then Linen counts one"


def names_in_dict(arguments: ast.expr) -> list[ast.expr]:
    """What ``{"features": 3, "name": "head"}``, written out, gives as the name of a submodule."""
    if not isinstance(arguments, ast.Dict):
        return []
    pairs = zip(arguments.keys, arguments.values, strict=True)
    return [one for key, one in pairs if isinstance(key, ast.Constant) and key.value == "name"]


def _may_be_none(name: ast.expr, cls: ClassInfo, method: ast.FunctionDef) -> bool:
    """Whether a name is a field, a parameter or a local name that is None somewhere."""
    for one in _options(name):
        match one:
            case ast.Attribute(value=ast.Name(id="self"), attr=attr):
                fields = (field for field in cls.fields if field.name == attr)
                if any(_is_optional(field.annotation, field.default) for field in fields):
                    return True
            case ast.Name(id=local):
                if _is_none_in(method, local):
                    return True
    return False


def _is_none_in(method: ast.FunctionDef, name: str) -> bool:
    """Whether a name is None; a parameter that is bound anew is what it is bound to."""
    bound = [
        node.value
        for node in own_nodes(method)
        if isinstance(node, ast.Assign | ast.AnnAssign) and name in names_bound_below(node)
    ]
    if bound:
        return any(
            any(map(is_none_literal, _options(value))) for value in bound if value is not None
        )
    default = defaults_of(method.args).get(name)
    every = named_parameters(method.args)
    return any(one.arg == name and _is_optional(one.annotation, default) for one in every)


def _is_optional(annotation: ast.expr | None, default: ast.expr | None) -> bool:
    text = "" if annotation is None else ast.unparse(annotation)
    is_declared = "Optional[" in text or "None" in re.findall(r"\w+", text)
    return is_declared or (default is not None and is_none_literal(default))


def _options(name: ast.expr) -> list[ast.expr]:
    """The expressions one of which is the value."""
    match name:
        case ast.IfExp(body=body, orelse=orelse):
            return [*_options(body), *_options(orelse)]
        case ast.BoolOp(op=ast.Or(), values=[*first, last]):  # of the first what is None goes on
            known = (
                option for one in first for option in _options(one) if not is_none_literal(option)
            )
            texts = ast.Constant | ast.JoinedStr
            return [*(one for one in known if isinstance(one, texts)), *_options(last)]
        case ast.BoolOp(values=values):
            return [option for one in values for option in _options(one)]
    return [name]


def _plain(name: ast.expr) -> ast.expr:
    """``f"head"`` as ``"head"``."""
    parts = name.values if isinstance(name, ast.JoinedStr) else []
    texts = [one.value for one in parts if isinstance(one, ast.Constant)]
    if not parts or len(texts) != len(parts):
        return name
    return ast.copy_location(ast.Constant("".join(map(str, texts))), name)


def _built_here(kind: ItemKind, call: ast.Call, cls: ClassInfo, method: ast.FunctionDef) -> Item:
    parameters = {
        ItemKind.PARAM: ("name", "init_fn"),
        ItemKind.VARIABLE: ("col", "name", "init_fn"),
        ItemKind.STREAM: ("name",),
    }[kind]
    if has_starred(call.args[: len(parameters)]):
        raise ClassRefused(
            call, "arguments are unpacked, so their names are not known", _PLAIN, RULE
        )
    arguments: dict[str, ast.expr] = dict(zip(parameters, call.args, strict=False))
    keywords = []
    for keyword in call.keywords:
        if keyword.arg in parameters:
            arguments[keyword.arg] = keyword.value
        elif keyword.arg == "unbox":
            raise ClassRefused(call, "'unbox' has no NNX counterpart", _PLAIN, RULE)
        else:
            keywords.append(keyword)
    collection = None
    if kind is ItemKind.VARIABLE:
        collection = _collection(arguments.get("col"), call, cls, method)
    if kind is ItemKind.STREAM:
        return Item(kind, call, name=arguments.get("name") or ast.Constant("params"))
    if "name" not in arguments or (kind is ItemKind.PARAM and "init_fn" not in arguments):
        raise ClassRefused(call, "the name or the initialiser is not given", _PLAIN, RULE)
    return Item(
        kind,
        call,
        name=arguments["name"],
        collection=collection,
        init=arguments.get("init_fn"),
        arguments=tuple(call.args[len(parameters) :]),
        keywords=tuple(keywords),
    )


_PLAIN = "write the name and the initialiser as plain arguments"


def _collection(
    node: ast.expr | None, call: ast.Call, cls: ClassInfo, method: ast.FunctionDef
) -> ast.expr:
    """The collection, when it means the same in ``__init__`` and in every method."""
    match node:
        case ast.Constant(value=str()):
            return node
        case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == receiver_of(method):
            if any(one.name == attr for one in cls.fields):
                return node
        case ast.Name(id=name):
            local = name in names_bound_below(method)
            if not local and isinstance(cls.scope.lookup(name), Assignment | Import):
                return node
    raise ClassRefused(
        call,
        "the collection is neither a string nor a field nor a global",
        "write it as a string",
        RULE,
    )


def ids(items: Mapping[int, Item]) -> Mapping[int, object]:
    """The items as a plain id mapping."""
    return items


def submodule_keys(items: Mapping[int, Item]) -> frozenset[int]:
    """The keys of those calls that build submodules."""
    return frozenset(key for key, one in items.items() if one.kind is ItemKind.SITE)


def is_attribute_name(name: str) -> bool:
    """Whether ``self.<name>`` can be written."""
    return name.isidentifier() and not iskeyword(name)


def stored_name(item: Item) -> str:
    """The attribute that holds a variable made inside an expression.

    Raises:
      Refused: its name is computed, or no identifier.
    """
    name = item.name.value if isinstance(item.name, ast.Constant) else None
    if not isinstance(name, str) or not is_attribute_name(name):
        raise ClassRefused(item.call, "its name is computed", "write it as a string", "setup")
    return name
