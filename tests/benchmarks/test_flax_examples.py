"""The flax examples, end to end: fetched, rewritten and compared; the figures of docs/results.md."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.corpus import frozen
from benchmarks.corpus.packages import CHECKOUT

pytestmark = pytest.mark.slow

PROVEN = ("identical", "equal_by_rules")


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    file: Path = tmp_path_factory.mktemp("corpus") / "result.json"
    command = [sys.executable, "-m", "benchmarks.corpus", "--set", "flax-examples"]
    done = subprocess.run(
        [*command, "--json", str(file)], cwd=CHECKOUT, capture_output=True, text=True, check=False
    )
    if done.returncode == 2 and "pip" in done.stderr:
        pytest.skip(f"the packages cannot be fetched here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    content: dict[str, Any] = json.loads(file.read_text())
    return content


def test_every_class_of_every_example_is_rewritten(result: dict[str, Any]) -> None:
    counted = frozen.read()["classes"]["flax-examples"]
    for package in result["packages"]:
        assert package["error"] == "", package["name"]
        assert package["classes"]["rewritten"] == len(counted[package["name"]]), package["name"]
    assert len(result["packages"]) == 9


def test_at_least_eight_of_nine_examples_are_the_same_program(result: dict[str, Any]) -> None:
    verdicts = {row["case"]: row["verdict"] for row in result["cases"]}
    assert len(verdicts) == 9
    assert sum(verdict in PROVEN for verdict in verdicts.values()) >= 8, verdicts


def test_no_example_differs(result: dict[str, Any]) -> None:
    assert [row["case"] for row in result["cases"] if not row["ok"]] == []
