"""Which functions and classes of the project an expression may mean, followed back through parameters.

Of ``function`` in ``def checked(function)`` these are what ``checked`` decorates and is called with. What cannot
be followed is anything, and raises: the answer never leaves one out.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from nnx_migrate.constructs.common.base import Context
from nnx_migrate.rewrite.outside.places import Place, places_of
from nnx_migrate.sizes.static_parameters import defaults_of
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.names import (
    Assignment,
    Binding,
    Definition,
    FunctionNode,
    Import,
    Opaque,
    Several,
    dotted,
    last_name,
    parameter_names,
)
from nnx_migrate.source.project import Module, Project
from nnx_migrate.source.walking import each, walk
from nnx_migrate.source.written import written_names

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS = (*_FUNCTIONS, ast.ClassDef)
_COLLECTIONS = (ast.Dict, ast.List, ast.Set, ast.DictComp, ast.ListComp, ast.SetComp)
_MOST = 500  # definitions that the code of one decorator may lead to
_Function = ast.FunctionDef | ast.AsyncFunctionDef
Statement = _Function | ast.ClassDef
# Calls whose result has the annotations of their first argument.
_THROUGH = frozenset(
    {"copy.copy", "copy.deepcopy", "dataclasses.dataclass", "dataclasses.replace", "inspect.unwrap"}
    | {"flax.struct.dataclass", "functools.partial", "jax.jit"}
)
# Decorators under which a function is called with what its callers write.
_PLAIN = frozenset({"abc.abstractmethod", "functools.cache", "functools.lru_cache"})
_PLAIN |= {"functools.wraps", "typing.overload"}
_CHECKS = frozenset({"isinstance", "issubclass"})
_OF_THE_SAME = frozenset({"__call__", "__class__", "__func__", "__init__", "__wrapped__"})


class Anything(Exception):
    """The expression may be anything."""


@dataclass(frozen=True)
class _Wanted:
    """A parameter of a function.

    Attributes:
      ordered: the parameters that positions are for; None where any argument may be the one.
    """

    function: _Function
    name: str
    ordered: Sequence[str] | None

    def arguments(
        self, args: Sequence[ast.expr], keywords: Sequence[ast.keyword]
    ) -> Iterator[ast.expr]:
        """The arguments of a call that may be the parameter's."""
        if any(isinstance(one, ast.Starred) for one in args) or any(
            one.arg is None for one in keywords
        ):
            raise Anything
        if self.ordered is None:
            yield from (*args, *(one.value for one in keywords))
            return
        yield from (one for one, name in zip(args, self.ordered, strict=False) if name == self.name)
        yield from (one.value for one in keywords if one.arg == self.name)


class Meant:
    """Reads the files of a project, each when it is first needed."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._seen: set[tuple[int, str]] = set()

    def of(self, module: Module, node: ast.expr) -> frozenset[int]:
        """Ids of the statements of the functions and classes, also of those whose instances it may be.

        Raises:
          Anything: it may be something else, too.
        """
        self._seen = set()
        return frozenset(self._of(module, node))

    def place(self, module: Module, node: ast.AST) -> Place:
        """Where a node stands."""
        return places_of(module, frozenset())[node]

    def symbol(self, module: Module, node: ast.expr) -> str | None:
        """What a dotted name refers to where it stands."""
        return self.project.resolve(node, self.place(module, node).scope)

    def below(self, cls: ClassInfo) -> list[ClassInfo]:
        """A class and all that inherit from it, or may."""
        return [
            one
            for one in self.project.classes.values()
            if cls in one.mro or any(above in self._of_unknown_base for above in one.mro)
        ]

    @cached_property
    def _of_unknown_base(self) -> set[ClassInfo]:
        """Classes that may inherit from any."""
        found = set[ClassInfo]()
        for cls in self.project.classes.values():
            for base in cls.node.bases:
                named = base.value if isinstance(base, ast.Subscript) else base
                symbols = self.project.meanings(named, cls.scope)
                is_known = bool(symbols) or (
                    isinstance(named, ast.Name) and hasattr(builtins, named.id)
                )
                if not is_known or not all(map(self._is_class, symbols)):
                    found.add(cls)
        return found

    def _is_class(self, symbol: str) -> bool:
        """Whether a symbol is a class of the project, or another package's."""
        return symbol in self.project.classes or (
            self.project.split(symbol)[0] is None and not symbol.startswith("<local>")
        )

    def _of(self, module: Module, node: ast.expr | None) -> Iterator[int]:
        match node:
            case None | ast.Constant() | ast.Lambda() | ast.JoinedStr() | ast.Compare():
                return
            case ast.Name() | ast.Attribute() if parts := dotted(node):
                yield from self._named(module, node, parts)
            case ast.Attribute(value=ast.Call() as made, attr=name) if name in _OF_THE_SAME:
                yield from self._of(module, made)
            case ast.IfExp(body=body, orelse=orelse):
                yield from self._of(module, body)
                yield from self._of(module, orelse)
            case ast.BoolOp(values=parts) | ast.Tuple(elts=parts) | ast.List(elts=parts):
                for one in parts:
                    yield from self._of(module, one)
            case ast.NamedExpr(value=value):
                yield from self._of(module, value)
            case ast.Dict(values=parts) if None not in node.keys:
                for one in parts:
                    yield from self._of(module, one)
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):  # A | B
                yield from self._of(module, left)
                yield from self._of(module, right)
            case ast.Subscript(value=ast.Name() | ast.Attribute() as owner, slice=inner):
                if not self._is_foreign(module, owner):
                    raise Anything  # an element of something of the project
                yield from self._of(module, inner)  # Optional[A]
            case ast.Call(func=function, args=args):
                yield from self._result(module, function, args)
            case _:
                raise Anything

    def _named(self, module: Module, node: ast.expr, parts: tuple[str, ...]) -> Iterator[int]:
        scope = self.place(module, node).scope
        while len(parts) > 1 and parts[-1] in _OF_THE_SAME and isinstance(node, ast.Attribute):
            node, parts = node.value, parts[:-1]
        binding = scope.lookup(parts[0])
        if isinstance(binding, Opaque) and not isinstance(binding, Several):
            if len(parts) > 1:
                raise Anything
            yield from self._local(module, node, parts[0])
        elif isinstance(binding, Definition | Assignment | Several):
            yield from self._bound(module, binding, parts[1:])
        elif binding is not None or len(parts) > 1 or not hasattr(builtins, parts[0]):
            symbol = self.project.resolve(node, scope)
            if symbol is None:
                raise Anything
            yield from self._symbol(symbol)

    def _symbol(self, symbol: str) -> Iterator[int]:
        home, rest = self.project.split(symbol)
        if home is None:
            return  # of another package
        if not rest:
            raise Anything  # a module
        yield from self._bound(home, home.table.get(rest[0]), rest[1:])

    def _bound(self, module: Module, binding: Binding | None, rest: Sequence[str]) -> Iterator[int]:
        """What a name, or an attribute of it, is by its binding."""
        match binding:
            case Definition(node=found) if not rest or _is_member(found, rest):
                yield from self.decorated(module, found, found.decorator_list)
            case Assignment(value=value) if not rest:
                if (id(value), "") not in self._seen:
                    self._seen.add((id(value), ""))
                    yield from self._of(module, value)
            case Several(bindings=bindings) if not rest:
                for other in bindings:
                    yield from self._bound(module, other, rest)
            case Import(target=target):
                symbol = self.project.imported(".".join([target, *rest]), module)
                if (0, symbol) not in self._seen:
                    self._seen.add((0, symbol))
                    yield from self._symbol(symbol)
            case _:
                raise Anything

    def decorated(
        self, module: Module, node: Statement, decorators: Sequence[ast.expr]
    ) -> Iterator[int]:
        """What a definition is behind decorators, also what it is said to be: ``@wraps(function)``.

        Raises:
          Anything: it may be something else.
        """
        words = module.by_word
        if "update_wrapper" in words or "__wrapped__" in words or "__signature__" in words:
            raise Anything
        for one in decorators:
            called = one.func if isinstance(one, ast.Call) else one
            if not self._is_foreign(module, called):
                yield from self._made_by(module, called)  # the name may be something else
            elif self.symbol(module, called) == "functools.wraps":
                given = one.args[:1] if isinstance(one, ast.Call) else []
                yield from self._of(module, given[0] if given else ast.Starred(called))
        yield id(node)  # a method stands in its class

    def _made_by(self, module: Module, decorator: ast.expr) -> Iterator[int]:
        """What a decorator of the project may give instead: something that its code, or code below, has."""
        todo, done = [*self._definitions(self.symbol(module, decorator))], set[int]()
        if not todo or not all(isinstance(node, _DEFINITIONS) for _, node in todo):
            raise Anything
        while todo:
            home, node = todo.pop()
            if id(node) in done:
                continue
            if len(done) > _MOST or isinstance(node, _COLLECTIONS):
                raise Anything
            done.add(id(node))
            if isinstance(node, _DEFINITIONS):
                yield id(node)
            for one in walk(node):
                if isinstance(one, ast.Name | ast.Attribute) and isinstance(one.ctx, ast.Load):
                    todo += self._definitions(self.symbol(home, one))

    def _definitions(self, symbol: str | None) -> Iterator[tuple[Module, ast.AST]]:
        """What may define a symbol; a package's ``from .one import one`` hides its module ``one``."""
        package, _, word = (symbol or "").rpartition(".")
        around = self.project.modules.get(package) if symbol in self.project.modules else None
        match around.table.get(word) if around is not None else None:
            case Import(target=target):
                symbol = target
        home, rest = self.project.split(self.project.canonical(symbol or ""))
        binding = home.table.get(rest[0]) if home is not None and rest else None
        for one in binding.bindings if isinstance(binding, Several) else (binding,):
            match one:
                case Definition(node=node) if home is not None:
                    yield home, node
                case Assignment(value=value) if home is not None:
                    yield home, value
                case Import(target=target) if home is not None and isinstance(binding, Several):
                    if self.project.split(self.project.imported(target, home))[0] is not None:
                        raise Anything  # one of the project's or another
                case Opaque():
                    raise Anything

    def _is_foreign(self, module: Module, node: ast.expr) -> bool:
        """Whether it is a name of another package, or Python's own."""
        symbol = self.symbol(module, node)
        if symbol is None:
            name = last_name(node) if isinstance(node, ast.Name) else ""
            is_free = self.place(module, node).scope.lookup(name) is None
            return is_free and hasattr(builtins, name)
        return self.project.split(symbol)[0] is None and not symbol.startswith("<local>")

    def _result(self, module: Module, function: ast.expr, args: list[ast.expr]) -> Iterator[int]:
        """What a call gives: an instance of a class, or something as its first argument."""
        symbol = self.symbol(module, function)
        is_type = last_name(function) == "type" and self._is_foreign(module, function)
        if (is_type and len(args) == 1) or (symbol in _THROUGH and args):
            yield from self._of(module, args[0])
        else:
            found = [*self._of(module, function)]
            classes = [self.project.by_node.get(one) for one in found]
            if not found or not all(one is not None and _is_built_plainly(one) for one in classes):
                raise Anything
            yield from found

    # ---- parameters

    def _local(self, module: Module, node: ast.expr, name: str) -> Iterator[int]:
        """What a parameter, or the variable of a loop, may be."""
        for function in module.parents.functions(node):
            stored = [one for one in each(function, ast.Name) if one.id == name and _is_stored(one)]
            if name in parameter_names(function) and not stored:
                yield from self._parameter(module, function, name)
                return
            if stored:
                over = _looped_over(module, stored)
                if over is None or name in parameter_names(function):
                    raise Anything
                yield from self._of(module, over)  # and its bases: these are read with it
                return
        raise Anything

    def _parameter(self, module: Module, function: FunctionNode, name: str) -> Iterator[int]:
        """What a parameter gets, from all callers."""
        if (id(function), name) in self._seen:
            return
        self._seen.add((id(function), name))
        spec = function.args
        if isinstance(function, ast.Lambda) or name in _unpacked(spec):
            raise Anything
        decorators = self._decorators(module, function)
        ordered = [one.arg for one in (*spec.posonlyargs, *spec.args)]
        owner = module.parents.of(function)
        if isinstance(owner, ast.ClassDef) and self._is_taken(module, owner, function.name):
            raise Anything
        if isinstance(owner, ast.ClassDef) and "staticmethod" not in decorators:
            if ordered[:1] == [name]:
                yield from self._instances(self.project.by_node.get(id(owner)), function)
                return
            ordered = ordered[1:]
        if not decorators <= {*_PLAIN, "staticmethod", "classmethod"}:
            raise Anything
        yield from self._of(module, defaults_of(spec).get(name))
        for home, use in self._uses(module, function):
            yield from self._given(home, use, _Wanted(function, name, ordered))

    def _decorators(self, module: Module, function: _Function) -> set[str]:
        called = (one.func if isinstance(one, ast.Call) else one for one in function.decorator_list)
        return {self.symbol(module, one) or last_name(one) for one in called}

    def _instances(self, cls: ClassInfo | None, function: _Function) -> Iterator[int]:
        """What ``self`` or ``cls`` of a method is: a class, its subclasses, their instances."""
        below = self.below(cls) if cls is not None else []
        decorators = self._decorators(below[0].module, function) if below else {""}
        is_plain = decorators <= {*_PLAIN, "classmethod", "property"}
        if not is_plain or any(map(_may_be_meta, below)):
            raise Anything
        if "classmethod" not in decorators and any(self._class_calls(function.name)):
            raise Anything  # with any ``self``
        yield from (id(one.node) for one in below)

    def _is_taken(self, module: Module, owner: ast.ClassDef, name: str) -> bool:
        """Whether the body of a class does something with one of its methods: ``net = partialmethod(kind)``."""
        return any(
            isinstance(one, ast.Name)
            and isinstance(one.ctx, ast.Load)
            and self.place(module, one).frame is owner
            for one in module.by_word.get(name, ())
        )

    def _class_calls(self, name: str) -> Iterator[tuple[Module, ast.expr]]:
        """Methods of a name that are taken from a class itself."""
        for home in self.project.modules.values():
            for one in home.by_word.get(name, ()):
                owner = one.value if isinstance(one, ast.Attribute) else None
                if owner is not None and self.symbol(home, owner) in self.project.classes:
                    yield home, one

    def _uses(self, module: Module, function: _Function) -> Iterator[tuple[Module, ast.expr]]:
        """Every mention of a function in code; of a constructor, of its class and of those below."""
        name, owner = function.name, module.parents.of(function)
        if name != "__init__" and name in written_names(self.project):
            raise Anything  # ``getattr(module, "name")``
        if isinstance(owner, ast.ClassDef):
            if name == "__init__":
                for one in self.below(self.project.by_node[id(owner)]):
                    yield from self._class_uses(one)
                return
            is_bound = self._decorators(module, function).isdisjoint(
                {"staticmethod", "classmethod"}
            )
            if name.startswith("__") or (is_bound and any(self._class_calls(name))):
                raise Anything  # Python calls it, or positions are others
            for home in self.project.modules.values():
                for use in home.by_word.get(name, ()):
                    if isinstance(use, ast.Attribute) and isinstance(use.ctx, ast.Load):
                        yield home, use
        elif (around := module.parents.function(function)) is not None:
            for word in each(around, ast.Name):
                if word.id == name and isinstance(word.ctx, ast.Load):
                    yield module, word
        elif module.table.get(name) != Definition(function):
            raise Anything
        else:
            yield from self.mentions(f"{module.name}.{name}")

    def _class_uses(self, cls: ClassInfo) -> Iterator[tuple[Module, ast.expr]]:
        """Mentions of a class, and calls of a constructor in it."""
        name = cls.node.name
        if cls.scope.tables or cls.module.table.get(name) != Definition(cls.node):
            raise Anything
        if name in written_names(self.project):
            raise Anything
        for node in walk(cls.node):
            match node:
                case ast.Call(func=ast.Name(id="cls") | ast.Call(func=ast.Name(id="type"))):
                    raise Anything
                case ast.Attribute(attr="__class__"):
                    if not isinstance(cls.module.parents.of(node), ast.Compare):
                        raise Anything
                case ast.Call(func=ast.Attribute(attr="__init__") as above):
                    yield cls.module, above
        for home, use in self.mentions(cls.name):
            match home.parents.of(use):
                case ast.Attribute(attr="__init__"):
                    raise Anything
                case ast.Attribute():
                    pass
                case _:
                    yield home, use

    def mentions(self, symbol: str) -> Iterator[tuple[Module, ast.Name | ast.Attribute]]:
        """The expressions for a top-level name of a module, but in annotations."""
        word = symbol.rpartition(".")[2]
        for home in self.project.modules.values():
            for name in {word, *self._renamed.get(word, ())}:
                for use in home.by_word.get(name, ()):
                    if isinstance(use.ctx, ast.Load) and self._may_be(home, use, symbol):
                        yield home, use

    @cached_property
    def _renamed(self) -> dict[str, set[str]]:
        """Other names under which imports bind a word."""
        found: dict[str, set[str]] = {}
        for module in self.project.modules.values():
            for node in module.nodes:
                if isinstance(node, ast.ImportFrom):
                    for one in node.names:
                        if one.asname:
                            found.setdefault(one.name, set()).add(one.asname)
        return found

    def _may_be(self, module: Module, use: ast.Name | ast.Attribute, symbol: str) -> bool:
        place = self.place(module, use)
        if place.context is Context.ANNOTATION:
            return False
        meanings = self.project.meanings(use, place.scope)
        if meanings:  # of one among several definitions of a name a file knows the word alone
            same = {symbol, f"<local>.{symbol.rpartition('.')[2]}"}
            return not same.isdisjoint(meanings) or any(map(self._is_made_up, meanings))
        match use:
            case ast.Attribute(value=ast.Name(id="self" | "cls")):
                return False  # its own method
        return isinstance(use, ast.Attribute)  # of what may be a module

    def _is_made_up(self, symbol: str) -> bool:
        """Whether a module gives a name that nothing in it binds: by a ``__getattr__``."""
        home, rest = self.project.split(symbol)
        return home is not None and bool(rest) and rest[0] not in home.table

    def _given(self, module: Module, use: ast.expr, wanted: _Wanted) -> Iterator[int]:
        """What an expression for a function gives its parameter."""
        parent = module.parents.of(use)
        match parent:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                if use in parent.decorator_list:
                    below = parent.decorator_list[parent.decorator_list.index(use) + 1 :]
                    yield from self.decorated(module, parent, below)
                elif not isinstance(parent, ast.ClassDef):
                    raise Anything
            case ast.Call(func=called) if called is use:
                for one in wanted.arguments(parent.args, parent.keywords):
                    yield from self._of(module, one)
            case ast.Call(func=called, args=[first, *rest], keywords=keywords) if (
                first is use and self.symbol(module, called) == "functools.partial"
            ):
                for one in wanted.arguments(rest, keywords):
                    yield from self._of(module, one)
                yield from self._given(module, parent, replace(wanted, ordered=None))
            case ast.Call(func=ast.Name(id=called)) if called in _CHECKS:
                return
            case ast.Expr() | ast.ExceptHandler():
                return
            case ast.Return():
                yield from self._returned(module, parent, wanted)
            case _:
                raise Anything

    def _returned(self, module: Module, node: ast.Return, wanted: _Wanted) -> Iterator[int]:
        """What a function that another, or itself, returns is given."""
        around = module.parents.function(node)
        if not isinstance(around, _FUNCTIONS):
            raise Anything
        if (id(node), wanted.name) in self._seen:
            return
        self._seen.add((id(node), wanted.name))
        for home, use in self._uses(module, around):
            above = home.parents.of(use)
            if isinstance(above, ast.Call) and above.func is use:
                yield from self._given(home, above, wanted)
            elif isinstance(above, _DEFINITIONS) and use in above.decorator_list:
                if not _is_unset(module, node, around):
                    raise Anything
            elif around is not wanted.function or around not in home.parents.above(use):
                raise Anything


def _is_member(node: ast.AST, rest: Sequence[str]) -> bool:
    """Whether an attribute of a class is a function or class that stands in it."""
    return isinstance(node, ast.ClassDef) and any(
        isinstance(one, _DEFINITIONS) and [one.name] == [*rest] for one in node.body
    )


def _is_built_plainly(cls: ClassInfo) -> bool:
    """Whether a call of a class gives an instance of it."""
    return not any("__new__" in one.methods or one.node.keywords for one in cls.mro)


def _is_unset(module: Module, node: ast.Return, function: _Function) -> bool:
    """Whether it stands below ``if first is None``: not reached where the function decorates."""
    first = parameter_names(function)[:1]
    match module.parents.of(node):
        case ast.If(
            test=ast.Compare(
                left=ast.Name(id=name), ops=[ast.Is()], comparators=[ast.Constant(value=None)]
            ),
            body=body,
        ):
            return node in body and (name,) == first
    return False


def _is_stored(node: ast.Name) -> bool:
    return not isinstance(node.ctx, ast.Load)


def _looped_over(module: Module, stored: Sequence[ast.Name]) -> ast.expr | None:
    """The class of ``for one in cls.mro()`` where a loop alone binds the name."""
    loop = module.parents.of(stored[0])
    if len(stored) != 1 or not isinstance(loop, ast.For | ast.comprehension):
        return None
    over = loop.iter.value if isinstance(loop.iter, ast.Subscript) else loop.iter
    match over:
        case ast.Call(func=ast.Attribute(value=cls, attr="mro"), args=[]):
            return cls
        case ast.Attribute(value=cls, attr="__mro__"):
            return cls
        case ast.Call(func=called, args=[cls]) if last_name(called) == "getmro":
            return cls
    return None


def _unpacked(spec: ast.arguments) -> set[str]:
    return {one.arg for one in (spec.vararg, spec.kwarg) if one}


def _may_be_meta(cls: ClassInfo) -> bool:
    """Whether instances of a class may be classes."""
    bases = (ast.unparse(one).split("(")[0].lower() for one in cls.node.bases)
    return any("meta" in one or one.endswith("type") for one in bases)
