"""Classes drawn from the grammar: some for each seed, the last of which is run."""

from __future__ import annotations

import random
import textwrap
from dataclasses import dataclass

from benchmarks.statements.drawing import DEPTH, Drawing
from benchmarks.statements.grammar import ALWAYS, SOME, UNUSUAL
from benchmarks.statements.grammar.flags import FLAGS, VARIABLES
from benchmarks.statements.grammar.layers import built
from benchmarks.statements.grammar.lifts import LIFTS
from benchmarks.statements.grammar.topics import Grammar, Method, Topic

_PLAIN_SHARE = 0.85  # of the classes have the statements of published model code alone
_BASE_SHARE = 0.2
_TOPIC_SHARE = 0.3
_STYLES = ("compact",) * 5 + ("setup",) * 4 + ("both",) * 2


@dataclass(frozen=True)
class Drawn:
    """Classes and the call that makes one of the last."""

    name: str
    text: str
    build: str
    flag: str = ""  # the argument of the call that says to train
    is_lifted: bool = False


@dataclass
class _Class:
    """A class that has been drawn: others build it or inherit from it."""

    name: str
    style: str
    drawing: Drawing
    fields: dict[str, tuple[str, str]]  # kind and text of the default by name
    methods: list[tuple[Method, str]]
    has_flag: bool


def drawn(seed: int) -> Drawn:
    """The classes of a seed."""
    source = random.Random(seed)
    is_plain = source.random() < _PLAIN_SHARE
    topics = [one for one in SOME if source.random() < _TOPIC_SHARE]
    topics += [*ALWAYS, *(() if is_plain else UNUSUAL)]
    has_flag = FLAGS in topics or VARIABLES in topics
    texts: list[str] = []
    for number in range(source.choice((0, 0, 0, 1, 1, 2))):
        drawing = Drawing(source, Grammar.of(topics))
        inner, text = _class(drawing, f"C{seed}{'AB'[number]}", has_flag)
        texts.append(text)
        topics.append(_uses(inner))
    last, text = _class(Drawing(source, Grammar.of(topics)), f"C{seed}", has_flag)
    if source.random() < _BASE_SHARE:
        base = last
        last, more = _subclass(base, f"C{seed}")
        texts += [text.replace(f"class C{seed}(", f"class C{seed}Base("), more]
    else:
        texts.append(text)
    given = _given(last)
    return Drawn(
        last.name, "\n\n".join(texts), f"{last.name}({given})", "train" * has_flag, LIFTS in topics
    )


def _class(drawing: Drawing, name: str, has_flag: bool) -> tuple[_Class, str]:
    one = _Class(name, drawing.random.choice(_STYLES), drawing, {}, [], has_flag)
    lines = [f"class {name}(nn.Module):", *_indented(_fields(one))]
    lines += _indented(_methods(one, computes=True))
    lines += _indented(_setup(one, []))
    lines += _indented(_methods(one, computes=False))
    lines += _indented(_call(one, []))
    return one, "\n".join(lines) + "\n"


def _subclass(base: _Class, name: str) -> tuple[_Class, str]:
    """One that changes some of what it inherits."""
    drawing, source = base.drawing, base.drawing.random
    one = _Class(name, base.style, drawing, dict(base.fields), list(base.methods), base.has_flag)
    lines = [f"class {name}({name}Base):"]
    for field, (kind, default) in base.fields.items():
        if default and source.random() < 0.4:
            what = drawing.grammar.fields[kind]
            values = [value for value in what.values if value[0] not in "[{"]  # may be a default
            one.fields[field] = (kind, source.choice(values))
            lines.append(f"    {field}: {what.annotation} = {one.fields[field][1]}")
    for method, called in base.methods:
        if source.random() < 0.4:
            known = {kind: list(names) for kind, names in drawing.names.items()}
            drawing.names = _without_methods(drawing)
            lines += _indented(_method(one, method, called))
            drawing.names = known
    if base.style != "compact" and source.random() < 0.5:
        drawing.calls = []
        lines += _indented(_setup(one, ["super().setup()"]))
    call = "x = super().__call__(x, train)" if base.has_flag else "x = super().__call__(x)"
    if source.random() < 0.6 or len(lines) == 1:
        lines += _indented(_call(one, [call] if source.random() < 0.8 else []))
    return one, "\n".join(lines) + "\n"


def _without_methods(drawing: Drawing) -> dict[str, list[str]]:
    """Names but for methods', none of which is to call itself."""
    methods = {one.kind for one in drawing.grammar.methods}
    return {kind: names for kind, names in drawing.names.items() if kind not in methods}


def _fields(one: _Class) -> list[str]:
    """Declarations, those without a default first, and class attributes."""
    drawing, source = one.drawing, one.drawing.random
    declared: list[str] = []
    for index in range(source.randint(0, 4)):
        kind = source.choice([*drawing.grammar.fields])
        what = drawing.grammar.fields[kind]
        name = f"field{index}"
        drawing.know(kind, name)
        one.fields[name] = (kind, what.default)
        shown = f" = {what.default}" if what.default else ""
        declared.append(f"{name}: {what.annotation}{shown}")
    declared.sort(key=lambda text: " = " in text)
    if source.random() < 0.2:
        drawing.know("Number", "SIZE")
        declared.append(f"SIZE = {source.choice((3, 4))}")
    return declared


def _given(one: _Class) -> str:
    source = one.drawing.random
    values = {
        name: one.drawing.grammar.fields[kind].values for name, (kind, _) in one.fields.items()
    }
    return ", ".join(
        f"{name}={source.choice(values[name])}"
        for name, (_, default) in one.fields.items()
        if not default or source.random() < 0.5
    )


def _uses(one: _Class) -> Topic:
    """Templates that build one: numbers are drawn anew in each."""
    places = {"Number": "<int>", "Sizes": "<list>"}
    values = one.drawing.grammar.fields
    given = ", ".join(
        f"{name}={places.get(kind) or one.drawing.random.choice(values[kind].values)}"
        for name, (kind, default) in one.fields.items()
        if not default or kind in places
    )
    return built(f"{one.name}({given})", has_flag=one.has_flag)


def _methods(one: _Class, *, computes: bool) -> list[str]:
    """Those that compute numbers of fields stand before ``setup``, others behind it."""
    drawing = one.drawing
    kinds = [kind for kind in drawing.grammar.methods if not (computes and kind.calls_layers)]
    lines: list[str] = []
    for _ in range(drawing.random.randint(0, 2) if kinds else 0):
        method = drawing.random.choice(kinds)
        name = drawing.fresh(method.kind)
        lines += _method(one, method, name)
        drawing.know(method.kind, name)
        one.methods.append((method, name))
    return lines


def _method(one: _Class, method: Method, name: str) -> list[str]:
    drawing = one.drawing
    kinds = _kinds(one) if method.calls_layers else []
    drawing.enter(kinds, **method.parameters)
    compact = drawing.random.random() < 0.5 and "compact" in kinds and one.style == "both"
    lines = drawing.body(1, 3) if method.calls_layers else drawing.body(0, 2)
    lines.append(drawing.filled(method.result))
    header = method.header.replace("NAME", name).split("\n")
    return ["", *["@nn.compact"] * compact, *header, *_indented(lines)]


def _kinds(one: _Class) -> list[str]:
    return ["call"] if one.style == "setup" else ["compact", "call"]


def _setup(one: _Class, lines: list[str]) -> list[str]:
    if one.style == "compact":
        return []
    one.drawing.enter(["setup", "setup"])
    lines = [*lines, *one.drawing.body(1, 4)]
    if one.style == "setup":
        lines += one.drawing.filled(f"self.<new Part> = {one.drawing.expression('layer')}").split(
            "\n"
        )
        one.drawing.calls.append(f"x = {lines[-1].split(' = ')[0]}(x)")
    return ["", "def setup(self):", *_indented(lines)]


def _call(one: _Class, lines: list[str]) -> list[str]:
    drawing, source = one.drawing, one.drawing.random
    flag = {"train": "train"} if one.has_flag else {}
    drawing.enter(_kinds(one), array="x", **flag)
    lines = [*lines, *(drawing.body(2, 5) if one.style == "compact" else drawing.body(0, 2))]
    for call in _grouped(drawing.calls):
        if source.random() < 0.1:
            call = [f"if {drawing.expression('test')}:", *_indented(call)]
        lines += [*call, *(drawing.body(1, 1) if source.random() < 0.4 else [])]
    if one.style != "setup":
        lines.append(f"x = {drawing.expression('layer', DEPTH)}(x)")
    arrays = [f" + {other}.mean()" for other in drawing.names["array"][1:]]
    shown = ", train: bool = False" if one.has_flag else ""
    compact = ["@nn.compact"] * (one.style != "setup")
    lines.append(f"return x{''.join(arrays)}")
    return ["", *compact, f"def __call__(self, x{shown}):", *_indented(lines)]


def _grouped(calls: list[str]) -> list[list[str]]:
    """Statements of a line or more."""
    groups: list[list[str]] = []
    for line in calls:
        if line.startswith(" "):
            groups[-1].append(line)
        else:
            groups.append([line])
    return groups


def _indented(lines: list[str]) -> list[str]:
    return textwrap.indent("\n".join(lines), "    ").split("\n") if lines else []
