"""Compare one case before and after with the command line tool; results are kept and reused."""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.corpus.packages import CHECKOUT, Case
from benchmarks.corpus.rewriting import OUTCOMES, Rewritten, last_line, tool_environment

# What a case ends with besides the verdicts of `parity`.
NOT_COMPARED = ("refused", "bridged", "kept", "error")
_OWN_CODE = tuple(f"nnx_migrate/{one}" for one in ("parity", "nn", "linen", "sharding", "model.py"))


@dataclass(frozen=True)
class Row:
    """One case's line in the table; ``classes`` counts those it constructs, by outcome."""

    set: str
    case: str
    package: str
    cls: str
    verdict: str
    ok: bool
    classes: dict[str, int]
    seconds: float
    detail: str = ""
    checks: dict[str, str] | None = None
    reused: bool = False


def compare(
    case: Case,
    frozen: dict[str, Any],
    rewritten: Rewritten,
    python: Path,
    folder: Path,
    timeout: float,
    fresh: bool = False,
) -> Row:
    """Return the case's row: its verdict, or why it was not compared."""
    outcomes = rewritten.outcomes()
    used = frozen["classes"]
    found = [outcomes.get(name, {}).get("outcome", "refused") for name in used]
    classes = {outcome: found.count(outcome) for outcome in OUTCOMES}
    base = {"set": case.set, "case": case.name, "package": case.package, "cls": frozen["class"]}
    if rewritten.error is not None:
        return Row(**base, verdict="error", ok=False, classes=classes, seconds=0.0,
                   detail=f"rewrite: {rewritten.error}")  # fmt: skip
    own = outcomes.get(frozen["class"])
    if own is not None and own["outcome"] != "rewritten":
        return Row(**base, verdict=own["outcome"], ok=False, classes=classes, seconds=0.0,
                   detail=own.get("reason") or "")  # fmt: skip
    if own is None and found and "rewritten" not in found:
        return Row(**base, verdict="refused", ok=False, classes=classes, seconds=0.0,
                   detail="none of its classes is rewritten")  # fmt: skip
    kept = folder / f"{_key(case, used, rewritten)}.json"
    if kept.exists() and not fresh:
        content = json.loads(kept.read_text(encoding="utf-8"))
        return Row(**{**content, "classes": classes, "reused": True})
    row = Row(**base, classes=classes, **_parity(case, rewritten, python, folder, timeout))
    if row.verdict != "error":  # an error may be the machine's: try again next time
        kept.write_text(json.dumps(asdict(row), indent=1), encoding="utf-8")
    return row


def _parity(
    case: Case, rewritten: Rewritten, python: Path, folder: Path, timeout: float
) -> dict[str, Any]:
    folder.mkdir(parents=True, exist_ok=True)
    report = folder / f"{case.set}-{case.name.replace('/', '-')}-report.json"
    report.unlink(missing_ok=True)
    command = [str(python), "-W", "ignore", "-m", "nnx_migrate", "parity"]
    command += [f"case={case.file}", f"before={rewritten.before}", f"after={rewritten.after}"]
    command += [f"map={rewritten.map}", f"report={report}"]
    started = time.monotonic()
    code, errors = _bounded(command, timeout, folder)
    seconds = round(time.monotonic() - started, 1)
    if code is None:
        detail = f"not finished after {timeout:g} s"
        return {"verdict": "error", "ok": False, "seconds": seconds, "detail": detail}
    if not report.exists():
        detail = last_line(errors)
        return {"verdict": "error", "ok": False, "seconds": seconds, "detail": detail}
    content = json.loads(report.read_text(encoding="utf-8"))
    return {
        "verdict": str(content["verdict"]),
        "ok": bool(content["ok"]),
        "seconds": seconds,
        "detail": "" if content["ok"] else _why(content),
        "checks": {check["name"]: check["status"] for check in content["checks"]},
    }


def _why(report: dict[str, Any]) -> str:
    """Return the first failed check's first detail, and where the sides part."""
    failed = [check for check in report["checks"] if check["status"] == "fail"]
    parts = [f"{check['name']}: {(check.get('details') or ['failed'])[0]}" for check in failed[:1]]
    first = report.get("first_difference")
    if first:
        parts.append(f"first difference at {first.get('path')}")
    return "; ".join(map(str, parts))[:400]


def _bounded(command: list[str], timeout: float, folder: Path) -> tuple[int | None, str]:
    """Run a command; past the timeout interrupt it, so that it ends its own workers, then kill."""
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=tool_environment(),
    )
    try:
        _, errors = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        try:
            process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        return None, ""
    return process.returncode, errors


def _key(case: Case, used: list[str], rewritten: Rewritten) -> str:
    """A hash of what the result depends on: case, output, and the code that compares."""
    paths = frozenset(name.split(":")[0] for name in used)
    digest = hashlib.sha256(case.digest().encode())
    digest.update(rewritten.output_digest(paths or None).encode())
    digest.update(_own_code().encode())
    return digest.hexdigest()[:24]


def _own_code() -> str:
    digest = hashlib.sha256()
    for entry in _OWN_CODE:
        root = CHECKOUT / entry
        for file in sorted(root.rglob("*.py")) if root.is_dir() else [root]:
            digest.update(file.read_bytes())
    return digest.hexdigest()
