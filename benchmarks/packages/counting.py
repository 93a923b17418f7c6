"""What became of the classes of a package, by the frozen list of those it has."""

from __future__ import annotations

from dataclasses import dataclass, field

from benchmarks.corpus.rewriting import Rewritten


@dataclass(frozen=True)
class Classes:
    """Numbers of classes by form; those that are not NNX, and failed files, with the reason."""

    total: int
    lazy: int
    explicit: int
    others: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    internal_errors: int = 0


def count(rewritten: Rewritten, listed: list[str]) -> Classes:
    """Count the listed classes (``path:Name``) in the report of a run."""
    outcomes = rewritten.outcomes()
    forms = {
        name: outcomes[name].get("form")
        for name in listed
        if name in outcomes and outcomes[name]["outcome"] == "rewritten"
    }
    others = {
        name: outcomes[name].get("reason") or outcomes[name]["outcome"]
        if name in outcomes
        else "not in the report"
        for name in listed
        if name not in forms
    }
    failed = {
        entry["path"]: entry.get("error") or ""
        for entry in rewritten.report.get("files", [])
        if entry["status"] == "failed"
    }
    told = [*failed.values(), *others.values(), rewritten.error or ""]
    told += [entry["message"] for entry in rewritten.report.get("findings", [])]
    told += [entry.get("reason") or "" for entry in rewritten.report.get("classes", [])]
    values = list(forms.values())
    return Classes(
        total=len(listed),
        lazy=values.count("lazy"),
        explicit=values.count("explicit"),
        others=others,
        failed=failed,
        internal_errors=sum("internal error" in text for text in told),
    )
