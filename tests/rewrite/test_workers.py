"""Several processes decide what one would, to the byte."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nnx_migrate.rewrite.shares import shares_of
from nnx_migrate.source.project import Project, parse

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="no copies of processes")

BLOCKS = """\
import flax.linen as nn
from functools import partial

class Odd(nn.Module):
    @nn.compact
    def __call__(self, x):
        return [Leaf(3, name=n)(x, x) for n in sorted({"a", "b"} | set(x))], Tree()(x, x)

class Leaf(nn.Module):
    width: int
    @nn.compact
    def __call__(self, x, y):
        return nn.Dense(self.width)(x) + nn.Dense(self.width)(y)

class Tree(nn.Module):
    @nn.compact
    def __call__(self, x, y):
        return Leaf(4)(x, y).mean(1)  # of all

class Norms(nn.Module):
    norm: type = partial(nn.LayerNorm, epsilon=1e-6)
    def setup(self):
        self.a = self.norm()
        self.b = nn.Conv(8, (3, 3))
    def __call__(self, x):
        return self.b(self.a(x))

class Deep(nn.Module):
    @nn.compact
    def __call__(self, x, train=False):
        x = nn.Dropout(0.1, deterministic=not train)(Leaf(5)(x, x))
        return nn.BatchNorm(use_running_average=not train)(x)
"""

CALLER = """\
import jax
from blocks{n} import Deep, Norms, Tree

KIND = Norms[int]

def train(key, x, y):
    model = Tree()
    variables = model.init(key, x, y)
    return model.apply(variables, x, y), Deep().init(key, x)
"""

# What a run of so many processes finds, after how many were started; the last word may break something before.
RUN = """\
import os, sys
from pathlib import Path
from nnx_migrate.rewrite import conversions, workers
from nnx_migrate.rewrite.forms import rewrite_in
from nnx_migrate.rewrite.request import RewriteRequest
from nnx_migrate.source.files import read

jobs, folder, breaks = int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
start = workers.Team.start
sizes = []

def noted(team, owners, objects):
    start(team, owners, objects)
    sizes.append((team, team.size))

workers.Team.start = noted
convert = conversions.convert_class

def broken(project, cls, *rest):
    if cls.node.name == "Leaf" and sizes and sizes[-1][0].rank:
        if breaks == "end":
            os._exit(3)
        raise KeyboardInterrupt
    if cls.node.name == "Leaf" and breaks == "every":
        raise KeyError(cls.node.name)
    return convert(project, cls, *rest)

if breaks:
    conversions.convert_class = broken
files = tuple(map(read, sorted(folder.rglob("*.py"))))
result = rewrite_in(RewriteRequest(folder, files, jobs=jobs, base=folder))
print([size for _, size in sizes])
print(repr(result))
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    for number in range(5):
        (folder / f"blocks{number}.py").write_text(BLOCKS)
        (folder / f"train{number}.py").write_text(CALLER.format(n=number))
    return folder


def _python(*words: str | Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "7"}
    environment.pop("NNX_MIGRATE_DEBUG", None)
    ended = subprocess.run(
        [sys.executable, *map(str, words)],
        check=False,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert ended.stderr == ""
    return ended.stdout


def _result(jobs: int, folder: Path, breaks: str = "") -> tuple[str, str]:
    sizes, result = _python("-c", RUN, str(jobs), folder, breaks).splitlines()
    return sizes, result


@pytest.fixture(scope="module")
def alone(project: Path) -> str:
    sizes, result = _result(1, project)
    assert sizes == "[]"
    assert "EXPLICIT" in result
    assert "LAZY" in result
    return result


@pytest.mark.parametrize("jobs", [2, 3])
def test_several_processes_find_what_one_does(project: Path, alone: str, jobs: int) -> None:
    assert _result(jobs, project) == (f"[{jobs}]", alone)


def test_several_processes_prove_anew_where_a_caller_breaks(tmp_path: Path) -> None:
    net = "import flax.linen as nn\n" + "".join(
        f"class {{0}}{n}(nn.Module):\n    @nn.compact\n    def __call__(self, x):\n"
        "        return nn.Dense(3)(x)\n"
        for n in range(8)
    )
    caller = "from .a import A0\ndef export(one: A0):\n    import c\n    return c.A0(start=0)\n"
    names = "from .a import A0\n"
    (tmp_path / "pack").mkdir()
    texts = {"__init__": "", "a": net.format("A"), "b": net.format("B"), "c": names, "d": caller}
    for name, text in texts.items():
        (tmp_path / "pack" / f"{name}.py").write_text(text)
    expected = _result(1, tmp_path)[1]
    assert "is built here in a way that is not followed" in expected
    assert _result(2, tmp_path) == ("[2, 2]", expected)


@pytest.mark.parametrize("breaks", ["end", "interrupt"])
def test_what_a_lost_process_leaves_one_does_alone(project: Path, alone: str, breaks: str) -> None:
    assert _result(2, project, breaks) == ("[2]", alone)


def test_a_bug_is_told_as_by_one_process(project: Path) -> None:
    _, expected = _result(1, project, "every")
    assert "KeyError" in expected
    assert _result(2, project, "every")[1] == expected


def test_the_command_writes_the_same_files(project: Path, tmp_path: Path) -> None:
    written = []
    for jobs in ("1", "2"):
        out = tmp_path / jobs
        words = ["rewrite", project, f"--jobs={jobs}", "--no-cache", "--output", out / "code"]
        kept = ["--report", out / "report.json", "--map", out / "map.json"]
        out.mkdir()
        _python("-m", "nnx_migrate", *words, *kept)
        files = sorted(one for one in out.rglob("*") if one.is_file())
        written.append({one.relative_to(out): one.read_bytes() for one in files})
    assert len(written[0]) == 12
    assert written[0] == written[1]


def test_classes_that_hang_together_are_one_processs() -> None:
    texts = {f"blocks{n}": BLOCKS for n in range(4)}
    texts["uses"] = "import flax.linen as nn\nfrom blocks0 import Leaf\nclass Own(Leaf): pass\n"
    modules = {name: parse(name, f"{name}.py", text) for name, text in texts.items()}
    owners = shares_of(Project(modules), 2)
    assert owners["uses.py"] == owners["blocks0.py"]
    assert {*owners.values()} == {0, 1}
    assert shares_of(Project({"uses": modules["uses"]}), 2) == {}
