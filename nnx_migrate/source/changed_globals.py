"""Globals that the project's code may bind anew or change in place, from any file, once they have a value.

After ``config.HIDDEN = args.hidden`` in another file, ``HIDDEN = 512`` of ``config.py`` says nothing of what
a class reads. Values are followed through names, attributes (as words) and parameters of functions.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from nnx_migrate.source.changing_places import Namespaces, Place, changing_places
from nnx_migrate.source.facts import Fact
from nnx_migrate.source.names import last_name, parameter_names
from nnx_migrate.source.project import Module, Project, Scope
from nnx_migrate.source.walking import children, each

# Calls and methods whose result is, or holds, what they are given.
_GIVING = frozenset({"cast", "enumerate", "filter", "getattr", "iter", "next", "reversed", "zip"})
_PARTS = frozenset({"__getitem__", "get", "items", "pop", "setdefault", "values"})
_HOLDING = (ast.Tuple, ast.List, ast.Dict, ast.IfExp, ast.BoolOp, ast.NamedExpr, ast.Starred)
# What nothing changes in place: numbers, texts.
_FIXED = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.Compare, ast.JoinedStr)
_STARTING = frozenset({"__init__", "__new__", "__post_init__"})

_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class ChangedGlobals:
    """Which globals may change.

    Attributes:
      bound: those that are bound anew, by module and name.
      inside: those whose objects are changed in place.
      whole: modules any of whose names may be bound anew.
    """

    bound: set[tuple[str, str]] = field(default_factory=set)
    inside: set[tuple[str, str]] = field(default_factory=set)
    whole: set[str] = field(default_factory=set)

    def may_change(self, module: str, name: str) -> bool:
        """Whether a name of a module may mean another value than the module's text gives it."""
        return self.may_be_other(module, name, also_inside=True) or module in self.whole

    def may_be_other(self, module: str, name: str, *, also_inside: bool = False) -> bool:
        """Whether code that writes a name of a module binds it anew, or changes what it means."""
        one = module, name
        return one in self.bound or (also_inside and one in self.inside)


@Fact  # every class asks
def changed_globals(project: Project) -> ChangedGlobals:
    """Read all files of a project for what changes globals."""
    search = _Search(project)
    for module in project.modules.values():
        for place in changing_places(project, module, search.namespaces):
            search.note(place)
    search.follow()
    return search.changes


@dataclass
class _Search:
    project: Project
    changes: ChangedGlobals = field(default_factory=ChangedGlobals)
    _nodes: set[int] = field(default_factory=set)
    _words: set[str] = field(default_factory=set)  # attributes whose values are changed in place
    _arguments: set[tuple[str, str, int, bool]] = field(default_factory=set)  # and parameters
    _todo: list[tuple[str, str, int, bool] | str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.namespaces = Namespaces(self.project)

    def note(self, place: Place) -> None:
        """Take down one place that changes something."""
        module, names = place.module, place.names
        for owner in place.owners:
            if names is None:
                self.changes.whole.add(owner)
            else:
                self.changes.bound.update((owner, name) for name in names)
        if place.value is not None:
            self._change(module, place.value)

    def follow(self) -> None:
        """Look for who gives the attributes and parameters that are changed their values."""
        while self._todo:
            one = self._todo.pop()
            if isinstance(one, str):
                self._follow_attribute(one)
            else:
                self._follow_argument(*one)

    # ---- the values that are changed

    def _change(self, module: Module, node: ast.expr) -> None:
        """Note that the object of an expression is changed."""
        if id(node) in self._nodes:
            return
        self._nodes.add(id(node))
        owners = self.namespaces.modules(module, node) or self.namespaces.names(module, node)
        if owners:
            self.changes.whole.update(owners)
            return
        match node:
            case ast.Name(id=name):
                self._change_name(module, node, name)
            case ast.Attribute(value=value, attr=word):
                modules = self.namespaces.modules(module, value)
                if modules:
                    for home in modules:
                        self._change_global(f"{home}.{word}")
                elif not self._change_meant(module, node):
                    self._add(word)
                    self._change(module, value)
            case ast.Subscript(value=value):
                self._change(module, value)
            case ast.Call(func=function, args=args):
                if self._change_result(module, function):
                    return
                if last_name(function) in _GIVING:
                    for one in args:
                        self._change(module, one)
                elif isinstance(function, ast.Attribute) and function.attr in _PARTS:
                    self._change(module, function.value)
            case _ if isinstance(node, _HOLDING):
                for part in children(node):
                    if isinstance(part, ast.expr):
                        self._change(module, part)

    def _change_name(self, module: Module, node: ast.Name, name: str) -> None:
        for function in module.parents.functions(node):
            if name in parameter_names(function):
                self._change_parameter(module, function, name)
            values = self.namespaces.values(function).get(name, ())
            for value in values:
                self._change(module, value)
            if values or name in parameter_names(function):
                return
        if self._change_meant(module, node):
            return
        for value in self.namespaces.values(module.tree).get(name, ()):
            self._change(module, value)

    def _symbol(self, module: Module, node: ast.expr) -> str | None:
        return self.project.resolve(node, Scope(module).around(node))

    def _change_meant(self, module: Module, node: ast.expr) -> bool:
        symbols = self.namespaces.meanings(module, node)
        return sum(map(self._change_global, symbols)) > 0

    def _change_global(self, symbol: str) -> bool:
        """Note a global of the project that a symbol is, or leads through; whether it is one."""
        home, rest = self.project.split(self.project.canonical(symbol))
        if home is None or not rest:
            return False
        definition = self.project.definition(f"{home.name}.{rest[0]}")
        value = definition[1] if definition is not None else None
        if isinstance(value, _FIXED):
            return True
        self.changes.inside.add((home.name, rest[0]))
        if definition is not None and isinstance(value, ast.expr):
            self._change(definition[0], value)
        for word in rest[1:]:
            self._add(word)
        return True

    def _change_parameter(self, module: Module, function: ast.AST, name: str) -> None:
        if not isinstance(function, _Function):
            return
        around = module.parents.class_of(function)
        place = parameter_names(function).index(name)
        if function.name not in _STARTING:
            self._add((function.name, name, place, around is not None))
        elif around is not None and place > 0:  # who makes an object gives it values
            self._add((around.name, name, place, True))

    def _change_result(self, module: Module, function: ast.expr) -> bool:
        """Note what a function of the project returns; whether it is one."""
        found = self.project.definition(self._symbol(module, function) or "")
        if found is None or not isinstance(found[1], _Function):
            return False
        for one in each(found[1], ast.Return):
            if one.value is not None:
                self._change(found[0], one.value)
        return True

    def _add(self, one: tuple[str, str, int, bool] | str) -> None:
        known: set[object] = self._words if isinstance(one, str) else self._arguments  # type: ignore[assignment]
        if one not in known:
            known.add(one)
            self._todo.append(one)

    # ---- where they come from

    def _follow_attribute(self, word: str) -> None:
        """What code stores in attributes of that name: ``self.config = CONFIG``."""
        for module in self.project.modules.values():
            for node in module.by_word.get(word, ()):
                match module.parents.of(node):
                    case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
                        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
                            self._change(module, value)
        for module, keyword in self._keywords.get(word, ()):
            self._change(module, keyword.value)

    @cached_property
    def _keywords(self) -> Mapping[str, Sequence[tuple[Module, ast.keyword]]]:
        """The keywords of all calls by their names."""
        found: dict[str, list[tuple[Module, ast.keyword]]] = {}
        for module in self.project.modules.values():
            for one in each(module.tree, ast.keyword):
                if one.arg is not None:
                    found.setdefault(one.arg, []).append((module, one))
        return found

    def _follow_argument(self, function: str, parameter: str, place: int, is_method: bool) -> None:
        """What calls of functions of that name give for a parameter."""
        for module in self.project.modules.values():
            for node in module.by_word.get(function, ()):
                call = module.parents.of(node)
                if not isinstance(call, ast.Call) or call.func is not node:
                    continue
                for one in _argument_values(call, parameter, place, is_method):
                    is_own = isinstance(node, ast.Attribute) and one is node.value
                    if not is_own or self._has_method(module, one, function):
                        self._change(module, one)

    def _has_method(self, module: Module, node: ast.expr, method: str) -> bool:
        """Whether an object may have a method of the project: not a list or a dict."""
        found = self.project.definition(self._symbol(module, node) or "")
        if found is None:
            return True
        symbol = self._symbol(module, node)
        if isinstance(found[1], ast.expr):
            if not isinstance(found[1], ast.Call):
                return False
            symbol = self._symbol(found[0], found[1].func)
        cls = self.project.classes.get(symbol or "")
        return cls is not None and any(
            isinstance(one, _Function) and one.name == method
            for base in cls.mro
            for one in base.node.body
        )


def _argument_values(
    call: ast.Call, parameter: str, place: int, is_method: bool
) -> Iterator[ast.expr]:
    """What a call may give for a parameter."""
    yield from (one.value for one in call.keywords if one.arg == parameter)
    if is_method and place == 0 and isinstance(call.func, ast.Attribute):
        yield call.func.value
    at = place - is_method
    if 0 <= at < len(call.args):
        yield call.args[at]
