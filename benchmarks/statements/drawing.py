"""Statements and expressions drawn from templates, with the names that each may read."""

from __future__ import annotations

import random
import re
import textwrap
from dataclasses import dataclass, field

from benchmarks.statements.grammar.topics import Grammar

_PLACE = re.compile(r"<(?:(old|new) )?(\w+)(?: (\d))?>")
_BLOCK = re.compile(r"^( *)<(block|statement)>$", re.MULTILINE)
_NESTS = re.compile(r"<(int|list|dict|test|layer|rows|flat)(?: \d)?>")
DEPTH = 2  # of expressions and of blocks in one another

Names = dict[str, list[str]]


@dataclass
class Drawing:
    """One class on the way: kinds with a capital are attributes, others are locals of a method."""

    random: random.Random
    grammar: Grammar
    kinds: list[str] = field(default_factory=list)  # of the statements of this method
    names: Names = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)  # what ``__call__`` does with setup's parts
    count: int = 0

    def enter(self, kinds: list[str], **names: str) -> None:
        """Begin a method that has these statements and locals."""
        self.kinds = kinds
        self.names = {kind: known for kind, known in self.names.items() if kind[0].isupper()}
        for kind, name in names.items():
            self.know(kind, name)

    def know(self, kind: str, name: str) -> None:
        """Let what is drawn next read a name."""
        self.names.setdefault(kind, []).append(name)

    def fresh(self, kind: str) -> str:
        """A name for one of a kind."""
        self.count += 1
        return f"{kind[0].lower()}{self.count}"

    def expression(self, kind: str, depth: int = DEPTH) -> str:
        """One of a kind."""
        fitting = [one for one in self.grammar.expressions[kind] if self.fits(one)]
        flat = [one for one in fitting if not _NESTS.search(one)]
        template = self.random.choice(fitting if depth > 0 else flat or fitting)
        return self.filled(template, depth, later=True)

    def body(self, least: int, most: int) -> list[str]:
        """Lines of some statements."""
        count = self.random.randint(least, most)
        return [line for _ in range(count) for line in self.statement(DEPTH)]

    def statement(self, depth: int) -> list[str]:
        """Lines of one statement; of what ``setup`` alone may say none stands below another."""
        kinds = ["plain"] * 3 + ["nested"] * 2 * (depth > 0)
        kinds += [one for one in self.kinds if one != "setup" or depth == DEPTH] * 3
        fitting: list[str] = []
        while not fitting:
            every = self.grammar.statements[self.random.choice(kinds)]
            fitting = [one for one in every if self.fits(one)]
        template = self.random.choice(fitting)
        before = {name: list(known) for name, known in self.names.items()}
        is_nested = "<block>" in template or "return" in template
        text = self.filled(template, 2, later=not is_nested)
        text = _BLOCK.sub(lambda found: self._block(found, depth), text)
        if is_nested:
            self._forget(before, {"function", "thunk"} if template.startswith("def") else set())
        lines = text.split("\n")
        self.calls += [one[3:] for one in lines if one.startswith(">>>")]
        return [one for one in lines if not one.startswith(">>>")]

    def _forget(self, before: Names, kept: set[str]) -> None:
        known = {kind: self.names[kind] for kind in kept if kind in self.names}
        self.names = {**before, **known}

    def _block(self, found: re.Match[str], depth: int) -> str:
        count = self.random.randint(1, 2) if found[2] == "block" else 1
        nested = depth - 1 if found[2] == "block" else 0
        before = {name: list(known) for name, known in self.names.items()}
        lines = [line for _ in range(count) for line in self.statement(nested)]
        if found[2] == "block":
            self._forget(before, set())
        return textwrap.indent("\n".join(lines), found[1])

    def fits(self, template: str) -> bool:
        """Whether there is a name of every kind that a template reads."""
        return all(
            self.names.get(kind) for how, kind, _ in _PLACE.findall(template) if how == "old"
        )

    def filled(self, template: str, depth: int = DEPTH, *, later: bool = False) -> str:
        """A template with all but its blocks drawn; ``later``: what it names is known behind it."""
        same: dict[tuple[str, str], str] = {}
        fresh: list[tuple[str, str]] = []

        def fill(found: re.Match[str]) -> str:
            how, kind, number = found.groups()
            if kind in ("block", "statement"):
                return found[0]
            key = (kind, number or str(found.start()))
            if key not in same:
                same[key] = self._one(how, kind, depth)
                if how == "new":
                    fresh.append((kind, same[key]))
                    if not later:
                        self.know(kind, same[key])
            return same[key]

        text = _PLACE.sub(fill, template)
        for kind, name in fresh if later else ():
            self.know(kind, name)
        return text

    def _one(self, how: str | None, kind: str, depth: int) -> str:
        if how == "old":
            return self.random.choice(self.names[kind])
        if how == "new":
            return self.fresh(kind)
        return self.expression(kind, depth - 1)
