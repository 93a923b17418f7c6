"""Results of packages as a Markdown table, and what is wrong with one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_HEADS = (
    "package",
    "classes",
    "lazy",
    "explicit",
    "call sites rewritten / all",
    "cases at parity",
    "internal errors",
    "seconds to rewrite",
    "settings of ours",
)


def table(results: Sequence[Mapping[str, Any]]) -> str:
    """One row for each package, and their sums."""
    rows = [_cells(result) for result in results]
    lines = [_row(_HEADS), "|---" * len(_HEADS) + "|", *(_row(row) for row in rows)]
    if len(results) > 1:
        lines.append(_row(_cells(_sum(results))))
    return "\n".join(lines)


def line(result: Mapping[str, Any]) -> str:
    """One package's row."""
    return _row(_cells(result))


def problems(result: Mapping[str, Any]) -> list[str]:
    """What is not as it must be: one line each."""
    name, classes = result["name"], result["classes"]
    found = [f"{name}: {result['error']}"] if result["error"] else []
    found += [f"{name}: {path}: {why}" for path, why in classes["failed"].items()]
    found += [f"{name}: {cls} is not NNX: {why}" for cls, why in classes["others"].items()]
    if classes["internal_errors"]:
        found.append(f"{name}: {classes['internal_errors']} internal errors")
    found += [
        f"{name}: case {case['case']}: {case['detail']}"
        for case in result["cases"]
        if not case["same"]
    ]
    return found


def _cells(result: Mapping[str, Any]) -> list[str]:
    classes, sites, cases = result["classes"], result["call_sites"], result["cases"]
    at_parity = sum(case["same"] for case in cases)
    return [
        str(result["name"]),
        str(classes["total"]),
        str(classes["lazy"]),
        str(classes["explicit"]),
        f"{sites.get('rewritten', 0)} / {sites.get('total', 0)}",
        f"{at_parity} of {len(cases)}",
        str(classes["internal_errors"]),
        f"{result['seconds']:.1f}",
        str(result.get("settings", "")),
    ]


def _sum(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    def added(part: str, names: Iterable[str]) -> dict[str, int]:
        return {name: sum(one[part].get(name, 0) for one in results) for name in names}

    return {
        "name": "all",
        "seconds": sum(one["seconds"] for one in results),
        "classes": added("classes", ("total", "lazy", "explicit", "internal_errors")),
        "call_sites": added("call_sites", ("rewritten", "total")),
        "cases": [case for one in results for case in one["cases"]],
    }


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
