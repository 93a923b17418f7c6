"""Classes of the project: bases, resolution order, dataclass fields, methods, across files."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, repeat

from nnx_migrate.source.bindings import bound_names
from nnx_migrate.source.constants import class_constants, written_out
from nnx_migrate.source.modules import Module, Scope
from nnx_migrate.source.names import Opaque, table_of
from nnx_migrate.source.walking import has_starred, walk


@dataclass(frozen=True)
class Field:
    """One dataclass field of a Linen class."""

    name: str
    node: ast.AnnAssign
    owner: ClassInfo  # the class that declares it
    keyword_only: bool = False

    @property
    def annotation(self) -> ast.expr:
        """The annotation as written."""
        return self.node.annotation

    @cached_property
    def default(self) -> ast.expr | None:
        """The default, if any, with the values of what it reads from its class body."""
        value = self.node.value
        return value and written_out(value, class_constants(self.owner.node))


@dataclass(frozen=True, eq=False)
class ClassInfo:
    """One class statement. Compared by identity: there is one object per statement."""

    name: str  # qualified: module.Class, module.Outer.Inner, module.function.<locals>.Class
    module: Module
    node: ast.ClassDef
    scope: Scope  # where the class statement stands
    bases: tuple[str | None, ...]  # resolved symbols, None where unknown
    parents: tuple[ClassInfo, ...] = ()  # project classes that are bases, or may be
    linen: bool = False  # inherits from flax.linen.Module
    function: ast.FunctionDef | None = None  # that the class stands for: it builds for its callers
    is_ambiguous: bool = False  # the name has other meanings, too, and uses may mean either

    @property
    def dotted_name(self) -> str:
        """The qualified name without ``<locals>``, as the ledger has it: ``module.function.Class``."""
        return self.qualname.replace(".<locals>", "")

    @property
    def qualname(self) -> str:
        """The name as Python has it, the same for all statements that bind it."""
        return self.name.partition(":")[0]

    @cached_property
    def methods(self) -> dict[str, ast.FunctionDef]:
        """Methods of the class body itself (the last definition of a name wins)."""
        return {node.name: node for node in self.node.body if isinstance(node, ast.FunctionDef)}

    @cached_property
    def bound(self) -> Mapping[str, Sequence[ast.stmt]]:
        """The statements of the class body that give each of its names a value, in order."""
        found: dict[str, list[ast.stmt]] = {}
        for statement in self.node.body:
            if not isinstance(statement, ast.AnnAssign) or statement.value is not None:
                for name in dict.fromkeys(bound_names(statement)):
                    found.setdefault(name, []).append(statement)
        return found

    @cached_property
    def local_names(self) -> frozenset[str]:
        """Names that its code uses: its methods, inherited ones too, or the function it stands for."""
        code = [*self.every_method, *([self.function] if self.function is not None else [])]
        nodes = [node for one in code for node in walk(one)]
        names = {node.id for node in nodes if isinstance(node, ast.Name)}
        return frozenset(names | {node.arg for node in nodes if isinstance(node, ast.arg)})

    @cached_property
    def mro(self) -> tuple[ClassInfo, ...]:
        """Project classes in resolution order, itself first (depth first, duplicates last)."""
        order: list[ClassInfo] = [self]
        for parent in self.parents:
            for cls in parent.mro:
                if cls in order:
                    order.remove(cls)
                order.append(cls)
        return tuple(order)

    @cached_property
    def own_fields(self) -> tuple[Field, ...]:
        """Annotated names of the class body that dataclass makes fields of (no ClassVar)."""
        found: list[Field] = []
        keyword_only = False
        for statement in self.node.body:
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                text = ast.unparse(statement.annotation)
                if text.endswith("KW_ONLY"):
                    keyword_only = True
                elif "ClassVar" not in text and not is_declared_only(statement):
                    found.append(Field(statement.target.id, statement, self, keyword_only))
        return tuple(found)

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """Dataclass fields in constructor order, inherited ones first."""
        found: dict[str, Field] = {}
        for cls in reversed(self.mro):
            if cls.linen:
                for one in cls.own_fields:
                    found[one.name] = one
        return tuple(found.values())

    @cached_property
    def field_names(self) -> frozenset[str]:
        """Names of its fields, inherited ones too."""
        return frozenset(one.name for one in self.fields)

    def field(self, name: str) -> Field | None:
        """The field of that name."""
        return next((one for one in self.fields if one.name == name), None)

    def has(self, name: str) -> bool:
        """Whether it or a base has a method or field of that name."""
        return self.find(name) is not None or name in self.field_names

    @cached_property
    def every_method(self) -> tuple[ast.FunctionDef, ...]:
        """The methods that it and its bases define, overridden ones included."""
        return tuple(method for cls in self.mro for method in cls.methods.values())

    @cached_property
    def method_names(self) -> frozenset[str]:
        """The names of these."""
        return frozenset(name for cls in self.mro for name in cls.methods)

    @cached_property
    def post_init_attributes(self) -> frozenset[str]:
        """Attributes that ``__post_init__`` sets: fields may not hold what they were given."""
        found = (one.methods.get("__post_init__") for one in self.mro)
        nodes = (node for method in found if method is not None for node in walk(method))
        names: set[str] = set()
        for node in nodes:
            match node:
                case ast.Attribute(attr=name, ctx=ast.Store()):
                    names.add(name)
                case ast.Call(func=ast.Attribute(attr="__setattr__"), args=[_, target, *_]):
                    names.add(str(target.value) if isinstance(target, ast.Constant) else "")
        return frozenset(names)

    def above(self, node: ast.AST) -> list[ast.AST]:
        """Everything around a node of this class or of a base in another file, the innermost first."""
        every = (one.module.parents.above(node) for one in self.mro)
        return next(filter(None, every), [])

    def arguments(self, call: ast.Call) -> dict[str, ast.expr]:
        """What a constructor call gives, by field; empty where some of it is unpacked by position."""
        if has_starred(call.args):
            return {}
        positional = [one.name for one in self.fields if not one.keyword_only]
        arguments = dict(zip(positional, call.args, strict=False))
        return arguments | {one.arg: one.value for one in call.keywords if one.arg is not None}

    def find(self, method: str) -> tuple[ClassInfo, ast.FunctionDef] | None:
        """The class in the resolution order that defines ``method``, and its node."""
        for cls in self.mro:
            node = cls.methods.get(method)
            if node is not None:
                return cls, node
        return None


def positional_fields(cls: ClassInfo) -> dict[str, int]:
    """The fields that a constructor call may give by position, and which position."""
    return {one.name: i for i, one in enumerate(f for f in cls.fields if not f.keyword_only)}


def arguments_by_field(
    cls: ClassInfo, args: Iterable[ast.expr], keywords: Iterable[ast.keyword]
) -> Iterator[tuple[str, ast.expr]]:
    """The arguments of a constructor call with the fields they give; "" where unknown."""
    yield from zip(chain(positional_fields(cls), repeat("")), args, strict=False)
    yield from ((one.arg or "", one.value) for one in keywords)


def is_declared_only(statement: ast.AnnAssign) -> bool:
    """Whether ``x: T = field(init=False)`` without a default names an attribute for later."""
    match statement.value:
        case ast.Call(func=ast.Name(id="field") | ast.Attribute(attr="field"), keywords=keywords):
            call_keywords = {one.arg: one.value for one in keywords}
            init = call_keywords.get("init")
            is_set_later = isinstance(init, ast.Constant) and init.value is False
            return is_set_later and not call_keywords.keys() & {"default", "default_factory", None}
    return False


@dataclass(frozen=True)
class ClassStatement:
    """One class statement and where its names are looked up."""

    module: Module
    node: ast.ClassDef
    scope: Scope
    is_ambiguous: bool = False  # another statement binds the same name, and uses may mean either


def class_statements(modules: Iterable[Module]) -> dict[str, ClassStatement]:
    """Every class statement by qualified name; of one name, all but the last with ``:1``, ``:2``, ..."""
    by_name: dict[str, list[ClassStatement]] = {}
    for module in modules:
        for name, node, scope in _classes(module):
            by_name.setdefault(name, []).append(ClassStatement(module, node, scope))
    found: dict[str, ClassStatement] = {}
    for name, statements in by_name.items():
        for number, one in enumerate(statements, 1):
            own = name if one is statements[-1] else f"{name}:{number}"
            found[own] = replace(one, is_ambiguous=len(statements) > 1)
    return found


Resolve = Callable[[ast.expr, Scope], str | None]
Meanings = Callable[[ast.expr, Scope], tuple[str, ...]]


def index_classes(
    statements: Mapping[str, ClassStatement], resolve: Resolve, meanings: Meanings
) -> dict[str, ClassInfo]:
    """Every class by qualified name, its bases what ``resolve`` says they are.

    A base that ``resolve`` does not know may have several ``meanings``: the class is Linen's if one is.
    """
    done: dict[str, ClassInfo] = {}

    def build(name: str, trail: tuple[str, ...]) -> ClassInfo | None:
        if name in done or name not in statements or name in trail:
            return done.get(name)
        one = statements[name]
        expressions = [_generic_origin(base) for base in one.node.bases]
        bases = tuple(resolve(base, one.scope) for base in expressions)
        possible = [symbol for base in expressions for symbol in meanings(base, one.scope)]
        parents = [build(symbol, (*trail, name)) for symbol in possible]
        known = tuple(parent for parent in parents if parent)
        linen = any(map(is_linen_class, possible)) or any(p.linen for p in known)
        binding = one.scope.lookup(one.node.name)
        repeated = one.is_ambiguous or isinstance(binding, Opaque)
        done[name] = ClassInfo(
            name,
            one.module,
            one.node,
            one.scope,
            bases,
            known,
            linen,
            is_ambiguous=repeated,
        )
        return done[name]

    for name in statements:
        build(name, ())
    return done


def is_linen_class(symbol: str | None) -> bool:
    """Whether a base is ``flax.linen.Module`` or one of Linen's own module classes."""
    if symbol is None or not symbol.startswith("flax.linen."):
        return False
    name = symbol.removeprefix("flax.linen.")
    return name[:1].isupper() and "." not in name


def _generic_origin(base: ast.expr) -> ast.expr:
    """``Generic`` of the base ``Generic[T]``."""
    return base.value if isinstance(base, ast.Subscript) else base


def _classes(module: Module) -> Iterator[tuple[str, ast.ClassDef, Scope]]:
    yield from _classes_in(module.tree.body, module.name, Scope(module))


def _classes_in(
    body: list[ast.stmt], prefix: str, scope: Scope
) -> Iterator[tuple[str, ast.ClassDef, Scope]]:
    for statement in body:
        if isinstance(statement, ast.ClassDef):
            name = f"{prefix}.{statement.name}"
            yield name, statement, scope
            table, _ = table_of(statement.body, scope.module.package)
            inside = Scope(scope.module, (table, *scope.tables))
            yield from _classes_in(statement.body, name, inside)
        elif isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            if not any(isinstance(one, ast.ClassDef) for one in walk(statement)):
                continue
            inner = scope.enter(statement)
            yield from _classes_in(statement.body, f"{prefix}.{statement.name}.<locals>", inner)
        else:
            for attribute in ("body", "orelse", "finalbody"):
                yield from _classes_in(getattr(statement, attribute, []), prefix, scope)
            for handler in getattr(statement, "handlers", []):
                yield from _classes_in(handler.body, prefix, scope)
