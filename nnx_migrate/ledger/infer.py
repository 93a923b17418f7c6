"""What a value may be: enough to say whether a call's receiver may be a Linen module.

Wider than ``resolve``: it follows constructor calls, ``partial``, returns, annotations, attributes
of ``self`` and dataclass fields. What it cannot follow is unknown, never "no module".
"""

from __future__ import annotations

import ast

from nnx_migrate.ledger.externals import (
    HANDS_ON,
    LAZY_CLASSES,
    LAZY_MODULE,
    LIFTED,
    MAKES_LINEN,
    OPEN_BUILTINS,
    is_class_name,
)
from nnx_migrate.ledger.resolve import (
    LINEN,
    UNKNOWN,
    Definition,
    ModuleValue,
    Resolver,
    Symbol,
    is_linen,
    lookup,
    under,
)
from nnx_migrate.ledger.scope_data import Binding, Scope
from nnx_migrate.ledger.scopes import enclosing_method
from nnx_migrate.ledger.trees import walk
from nnx_migrate.ledger.values import (
    ANY,
    NO,
    Instance,
    NoModule,
    Returning,
    Value,
    Values,
    class_of,
    instance_of,
    item_of,
    last_name,
    method_owner,
    never_module,
    options,
    symbol_state,
    union,
)

_DEEPEST = 40  # calls and attributes followed from one place


class Inference:
    """Infers values in one project."""

    def __init__(self, resolver: Resolver, *, are_lazy_linen: bool = False) -> None:
        self.resolver = resolver
        self._lazy = "linen" if are_lazy_linen else "lazy"
        self._states: dict[Scope, str] = {}
        self._set: dict[Scope, frozenset[str]] = {}  # attributes that methods of a class set
        self._open: set[object] = set()
        self._depth = 0

    def infer(self, node: ast.expr, scope: Scope) -> Values:
        """All that an expression may be."""
        key = (id(node), id(scope))
        if key in self._open:
            return frozenset()
        if self._depth > _DEEPEST:
            return ANY
        self._open.add(key)
        self._depth += 1
        found = self._infer(node, scope)
        self._depth -= 1
        self._open.discard(key)
        return found

    def _infer(self, node: ast.expr, scope: Scope) -> Values:
        match node:
            case ast.Name():
                return self.name(node, scope)
            case ast.Attribute():
                owners = self.infer(node.value, scope)
                return union(self.attribute(owner, node.attr) for owner in owners)
            case ast.Call():
                return union(self.call(one, node, scope) for one in self.infer(node.func, scope))
            case ast.IfExp():
                return self.infer(node.body, scope) | self.infer(node.orelse, scope)
            case ast.BoolOp():
                return union(self.infer(value, scope) for value in node.values)
            case ast.NamedExpr():
                return self.infer(node.value, scope)
            case ast.Subscript():
                return union(item_of(owner) for owner in self.infer(node.value, scope))
            case ast.Await() | ast.Starred() | ast.Yield() | ast.YieldFrom() | ast.Lambda():
                return ANY
        return NO

    def name(self, node: ast.Name, scope: Scope) -> Values:
        """All that a loaded name may be."""
        bindings, beyond = lookup(node, scope)
        found: Values = union(self.binding(one) for one in bindings)
        return found | self.resolver.unbound(node.id, scope.unit) if beyond else found

    def binding(self, binding: Binding) -> Values:
        """All that one binding may give its name."""
        node = binding.node
        if binding.kind == "alias" and isinstance(node, ast.expr):
            return self.infer(node, binding.scope)
        if binding.kind == "annotated" and isinstance(node, ast.AnnAssign):
            return self.annotation_values(node, binding.scope)
        if binding.kind == "parameter" and isinstance(node, ast.arg):
            return self.parameter(node, binding.scope)
        if binding.kind in ("import", "class", "function"):
            return frozenset(self.resolver.binding(binding))
        if binding.kind == "from":
            return self.imported_from(binding)
        return ANY

    def imported_from(self, binding: Binding) -> Values:
        """``from module import name``: the value when the module is the project's."""
        unit = binding.scope.unit
        module = self.resolver.project.locate(binding.target, unit.module)
        if under(module, "flax") or not self.resolver.project.has(module):
            return frozenset(self.resolver.binding(binding))
        key = id(binding)
        if key in self._open:  # a package that takes the name from itself: its submodule
            return frozenset(self.resolver.binding(binding))
        self._open.add(key)
        found = self.attribute(ModuleValue(module), binding.name)
        self._open.discard(key)
        return found

    def annotation_values(self, node: ast.AnnAssign, scope: Scope) -> Values:
        """An annotated name or field: what the annotation says, else the default and anything."""
        declared = self.annotation(node.annotation, scope)
        if UNKNOWN not in declared or node.value is None:
            return declared
        return declared | self.infer(node.value, scope)

    def parameter(self, node: ast.arg, scope: Scope) -> Values:
        """A parameter: ``self`` and ``cls`` by position, others by their annotation."""
        owner = method_owner(node, scope)
        if owner is not None:
            holder, is_class = owner
            return frozenset({Definition(holder) if is_class else Instance(Definition(holder))})
        return ANY if node.annotation is None else self.annotation(node.annotation, scope)

    def annotation(self, node: ast.expr, scope: Scope) -> Values:
        """What a value annotated so may be."""
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str):
                return self.string_annotation(node, node.value, scope)
            return NO if node.value is None else ANY
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return options(self.annotation(part, scope) for part in (node.left, node.right))
        if isinstance(node, ast.Subscript):
            return self.generic(node, scope)
        return union(instance_of(one) for one in self.infer(node, scope))

    def string_annotation(self, node: ast.Constant, text: str, scope: Scope) -> Values:
        """A string annotation. Not a reference, but evidence all the same."""
        try:
            parsed = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError):
            return ANY
        for child in ast.walk(parsed):
            ast.copy_location(child, node)
        return self.annotation(parsed, scope)

    def generic(self, node: ast.Subscript, scope: Scope) -> Values:
        """``Optional[X]``, ``Union[X, Y]``, ``type[X]``, ``Annotated[X, ...]`` and generics."""
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        names = {
            one.name.rpartition(".")[2]
            for one in self.infer(node.value, scope)
            if isinstance(one, Symbol)
        }
        if names & {"Optional", "Union"}:
            return options(self.annotation(part, scope) for part in inner)
        if names & {"Annotated", "Final", "ClassVar", "InitVar"}:
            return self.annotation(inner[0], scope)
        if names & {"Type", "type"}:
            return union(class_of(one) for one in self.annotation(inner[0], scope))
        return union(instance_of(one) for one in self.infer(node.value, scope))

    def attribute(self, owner: Value, name: str) -> Values:
        """An attribute of a value."""
        if isinstance(owner, ModuleValue):
            return self.module_attribute(owner, name)
        if isinstance(owner, Symbol):
            return frozenset({Symbol(f"{owner.name}.{name}")})
        if isinstance(owner, NoModule):
            return NO
        if isinstance(owner, Definition):
            return self.member(owner.scope, name, None) if owner.scope.kind == "class" else ANY
        if isinstance(owner, Instance):
            return self.instance_attribute(owner, name)
        return ANY

    def module_attribute(self, owner: ModuleValue, name: str) -> Values:
        """A global of a project module, by value."""
        unit = self.resolver.project.module(owner.name)
        own = unit.scope.bindings.get(name, []) if unit is not None else []
        if own:
            return union(self.binding(one) for one in own)
        return frozenset(self.resolver.attribute(owner, name))

    def instance_attribute(self, owner: Instance, name: str) -> Values:
        """An attribute of an instance: assigned to ``self``, a field, a property or a method."""
        if isinstance(owner.of, Symbol):
            if name in ("bind", "clone", "copy") and is_linen(owner.of):
                return frozenset({Returning(owner)})
            return NO if never_module(owner.of.name) else ANY
        found = self.member(owner.of.scope, name, owner)
        if found:
            return found
        if name in ("bind", "clone", "copy") and self.state(owner.of.scope) == "linen":
            return frozenset({Returning(owner)})
        return ANY

    def member(self, scope: Scope, name: str, owner: Instance | None) -> Values:
        """A member of a project class or of its bases in the project; empty when none has it."""
        for one in self.chain(scope):
            assigned = one.attributes.get(name, [])
            bindings = one.bindings.get(name, [])
            if not assigned and not bindings:
                continue
            values = [
                self.infer(node, where) if kind == "value" else self.annotation(node, where)
                for kind, node, where in assigned
            ]
            values += [self.class_member(binding, owner) for binding in bindings]
            return union(values)
        return frozenset() if owner is not None else ANY

    def class_member(self, binding: Binding, owner: Instance | None) -> Values:
        """A name bound in a class body; a property of an instance is what it returns."""
        node = binding.node
        if owner is not None and binding.inner is not None and isinstance(node, ast.FunctionDef):
            names = {last_name(one) for one in node.decorator_list}
            if names & {"property", "cached_property"}:
                return self.result_values(binding.inner)
        return self.binding(binding)

    def call(self, function: Value, node: ast.Call, scope: Scope) -> Values:
        """What calling a value gives."""
        if isinstance(function, Symbol):
            return self.call_symbol(function, node, scope)
        if isinstance(function, Definition):
            if function.scope.kind == "class":
                return frozenset({Instance(function)})
            return self.result_values(function.scope)
        if isinstance(function, Returning):
            return frozenset({function.value})
        if isinstance(function, Instance) and isinstance(function.of, Symbol):
            return NO if never_module(function.of.name) else ANY
        return NO if isinstance(function, NoModule) else ANY

    def call_symbol(self, function: Symbol, node: ast.Call, scope: Scope) -> Values:
        """Calling a name outside the project."""
        name = function.name
        if name in HANDS_ON or name in LIFTED:
            return self.infer(node.args[0], scope) if node.args else ANY
        if name == "typing.cast" and node.args:
            return self.annotation(node.args[0], scope)
        if name == "builtins.super":
            method = enclosing_method(scope)
            if method is None or method.parent is None:
                return ANY
            return frozenset({Instance(Definition(method.parent))})
        if under(name, "builtins"):
            return ANY if name.partition(".")[2] in OPEN_BUILTINS else NO
        if name in LAZY_CLASSES:
            return frozenset({Symbol(LAZY_MODULE)})
        if name in MAKES_LINEN:
            return frozenset({Instance(Symbol("flax.nnx.bridge.ToLinen"))})
        if under(name, LINEN) and not is_class_name(name):
            return ANY
        return frozenset({Instance(function)})

    def result_values(self, scope: Scope) -> Values:
        """What a project function returns."""
        node = scope.node
        if scope.generator or isinstance(node, ast.AsyncFunctionDef):
            return ANY
        found = union(self.infer(value, scope) for value in scope.returns)
        declared = getattr(node, "returns", None)
        if UNKNOWN in found and declared is not None and scope.parent is not None:
            return self.annotation(declared, scope.parent)
        return found or NO

    def chain(self, scope: Scope) -> list[Scope]:
        """A class and its bases in the project, nearest first."""
        found: list[Scope] = []
        pending = [scope]
        while pending:
            one = pending.pop(0)
            if one in found or not isinstance(one.node, ast.ClassDef):
                continue
            found.append(one)
            for base in self.bases(one):
                if isinstance(base, Definition) and base.scope.kind == "class":
                    pending.append(base.scope)
        return found

    def has_member(self, scope: Scope, name: str) -> bool:
        """Whether a class or a base of it in the project has a name, in its body or set by a method."""
        return any(
            name in one.bindings or name in _set_names(one.node) for one in self.chain(scope)
        )

    def bases(self, scope: Scope) -> Values:
        """What a class's bases may be; a subscript of a generic base is that base."""
        node = scope.node
        if not isinstance(node, ast.ClassDef) or scope.parent is None:
            return frozenset()
        found: set[Value] = set()
        for base in node.bases:
            plain = base.value if isinstance(base, ast.Subscript) else base
            found |= self.infer(plain, scope.parent)
        return frozenset(found)

    def state(self, scope: Scope) -> str:
        """``linen``, ``lazy``, ``nnx``, ``maybe`` (a base is not known) or ``other``, by its bases."""
        if scope not in self._states:
            self._states[scope] = "other"  # a class that inherits from itself is no module
            # Whatever is being inferred now, a class has one state.
            around = self._open, self._depth
            self._open, self._depth = set(), 0
            found = {self.base_state(base) for base in self.bases(scope)}
            self._open, self._depth = around
            order = ("linen", "lazy", "nnx", "maybe", "other")
            self._states[scope] = next((one for one in order if one in found), "other")
        return self._states[scope]

    def base_state(self, base: Value) -> str:
        """What inheriting from a value makes of a class."""
        if isinstance(base, Definition):
            return self.state(base.scope) if base.scope.kind == "class" else "maybe"
        if isinstance(base, Symbol):
            return self._lazy if base.name == LAZY_MODULE else symbol_state(base.name)
        return "other" if isinstance(base, NoModule) else "maybe"


def _set_names(cls: ast.AST) -> frozenset[str]:
    """The attributes of ``self`` that methods of a class set."""
    return frozenset(
        one.attr
        for one in walk(cls)
        if isinstance(one, ast.Attribute)
        and isinstance(one.ctx, ast.Store)
        and isinstance(one.value, ast.Name)
        and one.value.id == "self"
    )
