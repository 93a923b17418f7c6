"""Classes drawn from the grammar, one for each seed."""

from __future__ import annotations

import random
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field

from benchmarks.statements.grammar import EXPRESSIONS, FIELDS, STATEMENTS

_PLACE = re.compile(r"<(?:(old|new) )?(\w+)(?: (\d))?>")
_BLOCK = re.compile(r"^( *)<(block|statement)>$", re.MULTILINE)
_DEPTH = 2  # of expressions and of blocks in one another
_COMPACT_SHARE = 0.6


@dataclass(frozen=True)
class Drawn:
    """A class and the call that makes one."""

    name: str
    text: str
    build: str


@dataclass
class _Drawing:
    random: random.Random
    own: str  # statements with layers: those of "compact" or of "setup"
    names: dict[str, list[str]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)  # statements of ``__call__`` beside ``setup``
    count: int = 0

    def expression(self, kind: str, depth: int) -> str:
        every = EXPRESSIONS[kind].split("\n")
        fitting = [one for one in every if self._fits(one)]
        flat = [one for one in fitting if not re.search(r"<(int|list|dict|test|layer)>", one)]
        template = self.random.choice(fitting if depth > 0 else flat or fitting)
        return self._filled(template, depth, later=True)

    def statement(self, depth: int) -> list[str]:
        kinds = ["plain"] * 5 + ["nested"] * 2 * (depth > 0)
        kinds += [self.own] * 3 if self.own == "compact" or depth == _DEPTH else []
        kind = self.random.choice(kinds)
        template = self.random.choice([one for one in STATEMENTS[kind] if self._fits(one)])
        before = {name: list(known) for name, known in self.names.items()}
        is_nested = "<block>" in template or "return" in template
        text = self._filled(template, 2, later=not is_nested)
        text = _BLOCK.sub(lambda found: self._block(found, depth), text)
        if is_nested:
            functions = self.names.get("function", [])[len(before.get("function", [])) :]
            self.names = before
            self.names.setdefault("function", []).extend(
                functions if template.startswith("def") else []
            )
        lines = text.split("\n")
        self.calls += [one[3:] for one in lines if one.startswith(">>>")]
        return [one for one in lines if not one.startswith(">>>")]

    def _block(self, found: re.Match[str], depth: int) -> str:
        count = self.random.randint(1, 2) if found[2] == "block" else 1
        nested = depth - 1 if found[2] == "block" else 0
        before = {name: list(known) for name, known in self.names.items()}
        lines = [line for _ in range(count) for line in self.statement(nested)]
        if found[2] == "block":
            self.names = before
        return textwrap.indent("\n".join(lines), found[1])

    def _fits(self, template: str) -> bool:
        """Whether there is a local of every kind that a template reads."""
        return all(
            self.names.get(kind) for how, kind, _ in _PLACE.findall(template) if how == "old"
        )

    def _filled(self, template: str, depth: int, *, later: bool = False) -> str:
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
                        self._know(kind, same[key])
            return same[key]

        text = _PLACE.sub(fill, template)
        for kind, name in fresh if later else ():
            self._know(kind, name)
        return text

    def _one(self, how: str | None, kind: str, depth: int) -> str:
        if how == "old":
            return self.random.choice(self.names[kind])
        if how == "new":
            self.count += 1
            return f"{kind[0]}{self.count}"
        return self.expression(kind, depth - 1)

    def _know(self, kind: str, name: str) -> None:
        self.names.setdefault(kind, []).append(name)


def drawn(seed: int) -> Drawn:
    """The class of a seed."""
    source = random.Random(seed)
    own = "compact" if source.random() < _COMPACT_SHARE else "setup"
    drawing = _Drawing(source, own)
    fields, given = _fields(drawing)
    if own == "compact":
        drawing.names["array"] = ["x"]
    count = source.randint(4, 9)
    body = [line for _ in range(count) for line in drawing.statement(_DEPTH)]
    body += _last(drawing)
    name = f"C{seed}"
    lines = [f"class {name}(nn.Module):", *(f"    {one}" for one in fields)]
    lines += [f"    {one}" for one in _methods(own, body, drawing.calls)]
    return Drawn(name, "\n".join(lines) + "\n", f"{name}({', '.join(given)})")


def _fields(drawing: _Drawing) -> tuple[list[str], list[str]]:
    """Declarations, those without a default first, and what the call gives."""
    declared: list[tuple[bool, str]] = []
    given = []
    for index in range(drawing.random.randint(0, 3)):
        kind = drawing.random.choice([*FIELDS])
        annotation, default, values = FIELDS[kind]
        name = f"field{index}"
        drawing.names.setdefault(kind, []).append(name)
        declared.append(
            (bool(default), f"{name}: {annotation}" + (f" = {default}" if default else ""))
        )
        if not default or drawing.random.random() < 0.6:
            given.append(f"{name}={drawing.random.choice(values)}")
    return [text for _, text in sorted(declared, key=lambda one: one[0])], given


def _last(drawing: _Drawing) -> list[str]:
    """A layer at the end shows what the locals hold by then."""
    layer = drawing.expression("layer", _DEPTH)
    if drawing.own == "setup":
        drawing.calls.append("x = self.last(x)")
        return [f"self.last = {layer}"]
    arrays = [f"{one}.sum()" for one in drawing.names["array"]]
    return [f"x = {layer}(x)", f"return {' + '.join(arrays)}"]


def _methods(own: str, body: list[str], calls: list[str]) -> Iterator[str]:
    yield ""
    if own == "compact":
        yield from ("@nn.compact", "def __call__(self, x):", *(f"    {one}" for one in body))
        return
    yield from ("def setup(self):", *(f"    {one}" for one in body), "")
    yield from ("def __call__(self, x):", *(f"    {one}" for one in calls), "    return x")
