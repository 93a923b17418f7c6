"""A whole random project: one to three files of classes, and a program that trains their model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from benchmarks.generated import writing
from benchmarks.generated.drawing import families
from benchmarks.generated.fronts import fronts
from benchmarks.generated.kinds.lifts import step_around
from benchmarks.generated.layout import laid_out
from benchmarks.generated.spelling import defined, importing, spelled
from benchmarks.generated.training import trainings
from benchmarks.generated.writing import Written


@dataclass(frozen=True)
class Project:
    """Texts by path in the order of imports; the last has ``main``."""

    files: tuple[tuple[str, str], ...]

    @property
    def text(self) -> str:
        """All of it, to be read."""
        return "".join(f"# --- {path}\n{text}" for path, text in self.files)


@st.composite
def projects(draw: st.DrawFn) -> Project:
    """Classes, distributed over modules, with a program around them."""
    family = draw(families())
    front = draw(fronts(family[-1]))
    if front.model is not family[-1]:
        family = [*family, front.model]
    cut = draw(st.integers(0, len(family) - 1))
    split = draw(st.sampled_from(["one", "two", "three"]))
    package = draw(st.sampled_from(["", "", "app"]))
    groups = {
        "one": [],
        "two": [("models", family)],
        "three": [("layers", family[:cut]), ("models", family[cut:])],
    }[split]
    bodies = [(name, classes_text(group)) for name, group in groups if group]
    body = classes_text(family) if split == "one" else ""
    everything = "".join(text for _, text in bodies) + body
    training = draw(trainings(front, everything))
    if body:  # in front of the program
        head, _, rest = training.partition("\n\n\n")
        more = "from typing import Any, Callable, ClassVar, Mapping, Optional, Sequence\n"
        training = f"{head.replace('from typing import Any' + chr(10), more)}\n\n\n{body}{rest}"
    if split == "one":
        package = ""
    files: list[tuple[str, str]] = [(f"{package}/__init__.py", "")] if package else []
    names: list[tuple[str, list[str]]] = []
    for name, text in [*((n, writing.HEADER + b) for n, b in bodies), ("train", training)]:
        files.append(
            (f"{package + '/' if package else ''}{name}.py", draw(_finished(text, names, package)))
        )
        names.append((name, defined(text)))
    return Project(tuple(files))


def classes_text(family: Sequence[Written]) -> str:
    """Definitions, each once, and the classes that need them; steps of scans where one is used."""
    parts: list[str] = []
    whole = "".join(one.text for one in family)
    for one in family:
        parts += [text for text in one.top if text not in parts]
        parts.append(one.text)
        if re.search(rf"\bStep{one.name}\b", whole):
            inner = "inner=nn.Dense(4)" if one.required else ""
            parts.append(step_around(writing.replaced(one, inner)))
    return "".join(parts)


@st.composite
def _finished(
    draw: st.DrawFn, text: str, names: Sequence[tuple[str, list[str]]], package: str
) -> str:
    """With imports, spelled and laid out."""
    statements = ""
    own = set(defined(text))
    for module, known in names:
        statement, text = draw(
            importing(text, module, [one for one in known if one not in own], package)
        )
        statements += statement
    head, _, rest = text.partition("\n\n\n")
    text = draw(spelled(f"{head}\n{statements}\n\n{rest}" if statements else text))
    return draw(laid_out(text))
