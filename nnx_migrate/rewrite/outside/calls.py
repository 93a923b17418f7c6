"""Call sites and constructor calls of converted classes."""

from __future__ import annotations

import ast

from nnx_migrate.edit.calls import Argument
from nnx_migrate.edit.calls import call as made_call
from nnx_migrate.edit.expressions import Expression, dotted
from nnx_migrate.edit.rendering import Renderer
from nnx_migrate.rewrite.outside.built import bad_argument, class_of, linen_part
from nnx_migrate.rewrite.outside.data import Draft, OutsideContext
from nnx_migrate.rewrite.outside.messages import (
    NEW_VALUES,
    RULE,
    constructor_message,
    lacking,
    note_init,
)
from nnx_migrate.rewrite.outside.models import named_models
from nnx_migrate.rewrite.outside.places import Place, Places
from nnx_migrate.rewrite.outside.sites import METHODS, RECIPES, Site, arguments_of, traced_init
from nnx_migrate.rewrite.outside.sizes import Unknown
from nnx_migrate.rewrite.outside.text import with_first, with_last, without_key
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Module, Project
from nnx_migrate.source.walking import walk


def convert_calls(project: Project, places: Places, context: OutsideContext, draft: Draft) -> None:
    """Rewrite or refuse every constructor call and call site of a converted class."""
    done = set(draft.edits)  # factory functions build what they are told to
    for model in named_models(project, places, context, draft):
        model.convert()
        done.add(id(model.call))
    for place in places:
        node = place.node
        if isinstance(node, ast.Call) and id(node) not in done:
            cls = class_of(project, node.func, place.scope, context)
            if cls is not None:
                _Inline(project, places, context, draft, place, node, cls).convert()
    _refuse_unknown(project, places, draft)


class _Inline:
    """A constructor call that is not given a name: ``Net(...).init(key, x)``."""

    def __init__(
        self,
        project: Project,
        places: Places,
        context: OutsideContext,
        draft: Draft,
        place: Place,
        call: ast.Call,
        cls: ClassInfo,
    ) -> None:
        self.project, self.places, self.context, self.draft = project, places, context, draft
        self.place, self.call, self.cls = place, call, cls
        self.wanted = lacking(call, cls, context)

    def convert(self) -> None:
        attribute = self.place.parent
        if (
            not isinstance(attribute, ast.Attribute)
            or attribute.attr not in METHODS
            or self.cls.find(attribute.attr) is not None
        ):
            self._refuse_constructor("pass them on from here")
            return
        above = self.places.parent(attribute)
        called = isinstance(above, ast.Call) and above.func is attribute
        place = above if called else attribute
        assert isinstance(place, ast.expr)
        try:
            self._check()
            if called:
                assert isinstance(above, ast.Call)
                self._site(above)
            else:
                self._handle(attribute)
            self.draft.imports.add("nnm")
        except Unknown as problem:
            self._refuse_constructor(str(problem))
            message = f"{problem}; {RECIPES[attribute.attr]}"
            self.draft.refuse(place, RULE, message, "call_site")

    def _check(self) -> None:
        staying = linen_part(self.project, self.cls, self.context)
        if staying is not None:
            raise Unknown(f"{self.cls.name} holds {staying}, which stays Linen")
        scope = self.place.scope
        bad = bad_argument(self.project, self.call, scope, self.context, self.draft)
        if bad is not None:
            raise Unknown(bad)

    def _site(self, call: ast.Call) -> None:
        scope = self.place.scope
        site = Site(call, self.cls, lambda node: self.project.resolve(node, scope), self.wanted)
        site.check()
        sizes = site.sizes()
        extra = arguments_of(sizes)
        if site.kind == "init":
            build = with_last("nnm.build", self.call, lambda r: site.keywords_of_build(r, sizes))
            self.draft.edits[id(call)] = without_key("nnm.variables_of", build, call)
            note_init(self.draft, site)
            return
        self.draft.edits[id(call)] = with_first(
            "nnm.apply", lambda r: self._abstract(r, extra), call
        )

    def _handle(self, attribute: ast.Attribute) -> None:
        if attribute.attr != "apply":
            self._traced_init(attribute)
            return
        if any(not one.optional for one in self.wanted):
            raise Unknown("apply is used without a call, which shows no sizes")
        self.draft.edits[id(attribute)] = lambda r: made_call("nnm.apply_fn", self._abstract(r, []))

    def _traced_init(self, attribute: ast.Attribute) -> None:
        scope = self.place.scope
        found = traced_init(
            attribute,
            self.places.parent,
            self.cls,
            self.wanted,
            lambda node: self.project.resolve(node, scope),
        )
        if found is None:
            raise Unknown(f"{attribute.attr} is used without a call")
        names = {one.id for one in walk(self.call) if isinstance(one, ast.Name)}
        taken = frozenset(names)
        found.function(lambda _: dotted("None"), taken)  # raises here, not while rendering

        def make(renderer: Renderer) -> Expression:
            def build(extra: list[Argument]) -> Expression:
                return with_last("nnm.build", self.call, lambda _: extra)(renderer)

            return found.function(build, taken)

        self.draft.edits[id(attribute)] = make
        self.draft.note(attribute, RULE, NEW_VALUES, "call_site")

    def _abstract(self, renderer: Renderer, extra: list[Argument]) -> Expression:
        """``nnm.abstract(Class, <its arguments>, <sizes>)``."""
        return with_last("nnm.abstract", self.call, lambda _: extra)(renderer)

    def _refuse_constructor(self, reason: str) -> None:
        message = constructor_message(self.cls, self.wanted)
        self.draft.refuse(self.call, RULE, f"{message}; {reason}", "constructor")


_APPLY_KEYWORDS = frozenset({"rngs", "mutable", "method", "capture_intermediates"})


def _refuse_unknown(project: Project, places: Places, draft: Draft) -> None:
    """Refuse calls that look like Linen's on a receiver nobody knows (``self.module.init(...)``)."""
    known = {id(one.node) for one in draft.findings} | set(draft.edits)
    for place in places:
        match place.node:
            case ast.Call(func=ast.Attribute(attr=name, value=receiver)) as call:
                if name not in METHODS or id(call) in known:
                    continue
                if project.resolve(call.func, place.scope) is not None and not _is_module(receiver):
                    continue
                if _is_module(receiver) or _looks_like_linen(call, name):
                    message = (
                        f"a Linen module's {name} on a value of unknown class; {RECIPES[name]}"
                    )
                    draft.refuse(call, RULE, message, "call_site")


def calls_unknown(module: Module) -> bool:
    """Whether a file has a call that looks like one of a Linen module, whoever's it is."""
    return any(
        isinstance(one, ast.Call)
        and isinstance(one.func, ast.Attribute)
        and one.func.attr in METHODS
        and (_is_module(one.func.value) or _looks_like_linen(one, one.func.attr))
        for one in module.nodes
    )


def _is_module(receiver: ast.expr) -> bool:
    """``module`` or ``something.module``: what wrappers of Linen modules call them."""
    name = receiver.attr if isinstance(receiver, ast.Attribute) else None
    name = receiver.id if isinstance(receiver, ast.Name) else name
    return name in ("module", "model")


def _looks_like_linen(call: ast.Call, name: str) -> bool:
    if name in ("init_with_output", "tabulate", "lazy_init", "unbind"):
        return True
    if any(one.arg in _APPLY_KEYWORDS for one in call.keywords):
        return True
    first = call.args[0] if call.args else None
    if isinstance(first, ast.Dict):
        keys = {one.value for one in first.keys if isinstance(one, ast.Constant)}
        return "params" in keys
    return False
