"""What explicit classes are given where code keeps Linen's style: ``lazy(Net)(lazy(Body)(8), norm=nnx.LayerNorm)``.

A field from which the class builds submodules gets what explicit code builds: the class itself, a layer's
factory, a partial of one. A field that the class calls gets lazy modules. Data is the same in both styles.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field

from nnx_migrate.constructs import name_rule, rule_for
from nnx_migrate.constructs.common.base import PLACEMENT, Code
from nnx_migrate.constructs.common.rules import Layer
from nnx_migrate.rewrite.outside.class_members import class_named, is_module
from nnx_migrate.rewrite.outside.closures import reads_module
from nnx_migrate.rewrite.outside.data import Draft, OutsideContext, Unknown
from nnx_migrate.rewrite.outside.module_values import Kind, may_hold, may_take_module
from nnx_migrate.rewrite.outside.places import Place, Places
from nnx_migrate.sizes.fields.constructor_arguments import fields_with_modules
from nnx_migrate.source.bindings import names_bound_at
from nnx_migrate.source.classes import ClassInfo, arguments_by_field
from nnx_migrate.source.names import Assignment
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.walking import has_starred, is_name, walk

_BOUND = frozenset({"classmethod", "staticmethod", "property"})


@dataclass
class Arguments:
    """Checks the arguments of constructors, and edits the classes and layers among them.

    Attributes:
      plain: ids of mentions of classes that stay as they are.
    """

    project: Project
    places: Places
    context: OutsideContext
    draft: Draft
    plain: set[int] = field(default_factory=set)

    def check(self, cls: ClassInfo, place: Place) -> None:
        """Check the arguments that the class is built with.

        Raises:
          Unknown: modules, or what builds them, reach the class in a form it cannot take.
        """
        call = self._constructor(cls, place)
        if call is None:
            return
        args, keywords = call
        holding = self.context.modules_in.get(cls.name, frozenset())
        starred = has_starred(args)
        if holding and (starred or any(one.arg is None for one in keywords)):
            self._unpack(cls, holding)
        for name, value in arguments_by_field(cls, args, keywords):
            if name in holding:
                self._take_module(value, place.scope, (cls.name, name))
            elif name in self.context.open_in.get(cls.name, ()):
                self._open(value, place.scope, name)
            elif name not in PLACEMENT and not self._takes(cls, name, value, place.scope):
                every = cls.field_names - holding
                self._check(cls, value, place.scope, name, sorted({name} if name else every))

    def _constructor(
        self, cls: ClassInfo, place: Place
    ) -> tuple[list[ast.expr], list[ast.keyword]] | None:
        """The arguments of the call or partial that builds the class; None where it is a value."""
        match place.parent:
            case ast.Call(func=called, args=args, keywords=keywords) if called is place.node:
                return args, keywords
            case ast.MatchClass():
                raise Unknown("a pattern names the class here")
            case ast.Subscript(value=value) if value is place.node:
                raise Unknown("the class is given types here")
            case ast.Attribute(attr=attr) as parent if not self._is_method(cls, parent):
                raise Unknown(f"{attr} of the class itself is used here")
        self.draft.values.add(cls.name)
        match place.parent:
            case ast.Call(func=called, args=[first, *args], keywords=keywords) if (
                first is place.node
                and self.project.resolve(called, place.scope) == "functools.partial"
            ):
                return args, keywords
        return None

    def _unpack(self, cls: ClassInfo, holding: frozenset[str]) -> None:
        if any(self.context.module_fields.why_not((cls.name, name)) for name in holding):
            raise Unknown(f"what is unpacked here may give {min(holding)} a module")
        self.draft.taking.add(cls.name)

    def _check(
        self, cls: ClassInfo, value: ast.expr, scope: Scope, name: str, fields: list[str]
    ) -> None:
        """Check what a field of data is given, or one of several."""
        self._plain(value, scope, name)
        taking = [one for one in fields if may_take_module(cls, one)]
        if taking and may_hold(self.project, value, scope, Kind.MODULE):
            raise Unknown(f"the field {taking[0]} may be given a module here")
        if reads_module(self.project, self.places, value):
            raise Unknown(f"the field {name} is given what refers to the module around it")

    def _open(self, value: ast.expr, scope: Scope, name: str) -> None:
        """A class for a field that takes it in either form, without modules that are built already."""
        if may_hold(self.project, value, scope, Kind.MODULE):
            raise Unknown(f"the class for {name} may be given a module here")
        if may_hold(self.project, value, scope, Kind.FUNCTION):
            raise Unknown(
                f"{name} may be given a function here, which names what it builds in its way"
            )

    def _takes(self, cls: ClassInfo, field: str, value: ast.expr, scope: Scope) -> bool:
        """Whether a field of any type is given a module here, which the class only calls."""
        at = (cls.name, field)
        if not self._is_module(value, scope) or at not in fields_with_modules(self.project):
            return False
        if self.context.module_fields.why_not(at) is not None:
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
                made = binding.value if isinstance(binding, Assignment) else None
                return isinstance(made, ast.Call) and self._is_module(made, scope)
        return False

    def _is_method(self, cls: ClassInfo, node: ast.Attribute) -> bool:
        """Whether it is a plain method of a class, which its lazy form carries, and given as
        ``method=``: a call of it may be with another class's instance."""
        if node.attr in ("__name__", "__qualname__"):
            return True
        found = cls.find(node.attr)
        above = self.places.parent(node)
        is_given = isinstance(above, ast.keyword) and above.arg == "method"
        return is_given and found is not None and _BOUND.isdisjoint(self.project.decorators(*found))

    def _take_module(self, value: ast.expr, scope: Scope, at: tuple[str, str]) -> None:
        """A class or layer for a field that builds submodules: an explicit class takes it as it is."""
        if isinstance(value, ast.Constant):
            return
        if isinstance(value, ast.IfExp):
            self._take_module(value.body, scope, at)
            self._take_module(value.orelse, scope, at)
            return
        if (
            isinstance(value, ast.Call)
            and value.args
            and self.project.resolve(value.func, scope) == "functools.partial"
        ):
            self._take_module(value.args[0], scope, at)
            self._held_in_partial(value, scope, at[1])
            return
        if local := self._local(value):
            for one in local:
                self._take_module(one, scope, at)
            return
        cls = class_named(self.project, value, scope)
        if cls is not None and cls.name in self.context.explicit_classes:
            arguments = self.context.new_arguments.get(cls.name, ())
            self._check_sizes(at, frozenset(one.name for one in arguments if not one.optional))
            self.plain.add(id(value))
            self.draft.edits[id(value)] = lambda renderer: renderer.inner(value)
            self.draft.lazy.add(id(value))
            return
        symbol = self.project.resolve(value, scope)
        layer = rule_for(symbol) if symbol is not None else None
        if symbol is not None and isinstance(layer, Layer):
            made = name_rule(symbol)
            if isinstance(made, Code) and not self.project.is_alias(value, scope):
                self._check_sizes(at, frozenset() if layer.defers_init else frozenset(layer.sizes))
                self.draft.edits[id(value)] = made.node
                self.draft.imports |= made.imports
                self.draft.lazy.add(id(value))
                return
        problem = self.context.module_fields.why_not(at)
        if problem is not None:
            why = f"what the field {at[1]} is given here is not known to be explicit"
            raise Unknown(
                f"{why}, and {problem}",
                at if at in self.context.module_fields.builder_sizes else None,
            )
        self.draft.taking.add(at[0])

    def _held_in_partial(self, call: ast.Call, scope: Scope, field: str) -> None:
        """What a partial for such a field gives its class: ``partial(Value, base_cls=partial(MLP, 4))``."""
        if any(one.arg in PLACEMENT for one in call.keywords):
            raise Unknown(f"what the field {field} is given here has a name already")
        cls = class_named(self.project, call.args[0], scope)
        values = (*call.args[1:], *(one.value for one in call.keywords))
        arguments: Iterable[tuple[str, ast.expr]] = (("", one) for one in values)
        if cls is not None:
            arguments = arguments_by_field(cls, call.args[1:], call.keywords)
        for name, value in arguments:
            if cls is not None and (cls.name, name) in self.context.module_fields.builder_sizes:
                self._take_module(value, scope, (cls.name, name))
                continue
            self._plain(value, scope, field)
            if may_hold(self.project, value, scope, Kind.MAKER):
                raise Unknown(f"a partial for the field {field} may be given a module here")

    def _local(self, value: ast.expr) -> list[ast.expr]:
        """What a name stands for that assignments of a function bind, and only such fields are given."""
        if not isinstance(value, ast.Name) or value not in self.places:
            return []
        function = self.places[value].frame
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            return []
        nodes = walk(function)
        bindings = [one for one in nodes for name in names_bound_at(one) if name == value.id]
        loads = (one for one in nodes if is_name(one, value.id) and one not in bindings)
        declared = (one.names for one in nodes if isinstance(one, ast.Global | ast.Nonlocal))
        if any(value.id in names for names in declared) or not all(map(self._is_held, loads)):
            return []
        found = []
        for one in map(self.places.parent, bindings):
            if not isinstance(one, ast.Assign) or not isinstance(one.targets[0], ast.Name):
                return []
            found.append(one.value)
        return found

    def _is_held(self, node: ast.Name) -> bool:
        """Whether a name is given, as it is, to a field that builds submodules of such a class."""
        keyword = self.places.parent(node)
        call = self.places.parent(keyword) if isinstance(keyword, ast.keyword) else keyword
        if not isinstance(call, ast.Call) or has_starred(call.args):
            return False
        scope, maker, args = self.places[call].scope, call.func, call.args
        if args and self.project.resolve(maker, scope) == "functools.partial":
            maker, args = args[0], args[1:]
        cls = class_named(self.project, maker, scope)
        if cls is None or cls.name not in self.context.explicit_classes:
            return False
        holding = self.context.modules_in.get(cls.name, frozenset())
        field_values = arguments_by_field(cls, args, call.keywords)
        return any(value is node and name in holding for name, value in field_values)

    def _check_sizes(self, at: tuple[str, str], needed_sizes: frozenset[str]) -> None:
        """Whether the class gives what it builds from a field all sizes that this one needs.

        Raises:
          Unknown: it does not.
        """
        missing = needed_sizes - self.context.module_fields.builder_sizes.get(at, frozenset())
        if missing:
            raise Unknown(f"what the field {at[1]} is given here needs {min(missing)}", at)

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
