"""Places that keep Linen's style: ``Net(...)`` becomes ``lazy(Net)(...)``, and nothing around it changes.

A class is explicit, but code outside of explicit classes goes on to build, call and hand it on as Linen
does. There every mention of the class takes its lazy form, also as a value
(registries, partials, factories) and in what stays lazy. What that cannot carry is doubted.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from nnx_migrate.constructs.common.base import Context
from nnx_migrate.edit.calls import Argument, named
from nnx_migrate.edit.calls import call as made_call
from nnx_migrate.edit.statements import with_base
from nnx_migrate.rewrite.classes.fields.keeping_decorators import keeping_decorators
from nnx_migrate.rewrite.lazy_form import NoLazyForm, declarations
from nnx_migrate.rewrite.outside.annotations.at_place import reader_of
from nnx_migrate.rewrite.outside.annotations.reader import named_in_strings
from nnx_migrate.rewrite.outside.arguments import Arguments
from nnx_migrate.rewrite.outside.class_members import class_named, is_free
from nnx_migrate.rewrite.outside.data import DoubtfulPlace, Draft, OutsideContext, Unknown
from nnx_migrate.rewrite.outside.places import Place, Places
from nnx_migrate.source.attribute_uses import SETTERS, attribute_uses
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.linen_modules import class_homes
from nnx_migrate.source.names import last_name
from nnx_migrate.source.project import Module, Project, Scope
from nnx_migrate.source.takers import asking_calls, takers


def convert_lazily(project: Project, places: Places, context: OutsideContext, draft: Draft) -> None:
    """Give every mention of a converted class its lazy form, or doubt the class."""
    walker = _Walk(project, places, context, draft)
    for place in places:
        if id(place.node) not in walker.arguments.plain:
            walker.at(place)


@dataclass
class _Walk:
    project: Project
    places: Places
    context: OutsideContext
    draft: Draft
    arguments: Arguments = field(init=False)
    size_arguments: dict[str, list[Argument]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.arguments = Arguments(self.project, self.places, self.context, self.draft)

    def at(self, place: Place) -> None:
        """Edit one place, or doubt the class it names."""
        match place.node:
            case ast.Call() as call:
                self._wrap_computed_name(call, place.scope)
            case ast.ClassDef() as statement:
                self._inherits(statement)
                self._check_decorators(statement)
        if place.context is Context.ANNOTATION:
            self._annotates(place)
            return
        cls = class_named(self.project, place.node, place.scope)
        if (
            cls is None
            or cls.name not in self.context.explicit_classes
            or place.context is Context.BASE
        ):
            return
        node = place.node
        assert isinstance(node, ast.Name | ast.Attribute)
        if id(place.top) in self.context.explicit_statements and self._is_lifted(node):
            self.draft.edits[id(node)] = lambda renderer: renderer.inner(node)
            self.draft.explicit.add(id(node))
            return
        if isinstance(place.parent, ast.Attribute) and is_free(
            self.project, cls, place.parent.attr
        ):
            self.draft.edits[id(node)] = lambda renderer: renderer.inner(node)
            self.draft.lazy.add(id(node))
            return
        try:
            self._check_attributes(place, node)
            self.arguments.check(cls, place)
            more = self._more(cls)
        except (Unknown, NoLazyForm) as problem:
            field = problem.field if isinstance(problem, Unknown) else None
            self.draft.doubts.append(DoubtfulPlace(cls.name, node, str(problem), field))
            return
        self._wrap("lazy", node, cls, more)

    def _annotates(self, place: Place) -> None:
        """Doubt the classes of an annotation that the running program reads."""
        for node in (place.node, *named_in_strings(place.node)):
            cls = class_named(self.project, node, place.scope)
            if cls is None or cls.name not in self.context.explicit_classes:
                continue
            reader = reader_of(self.project, self.places, place)
            if reader is not None:
                self.draft.doubts.append(DoubtfulPlace(cls.name, place.node, reader))

    def _is_lifted(self, node: ast.expr) -> bool:
        """Whether a call that becomes NNX's is given the class: ``nn.remat(Block)``."""
        above = self.places.parent(node)
        return isinstance(above, ast.Call) and node in above.args and id(above) in self.draft.edits

    def _inherits(self, node: ast.ClassDef) -> None:
        """A lazy class whose Linen bases are all explicit: it is a lazy module by a base of its own."""
        cls = self.project.by_node.get(id(node))
        if cls is None or not cls.linen or "flax.linen.Module" in cls.bases:
            return
        if cls.name in self.context.explicit_classes:
            return
        parents = [one for one in cls.parents if one.linen]
        if parents and all(one.name in self.context.explicit_classes for one in parents):
            self.draft.edits[id(node)] = lambda renderer: [
                with_base(renderer.inner(node), "Module")
            ]
            self.draft.lazy.add(id(node))
            self.draft.imports.add("Module")
            self.draft.inherits = True

    def _check_decorators(self, node: ast.ClassDef) -> None:
        """Decorators that keep an explicit class for others to build: they keep its lazy form."""
        cls = self.project.by_node.get(id(node))
        if cls is None or cls.name not in self.context.explicit_classes:
            return
        for decorator in keeping_decorators(self.project, cls):
            try:
                more = self._more(cls)
            except (Unknown, NoLazyForm) as problem:
                self.draft.doubts.append(DoubtfulPlace(cls.name, decorator, str(problem)))
                return
            self.draft.values.add(cls.name)
            self._wrap("lazily", decorator, cls, more)

    def _wrap(self, how: str, node: ast.expr, cls: ClassInfo, more: list[Argument]) -> None:
        """Write a call around what names or decorates a class: its lazy form is meant."""
        self.draft.edits[id(node)] = lambda renderer: made_call(how, renderer.inner(node), *more)
        self.draft.lazy.add(id(node))
        self.draft.mentions.add(cls.name)
        self.draft.imports |= {how, "Size"} if more else {how}

    def _wrap_computed_name(self, call: ast.Call, scope: Scope) -> None:
        """``getattr(models, name)``: any class of the module, with sizes that their names tell."""
        module = self._asked_module(call, scope)
        classes = [*self._given_by(call, module)]
        if module is None and not classes:
            return
        for cls in classes:
            try:
                is_open = bool(self._more(cls))
            except (Unknown, NoLazyForm):
                is_open = True
            if is_open:
                reason = f"names of {cls.module.name} are computed here"
                self.draft.doubts.append(DoubtfulPlace(cls.name, call, reason))
            else:
                self.draft.values.add(cls.name)
        self.draft.edits[id(call)] = lambda renderer: made_call("as_lazy", renderer.inner(call))
        self.draft.lazy.add(id(call))
        self.draft.imports.add("as_lazy")

    def _asked_module(self, call: ast.Call, scope: Scope) -> Module | None:
        """The module of the project of which a call takes a computed name."""
        match call:
            case ast.Call(func=ast.Name(id="getattr"), args=[owner, name, *_]):
                module = self.project.modules.get(self.project.resolve(owner, scope) or "")
                # Names and docs are the class's own.
                is_plain = isinstance(name, ast.Constant)
                is_plain = is_plain or attribute_uses(self.project).only_describes(
                    self.places.module, call
                )
                return None if is_plain else module
        return None

    def _given_by(self, call: ast.Call, module: Module | None) -> Iterator[ClassInfo]:
        """The explicit classes that a call may give which takes a computed name of a module."""
        _, _, found = asking_calls(self.project).get(id(call), ("", call, ()))
        if found and attribute_uses(self.project).changes(self.places.module, call):
            found = ()
        if module is None and not found:
            return  # as nearly all calls
        for cls in (self.project.linen[one] for one in sorted(self.context.explicit_classes)):
            is_there = module is not None and module.name in class_homes(self.project)[cls.name]
            if is_there or (found and any(one in found for one in takers(self.project, cls))):
                yield cls

    def _more(self, cls: ClassInfo) -> list[Argument]:
        """The declarations of a class's sizes, as the rest of the arguments of ``lazy``."""
        if cls.name not in self.size_arguments:
            found = declarations(cls, self.context.new_arguments.get(cls.name, ()))
            self.size_arguments[cls.name] = [named(name, size) for name, size in found.items()]
        return self.size_arguments[cls.name]

    def _check_attributes(self, place: Place, node: ast.expr) -> None:
        """Check that no attribute is set of the class: explicit code would not see it on its lazy form.

        Raises:
          Unknown: code here sets one, or code that is handed the class.
        """
        match place.parent:
            case ast.Call(func=called) if called is node:
                return
            case ast.Call(func=called, args=[first, *_]) if first is node:
                if last_name(called) in SETTERS:
                    raise Unknown("attributes of the class itself are set here")
        if attribute_uses(self.project).changes(self.places.module, node):
            raise Unknown("attributes of the class itself are set by code that gets it here")
