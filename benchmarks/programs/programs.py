"""Which programs there are, and where they lie before and after the rewrite."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.corpus.packages import CHECKOUT


class ProgramError(Exception):
    """Something could not be run at all; the message is one line."""


@dataclass(frozen=True)
class Program:
    """One entry point with one configuration.

    ``name`` is its module in `benchmarks.programs.examples`, ``example`` its folder in flax's examples.
    """

    name: str
    example: str
    steps: int = 3  # of the first run; the runs that go on from its checkpoint do two more


PROGRAMS = (
    Program("imagenet", "imagenet", steps=2),
    Program("lm1b", "lm1b"),
    Program("nlp_seq", "nlp_seq"),
    Program("ogbg_molpcba", "ogbg_molpcba"),
    Program("ogbg_graph_net", "ogbg_molpcba"),
    Program("ppo", "ppo"),
    Program("seq2seq", "seq2seq"),
    Program("sst2", "sst2"),
    Program("vae", "vae"),
    Program("wmt", "wmt"),
    Program("wmt_apart", "wmt"),
)


@dataclass(frozen=True)
class Tree:
    """A program's folder on one side: ``before``, or after the rewrite in a form."""

    side: str
    folder: Path
    forms: str = ""  # how many classes have which form
    loops: str = ""  # what became of its training loop, if that was asked for

    @property
    def tests(self) -> list[str]:
        """The program's own test files."""
        return sorted(file.name for file in self.folder.glob("*_test.py"))


def before(example: str, source: Path, cache: Path) -> Tree:
    """Copy an example out of flax's source distribution."""
    folder = cache / "before" / example
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source / "examples" / example, folder)
    return Tree("before", folder)


def rewritten(tree: Tree, form: str, cache: Path, loop: str = "functional") -> Tree:
    """Rewrite an example, by a process as a user would start it.

    Raises:
      ProgramError: the rewriter ended with anything but 0 or 1.
    """
    side = form if loop == "functional" else f"{form}-{loop}"
    folder = cache / side / tree.folder.name
    report = cache / side / f"{tree.folder.name}.json"
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "nnx_migrate", "rewrite", tree.folder, "--root", tree.folder]
    command += [
        "--output",
        folder,
        "--form",
        form,
        "--loop",
        loop,
        "--report",
        report,
        "--no-cache",
    ]
    done = subprocess.run(
        [*map(str, command)], cwd=CHECKOUT, capture_output=True, text=True, check=False
    )
    if done.returncode not in (0, 1) or not folder.exists():
        said = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise ProgramError(f"rewrite --form {form} of {tree.folder.name}: {said}")
    found = json.loads(report.read_text(encoding="utf-8"))
    counted = Counter(one.get("form") or one["outcome"] for one in found["classes"])
    forms = ", ".join(f"{n} {name}" for name, n in sorted(counted.items()))
    return Tree(side, folder, forms, "" if loop == "functional" else _loops(found["findings"]))


def _loops(findings: Sequence[Mapping[str, Any]]) -> str:
    """``nnx``, or the first reason why the loop stays functional."""
    about = [one for one in findings if one["rule"] == "loop"]
    kept = [one for one in about if one["outcome"] == "kept"]
    if not about:
        return "none found"
    return f"{kept[0]['message']}" if kept else "nnx"


def same_text(one: Tree, other: Tree) -> bool:
    """Whether two trees hold the same files: then one run stands for both."""
    return _files(one.folder) == _files(other.folder)


def _files(folder: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
