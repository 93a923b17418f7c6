"""The corpus results as Markdown tables, and their place in docs/results/cases.md."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

_FOUR = "rewritten / bridged / refused / kept"
_BEGIN, _END = "<!-- corpus-table -->", "<!-- /corpus-table -->"
_TITLES = {
    "flax-examples": "Flax 0.12.8, `examples/`",
    "transformers": "transformers 4.57.6",
    "rest": "17 more packages",
    "guide": "Flax's migration guide",
}


def results_of_set(content: Mapping[str, Any]) -> str:
    """Return both tables of one set's results: its packages, and its cases."""
    if content["set"] == "guide":
        return _snippets(content)
    return f"{_packages(content)}\n\n{_cases(content)}"


def summary(results: Iterable[Mapping[str, Any]]) -> str:
    """Return one line per set: classes, references, cases at parity, by verdict."""
    heads = (
        "code",
        f"module classes {_FOUR}",
        "references rewritten / total",
        "cases at parity",
        "verdicts",
    )
    lines = _head(*heads)
    for content in results:
        lines.append(_summary_line(content))
    return "\n".join(lines)


def _summary_line(content: Mapping[str, Any]) -> str:
    title = _TITLES[content["set"]]
    if content["set"] == "guide":
        ran = sum(row["ok"] for row in content["cases"])
        return f"| {title} | | | {ran} of {len(content['cases'])} snippets run | |"
    classes: Counter[str] = Counter()
    rewritten = total = 0
    for package in content["packages"]:
        classes.update(package["classes"])
        rewritten += package["references"].get("rewritten", 0)
        total += package["references"].get("total", 0)
    verdicts = Counter(row["verdict"] for row in content["cases"])
    at_parity = sum(row["ok"] for row in content["cases"])
    told = ", ".join(f"{count} {name}" for name, count in verdicts.most_common())
    return (
        f"| {title} | {_outcomes(classes)} | {rewritten} / {total} "
        f"| {at_parity} of {len(content['cases'])} | {told} |"
    )


def _packages(content: Mapping[str, Any]) -> str:
    lines = _head(
        "package", f"classes {_FOUR}", f"references {_FOUR}", f"call sites {_FOUR}", "seconds"
    )
    for package in content["packages"]:
        told = package["error"] or _outcomes(package["classes"])
        lines.append(
            f"| {package['name']} | {told} | {_outcomes(package['references'])} "
            f"| {_outcomes(package['call_sites'])} | {package['seconds']:.1f} |"
        )
    return "\n".join(lines)


def _cases(content: Mapping[str, Any]) -> str:
    lines = _head("case", f"its classes {_FOUR}", "verdict", "seconds")
    for row in content["cases"]:
        verdict = row["verdict"] if row["ok"] else f"{row['verdict']}: {_cell(row['detail'])}"
        lines.append(
            f"| {row['case']} | {_outcomes(row['classes'])} | {verdict} | {row['seconds']:.1f} |"
        )
    return "\n".join(lines)


def _snippets(content: Mapping[str, Any]) -> str:
    lines = _head("snippet", "rewritten", "runs", "")
    for row in content["cases"]:
        lines.append(
            f"| {row['case']} | {_yes(row['rewritten'])} | {_yes(row['ok'])} "
            f"| {_cell(row['detail'])} |"
        )
    return "\n".join(lines)


def write_results(readme: Path, results: list[Mapping[str, Any]]) -> bool:
    """Replace the corpus section of docs/results/cases.md; False when it has no place for one."""
    text = readme.read_text(encoding="utf-8")
    section = re.compile(f"{re.escape(_BEGIN)}.*?{re.escape(_END)}", re.DOTALL)
    if not section.search(text):
        return False
    details = "\n\n".join(
        f"<details><summary>{_TITLES[content['set']]}, case by case</summary>\n\n"
        f"{results_of_set(content)}\n\n</details>"
        for content in results
    )
    body = f"{_BEGIN}\n{summary(results)}\n\n{details}\n{_END}"
    readme.write_text(section.sub(lambda _: body, text), encoding="utf-8")
    return True


def _outcomes(tally: Mapping[str, int]) -> str:
    names = ("rewritten", "bridged", "refused", "kept")
    return " / ".join(str(tally.get(name, 0)) for name in names)


def _head(*names: str) -> list[str]:
    return [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _cell(text: str) -> str:
    short = " ".join(text.split()).replace("|", "\\|")
    return f"{short[:157]}..." if len(short) > 160 else short
