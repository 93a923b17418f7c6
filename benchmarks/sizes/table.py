"""The results as Markdown tables, and their place in docs/results/cases.md."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

_BEGIN, _END = "<!-- sizes-table -->", "<!-- /sizes-table -->"
_TITLES = {
    "flax-examples": "Flax 0.12.8, `examples/`",
    "transformers": "transformers 4.57.6",
    "rest": "17 more packages",
}
COLUMNS = {
    "needed": "needed",
    "fields": "fields",
    "inputs": "fields and inputs",
    "argument": "argument",
    "open": "open",
    "told": "told with evidence",
    "wrong": "wrong",
    "unchecked": "unchecked",
    "untraced": "classes not traced",
    "linen": "of classes that stay Linen",
}


def summary(results: Iterable[Mapping[str, Any]]) -> str:
    """One line per set."""
    shares = ("expressions, %", "expressions or arguments, %", "told with evidence, %")
    lines = _head("code", "cases", *COLUMNS.values(), *shares)
    for content in results:
        total = _total(content)
        expressions = total["fields"] + total["inputs"]
        parts = (expressions, expressions + total["argument"], total["told"])
        told = [_share(part, total["needed"]) for part in parts]
        cells = (_TITLES[content["set"]], len(content["cases"]), *total.values(), *told)
        lines.append(_line(cells))
    return "\n".join(lines)


def of_set(content: Mapping[str, Any]) -> str:
    """One line per case, and how many of the set's cases need no size at all."""
    lines = _head("case", *COLUMNS.values())
    for row in content["cases"]:
        lines.append(_line((row["case"], *(row[name] for name in COLUMNS))))
    lines.append(_line(("all", *_total(content).values())))
    return "\n".join(lines)


def write_results(readme: Path, results: list[Mapping[str, Any]]) -> bool:
    """Replace what docs/results/cases.md says of these sets, and keep the others; False without a place for it."""
    text = readme.read_text(encoding="utf-8")
    section = re.compile(f"{re.escape(_BEGIN)}.*?{re.escape(_END)}", re.DOTALL)
    old = section.search(text)
    if old is None:
        return False
    lines = summary(results).splitlines()
    head, fresh = lines[:2], lines[2:]
    rows = {**_rows(old.group()), **{_title(line): line for line in fresh}}
    details = {**_details(old.group()), **{_TITLES[one["set"]]: of_set(one) for one in results}}
    titles = [one for one in _TITLES.values() if one in rows]
    table = "\n".join([*head, *(rows[one] for one in titles)])
    folded = "\n\n".join(_folded(one, details[one]) for one in titles if one in details)
    body = f"{_BEGIN}\n{table}\n\n{folded}\n{_END}"
    readme.write_text(section.sub(lambda _: body, text), encoding="utf-8")
    return True


def _title(line: str) -> str:
    return line.split(" | ")[0].removeprefix("| ")


def _rows(section: str) -> dict[str, str]:
    """The lines of the summary by set; those of the details have other titles."""
    return {_title(line): line for line in section.splitlines() if _title(line) in _TITLES.values()}


def _folded(title: str, table: str) -> str:
    return f"<details><summary>{title}: sizes, case by case</summary>\n\n{table}\n\n</details>"


def _details(section: str) -> dict[str, str]:
    pattern = re.escape(_folded("@", "#")).replace("@", "(.*?)").replace(r"\#", "(.*?)")
    return dict(re.findall(pattern, section, re.DOTALL))


def _total(content: Mapping[str, Any]) -> dict[str, int]:
    return {name: sum(row[name] for row in content["cases"]) for name in COLUMNS}


def _share(part: int, whole: int) -> str:
    """A share in percent, cut and not rounded: 100 % is all of them."""
    return f"{1000 * part // whole / 10:g}" if whole else "-"


def _head(*names: str) -> list[str]:
    return [_line(names), "|---" * len(names) + "|"]


def _line(cells: Iterable[Any]) -> str:
    return f"| {' | '.join(map(str, cells))} |"
