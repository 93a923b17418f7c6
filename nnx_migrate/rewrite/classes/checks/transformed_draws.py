"""Keys that are drawn where jax traces a function apart: ``jax.vmap(lambda row: self.drop(row))(x)``.

Linen counts the keys it hands out in Python. A stream of NNX counts them in a variable, which such a function
may read and not change.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

from nnx_migrate.constructs import all_layers, layer_of
from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.items import receiver_of
from nnx_migrate.source.bindings import bindings_below, target_names
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.names import FunctionNode
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.walking import each, given_values, walk

RULE = "class"
# What of jax (0.10) traces a function that it is given.
_TRACING = frozenset(
    {"vmap", "pmap", "jit", "pjit", "checkpoint", "remat", "shard_map", "smap", "custom_vmap"}
    | {"grad", "value_and_grad", "jacfwd", "jacrev", "jacobian", "hessian", "jvp", "vjp"}
    | {"linearize", "linear_transpose", "custom_jvp", "custom_vjp", "custom_gradient", "checkify"}
    | {"closure_convert", "eval_shape", "make_jaxpr"}
)
_LOOPS = frozenset(
    {"associative_scan", "cond", "custom_linear_solve", "custom_root", "fori_loop", "map"}
    | {"platform_dependent", "reduce", "reduce_window", "scan", "switch", "while_loop"}
)
_TRACED = frozenset(
    {"jax.numpy.vectorize", "jax.numpy.apply_along_axis", "jax.numpy.piecewise"}
    | {f"jax.lax.{name}" for name in _LOOPS}
)
_DROPOUT = frozenset({"rate", "dropout_rate"})  # fields of Linen's layers that have one
_HANDING_ON = frozenset({"partial", "list", "tuple", "dict", "zip", "enumerate", "reversed"})
_ITEMS = frozenset({"items", "values"})
_HOLDING = (ast.List, ast.Tuple, ast.Dict, ast.IfExp, ast.BoolOp, ast.ListComp, ast.DictComp)


def check_transformed_draws(project: Project, cls: ClassInfo) -> None:
    """Refuse functions that draw keys and are given to one of jax's transformations.

    Raises:
      Refused: there is one.
    """
    for owner in cls.mro:
        for method in owner.methods.values():
            code = _Code(project, cls, method, owner.scope.enter(method))
            for place, value in code.transformed():
                if code.draws(value):
                    raise ClassRefused(
                        place if owner is cls else cls.node,
                        "it draws keys inside a function that jax transforms, where a stream cannot count",
                        "draw the keys outside and pass them in",
                        RULE,
                    )


@dataclass(frozen=True)
class _Code:
    """One method of a class, and what is bound in it."""

    project: Project
    cls: ClassInfo
    method: ast.FunctionDef
    scope: Scope
    bound_names: frozenset[str] = frozenset()  # names and methods that are being read

    @cached_property
    def _bound(self) -> list[tuple[ast.AST, ast.AST]]:
        return list(bindings_below(self.method))

    def transformed(self) -> Iterator[tuple[ast.AST, ast.AST]]:
        """What is given to transformations, with the places of these."""
        for node in walk(self.method):
            match node:
                case ast.Call(func=function) if self._transforms(function):
                    arguments = given_values(node)
                    yield from ((node, one) for one in arguments)
                case ast.FunctionDef(decorator_list=decorators) if node is not self.method:
                    yield from ((node, node) for one in decorators if self._transforms(one))

    def _transforms(self, function: ast.AST) -> bool:
        match function:
            case ast.Name() | ast.Attribute():
                symbol = self.project.resolve(function, self.scope)
                return symbol is not None and _is_transform(self.project, symbol)
            case ast.Call(func=ast.Name() | ast.Attribute() as maker, args=[first, *_]):
                is_partial = self.project.resolve(maker, self.scope) == "functools.partial"
                return self._transforms(first if is_partial else maker)
            case ast.Call(func=maker):
                return self._transforms(maker)
        return False

    def draws(self, value: ast.AST) -> bool:
        """Whether calling what an expression gives may draw keys."""
        match value:
            case ast.Lambda() | ast.FunctionDef():
                return self._runs(value)
            case ast.Name(id=name):
                return self._named(name) or self._is_class(value)
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == self._receiver:
                return self._attribute(attr)
            case ast.Call(func=function):
                if self._makes(function):
                    return True
                if self._hands_on(function):
                    arguments = given_values(value)
                    return any(map(self.draws, arguments))
                is_view = isinstance(function, ast.Attribute) and function.attr in _ITEMS
                return is_view and self.draws(function)
            case ast.Attribute(value=inner) | ast.Subscript(value=inner) | ast.Starred(value=inner):
                return self._is_class(value) or self.draws(inner)
        holds = isinstance(value, _HOLDING)
        return holds and any(self.draws(one) for one in ast.iter_child_nodes(value))

    @property
    def _receiver(self) -> str:
        return receiver_of(self.method)

    def _hands_on(self, function: ast.AST) -> bool:
        """Whether a call gives what it is given, as ``partial(self.block, train=True)`` does."""
        match function:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                symbol = self.project.resolve(function, self.scope) or name
                layer = layer_of(symbol)
                holds = layer is not None and layer.holds_modules
                return holds or symbol.rpartition(".")[2] in _HANDING_ON
        return False

    def _makes(self, value: ast.AST) -> bool:
        """Whether it is a class whose modules may draw, or makes such: a partial, a lifted class, a field."""
        match value:
            case ast.Name(id=name) if not self._is_class(value):
                made = () if name in self.bound_names else self._bound
                inside = self._while(name)
                return any(inside._makes(one) for to, one in made if name in target_names(to))
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == self._receiver:
                return self._field(attr, classes=True)
            case ast.Call(func=function, args=[first, *_]):
                symbol = self.project.resolve(function, self.scope) or ""
                return symbol.startswith(("functools.", "flax.linen.")) and self._makes(first)
            case ast.Subscript(value=inner):
                return self._makes(inner)
        holds = isinstance(value, _HOLDING)
        found = holds and any(map(self._makes, ast.iter_child_nodes(value)))
        return found or self._is_class(value)

    def _is_class(self, node: ast.AST) -> bool:
        if not isinstance(node, ast.Name | ast.Attribute):
            return False
        symbol = self.project.resolve(node, self.scope)
        return symbol is not None and may_draw(self.project, symbol)

    def _runs(self, function: FunctionNode) -> bool:
        """Whether the code of a function may draw."""
        for node in walk(function):
            match node:
                case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == self._receiver:
                    if attr == "make_rng" or self._attribute(attr):
                        return True
                case ast.Name(id=name, ctx=ast.Load()) if self._named(name) or self._is_class(node):
                    return True
        return False

    def _named(self, name: str) -> bool:
        if name in self.bound_names or name == self._receiver:
            return False
        inside = self._while(name)
        return any(
            inside.draws(value) for target, value in self._bound if name in target_names(target)
        )

    def _attribute(self, name: str) -> bool:
        """Whether calling ``self.<name>``, or reading it where it is a property, may draw."""
        own = f"self.{name}"
        if own in self.bound_names:
            return False
        found = self.cls.find(name)
        if found is not None:
            owner, method = found
            attributes = frozenset({one for one in self.bound_names if "." in one} | {own})
            code = _Code(self.project, self.cls, method, owner.scope.enter(method), attributes)
            return code._runs(method)
        return self._field(name) or any(
            code._while(own).draws(value)
            for code in self._others()
            for target, value in code._bound
            if code._is_own(target, name)
        )

    def _field(self, name: str, *, classes: bool = False) -> bool:
        """Whether a field may hold such modules, or ``classes`` of such."""
        for one in self.cls.fields:
            if one.name == name:
                parts = [] if classes else [*walk(one.annotation)]
                parts += walk(one.default) if one.default else ()
                symbols = _symbols(self.project, one.owner.scope, parts)
                return any(may_draw(self.project, one) for one in symbols)
        return False

    def _others(self) -> Iterator[_Code]:
        for owner in self.cls.mro:
            for method in owner.methods.values():
                scope = owner.scope.enter(method)
                attributes = frozenset(one for one in self.bound_names if "." in one)
                yield _Code(self.project, self.cls, method, scope, attributes)

    def _while(self, name: str) -> _Code:
        return _Code(self.project, self.cls, self.method, self.scope, self.bound_names | {name})

    def _is_own(self, target: ast.AST, name: str) -> bool:
        match target:
            case ast.Attribute(value=ast.Name(id=receiver), attr=attr):
                return receiver == self._receiver and attr == name
            case ast.Subscript(value=inner) | ast.Starred(value=inner):
                return self._is_own(inner, name)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                return any(self._is_own(one, name) for one in parts)
        return False


def _is_transform(project: Project, symbol: str) -> bool:
    """Whether a function traces one that it is given apart; a function of the project, if it uses such."""
    if symbol.startswith("jax."):
        return symbol in _TRACED or symbol.rpartition(".")[2] in _TRACING
    found = project.definition(symbol) if project.split(symbol)[0] is not None else None
    if found is None:
        return False
    module, function = found
    if not isinstance(function, ast.FunctionDef):
        return False
    names = _symbols(project, Scope(module).enter(function), walk(function))
    return any(one.startswith("jax.") and _is_transform(project, one) for one in names)


def may_draw(project: Project, symbol: str, visited: frozenset[str] = frozenset()) -> bool:
    """Whether modules of a class may draw keys in a call: dropout, ``self.make_rng``, or one that holds such."""
    layer = layer_of(symbol)
    if layer is not None:
        return bool(_DROPOUT & {*layer.fields})
    if symbol == "flax.linen.Module":
        return _is_drawn_in(project)
    cls = project.linen.get(symbol)
    if cls is None or symbol in visited:
        return False
    inside = visited | {symbol}
    return any(
        any(one.attr == "make_rng" for one in each(method, ast.Attribute))
        or any(
            may_draw(project, one, inside)
            for one in _symbols(project, owner.scope.enter(method), walk(method))
        )
        for owner in cls.mro
        for method in owner.methods.values()
    ) or any(
        may_draw(project, one, inside)
        for field in cls.fields
        for part in (field.annotation, field.default)
        if part is not None
        for one in _symbols(project, field.owner.scope, walk(part))
    )


@lru_cache(maxsize=2)  # every class that hands a module of an unknown class to jax asks
def _is_drawn_in(project: Project) -> bool:
    """Whether anything of the project may draw: a module that it is given may be of any class there."""
    drawing = {
        one.rpartition(".")[2] for one, layer in all_layers().items() if _DROPOUT & {*layer.fields}
    }
    words = {"make_rng", *drawing}
    return any(words & module.by_word.keys() for module in project.modules.values())


def _symbols(project: Project, scope: Scope, nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
            symbol = project.resolve(node, scope)
            if symbol is not None:
                yield symbol
