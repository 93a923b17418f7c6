"""Who fills the tables of a project: what is read from one may be any value that these put there.

``create("small")`` reads ``REG``, which ``@register`` fills in other files, with functions and classes that
the reader never names. Names are words, as in the graph that this adds links to.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from nnx_migrate.source.changes import CHANGING
from nnx_migrate.source.names import parameter_names
from nnx_migrate.source.walking import walk

Key = tuple[str, str]  # module, and the function or class of its top level; "" for the rest
_OWN = frozenset({"cls", "mcs"})  # the class around, where its methods keep a table
_Renamed = Mapping[str, Mapping[str, str]]
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass
class _Uses:
    """What a piece of code does with names that may be tables or fill them.

    Attributes:
      changed: what it changes in place.
      handed: what it gives something of its own: ``@register``, ``register("a", make)``.
      passed: what it gives only what it was given itself.
      given: words in the arguments of each call, by the words of what is called.
    """

    changed: set[str] = field(default_factory=set)
    handed: set[str] = field(default_factory=set)
    passed: set[str] = field(default_factory=set)
    given: list[tuple[set[str], set[str]]] = field(default_factory=list)


class Filled:
    """The links from tables to who fills them."""

    def __init__(self, statements: Mapping[Key, list[ast.stmt]], renamed: _Renamed) -> None:
        self._uses = {
            key: _renamed(_uses(every), renamed[key[0]]) for key, every in statements.items()
        }
        # A function's ``cls`` is what it is given: ``def dataclass(cls): ...``.
        self._classes = {
            key
            for key, every in statements.items()
            if any(isinstance(one, ast.ClassDef) for one in every)
        }

    def links(
        self, named: Mapping[Key, set[Key]], words: Mapping[Key, Mapping[str, set[Key]]]
    ) -> Iterator[tuple[Key, Key]]:
        """Pairs of a table's node and of one that fills it.

        ``named`` is what each node names, ``words`` which nodes each of its words may mean.
        """
        fills: dict[Key, set[Key]] = {}
        for key, uses in self._uses.items():
            meant = words[key]
            tables = _meant(uses.changed, meant) | _objects(uses, meant)
            # `get_table()[name] = make`: the table is what that function names.
            tables |= {more for one in tables if one[1] for more in named[one] if not more[1]}
            tables |= {key} if key in self._classes and uses.changed & _OWN else set()
            fills[key] = tables
            yield from ((one, key) for one in tables if one != key)
        todo = [key for key, tables in fills.items() if key[1] and tables]
        users: dict[Key, set[Key]] = {}
        for key, every in named.items():
            for one in every:
                users.setdefault(one, set()).add(key)
        while todo:
            filler = todo.pop()
            for user in users.get(filler, ()):
                uses = self._uses[user]
                if filler[1] in uses.handed:
                    yield from ((one, user) for one in fills[filler] if one != user)
                more = fills[filler] - fills[user]
                if user[1] and more and filler[1] in uses.handed | uses.passed:
                    fills[user] |= more
                    todo.append(user)


def _meant(words: Iterable[str], meant: Mapping[str, set[Key]]) -> set[Key]:
    return {key for word in words for key in meant.get(word, ())}


def _objects(uses: _Uses, meant: Mapping[str, set[Key]]) -> set[Key]:
    """Module code whose objects are given functions or classes: ``MODELS.add("a", make)``."""
    found: set[Key] = set()
    for called, arguments in uses.given:
        if "<lambda>" in arguments or any(key[1] for key in _meant(arguments, meant)):
            found |= {key for key in _meant(called, meant) if not key[1]}
    return found


def _renamed(uses: _Uses, names: Mapping[str, str]) -> _Uses:
    def more(words: set[str]) -> set[str]:
        return words | {names[one] for one in words & names.keys()}

    given = [(more(called), more(arguments)) for called, arguments in uses.given]
    return _Uses(more(uses.changed), more(uses.handed), more(uses.passed), given)


def _uses(statements: Iterable[ast.stmt]) -> _Uses:
    found = _Uses()
    nodes = [node for one in statements for node in walk(one)]
    parameters = {
        name for node in nodes if isinstance(node, _FUNCTIONS) for name in parameter_names(node)
    }
    called: set[int] = set()
    for node in nodes:
        for decorator in getattr(node, "decorator_list", ()):
            words = {*_words(decorator.func if isinstance(decorator, ast.Call) else decorator)}
            found.handed |= words
            name = getattr(node, "name", "")
            found.given.append((words, {name, "<lambda>"}))
        if isinstance(node, ast.Call):
            called.update(map(id, walk(node.func)))
            _add_call(node, parameters, found)
        found.changed |= {*_changed(node)}
    for node in nodes:
        match node:
            case ast.Name(id=word) | ast.Attribute(attr=word) if id(node) not in called:
                found.handed.add(word)
    found.changed |= _behind(nodes, found.changed)
    return found


def _add_call(call: ast.Call, parameters: set[str], found: _Uses) -> None:
    every = [one for given in (*call.args, *call.keywords) for one in walk(given)]
    if not every:
        return
    words = {*_words(call.func)}
    arguments = {word for one in every for word in _word(one)}
    arguments |= {"<lambda>" for one in every if isinstance(one, ast.Lambda)}
    is_own = any(
        isinstance(one, ast.Lambda | ast.Call)
        or (isinstance(one, ast.Name) and one.id not in parameters)
        for one in every
    )
    (found.handed if is_own else found.passed).update(words)
    found.given.append((words, arguments))


def _changed(node: ast.AST) -> Iterator[str]:
    """The words of what a node changes in place; not what a method sets of its own object."""
    match node:
        case ast.Subscript(value=value, ctx=ast.Store() | ast.Del()):
            yield from _words(value)
        case ast.Attribute(value=value, ctx=ast.Store() | ast.Del()):
            if not isinstance(value, ast.Name) or value.id != "self":
                yield from _words(value)
        case ast.Call(func=ast.Attribute(value=value, attr=method)) if method in CHANGING:
            yield from _words(value)
        case ast.Call(func=ast.Name(id="setattr"), args=[value, *_]):
            yield from _words(value)
        case ast.AugAssign(target=ast.Name(id=word)):
            yield word


def _behind(nodes: Iterable[ast.AST], changed: set[str]) -> set[str]:
    """The words of values that locals stand for: ``table = registry.REG; table[name] = make``."""
    found: set[str] = set()
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in changed:
                found.update(_words(value))
    return found


def _words(node: ast.AST) -> Iterator[str]:
    for one in walk(node):
        yield from _word(one)


def _word(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=word) | ast.Attribute(attr=word):
            yield word
