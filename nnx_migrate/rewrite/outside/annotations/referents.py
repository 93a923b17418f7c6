"""Which functions and classes of the project an expression may mean, followed back through parameters.

Of ``function`` in ``def checked(function)`` these are what ``checked`` decorates and is called with. What cannot
be followed is anything, and raises: the answer never leaves one out.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from nnx_migrate.rewrite.outside.annotations.decorators import made_by
from nnx_migrate.rewrite.outside.annotations.uses import Anything, Function, Uses
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.names import (
    Assignment,
    Binding,
    Definition,
    FunctionNode,
    Import,
    Opaque,
    Several,
    defaults_of,
    last_name,
    name_parts,
    parameter_names,
    positional_names,
)
from nnx_migrate.source.project import Module, Project
from nnx_migrate.source.walking import callee_of, each, has_starred

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS = (*_FUNCTIONS, ast.ClassDef)
Statement = Function | ast.ClassDef
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


@dataclass(frozen=True)
class _Parameter:
    """A parameter of a function.

    Attributes:
      positions: the parameters that positions are for; None where any argument may be the one.
    """

    function: Function
    name: str
    positions: Sequence[str] | None

    def arguments(
        self, args: Sequence[ast.expr], keywords: Sequence[ast.keyword]
    ) -> Iterator[ast.expr]:
        """The arguments of a call that may be the parameter's."""
        if has_starred(args) or any(one.arg is None for one in keywords):
            raise Anything
        if self.positions is None:
            yield from (*args, *(one.value for one in keywords))
            return
        yield from (
            one for one, name in zip(args, self.positions, strict=False) if name == self.name
        )
        yield from (one.value for one in keywords if one.arg == self.name)


class Referents:
    """Reads the files of a project, each when it is first needed."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.uses = Uses(project)
        self._seen: set[tuple[int, str]] = set()

    def of(self, module: Module, node: ast.expr) -> frozenset[int]:
        """Ids of the statements of the functions and classes, also of those whose instances it may be.

        Raises:
          Anything: it may be something else, too.
        """
        self._seen = set()
        return frozenset(self._of(module, node))

    def _of(self, module: Module, node: ast.expr | None) -> Iterator[int]:
        match node:
            case None | ast.Constant() | ast.Lambda() | ast.JoinedStr() | ast.Compare():
                return
            case ast.Name() | ast.Attribute() if parts := name_parts(node):
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
                if not self.uses.is_foreign(module, owner):
                    raise Anything  # an element of something of the project
                yield from self._of(module, inner)  # Optional[A]
            case ast.Call(func=function, args=args):
                yield from self._result(module, function, args)
            case _:
                raise Anything

    def _named(self, module: Module, node: ast.expr, parts: tuple[str, ...]) -> Iterator[int]:
        scope = self.uses.place(module, node).scope
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
                yield from self.of_decorators(module, found, found.decorator_list)
            case Assignment(value=value) if not rest:
                if (id(value), "") not in self._seen:
                    self._seen.add((id(value), ""))
                    yield from self._of(module, value)
            case Several(bindings=bindings) if not rest:
                for other in bindings:
                    yield from self._bound(module, other, rest)
            case Import(target=target):
                symbol = self.project.import_symbol(".".join([target, *rest]), module)
                if (0, symbol) not in self._seen:
                    self._seen.add((0, symbol))
                    yield from self._symbol(symbol)
            case _:
                raise Anything

    def of_decorators(
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
            called = callee_of(one)
            if not self.uses.is_foreign(module, called):
                yield from made_by(self.uses, module, called)  # the name may be something else
            elif self.uses.symbol(module, called) == "functools.wraps":
                arguments = one.args[:1] if isinstance(one, ast.Call) else []
                yield from self._of(module, arguments[0] if arguments else ast.Starred(called))
        yield id(node)  # a method stands in its class

    def _result(self, module: Module, function: ast.expr, args: list[ast.expr]) -> Iterator[int]:
        """What a call gives: an instance of a class, or something as its first argument."""
        symbol = self.uses.symbol(module, function)
        is_type = last_name(function) == "type" and self.uses.is_foreign(module, function)
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
            stored = [
                one
                for one in each(function, ast.Name)
                if one.id == name and not isinstance(one.ctx, ast.Load)
            ]
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
        if isinstance(function, ast.Lambda) or name in _unpacked_names(spec):
            raise Anything
        decorators = self.uses.decorators(module, function)
        ordered = positional_names(spec)
        owner = module.parents.of(function)
        if isinstance(owner, ast.ClassDef) and self.uses.is_taken(module, owner, function.name):
            raise Anything
        if isinstance(owner, ast.ClassDef) and "staticmethod" not in decorators:
            if ordered[:1] == [name]:
                yield from self._instances(self.project.by_node.get(id(owner)), function)
                return
            ordered = ordered[1:]
        if not decorators <= {*_PLAIN, "staticmethod", "classmethod"}:
            raise Anything
        yield from self._of(module, defaults_of(spec).get(name))
        for home, use in self.uses.of(module, function):
            yield from self._of_arguments(home, use, _Parameter(function, name, ordered))

    def _instances(self, cls: ClassInfo | None, function: Function) -> Iterator[int]:
        """What ``self`` or ``cls`` of a method is: a class, its subclasses, their instances."""
        below = self.uses.below(cls) if cls is not None else []
        decorators = self.uses.decorators(below[0].module, function) if below else {""}
        is_plain = decorators <= {*_PLAIN, "classmethod", "property"}
        if not is_plain or any(map(_may_be_meta, below)):
            raise Anything
        if "classmethod" not in decorators and any(self.uses.class_calls(function.name)):
            raise Anything  # with any ``self``
        yield from (id(one.node) for one in below)

    def _of_arguments(self, module: Module, use: ast.expr, parameter: _Parameter) -> Iterator[int]:
        """What an expression for a function gives its parameter."""
        parent = module.parents.of(use)
        match parent:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                if use in parent.decorator_list:
                    below = parent.decorator_list[parent.decorator_list.index(use) + 1 :]
                    yield from self.of_decorators(module, parent, below)
                elif not isinstance(parent, ast.ClassDef):
                    raise Anything
            case ast.Call(func=called) if called is use:
                for one in parameter.arguments(parent.args, parent.keywords):
                    yield from self._of(module, one)
            case ast.Call(func=called, args=[first, *rest], keywords=keywords) if (
                first is use and self.uses.symbol(module, called) == "functools.partial"
            ):
                for one in parameter.arguments(rest, keywords):
                    yield from self._of(module, one)
                yield from self._of_arguments(module, parent, replace(parameter, positions=None))
            case ast.Call(func=ast.Name(id=called)) if called in _CHECKS:
                return
            case ast.Expr() | ast.ExceptHandler():
                return
            case ast.Return():
                yield from self._of_results(module, parent, parameter)
            case _:
                raise Anything

    def _of_results(self, module: Module, node: ast.Return, parameter: _Parameter) -> Iterator[int]:
        """What a function that another, or itself, returns is given."""
        around = module.parents.function(node)
        if not isinstance(around, _FUNCTIONS):
            raise Anything
        if (id(node), parameter.name) in self._seen:
            return
        self._seen.add((id(node), parameter.name))
        for home, use in self.uses.of(module, around):
            above = home.parents.of(use)
            if isinstance(above, ast.Call) and above.func is use:
                yield from self._of_arguments(home, above, parameter)
            elif isinstance(above, _DEFINITIONS) and use in above.decorator_list:
                if not _is_unset(module, node, around):
                    raise Anything
            elif around is not parameter.function or around not in home.parents.above(use):
                raise Anything


def _is_member(node: ast.AST, rest: Sequence[str]) -> bool:
    """Whether an attribute of a class is a function or class that stands in it."""
    return isinstance(node, ast.ClassDef) and any(
        isinstance(one, _DEFINITIONS) and [one.name] == [*rest] for one in node.body
    )


def _is_built_plainly(cls: ClassInfo) -> bool:
    """Whether a call of a class gives an instance of it."""
    return not any("__new__" in one.methods or one.node.keywords for one in cls.mro)


def _is_unset(module: Module, node: ast.Return, function: Function) -> bool:
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


def _looped_over(module: Module, targets: Sequence[ast.Name]) -> ast.expr | None:
    """The class of ``for one in cls.mro()`` where a loop alone binds the name."""
    loop = module.parents.of(targets[0])
    if len(targets) != 1 or not isinstance(loop, ast.For | ast.comprehension):
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


def _unpacked_names(spec: ast.arguments) -> set[str]:
    return {one.arg for one in (spec.vararg, spec.kwarg) if one}


def _may_be_meta(cls: ClassInfo) -> bool:
    """Whether instances of a class may be classes."""
    bases = (ast.unparse(one).split("(")[0].lower() for one in cls.node.bases)
    return any("meta" in one or one.endswith("type") for one in bases)
