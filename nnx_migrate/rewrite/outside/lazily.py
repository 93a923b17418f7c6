"""Places that keep Linen's style: ``Net(...)`` becomes ``lazy(Net)(...)``, and nothing around it changes.

A class is explicit, but code outside of explicit classes goes on to build, call and hand it on as Linen
does. There every mention of the class takes its lazy form, also as a value
(registries, partials, factories) and in what stays lazy. What that cannot carry is doubted.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from nnx_migrate.constructs import name_rule, rule_for
from nnx_migrate.constructs.common.base import PLACEMENT, Code, Context
from nnx_migrate.constructs.common.rules import Layer
from nnx_migrate.edit.calls import Argument, named
from nnx_migrate.edit.calls import call as made_call
from nnx_migrate.edit.statements import with_base
from nnx_migrate.rewrite.classes.fields.keeping_decorators import keeping_decorators
from nnx_migrate.rewrite.lazy_form import NoLazyForm, declarations
from nnx_migrate.rewrite.outside.annotations.at_place import reader_of
from nnx_migrate.rewrite.outside.annotations.reader import named_in_strings
from nnx_migrate.rewrite.outside.class_members import class_named, is_free, is_module
from nnx_migrate.rewrite.outside.closures import reads_module
from nnx_migrate.rewrite.outside.data import Doubted, Draft, OutsideContext, Unknown
from nnx_migrate.rewrite.outside.module_values import may_hold_module, may_take_module
from nnx_migrate.rewrite.outside.places import Place, Places
from nnx_migrate.rewrite.outside.references import is_alias
from nnx_migrate.sizes.fields.given import fields_with_modules
from nnx_migrate.source.attribute_uses import SETTERS, attribute_uses
from nnx_migrate.source.bindings import names_bound_at
from nnx_migrate.source.classes import ClassInfo, arguments_by_field
from nnx_migrate.source.linked import class_homes
from nnx_migrate.source.names import Assignment, last_name
from nnx_migrate.source.project import Module, Project, Scope
from nnx_migrate.source.takers import asking_calls, takers
from nnx_migrate.source.walking import walk

_BOUND = frozenset({"classmethod", "staticmethod", "property"})


def convert_lazily(project: Project, places: Places, context: OutsideContext, draft: Draft) -> None:
    """Give every mention of a converted class its lazy form, or doubt the class."""
    walker = _Walk(project, places, context, draft)
    for place in places:
        if id(place.node) not in walker.plain:
            walker.at(place)


@dataclass
class _Walk:
    project: Project
    places: Places
    context: OutsideContext
    draft: Draft
    plain: set[int] = field(default_factory=set)  # ids of mentions that stay as they are
    declared: dict[str, list[Argument]] = field(default_factory=dict)

    def at(self, place: Place) -> None:
        """Edit one place, or doubt the class it names."""
        match place.node:
            case ast.Call() as call:
                self._computed(call, place.scope)
            case ast.ClassDef() as statement:
                self._inherits(statement)
                self._decorated(statement)
        if place.context is Context.ANNOTATION:
            self._annotates(place)
            return
        cls = class_named(self.project, place.node, place.scope)
        if cls is None or cls.name not in self.context.converted or place.context is Context.BASE:
            return
        node = place.node
        assert isinstance(node, ast.Name | ast.Attribute)
        if id(place.top) in self.context.owned and self._is_lifted(node):
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
            self._unchanged(place, node)
            self._given(cls, place)
            more = self._more(cls)
        except (Unknown, NoLazyForm) as problem:
            self.draft.doubts.append(Doubted(cls.name, node, str(problem)))
            return
        self._wrapped("lazy", node, cls, more)

    def _annotates(self, place: Place) -> None:
        """Doubt the classes of an annotation that the running program reads."""
        for node in (place.node, *named_in_strings(place.node)):
            cls = class_named(self.project, node, place.scope)
            if cls is None or cls.name not in self.context.converted:
                continue
            reader = reader_of(self.project, self.places, place)
            if reader is not None:
                self.draft.doubts.append(Doubted(cls.name, place.node, reader))

    def _is_lifted(self, node: ast.expr) -> bool:
        """Whether a call that becomes NNX's is given the class: ``nn.remat(Block)``."""
        above = self.places.parent(node)
        return isinstance(above, ast.Call) and node in above.args and id(above) in self.draft.edits

    def _inherits(self, node: ast.ClassDef) -> None:
        """A lazy class whose Linen bases are all explicit: it is a lazy module by a base of its own."""
        cls = self.project.by_node.get(id(node))
        if cls is None or not cls.linen or "flax.linen.Module" in cls.bases:
            return
        if cls.name in self.context.converted:
            return
        parents = [one for one in cls.parents if one.linen]
        if parents and all(one.name in self.context.converted for one in parents):
            self.draft.edits[id(node)] = lambda renderer: [
                with_base(renderer.inner(node), "Module")
            ]
            self.draft.lazy.add(id(node))
            self.draft.imports.add("Module")
            self.draft.inherits = True

    def _decorated(self, node: ast.ClassDef) -> None:
        """Decorators that keep an explicit class for others to build: they keep its lazy form."""
        cls = self.project.by_node.get(id(node))
        if cls is None or cls.name not in self.context.converted:
            return
        for decorator in keeping_decorators(self.project, cls):
            try:
                more = self._more(cls)
            except (Unknown, NoLazyForm) as problem:
                self.draft.doubts.append(Doubted(cls.name, decorator, str(problem)))
                return
            self.draft.values.add(cls.name)
            self._wrapped("lazily", decorator, cls, more)

    def _wrapped(self, how: str, node: ast.expr, cls: ClassInfo, more: list[Argument]) -> None:
        """Write a call around what names or decorates a class: its lazy form is meant."""
        self.draft.edits[id(node)] = lambda renderer: made_call(how, renderer.inner(node), *more)
        self.draft.lazy.add(id(node))
        self.draft.placed.add(cls.name)
        self.draft.imports |= {how, "Size"} if more else {how}

    def _computed(self, call: ast.Call, scope: Scope) -> None:
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
                self.draft.doubts.append(Doubted(cls.name, call, reason))
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
        for cls in (self.project.linen[one] for one in sorted(self.context.converted)):
            is_there = module is not None and module.name in class_homes(self.project)[cls.name]
            if is_there or (found and any(one in found for one in takers(self.project, cls))):
                yield cls

    def _more(self, cls: ClassInfo) -> list[Argument]:
        """The declarations of a class's sizes, as the rest of the arguments of ``lazy``."""
        if cls.name not in self.declared:
            found = declarations(cls, self.context.new_arguments.get(cls.name, ()))
            self.declared[cls.name] = [named(name, size) for name, size in found.items()]
        return self.declared[cls.name]

    # ---- what the class is given

    def _given(self, cls: ClassInfo, place: Place) -> None:
        """Check the arguments that the class is built with.

        Raises:
          Unknown: modules, or what builds them, reach the class in a form it cannot take.
        """
        parent = place.parent
        if isinstance(parent, ast.MatchClass):
            raise Unknown("a pattern names the class here")
        if isinstance(parent, ast.Subscript) and parent.value is place.node:
            raise Unknown("the class is given types here")
        if isinstance(parent, ast.Attribute) and not self._is_method(cls, parent):
            raise Unknown(f"{parent.attr} of the class itself is used here")
        holding = self.context.modules_in.get(cls.name, frozenset())
        problems = (self.context.handed.why_not((cls.name, name)) for name in sorted(holding))
        args = list(parent.args) if isinstance(parent, ast.Call) else []
        if not isinstance(parent, ast.Call) or parent.func is not place.node:
            self.draft.values.add(cls.name)
            if not isinstance(parent, ast.Call) or args[:1] != [place.node]:
                return
            if self.project.resolve(parent.func, place.scope) != "functools.partial":
                return
            args = args[1:]
        starred = any(isinstance(one, ast.Starred) for one in args)
        unpacks = starred or any(one.arg is None for one in parent.keywords)
        if holding and unpacks and any(problems):
            raise Unknown(f"what is unpacked here may give {min(holding)} a module")
        if holding and unpacks:
            self.draft.taking.add(cls.name)
        for name, value in arguments_by_field(cls, args, parent.keywords):
            if name in holding:
                self._held(value, place.scope, (cls.name, name))
            elif name not in PLACEMENT and not self._takes(cls, name, value, place.scope):
                self._plain(value, place.scope, name)
                fields = (
                    [name] if name else [one.name for one in cls.fields if one.name not in holding]
                )
                taking = [one for one in fields if may_take_module(cls, one)]
                if taking and may_hold_module(self.project, value, place.scope):
                    raise Unknown(f"the field {taking[0]} may be given a module here")
                if reads_module(self.project, self.places, value):
                    raise Unknown(f"the field {name} is given what refers to the module around it")

    def _takes(self, cls: ClassInfo, field: str, value: ast.expr, scope: Scope) -> bool:
        """Whether a field of any type is given a module here, which the class only calls."""
        at = (cls.name, field)
        if not self._is_module(value, scope) or at not in fields_with_modules(self.project):
            return False
        if self.context.handed.why_not(at) is not None:
            return False
        self.draft.taking.add(cls.name)
        return True

    def _is_module(self, value: ast.expr, scope: Scope) -> bool:
        """Whether an expression builds a module, or is a name of one."""
        match value:
            case ast.Call(func=ast.Name() | ast.Attribute() as function):
                symbol = self._symbol(function, scope)
                return symbol is not None and (symbol in self.project.linen or is_module(symbol))
            case ast.Name(id=name):
                binding = scope.lookup(name)
                return isinstance(binding, Assignment) and self._is_module(binding.value, scope)
        return False

    def _unchanged(self, place: Place, node: ast.expr) -> None:
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

    def _is_method(self, cls: ClassInfo, node: ast.Attribute) -> bool:
        """Whether it is a plain method of a class, which its lazy form carries, and given as
        ``method=``: a call of it may be with another class's instance."""
        if node.attr in ("__name__", "__qualname__"):
            return True
        found = cls.find(node.attr)
        above = self.places.parent(node)
        is_given = isinstance(above, ast.keyword) and above.arg == "method"
        return is_given and found is not None and _BOUND.isdisjoint(self.project.decorators(*found))

    def _held(self, value: ast.expr, scope: Scope, at: tuple[str, str]) -> None:
        """A class or layer for a field that builds submodules: an explicit class takes it as it is."""
        if isinstance(value, ast.Constant):
            return
        if isinstance(value, ast.IfExp):
            self._held(value.body, scope, at)
            self._held(value.orelse, scope, at)
            return
        if (
            isinstance(value, ast.Call)
            and value.args
            and self.project.resolve(value.func, scope) == "functools.partial"
        ):
            self._held(value.args[0], scope, at)
            self._held_in_partial(value, scope, at[1])
            return
        if (local := self._local(value)) is not None:
            self._held(local, scope, at)
            return
        cls = class_named(self.project, value, scope)
        if cls is not None and cls.name in self.context.converted:
            arguments = self.context.new_arguments.get(cls.name, ())
            self._sized(at, frozenset(one.name for one in arguments if not one.optional))
            self.plain.add(id(value))
            self.draft.edits[id(value)] = lambda renderer: renderer.inner(value)
            self.draft.lazy.add(id(value))
            return
        symbol = self.project.resolve(value, scope)
        layer = rule_for(symbol) if symbol is not None else None
        if symbol is not None and isinstance(layer, Layer):
            made = name_rule(symbol)
            if isinstance(made, Code) and not is_alias(self.project, value, scope):
                self._sized(at, frozenset() if layer.is_late else frozenset(layer.sizes))
                self.draft.edits[id(value)] = made.node
                self.draft.imports |= made.imports
                self.draft.lazy.add(id(value))
                return
        problem = self.context.handed.why_not(at)
        if problem is not None:
            why = f"what the field {at[1]} is given here is not known to be explicit"
            raise Unknown(f"{why}, and {problem}")
        self.draft.taking.add(at[0])

    def _held_in_partial(self, call: ast.Call, scope: Scope, field: str) -> None:
        """What a partial for such a field gives its class: ``partial(Value, base_cls=partial(MLP, 4))``."""
        if any(one.arg in PLACEMENT for one in call.keywords):
            raise Unknown(f"what the field {field} is given here has a name already")
        cls = class_named(self.project, call.args[0], scope)
        named = [] if cls is None else arguments_by_field(cls, call.args[1:], call.keywords)
        values = (*call.args[1:], *(one.value for one in call.keywords))
        for name, value in named if cls is not None else (("", one) for one in values):
            if cls is not None and (cls.name, name) in self.context.passed:
                self._held(value, scope, (cls.name, name))
                continue
            self._plain(value, scope, field)
            if may_hold_module(self.project, value, scope, or_maker=True):
                raise Unknown(f"a partial for the field {field} may be given a module here")

    def _local(self, value: ast.expr) -> ast.expr | None:
        """What a name stands for that a function binds once, and only gives to such fields."""
        if not isinstance(value, ast.Name) or value not in self.places:
            return None
        function = self.places[value].frame
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            return None
        nodes = walk(function)
        bindings = [one for one in nodes for name in names_bound_at(one) if name == value.id]
        loads = (
            one
            for one in nodes
            if isinstance(one, ast.Name) and one.id == value.id and one not in bindings
        )
        declared = (one.names for one in nodes if isinstance(one, ast.Global | ast.Nonlocal))
        if len(bindings) != 1 or any(value.id in names for names in declared):
            return None
        match self.places.parent(bindings[0]):
            case ast.Assign(targets=[ast.Name()], value=given) if all(map(self._is_held, loads)):
                return given
        return None

    def _is_held(self, node: ast.Name) -> bool:
        """Whether a name is given, as it is, to a field that builds submodules of such a class."""
        keyword = self.places.parent(node)
        call = self.places.parent(keyword) if isinstance(keyword, ast.keyword) else keyword
        if not isinstance(call, ast.Call) or any(isinstance(a, ast.Starred) for a in call.args):
            return False
        scope, maker, args = self.places[call].scope, call.func, call.args
        if args and self.project.resolve(maker, scope) == "functools.partial":
            maker, args = args[0], args[1:]
        cls = class_named(self.project, maker, scope)
        if cls is None or cls.name not in self.context.converted:
            return False
        holding = self.context.modules_in.get(cls.name, frozenset())
        given = arguments_by_field(cls, args, call.keywords)
        return any(value is node and name in holding for name, value in given)

    def _sized(self, at: tuple[str, str], needed: frozenset[str]) -> None:
        """Whether the class gives what it builds from a field all sizes that this one needs.

        Raises:
          Unknown: it does not.
        """
        missing = needed - self.context.passed.get(at, frozenset())
        if missing:
            raise Unknown(f"what the field {at[1]} is given here needs {min(missing)}")

    def _plain(self, value: ast.expr, scope: Scope, name: str) -> None:
        for node in walk(value):
            symbol = self._symbol(node, scope)
            if symbol is not None and (symbol in self.project.linen or is_module(symbol)):
                raise Unknown(f"the field {name} is given {symbol}, a module, here")

    def _symbol(self, node: ast.AST, scope: Scope) -> str | None:
        cls = class_named(self.project, node, scope)
        if cls is not None:
            return cls.name
        named = isinstance(node, ast.Name | ast.Attribute)
        return self.project.resolve(node, scope) if named else None  # type: ignore[arg-type]
