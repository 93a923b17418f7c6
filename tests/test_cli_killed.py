"""A process that really dies while it replaces files: run it again, or undo."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from nnx_migrate.cli import main
from nnx_migrate.model import JOURNAL_FOLDER

ROOT = Path(__file__).parent.parent
LINEN = """import flax.linen as nn


class {name}(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(x)
"""
# Dies in the middle of writing the file number sys.argv[1], with half of it on disk.
DYING = """
import os, signal, sys
from pathlib import Path
from nnx_migrate.cli import main

real, seen = Path.replace, []

def replace(self, target):
    if Path(target).suffix == ".py":
        seen.append(target)
        if len(seen) == int(sys.argv[1]):
            self.write_bytes(self.read_bytes()[:20])
            os.kill(os.getpid(), signal.SIGKILL)
    return real(self, target)

Path.replace = replace
main(["rewrite", sys.argv[2]])
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("One", "Two", "Three"):
        (tmp_path / f"{name.lower()}.py").write_text(LINEN.format(name=name))
    return tmp_path


def contents(tree: Path) -> dict[str, str]:
    return {
        file.relative_to(tree).as_posix(): file.read_text()
        for file in tree.rglob("*")
        if file.is_file() and JOURNAL_FOLDER not in file.parts
    }


def die(tree: Path, number: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", DYING, str(number), str(tree)], check=False, cwd=ROOT
    )
    assert done.returncode == -signal.SIGKILL


@pytest.mark.parametrize("number", [1, 3])
def test_a_killed_process_is_finished_by_running_it_again(tree: Path, number: int) -> None:
    before = contents(tree)
    die(tree, number)
    assert main(["rewrite", str(tree)]) == 0
    assert set(contents(tree)) == set(before)
    assert all("nnx.Linear" in text for text in contents(tree).values())
    assert main(["undo", str(tree)]) == 0
    assert contents(tree) == before


def test_a_killed_process_is_undone(tree: Path) -> None:
    before = contents(tree)
    die(tree, 2)
    assert contents(tree) != before
    assert main(["undo", str(tree)]) == 0
    assert contents(tree) == before
