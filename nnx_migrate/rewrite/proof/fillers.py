"""What a piece of code may put into a table that it does not own: what it changes, and whom it hands what.

An object that a function was given, or makes itself, is no table: what is set on it is found again by who
has that object. Names are words, and locals stand for the values that they are bound to.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache

from nnx_migrate.rewrite.proof.pieces import Key, import_renames, pieces
from nnx_migrate.source.bindings import (
    bound_names,
    names_bound_at,
    plain_bindings_at,
    target_names,
)
from nnx_migrate.source.changes import CHANGING, CHANGING_OPERATORS
from nnx_migrate.source.facts import Fact
from nnx_migrate.source.names import (
    FunctionNode,
    last_name,
    parameter_names,
    root_name,
)
from nnx_migrate.source.project import Module, Project, Scope
from nnx_migrate.source.walking import children, given_values, is_self, walk

_PUTTING = CHANGING - frozenset(
    "remove pop clear sort reverse popitem discard __delitem__ __delattr__ popleft rotate"  # noqa: SIM905
    " move_to_end intersection_update difference_update __next__ resize partition".split()
)
_SETTING = (CHANGING_OPERATORS - {"delitem"}) | {"setattr"}
_OWNERS = frozenset({"cls", "mcs"})
# What can hold no function, class or model.
_PLAIN = (ast.Constant, ast.JoinedStr, ast.Compare, ast.UnaryOp)
_FRESH = (*_PLAIN, ast.BinOp, ast.Lambda)
_CONTAINERS = frozenset({"defaultdict", "deque", "dict", "list", "set"})
FUNCTION = "<lambda>"


@dataclass
class Origin:
    """Where an object may come from.

    Attributes:
      words: globals that it is, or is a part of.
      far: attributes of objects that no global names here, and what functions are given for it:
        ``self.table``, ``checked(TABLE)``.
      results: functions and methods that returned it.
    """

    words: set[str] = field(default_factory=set)
    far: set[str] = field(default_factory=set)
    results: set[str] = field(default_factory=set)

    def add(self, other: Origin) -> None:
        """Or from there."""
        self.words |= other.words
        self.far |= other.far
        self.results |= other.results

    def rename(self, names: Mapping[str, str]) -> Origin:
        """With the words that imports give another name, also as they are called where they come from."""
        return Origin(*(rename(one, names) for one in (self.words, self.far, self.results)))


@dataclass
class Call:
    """A call that gives something: what may be called, by which last word, and the words given."""

    callee: Origin
    last: str
    words: set[str]


@dataclass
class Uses:
    """What a piece of code does with names that may be tables or fill them.

    Attributes:
      mutations: what it changes in place, or sets in another file.
      bound: globals of its file that it binds anew.
      results: what it returns.
      forwarded_words: what it gives something of its own: ``@register``, ``register("a", make)``.
      own_arguments: what it gives only what it was given itself.
      calls: those with arguments.
      is_table: whether a class keeps what its methods are given.
      fills_parameters: whether it changes what it was given itself.
    """

    mutations: Origin = field(default_factory=Origin)
    bound: set[str] = field(default_factory=set)
    results: Origin = field(default_factory=Origin)
    forwarded_words: set[str] = field(default_factory=set)
    own_arguments: set[str] = field(default_factory=set)
    calls: list[Call] = field(default_factory=list)
    is_table: bool = False
    fills_parameters: bool = False


def rename(words: set[str], names: Mapping[str, str]) -> set[str]:
    """Words, and what they are called where imports take them from."""
    return words | {names[one] for one in words & names.keys()}


@Fact
def uses_by_module(project: Project) -> Mapping[str, Mapping[Key, Uses]]:
    """What all code of a project does with names."""
    return {name: _uses_in(project, module) for name, module in project.modules.items()}


def _uses_in(project: Project, module: Module) -> Mapping[Key, Uses]:
    """What the functions, classes and module code of a file do."""
    statements: dict[Key, list[ast.stmt]] = {}
    for key, one in pieces(module):
        statements.setdefault(key, []).append(one)
    names = import_renames(project)[module.name]
    return {key: _uses_of(project, module, every, names) for key, every in statements.items()}


def _uses_of(
    project: Project, module: Module, statements: Iterable[ast.stmt], names: Mapping[str, str]
) -> Uses:
    """Read a piece of code; ``names``: what its imports rename."""
    reader = _Reader(project, module, [node for one in statements for node in walk(one)])
    reader.read()
    found = reader.found
    found.mutations = found.mutations.rename(names)
    found.results = found.results.rename(names)
    found.forwarded_words = rename(found.forwarded_words, names)
    found.own_arguments = rename(found.own_arguments, names)
    for one in found.calls:
        one.callee, one.words = one.callee.rename(names), rename(one.words, names)
    return found


class _Reader:
    def __init__(self, project: Project, module: Module, nodes: list[ast.AST]) -> None:
        self.project = project
        self.module = module
        self.nodes = nodes
        self.found = Uses()
        self._parameters = {
            name
            for node in nodes
            if isinstance(node, FunctionNode)
            for name in parameter_names(node)
        }
        self._values = _values(nodes)
        self._shared = _class_objects(nodes)
        # Ways through locals meet the same names again and again.
        self._first = cache(self._starting_at)
        self._is_local = cache(self._binds)
        self._is_module = cache(self._names_module)

    def read(self) -> None:
        called: set[int] = set()
        plain: set[int] = set()
        for node in self.nodes:
            match node:
                case ast.Call():
                    called.update(map(id, walk(node.func)))
                    self._call(node)
                case ast.Assign(targets=targets, value=ast.expr() as value):
                    plain.update(id(one) for one in targets if isinstance(value, _PLAIN))
                case ast.Return(value=ast.expr() as value):
                    self.found.results.add(self.origin(value))
            self._note_decorators(node)
            if id(node) not in plain:
                self._note_change(node)
        for node in self.nodes:
            match node:
                case ast.Name(id=word) | ast.Attribute(attr=word) if id(node) not in called:
                    self.found.forwarded_words.add(word)

    def origin(self, node: ast.expr, visited: set[str] | None = None) -> Origin:
        """Where the object of an expression may come from."""
        found, visited = Origin(), set() if visited is None else visited
        match node:
            case ast.Name(id=word) if (
                not visited
            ):  # where most ways begin, and many by the same name
                first, met = self._first(word, self._is_local(node))
                found.add(first)
                visited |= met
            case ast.Name(id=word):
                found.add(self._of_name(word, self._is_local(node), visited))
            case ast.Attribute(value=value, attr=word) if self._is_module(value):
                found.words.add(word)
            case ast.Attribute(value=value, attr=word):
                found.add(self.origin(value, visited))
                (found.words if found.words else found.far).add(word)
            case ast.Subscript(value=value):
                found.add(self.origin(value, visited))
            case ast.Call(func=function):
                match function:
                    case ast.Name(id=word):
                        found.results.add(word)
                    case ast.Attribute(value=value, attr=word):
                        found.results.add(word)
                        if not self._is_module(value):
                            found.add(self.origin(value, visited))
                    case _:
                        found.add(self.origin(function, visited))
                for one in given_values(node):
                    origin = self.origin(one, visited)
                    found.far |= origin.words | origin.far
            case _ if not isinstance(node, _FRESH):
                for part in children(node):
                    if isinstance(part, ast.expr):
                        found.add(self.origin(part, visited))
        return found

    def _starting_at(self, word: str, is_local: bool) -> tuple[Origin, set[str]]:
        """Where the object of a name may come from, and the names on the ways there."""
        visited: set[str] = set()
        return self._of_name(word, is_local, visited), visited

    def _of_name(self, word: str, is_local: bool, visited: set[str]) -> Origin:
        found = Origin(set() if is_local else {word})
        values = () if word in visited else self._values.get(word, ())
        visited.add(word)  # each name once: paths through locals are too many
        for value in values:
            found.add(self.origin(value, visited))
        return found

    def _binds(self, node: ast.Name) -> bool:
        return any(node.id in _locals(one) for one in self.module.parents.functions(node))

    def _names_module(self, node: ast.expr) -> bool:
        symbol = self.project.resolve(node, Scope(self.module).around(node))
        return symbol in self.project.modules

    def _note_change(self, node: ast.AST) -> None:
        match node:
            case ast.Subscript(value=value, ctx=ast.Store()):
                self._change(value)
            case ast.Attribute(value=value, attr=word, ctx=ast.Store()):
                self._set(value, word)
            case ast.Call(func=ast.Attribute(value=value, attr=method), args=args):
                if method in _PUTTING:
                    self._change(value)
                elif method in _SETTING and args:
                    self._change(args[0])
            case ast.Call(func=ast.Name(id=name), args=[value, *rest]) if name in _SETTING:
                match rest:
                    case [ast.Constant(value=str() as word), *_]:
                        self._set(value, word)
                    case _:
                        self._change(value)
            case ast.AugAssign(target=ast.Name() as target):
                self._change(target)
            case ast.Global(names=names):
                self.found.bound.update(names)

    def _change(self, value: ast.expr) -> None:
        origin = self.origin(value)
        self.found.mutations.add(origin)
        match value:
            case ast.Attribute(value=ast.Name(id="self"), attr=word) if word in self._shared:
                self.found.is_table = True
            case _:
                self._change_parameter(value)

    def _set(self, value: ast.expr, word: str) -> None:
        if is_self(value):
            return  # of its own object
        self._change(value)
        if self.origin(value).words:
            self.found.mutations.far.add(word)

    def _change_parameter(self, value: ast.expr) -> None:
        name = root_name(value)
        self.found.fills_parameters |= name in self._parameters - {"self"}
        self.found.is_table |= name in _OWNERS

    def _note_decorators(self, node: ast.AST) -> None:
        for decorator in getattr(node, "decorator_list", ()):
            is_call = isinstance(decorator, ast.Call)
            words = {*names_of(decorator.func if is_call else decorator)}
            self.found.forwarded_words |= words
            name = getattr(node, "name", "")
            self.found.calls.append(self._call_of(decorator, {name, FUNCTION}))

    def _call(self, call: ast.Call) -> None:
        call_arguments = given_values(call)
        every = [part for one in call_arguments for part in walk(one)]
        if not every:
            return
        arguments = {word for one in every for word in _word(one)}
        if any(isinstance(one, ast.Lambda) or self._is_given(one) for one in call_arguments):
            arguments.add(FUNCTION)
        is_own = any(
            isinstance(one, ast.Lambda | ast.Call)
            or (isinstance(one, ast.Name) and one.id not in self._parameters)
            for one in every
        )
        (self.found.forwarded_words if is_own else self.found.own_arguments).update(
            names_of(call.func)
        )
        self.found.calls.append(self._call_of(call.func, arguments))

    def _is_given(self, node: ast.expr) -> bool:
        """Whether it is what a function was given, which may be a function or a class."""
        return isinstance(node, ast.Name) and node.id in self._parameters - {"self"}

    def _call_of(self, callee: ast.expr, words: set[str]) -> Call:
        """What ``MODELS.add``, ``MODELS.add("a")`` or ``MODELS`` gets when it is called."""
        while isinstance(callee, ast.Call):
            callee = callee.func
        return Call(self.origin(callee), last_name(callee), words)


@lru_cache(maxsize=1 << 12)
def _locals(function: FunctionNode) -> frozenset[str]:
    """Names that a function binds for itself, to no global and by no import."""
    body = [] if isinstance(function, ast.Lambda) else function.body
    found = {name for one in body for name in bound_names(one)}
    for node in walk(function):
        match node:
            case ast.Global(names=names):
                found -= {*names}
            case ast.Import() | ast.ImportFrom():
                found -= {*names_bound_at(node)}
    return frozenset(found | {*parameter_names(function)})


def _values(nodes: Iterable[ast.AST]) -> dict[str, list[ast.expr]]:
    """What names are bound to, and what loops go through and blocks are managed by under them."""
    found: dict[str, list[ast.expr]] = {}
    for node in nodes:
        bound = [*plain_bindings_at(node)]
        if isinstance(node, ast.withitem) and node.optional_vars is not None:
            bound.append((node.optional_vars, node.context_expr))
        for target, value in bound:
            for name in target_names(target):
                found.setdefault(name, []).append(value)
    return found


def _class_objects(nodes: Iterable[ast.AST]) -> set[str]:
    """What the bodies of classes bind to objects that all their instances share: ``known = {}``."""
    return {
        name
        for node in nodes
        if isinstance(node, ast.ClassDef)
        for one in node.body
        for target, value in plain_bindings_at(one)
        if _is_container(value)
        for name in target_names(target)
    }


def _is_container(value: ast.expr) -> bool:
    """Whether a value of a class's body is an object itself, and not what says how to make one."""
    if isinstance(value, ast.Call):
        name = last_name(value.func)
        return name in _CONTAINERS or name[:1].isupper()
    return not isinstance(value, _FRESH)


def names_of(node: ast.AST) -> Iterator[str]:
    """The words of the names and attributes in a piece of code."""
    for one in walk(node):
        yield from _word(one)


def _word(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=word) | ast.Attribute(attr=word):
            yield word
