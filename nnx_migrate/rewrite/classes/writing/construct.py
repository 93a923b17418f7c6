"""What builds one item in ``__init__``."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace

from nnx_migrate.abstract.values import CallForm
from nnx_migrate.constructs import convert_call, convert_factory, layer_of, name_rule
from nnx_migrate.constructs.common.base import PLACEMENT, Code, LayerCall, Refusal, same_call
from nnx_migrate.edit.calls import Argument, left_out, named, with_comments
from nnx_migrate.edit.calls import call as made_call
from nnx_migrate.edit.expressions import (
    Expression,
    conjunction,
    dotted_node,
    expression,
    is_not_none,
)
from nnx_migrate.edit.rendering import Renderer
from nnx_migrate.edit.syntax import cst
from nnx_migrate.edit.walking import children, comments_in, names_in
from nnx_migrate.model import SizeArgument
from nnx_migrate.rewrite.classes.data import ClassRefused, ConversionContext
from nnx_migrate.rewrite.classes.items import Item, ItemKind
from nnx_migrate.rewrite.classes.uses.references import Remarks
from nnx_migrate.rewrite.classes.writing.in_scope import building_call
from nnx_migrate.rewrite.lazy_form import declarations
from nnx_migrate.sizes.result import ClassSizes, Site, SiteKind
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.dtypes import may_mix_dtypes
from nnx_migrate.source.names import names_in_text
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.walking import each, given_values, is_none_literal, walk

RULE = "submodule"


@dataclass(frozen=True)
class Builder:
    """Builds items of one class.

    Args:
      moved_nodes: ids of keyword values that move from the constructor to the call.
      rngs: text of the random streams in ``__init__``.
      compact: whether items are built in a compact method, where the method's module is the parent
        unless ``parent=None`` leaves them to the module that gets them.
    """

    project: Project
    scope: Scope
    context: ConversionContext
    remarks: Remarks
    moved_nodes: Collection[int] = ()
    rngs: str = "rngs"
    receiver: str = "self"
    optional: frozenset[str] = frozenset()  # size arguments that may be None
    compact: bool = False

    def guard(self, item: Item, node: Expression) -> Expression | None:
        """The condition under which the built ``node`` has all its sizes, if there is one."""
        names = set()
        site = item.site
        if site is not None and site.symbol in self.context.new_arguments:
            child = self.context.new_arguments.get(site.symbol or "", ())
            may_be_none = [one.name for one in child if one.optional]
            texts = [site.sizes[one] for one in may_be_none if one in site.sizes]
            only = {site.sizes[one] for one in site.only_with if one in site.sizes}
            names = {name for text in texts if text not in only for name in _forwarded_names(text)}
        needed = sorted((names_in(node) & self.optional) - names - _presence_tests(node))
        return conjunction([is_not_none(dotted_node(one)) for one in needed]) if needed else None

    def __call__(self, item: Item, renderer: Renderer) -> Expression:
        """The constructor expression of ``item``.

        Comments of what is left out stand above the arguments.
        """
        made = self._replacement(item, renderer)
        left = self._left_out(item.call, made, renderer)
        found: Expression = with_comments(made, left, renderer.unit)
        return found

    def _left_out(self, call: ast.Call, replacement: Expression, renderer: Renderer) -> list[str]:
        """The comments of ``call`` that what is made has not, and the forward pass does not get."""
        found = renderer.sources.pairs.get(id(call))
        if found is None:
            return []
        values = given_values(call)
        used_comments = [
            comment
            for one in values
            if id(one) in self.moved_nodes
            for comment in (*renderer.comments(one).all, *comments_in(renderer.render(one)))
        ]
        return left_out(found, replacement, used_comments=used_comments)

    def _replacement(self, item: Item, renderer: Renderer) -> Expression:
        match item.kind:
            case ItemKind.PARAM:
                self.remarks.imports.add("nnx")
                return made_call("nnx.Param", self._initial(item, renderer, key=True))
            case ItemKind.VARIABLE:
                self.remarks.imports.add("nnm")
                value = (
                    self._initial(item, renderer, key=False) if item.init else dotted_node("None")
                )
                return made_call("nnm.variable", item.collection_node(renderer), value)
            case _:
                assert item.site is not None
                return self.site(item.site, renderer)

    def _initial(self, item: Item, renderer: Renderer, *, key: bool) -> Expression:
        assert item.init is not None
        plain = _plain_value(item)
        if plain is not None:
            found: Expression = renderer.render(plain)
            return found
        function = renderer.render(item.init)
        keys = [made_call(f"{self.rngs}.params")] if key else []
        arguments = map(renderer.argument, item.arguments)
        return made_call(function, *keys, *arguments, *map(renderer.keyword, item.keywords))

    def site(self, site: Site, renderer: Renderer) -> Expression:
        """The constructor expression of a submodule."""
        call = self._plain(site.call)
        if self.context.is_lazy(site):
            return same_call(self._lazily(site, renderer), call, renderer, [])
        if site.kind is SiteKind.LAYER:
            found = convert_call(
                LayerCall(
                    site.symbol,
                    call,
                    renderer,
                    site.sizes,
                    self.rngs,
                    lambda node: self.project.resolve(node, self.scope),
                    calls=self._calls(site),
                    mixes_dtypes=lambda: may_mix_dtypes(self.project),
                )
            )
            return self._accept(found, site)
        if site.kind is SiteKind.FUNCTION:
            return building_call(site, self.context, renderer, self.receiver, self.rngs)
        if site.kind is SiteKind.FACTORY:
            found = convert_factory(
                call, renderer, site.sizes, self.rngs, takes_some=site.takes_some
            )
            return self._accept(found, site)
        return self._project_class(site, call, renderer)

    def _lazily(self, site: Site, renderer: Renderer) -> Expression:
        """What builds a lazy submodule: Linen's name, or the lazy form of what builds explicit ones."""
        if site.kind is SiteKind.LAYER and self.project.is_alias(site.call.func, self.scope):
            self.remarks.imports.add("lazy")  # of a name, which stands for NNX's layer
            return made_call("lazy", self.remarks.take(name_rule(site.symbol or ""), site.call))
        function: Expression = renderer.render(site.call.func)
        if not self.context.is_lazy_form(site):
            return function
        if site.is_open:
            self.remarks.imports.add("as_lazy")
            return made_call("as_lazy", function)
        arguments = self.context.new_arguments.get(site.symbol or "", ())
        cls = self.project.linen.get(site.symbol or "")
        more = declarations(cls, arguments) if cls is not None else {}
        self.remarks.imports |= {"lazy", "Size"} if more else {"lazy"}
        return made_call("lazy", function, *(named(name, size) for name, size in more.items()))

    def _accept(self, conversion: Code | Refusal, site: Site) -> Expression:
        node: Expression = self.remarks.take(conversion, site.call)
        return node

    def _calls(self, site: Site) -> frozenset[CallForm]:
        """The forms of a layer's calls, with the keywords that move there from its constructor."""
        moving = {one.arg for one in site.call.keywords if id(one.value) in self.moved_nodes}
        words = {one for one in moving if one is not None}
        return frozenset(replace(one, keywords=one.keywords | words) for one in site.calls)

    @property
    def _streams(self) -> Argument:
        return named("rngs", self.rngs)

    def _project_class(self, site: Site, call: ast.Call, renderer: Renderer) -> Expression:
        if site.symbol not in self.context.explicit_classes:
            reason = f"it builds {site.symbol}, which stays Linen"
            raise ClassRefused(call, reason, f"convert {site.symbol} first", RULE)
        extra = [named(name, expression(text)) for name, text in site.sizes.items()]
        return same_call(renderer.render(call.func), call, renderer, [*extra, self._streams])

    def _plain(self, call: ast.Call) -> ast.Call:
        """The call without the keywords that move to where the layer is called."""
        for keyword in call.keywords:
            if keyword.arg == "parent" and (self.compact or not is_none_literal(keyword.value)):
                raise ClassRefused(
                    call,
                    "an explicit parent= decides where the submodule hangs",
                    "build it in the class that owns it",
                    RULE,
                )
        keywords = [one for one in call.keywords if id(one.value) not in self.moved_nodes]
        arguments = [one for one in call.args if id(one) not in self.moved_nodes]
        if len(keywords) == len(call.keywords) and len(arguments) == len(call.args):
            return call
        plain = copy.copy(call)
        plain.args, plain.keywords = arguments, keywords
        return plain


def _plain_value(item: Item) -> ast.expr | None:
    """``v`` of an initialiser ``lambda: v`` that gets no argument."""
    match item.init:
        case ast.Lambda(args=ast.arguments(posonlyargs=[], args=[], kwonlyargs=[]), body=body):
            has_value = item.kind is ItemKind.PARAM or item.arguments or item.keywords
            return None if has_value else body
        case _:
            return None


def relax(sizes: ClassSizes) -> ClassSizes:
    """Make size arguments optional that only conditional or unreached submodules need.

    Of the conditional ones only those that stand for a submodule's own input: no argument of the
    call shows them, so callers that never reach the submodule do not know them.
    """
    always: set[str] = set()
    sometimes: set[str] = set()
    never: set[str] = set()
    forwarded_names = _handed_on(sizes)
    for site in sizes.sites.values():
        names = {*site.size_names}
        names |= {one for name in names for one in forwarded_names.get(name, ())}
        group = {None: always, "False": never}.get(site.condition, sometimes)
        group.update(names)
    texts = [*sizes.dims.values(), *([sizes.out_features] if sizes.out_features else [])]
    for loops in sizes.loop_carries.values():
        texts += [text for one in loops for text in (one.before, one.after) if not _is_name(text)]
    for text in texts:
        always |= {
            one for name in names_in_text(text) for one in (name, *forwarded_names.get(name, ()))
        }
    arguments = tuple(
        replace(one, optional=_is_optional(one, always, sometimes, never))
        for one in sizes.new_arguments
    )
    return replace(sizes, new_arguments=arguments)


def _handed_on(sizes: ClassSizes) -> dict[str, set[str]]:
    """Names that a size which a loop carries stands for, as they are, by its own name."""
    found: dict[str, set[str]] = {}
    for loops in sizes.loop_carries.values():
        for one in loops:
            found.setdefault(one.name, set()).update(filter(_is_name, (one.before, one.after)))
    while True:
        wider = {k: v | {n for one in v for n in found.get(one, ())} for k, v in found.items()}
        if wider == found:
            return found
        found = wider


def _is_name(text: str) -> bool:
    return text.isidentifier()


def without_applied_only(cls: ClassInfo, sizes: ClassSizes) -> ClassSizes:
    """Layers of ``setup`` that are only ever given parameters have none of their own.

    One whose fields are read, too, would have to be built for that, and would have some.
    """
    setup = cls.methods.get("setup")
    if setup is None:
        return sizes
    uses: dict[str, set[str]] = {}
    for method in cls.methods.values():
        for name, use in _uses_of_attributes(method):
            uses.setdefault(name, set()).add(use)
    sites = dict(sizes.sites)
    for statement in setup.body:
        match statement:
            case ast.Assign(
                targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)], value=value
            ) if id(value) in sites:
                if uses.get(name) == {"applied"}:
                    sites[id(value)] = replace(sites[id(value)], condition="False")
                elif uses.get(name) == {"applied", "field"}:
                    raise ClassRefused(
                        statement,
                        f"self.{name} is only applied to given parameters, and its fields are read",
                        f"read the fields from where self.{name} gets them",
                        "tied",
                    )
    return replace(sizes, sites=sites)


def _uses_of_attributes(method: ast.FunctionDef) -> Iterator[tuple[str, str]]:
    """Attributes of ``self`` and what is done with each: applied, a field of it read, or other."""
    called = {id(node.func) for node in each(method, ast.Call)}
    inner: dict[int, str] = {}
    for node in walk(method):
        if isinstance(node, ast.Attribute):
            is_method = id(node) in called
            use = "applied" if node.attr == "apply" else "other" if is_method else "field"
            inner[id(node.value)] = use
    for node in walk(method):
        match node:
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Load()):
                yield name, inner.get(id(node), "other")


def _is_optional(one: SizeArgument, always: set[str], sometimes: set[str], never: set[str]) -> bool:
    opaque = one.submodule is not None
    unneeded = one.name in never - always - sometimes
    return one.optional or unneeded or (opaque and one.name in sometimes - always)


def _forwarded_names(text: str) -> set[str]:
    """Names whose values a text hands on as they are: ``size`` and ``size if self.cross else None``."""
    arms, found = [ast.parse(text, mode="eval").body], set()
    while arms:
        match arms.pop():
            case ast.Name(id=name):
                found.add(name)
            case ast.IfExp(body=body, orelse=orelse):
                arms += [body, orelse]
    return found


def _presence_tests(node: cst.CSTNode) -> set[str]:
    """Names that an expression itself asks whether they are None, or chooses by a fact.

    ``c_features if with_c else in_features`` needs only the one that the initial call has.
    """
    match node:
        case cst.Comparison(left=cst.Name(value=name), comparisons=[first]) if isinstance(
            first.operator, cst.Is | cst.IsNot
        ):
            return {name}
        case cst.IfExp(test=cst.Name() | cst.UnaryOperation(expression=cst.Name())):
            return {*names_in(node.body), *names_in(node.orelse)}
    return {name for child in children(node, code=True) for name in _presence_tests(child)}


def optional_sizes(sizes: ClassSizes) -> frozenset[str]:
    """Size arguments that callers may leave out."""
    return frozenset(one.name for one in sizes.new_arguments if one.optional)


def operands_of(item: Item, moved_nodes: Collection[int]) -> list[ast.AST]:
    """The expressions that building ``item`` reads."""
    read: list[ast.AST] = [] if item.name is None else [item.name]
    if item.site is None:
        read += [] if item.init is None else [item.init]
        return [*read, *item.arguments, *item.keywords]
    if item.is_in_scope:
        return [*item.site.scope_arguments.values()]
    if _names_what_it_builds(item.site):
        read.append(item.call.func)
    read += [one for one in item.call.args if id(one) not in moved_nodes]
    for keyword in item.call.keywords:
        if keyword.arg not in PLACEMENT and id(keyword.value) not in moved_nodes:
            read.append(keyword.value)
    return read


def _names_what_it_builds(site: Site) -> bool:
    """Whether the constructor has what the call names, by that name: no layer has Linen's."""
    return site.kind is not SiteKind.LAYER or isinstance(site.call.func, ast.Call)


def is_inline(item: Item) -> bool:
    """Whether it is a wrapper without variables of its own: built in the call, around attributes."""
    layer = layer_of(item.site.symbol) if item.site is not None else None
    return layer is not None and layer.holds_modules


Constructor = Callable[[Item, Renderer], Expression]
__all__ = ["Builder", "Constructor", "is_inline", "operands_of"]
