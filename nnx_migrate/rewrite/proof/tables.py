"""Who fills the tables of a project: what is read from one may be any value that these put there.

``create("small")`` reads ``REG``, which ``@register`` fills in other files, with functions and classes that
the reader never names. Names are words, as in the graph that this adds links to.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping

from nnx_migrate.rewrite.proof.fillers import FUNCTION, Origin, Uses, uses_by_module
from nnx_migrate.rewrite.proof.global_values import Globals
from nnx_migrate.rewrite.proof.pieces import Key
from nnx_migrate.source.changed_globals import changed_globals
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import each

Table = tuple[
    Key, str | None
]  # the word of a global; None for a class, or for any global of a file
_Named = Mapping[Key, set[Key]]
_Words = Mapping[Key, Mapping[str, set[Key]]]


class TableLinks:
    """The links from who reads a table to who fills it."""

    def __init__(
        self,
        project: Project,
        statements: Mapping[Key, list[ast.stmt]],
        imports: Mapping[str, Mapping[str, str]],
    ) -> None:
        self._statements = statements
        self._globals = Globals(project, statements, imports)
        every = uses_by_module(project).values()
        self._uses = {key: one for uses in every for key, one in uses.items()}
        self._changes = changed_globals(project).may_change
        self._loaded: dict[Key, frozenset[str]] = {}

    def links(
        self, named: _Named, words: _Words, open_links: set[tuple[Key, Key]]
    ) -> Iterator[tuple[set[Key], set[Key]]]:
        """For each table the nodes that read it, and those that fill it.

        ``named`` is what each node names, ``words`` which nodes each of its words may mean, and
        ``open_links`` pairs of a node and of one that it may get without any word.
        """
        users: dict[Key, set[Key]] = {}
        for key, every in named.items():
            for one in every:
                users.setdefault(one, set()).add(key)
        receivers = {key: self._receivers(key, words) for key in self._uses}
        for key, every in receivers.items():
            for one in every:
                users.setdefault(one, set()).add(key)
        for table, fillers in self._fillers(users, receivers, words).items():
            yield {*self._readers(*table, users, words, open_links)}, fillers

    def _fillers(self, users: _Named, arguments: _Named, words: _Words) -> Mapping[Table, set[Key]]:
        """Who fills each table, also through functions that it hands what is to be put there."""
        returned = _Results(self._uses, words)
        fills = {key: self._filled_tables(key, words, returned) for key in self._uses}
        found: dict[Table, set[Key]] = {}
        for key, tables in fills.items():
            for table in tables:
                found.setdefault(table, set()).add(key)
        todo = [key for key, tables in fills.items() if key[1] and tables]
        while todo:
            filler = todo.pop()
            for user in users.get(filler, ()):
                uses = self._uses[user]
                if filler in arguments[user]:
                    for table in fills[filler]:
                        found.setdefault(table, set()).add(user)
                more = fills[filler] - fills[user]
                is_met = filler in arguments[user] or filler[1] in uses.own_arguments
                if user[1] and more and is_met:
                    fills[user] |= more
                    todo.append(user)
        return found

    def _readers(
        self,
        table: Key,
        word: str | None,
        users: Mapping[Key, set[Key]],
        words: _Words,
        open_links: set[tuple[Key, Key]],
    ) -> Iterator[Key]:
        if word is None or word in self._loads(table):
            yield table  # and so all who name it
            return
        for user in users.get(table, ()):
            if table in words[user].get(word, ()) or (user, table) in open_links:
                yield user

    def _loads(self, key: Key) -> frozenset[str]:
        """What the code of a file that binds globals may also give to others: ``KNOWN = REG``."""
        if key not in self._loaded:
            every = (node for one in self._statements[key] for node in each(one, ast.Name))
            self._loaded[key] = frozenset(n.id for n in every if isinstance(n.ctx, ast.Load))
        return self._loaded[key]

    def _receivers(self, key: Key, words: _Words) -> set[Key]:
        """Functions and classes that a node gives something of its own, by globals that are they, too."""
        every = self._behind(self._uses[key].forwarded_words, words[key], words)
        return {one for one, _ in every if one[1]}

    def _behind(
        self, start: Iterable[str], meant: Mapping[str, set[Key]], words: _Words
    ) -> Iterator[tuple[Key, str]]:
        """What words mean, and what the values of globals among them name: ``KNOWN = registry.REG``."""
        todo, visited = [(meant, word) for word in start], set[tuple[Key, str]]()
        while todo:
            known, word = todo.pop()
            for key in known.get(word, ()):
                if (key, word) in visited:
                    continue
                visited.add((key, word))
                yield key, word
                if not key[1]:
                    todo += [(words[key], one) for one in self._globals.words(key, word)]

    # ---- what a node fills

    def _filled_tables(self, key: Key, words: _Words, results: _Results) -> set[Table]:
        uses, meant = self._uses[key], words[key]
        found = {*self._changed_tables(uses.mutations, meant, words)}
        for origin, others in results.of(uses.mutations.results, meant):
            found |= {*self._changed_tables(origin, others, words)}
        found |= {*self._receiving_tables(uses, meant, words)}
        if uses.is_table and self._is_class(key):
            found.add((key, None))
        home = (key[0], "")
        found |= {(home, word) for word in uses.bound if home in meant.get(word, ())}
        if "globals" in uses.mutations.results and home in self._uses:
            found.add((home, None))
        return found

    def _changed_tables(
        self, origin: Origin, meant: Mapping[str, set[Key]], words: _Words
    ) -> Iterator[Table]:
        for key, word in self._behind(origin.words, meant, words):
            if key[1]:
                yield key, None
            elif self._changes(key[0], word) or self._globals.may_keep(key, word):
                yield key, word
        for key, word in self._behind(origin.far, meant, words):
            if not key[1] and self._changes(key[0], word):
                yield key, word

    def _receiving_tables(
        self, uses: Uses, meant: Mapping[str, set[Key]], words: _Words
    ) -> Iterator[Table]:
        """Objects that are given functions or classes: ``MODELS.add("a", make)``, ``add(REG, make)``."""
        for one in uses.calls:
            if FUNCTION not in one.words and not any(key[1] for key in _meant(one.words, meant)):
                continue
            for key, word in self._behind(one.callee.words, meant, words):
                if not key[1] and self._globals.may_keep(key, word, is_called=word == one.last):
                    yield key, word
                if not key[1] and self._globals.is_defined(key, word):
                    yield key, None
            for key, word in self._behind(one.callee.far, meant, words):
                if not key[1] and self._changes(key[0], word):
                    yield key, word
            if any(self._uses[key].fills_parameters for key in meant.get(one.last, ()) if key[1]):
                for key, word in self._behind(one.words, meant, words):
                    is_object = not key[1] and self._globals.may_keep(key, word)
                    if is_object and self._changes(key[0], word):
                        yield key, word

    def _is_class(self, key: Key) -> bool:
        return any(isinstance(one, ast.ClassDef) for one in self._statements[key])


class _Results:
    """What functions of the project return."""

    def __init__(self, uses: Mapping[Key, Uses], words: _Words) -> None:
        self._uses = uses
        self._words = words

    def of(
        self, results: Iterable[str], meant: Mapping[str, set[Key]]
    ) -> Iterator[tuple[Origin, Mapping[str, set[Key]]]]:
        """Where the results of functions may come from; each with what its words may mean."""
        todo, visited = [(results, meant)], set[Key]()
        while todo:
            names, known = todo.pop()
            for key in _meant(names, known) - visited:
                visited.add(key)
                if key[1]:
                    origin = self._uses[key].results
                    yield origin, self._words[key]
                    todo.append((origin.results, self._words[key]))


def _meant(words: Iterable[str], meant: Mapping[str, set[Key]]) -> set[Key]:
    return {key for word in words for key in meant.get(word, ())}
