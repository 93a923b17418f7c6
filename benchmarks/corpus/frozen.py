"""The frozen lists: which cases and classes the corpus is measured over (``frozen.json``).

``python -m benchmarks.corpus.frozen [--cache DIR]`` writes the file anew. It changes only when the
corpus itself does, never because of what the rewriter can do.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.corpus import fetch
from benchmarks.corpus.count import module_classes
from benchmarks.corpus.packages import CHECKOUT, HERE, Package, cases, packages, requirements
from benchmarks.corpus.rewriting import run_tool

FILE = HERE / "frozen.json"
_SETS = ("flax-examples", "transformers", "rest")


def read() -> dict[str, Any]:
    """Return ``{"cases": {set: {name: {...}}}, "classes": {set: {package: [path:Name]}}}``."""
    return json.loads(FILE.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def main(arguments: list[str] | None = None) -> int:
    """Run every case's Linen side, count every package's classes, and write the file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.corpus.frozen")
    parser.add_argument("--cache", type=Path, default=CHECKOUT / ".cache" / "corpus")
    parser.add_argument("--set", dest="sets", choices=_SETS, action="append")
    options = parser.parse_args(arguments)
    frozen = read() if FILE.exists() else {"cases": {}, "classes": {}}
    for chosen in options.sets or _SETS:
        python = fetch.environment(options.cache, requirements(chosen), _log)
        frozen["cases"][chosen], frozen["classes"][chosen] = {}, {}
        for package in packages(chosen):
            tree = fetch.source(options.cache, package, python, _log)
            frozen["classes"][chosen][package.name] = module_classes(tree)
            frozen["cases"][chosen].update(_truths(package, tree, python))
    FILE.write_text(json.dumps(frozen, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    broken = [
        name
        for of_set in frozen["cases"].values()
        for name, case in of_set.items()
        if not case["runs"]
    ]
    for name in broken:
        _log(f"does not run in Linen: {name}")
    return 1 if broken else 0


def _truths(package: Package, tree: Path, python: Path) -> dict[str, Any]:
    chosen = [case for case in cases(package.set) if case.package == package.name]
    if not chosen:
        return {}
    _log(f"running {len(chosen)} cases of {package.name}")
    command = [str(python), "-W", "ignore", "-m", "benchmarks.corpus.truth", "--source", str(tree)]
    done = run_tool([*command, *(str(case.file) for case in chosen)])
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"case"')]
    by_name = {line["case"]: line for line in lines}
    return {case.name: _entry(package, by_name.get(case.file.stem, {})) for case in chosen}


def _entry(package: Package, truth: dict[str, Any]) -> dict[str, Any]:
    return {
        "package": package.name,
        "runs": bool(truth.get("ok")),
        "class": truth.get("class"),
        "classes": truth.get("classes", []),
        **({} if truth.get("ok") else {"error": truth.get("error", "the process ended early")}),
    }


def _log(message: str) -> None:
    sys.stderr.write(f"{message}\n")


if __name__ == "__main__":
    sys.exit(main())
