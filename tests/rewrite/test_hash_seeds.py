"""Two runs write the same bytes, whatever order their sets are in."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Several classes force each cut, and several of each kind are forced by one.
TREE = {
    "blocks.py": """\
import flax.linen as nn

class Odd(nn.Module):
    @nn.compact
    def __call__(self, x):
        return [Leaf(3, name=n)(x, x) for n in sorted({"a", "b"} | set(x))], Tree()(x, x)

class Even(Odd):
    def other(self, x):
        return x

class Leaf(nn.Module):
    width: int
    @nn.compact
    def __call__(self, x, y):
        return nn.Dense(self.width)(x) + nn.Dense(self.width)(y)

class Tree(nn.Module):
    @nn.compact
    def __call__(self, x, y):
        return Leaf(4)(x, y).mean(1)
""",
    "models.py": """\
import flax.linen as nn
from blocks import Even, Leaf, Odd, Tree

class One(Odd):
    @nn.compact
    def __call__(self, x):
        return Leaf(3)(x, x), Tree()(x, x)

class Two(Even):
    @nn.compact
    def __call__(self, x):
        return Tree()(Leaf(3)(x, x), x)

class Three(nn.Module):
    made: object = One
    @nn.compact
    def __call__(self, x):
        return self.made()(x), Two()(x), Even()(x), Tree()(x, x)

class Strange(nn.Module):
    @nn.compact
    def __call__(self, x):
        return [Leaf(n)(x, x) for n in x], Tree()(x, x), One()(x)

class Queer(nn.Module):
    @nn.compact
    def __call__(self, x):
        return [nn.Dense(n)(x) for n in x], Leaf(3)(x, x), Two()(x)

class Four(nn.Module):
    @nn.compact
    def __call__(self, x, y):
        for _ in range(3):
            x = Tree()(x, y)
        return x
""",
}


def written(source: Path, out: Path, seed: str) -> dict[str, bytes]:
    """Everything a run writes and prints, by name."""
    command = [sys.executable, "-m", "nnx_migrate", "rewrite", ".", "--root", "."]
    command += ["--output", str(out / "code")]
    command += ["--report", str(out / "report.json"), "--map", str(out / "map.json")]
    out.mkdir()
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        command, check=False, cwd=source, env=environment, capture_output=True, timeout=300
    )
    assert run.returncode in (0, 1), run.stderr
    files = {
        one.relative_to(out).as_posix(): one.read_bytes() for one in out.rglob("*") if one.is_file()
    }
    return {**files, "<stdout>": run.stdout, "<stderr>": run.stderr}


def tree(folder: Path) -> Path:
    for name, text in TREE.items():
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize("kind", ["tree", "fixture"])
def test_runs_with_different_hash_seeds_write_the_same(kind: str, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    source = tree(source) if kind == "tree" else ROOT / "fixtures" / "deepseek" / "linen"
    first, second, third = (written(source, tmp_path / s, s) for s in ("1", "2", "77"))
    assert first == second == third
    assert b'"cut_by"' in first["report.json"] or kind == "fixture"
    assert len(first) > 4
