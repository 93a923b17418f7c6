"""What becomes of a value that ``setup`` keeps: it may be computed where it is read, or only once.

A property computes it anew, as Linen's ``setup`` does in each call. That is the same value as long as
nothing that it reads changes behind it, and nobody fills it in place::

    self.gain = 2
    self.table = np.ones(3) * self.gain   # a property would read 7,
    self.gain = 7
    self.table[0] = 4                     # and fill an array that nobody holds
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.reading.arrays import local_values
from nnx_migrate.rewrite.classes.reading.attributes import Attribute
from nnx_migrate.rewrite.classes.reading.effects import Effects, effects_on, fills
from nnx_migrate.source.bindings import names_bound_below
from nnx_migrate.source.changes import CHANGING, changed_names, given_to
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.names import parameter_names
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.walking import each, walk

RULE = "setup"
_DRAWS = ("numpy.random.", "random.", "secrets.", "time.", "uuid.")
_SEEDED = frozenset({"default_rng", "RandomState", "Generator", "Random"})
_DEPTH = 4  # functions of the project that call each other


@dataclass(frozen=True)
class KeptValues:
    """The attributes of a class, its bases and its subclasses, and what happens to them."""

    project: Project
    cls: ClassInfo
    setup: ast.FunctionDef

    @cached_property
    def _family(self) -> tuple[ClassInfo, ...]:
        every = self.project.linen.values()
        below = (one for one in every if one is not self.cls and self.cls in one.mro)
        return (*self.cls.mro, *below)

    @cached_property
    def _methods(self) -> tuple[tuple[ClassInfo, ast.FunctionDef], ...]:
        return tuple((cls, node) for cls in self._family for node in cls.methods.values())

    @cached_property
    def _stores(self) -> Mapping[str, int]:
        """How often an attribute is assigned; a field is, by the caller."""
        found = {one.name: 1 for one in self.cls.fields}
        for _, method in self._methods:
            for node in each(method, (ast.Attribute, ast.Call)):
                for name in _store_targets(node):
                    found[name] = found.get(name, 0) + 1
        return found

    def check(self, one: Attribute) -> None:
        """Refuse what Linen's ``setup`` makes anew in each call, and that shows.

        Raises:
          Refused: calls fill the value in place, or it is drawn from a state for all, or from a clock.
        """
        self._check_draws(one.value)
        if self.filled_by(one.name) - {self.setup}:
            raise ClassRefused(
                one.statement,
                f"calls change what self.{one.name} holds, which Linen makes anew in each call",
                "change a copy",
                RULE,
            )

    def is_steady(self, one: Attribute, steps: int = 1) -> bool:
        """Whether a property gives the same wherever it is read: neither the value nor what it reads changes.

        Args:
          steps: the statements of ``setup`` that make the value, one after the other.
        """
        reads = self._reads(one.value) - {one.name}
        if self._stores.get(one.name, 0) > steps or self.filled_by(one.name):
            return False
        if changed_names(one.value) & names_bound_below(self.setup):
            return False  # ``self.last = widths.pop()``; ``jnp.add(w, w)`` changes nothing
        if any(id(node) in self._changing for node in walk(one.value)):
            return False
        return all(self._stores.get(name, 0) <= 1 for name in reads)

    def changed_locals(self) -> frozenset[str]:
        """Locals of ``setup`` whose values change in place."""
        return self._changed_locals

    @cached_property
    def _changed_locals(self) -> frozenset[str]:
        return changed_names(self.setup) | self._effects.keys()

    @cached_property
    def _effects(self) -> Effects:
        return effects_on(self.project, self.cls.scope.enter(self.setup), self.cls, self.setup)

    @cached_property
    def _changing(self) -> frozenset[int]:
        return frozenset(id(node) for nodes in self._effects.values() for node in nodes)

    def _reads(self, value: ast.AST) -> frozenset[str]:
        """Attributes that a value of ``setup`` needs, through locals and methods."""
        local, visited, found = local_values(self.setup), set[str](), set[str]()
        todo = [value]
        while todo:
            for node in walk(todo.pop()):
                match node:
                    case ast.Attribute(value=ast.Name(id="self"), attr=name) if name not in found:
                        found.add(name)
                        method = self.cls.find(name)
                        todo += [method[1]] if method is not None else []
                    case ast.Name(id=name) if name not in visited:
                        visited.add(name)
                        todo += local.get(name, ())
        return frozenset(found)

    # What is changed in place --------------------------------------------------------------

    def filled_by(self, name: str) -> frozenset[ast.FunctionDef]:
        """Methods that change what an attribute holds: ``self.table[0] = 4``, ``t = self.table; t.sort()``."""
        return self._writers.get(name, frozenset())

    @cached_property
    def _writers(self) -> Mapping[str, frozenset[ast.FunctionDef]]:
        found: dict[str, set[ast.FunctionDef]] = {}
        for cls, method in self._methods:
            for name in {*self._changed_in(cls, method)}:
                found.setdefault(name, set()).add(method)
        return {name: frozenset(methods) for name, methods in found.items()}

    def _changed_in(self, cls: ClassInfo, method: ast.FunctionDef) -> Iterator[str]:
        scope = cls.scope.enter(method)
        aliases = dict(_aliases(method))
        changed = changed_names(method) | _augmented_locals(method)
        yield from (aliases[name] for name in aliases.keys() & changed)
        for node in walk(method):
            match node:
                case ast.Attribute(value=value) | ast.Subscript(value=value) if not isinstance(
                    node.ctx, ast.Load
                ):
                    yield from _attribute_name(value, aliases)
                case ast.Call():
                    for value in self._changed_by(cls, node, scope):
                        yield from _attribute_name(value, aliases)

    def _changed_by(self, cls: ClassInfo, call: ast.Call, scope: Scope) -> Iterator[ast.expr]:
        """What a call changes of what it is called on, or gets."""
        if isinstance(call.func, ast.Attribute) and call.func.attr in CHANGING:
            yield call.func.value
        symbol = self.project.resolve(call.func, scope)
        yield from (one.value for one in call.keywords if one.arg == "out")
        if symbol is not None and fills(symbol):
            yield from call.args
        own = _attribute_of_self(call.func)
        found = cls.find(own) if own else None
        function = found[1] if found is not None else self.project.function(symbol)
        if function is not None:
            changed = changed_names(function)
            names = [one for one in parameter_names(function) if one != "self"]
            yield from (value for name, value in given_to(names, call) if name in changed)

    # What is another value each time -------------------------------------------------------

    def _check_draws(self, value: ast.expr) -> None:
        scope = self.cls.scope.enter(self.setup)
        for call in each(value, ast.Call):
            if self._is_drawn(self.project.resolve(call.func, scope), _DEPTH):
                raise ClassRefused(
                    call,
                    "Linen's setup makes another value of this in each call",
                    "make it outside of the class, and give it as a field",
                    RULE,
                )

    def _is_drawn(self, symbol: str | None, depth: int) -> bool:
        if symbol is None or not depth:
            return False
        if symbol.startswith(_DRAWS):
            return _SEEDED.isdisjoint(symbol.split("."))
        match self.project.definition(symbol):
            case (module, ast.FunctionDef() as function):
                scope = Scope(module).enter(function)
                calls = (one.func for one in each(function, ast.Call))
                called = (self.project.resolve(one, scope) for one in calls)
                counts = bool(each(function, (ast.Global, ast.Nonlocal)))
                return counts or any(self._is_drawn(one, depth - 1) for one in called)
        return False


def _attribute_of_self(node: ast.AST) -> str:
    match node:
        case ast.Attribute(value=ast.Name(id="self"), attr=name):
            return name
    return ""


def _store_targets(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Attribute(ctx=ast.Store() | ast.Del()) if name := _attribute_of_self(node):
            yield name
        case ast.Call(
            func=ast.Name(id="setattr"),
            args=[ast.Name(id="self"), ast.Constant(value=str() as name), _],
        ):
            yield name


def _attribute_name(value: ast.expr, aliases: Mapping[str, str]) -> Iterator[str]:
    """The attribute that an expression is, or is a part of."""
    while not _attribute_of_self(value) and isinstance(value, ast.Attribute | ast.Subscript):
        value = value.value
    name = _attribute_of_self(value)
    if name:
        yield name
    elif isinstance(value, ast.Name) and value.id in aliases:
        yield aliases[value.id]


def _aliases(method: ast.FunctionDef) -> Iterator[tuple[str, str]]:
    """Locals that hold an attribute or a part of it: ``view = self.table[1:]``."""
    for node in walk(method):
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=local)], value=value)
                | ast.For(target=ast.Name(id=local), iter=value)
            ):
                yield from ((local, name) for name in _attribute_name(value, {}))


def _augmented_locals(method: ast.FunctionDef) -> frozenset[str]:
    """Locals that ``t += 1`` may change in place."""
    targets = (one.target for one in each(method, ast.AugAssign))
    return frozenset(one.id for one in targets if isinstance(one, ast.Name))
