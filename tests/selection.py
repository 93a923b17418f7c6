"""Which tests `make test` leaves to `make test-deep`: those listed in ``slow.toml``.

``python -m tests.selection junit.xml`` writes that file anew from a timed run of everything
(``pytest -n 2 --dist loadfile --junitxml=junit.xml``): of each test function the quick suite runs as
many cases as fit into `SHARE` seconds, at least one, unless a case alone takes longer than `LONGEST`.
Constructs, hazards, idioms, properties, one whole model and the rules of the house (`ALWAYS`) have a case
each, however long it takes. With ``--quick`` the run was one of the quick suite: what that leaves out
stays out.
"""

from __future__ import annotations

import argparse
import collections
import sys
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from xml.etree import ElementTree

import pytest

HERE = Path(__file__).parent
FILE = HERE / "slow.toml"
SHARE = 1.0
LONGEST = 1.6
ALWAYS = (
    "constructs/",
    "parity/models/test_run.py::test_a_model_is_the_same",
    "rewrite/hazards/",
    "rewrite/idioms/",
    "rewrite/programs/",
    "rewrite/test_workers.py::test_several_processes_find_what_one_does",
    "sharding/test_properties.py",
    "test_imports.py",
)
HEADER = """\
# Test functions of which `make test` runs only this many cases, from the first on; `make test-deep` runs
# the others. Written by `python -m tests.selection`.
"""


def read(file: Path = FILE) -> dict[str, int]:
    """Number of cases in the quick suite by ``FILE::FUNCTION``, for those that are cut."""
    content: dict[str, dict[str, int]] = tomllib.loads(file.read_text(encoding="utf-8"))
    return {f"{path}::{name}": n for path, cut in content.items() for name, n in cut.items()}


def mark(items: Iterable[pytest.Item], quick: Mapping[str, int]) -> None:
    """Mark the cases beyond the number given as slow."""
    seen: collections.Counter[str] = collections.Counter()
    for item in items:
        name = function_of(item.nodeid)
        seen[name] += 1
        if seen[name] > quick.get(name, seen[name]):
            item.add_marker(pytest.mark.slow)


def function_of(nodeid: str) -> str:
    """``FILE::FUNCTION`` below ``tests`` of a case."""
    return nodeid.partition("[")[0].removeprefix("tests/")


def chosen(times: Mapping[str, list[float]]) -> dict[str, int]:
    """How many cases of each function are quick, where that is not all of them."""
    found = {}
    for name, cases in times.items():
        spent, number = 0.0, 0
        for seconds in cases:
            spent += seconds
            is_needed = not number and name.startswith(ALWAYS)
            if not is_needed and ((number and spent > SHARE) or seconds > LONGEST):
                break
            number += 1
        if number < len(cases):
            found[name] = number
    return found


def timed(junit: Path, scale: float) -> dict[str, list[float]]:
    """Seconds of the cases of each function, in their order."""
    found: dict[str, list[float]] = collections.defaultdict(list)
    for case in ElementTree.parse(junit).iter("testcase"):
        module = case.attrib["classname"].replace(".", "/") + ".py"
        name = function_of(f"{module}::{case.attrib['name']}")
        found[name].append(float(case.attrib["time"]) * scale)
    return found


def main(arguments: list[str] | None = None) -> int:
    """Write ``slow.toml`` and say what the quick suite takes."""
    parser = argparse.ArgumentParser(prog="python -m tests.selection")
    parser.add_argument("junit", type=Path)
    parser.add_argument("--scale", type=float, default=1.0, help="for a run on a busy machine")
    parser.add_argument("--quick", action="store_true", help="a run of the quick suite alone")
    options = parser.parse_args(arguments)
    times = timed(options.junit, options.scale)
    quick = (read() if options.quick else {}) | chosen(times)
    text = HEADER
    for file in sorted({name.partition("::")[0] for name in quick}):
        text += f'\n["{file}"]\n'
        for name in sorted(name for name in quick if name.partition("::")[0] == file):
            text += f"{name.partition('::')[2]} = {quick[name]}\n"
    FILE.write_text(text, encoding="utf-8")
    left = sum(sum(cases[: quick.get(name, len(cases))]) for name, cases in times.items())
    whole = sum(map(sum, times.values()))
    sys.stdout.write(f"{left:.0f} s of {whole:.0f} s are quick\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
