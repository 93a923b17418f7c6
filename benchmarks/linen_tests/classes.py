"""The frozen lists (``classes.json``): every module class of ``tests/linen``, and which are recorded.

``python -m benchmarks.linen_tests.classes --evidence DIR`` writes the file anew from what
``nnx-migrate record -- python -m pytest FILE`` wrote for each test file (``DIR/*.db``, Python 3.11, the
versions of ``benchmarks/corpus/pins.toml``). It changes only when the corpus does, never because of what
the rewriter can do.

A class is in the denominator when a call of it was recorded and its initialisation succeeds where it is
traced alone. The other recorded classes are listed with the reason: most are there to raise.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.corpus import fetch
from benchmarks.corpus.count import module_classes
from benchmarks.corpus.packages import CHECKOUT, packages, requirements
from nnx_migrate.evidence.read import load
from nnx_migrate.evidence.schema import EvidenceError

FILE = Path(__file__).with_name("classes.json")


def read() -> dict[str, Any]:
    """Return ``{"classes": [path:Name], "initialised": [path:Name], "not_initialised": {...}}``."""
    return json.loads(FILE.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def tree_of(cache: Path) -> Path:
    """Flax's ``tests/linen``, beside the examples of the same source distribution."""
    python = fetch.environment(cache, requirements("flax-examples"), _log)
    package = packages("flax-examples")[0]
    source = fetch.source(cache, package, python, _log)
    top = next(one for one in (source, *source.parents) if (one / "tests" / "linen").is_dir())
    return top / "tests" / "linen"


def recorded(evidence: Path) -> tuple[list[str], dict[str, str]]:
    """Classes that one evidence file shows initialised, and why the others are not."""
    good: list[str] = []
    bad: dict[str, str] = {}
    for cls in load(evidence).classes:
        name = f"{cls.key.module}.py:{cls.key.qualname.partition(':')[0]}"
        reasons = [cls.failures.get(number) for number in cls.instances]
        if None in reasons:
            good.append(name)
        else:
            bad[name] = str(reasons[0])
    return good, bad


def main(arguments: list[str] | None = None) -> int:
    """Count the classes, read the evidence, and write the file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.linen_tests.classes")
    parser.add_argument("--cache", type=Path, default=CHECKOUT / ".cache" / "corpus")
    parser.add_argument("--evidence", type=Path, required=True)
    options = parser.parse_args(arguments)
    good: list[str] = []
    bad: dict[str, str] = {}
    for file in sorted(options.evidence.glob("*.db")):
        try:
            found, failed = recorded(file)
        except EvidenceError as error:  # a test file without module classes
            _log(str(error))
            continue
        good += found
        bad |= failed
    every = module_classes(tree_of(options.cache.resolve()))
    unknown = sorted({*good, *bad} - set(every))
    if unknown:
        _log(f"recorded, but no class of the tree: {', '.join(unknown)}")
    lists = {
        "classes": every,
        "initialised": sorted(set(good) & set(every)),
        "not_initialised": {name: bad[name] for name in sorted(bad) if name in every},
    }
    FILE.write_text(json.dumps(lists, indent=1) + "\n", encoding="utf-8")
    return 1 if unknown else 0


def _log(message: str) -> None:
    sys.stderr.write(f"{message}\n")


if __name__ == "__main__":
    sys.exit(main())
