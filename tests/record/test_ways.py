"""Every way to start a program is recorded, and all add to one file."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nnx_migrate.evidence.read import Evidence, load
from tests.record.test_command import ROOT

NETS = ("Script", "Module", "Console", "Tested", "Child", "Forked")
MODELS = "import flax.linen as nn\n\n\n" + "\n\n".join(
    f"class {name}(nn.Module):\n    @nn.compact\n    def __call__(self, x):\n"
    f"        return nn.Dense({number})(x)\n"
    for number, name in enumerate(NETS, 2)
)
INIT = """\
import jax, jax.numpy as jnp
import models


def build(name):
    getattr(models, name)().init(jax.random.key(0), jnp.ones((2, 3)))
"""
FILES = {
    "models.py": MODELS,
    "build.py": INIT,
    "script.py": "from build import build\nbuild('Script')\n",
    "package/__init__.py": "",
    "package/__main__.py": "from build import build\nbuild('Module')\n",
    "tool.py": "import sys\nfrom build import build\n\n\ndef main():\n    build('Console')\n    return 3\n",
    "bin/tool": "#!{python}\nimport sys\nsys.path.insert(0, '.')\nfrom tool import main\nsys.exit(main())\n",
    "test_nets.py": (
        "import multiprocessing, subprocess, sys\nfrom build import build\n\n\n"
        "def test_here():\n    build('Tested')\n\n\n"
        "def test_child():\n"
        "    words = [sys.executable, '-c', \"from build import build; build('Child')\"]\n"
        "    subprocess.run(words, check=True)\n\n\n"
        "def test_worker():\n"
        "    worker = multiprocessing.get_context('spawn').Process(target=build, args=('Forked',))\n"
        "    worker.start()\n    worker.join()\n    assert worker.exitcode == 0\n"
    ),
}
WAYS = {
    "python": ([sys.executable, "script.py"], 0),
    "python -m": ([sys.executable, "-m", "package"], 0),
    "console script": (["bin/tool"], 3),
    "pytest": ([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_nets.py"], 0),
}


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, int]]:
    """One evidence file of every way, and the exit codes."""
    folder = tmp_path_factory.mktemp("ways")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text.replace("{python}", sys.executable))
    (folder / "bin/tool").chmod(0o755)
    codes = {name: record(folder, words) for name, (words, _) in WAYS.items()}
    return folder / "sizes.db", codes


def record(folder: Path, words: list[str]) -> int:
    command = [sys.executable, "-m", "nnx_migrate", "record", "--", *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
    return done.returncode


@pytest.fixture(scope="module")
def evidence(done: tuple[Path, dict[str, int]]) -> Evidence:
    return load(done[0])


def test_every_command_ended_as_it_does_alone(done: tuple[Path, dict[str, int]]) -> None:
    assert done[1] == {name: code for name, (_, code) in WAYS.items()}


def test_runs_and_processes_add_to_one_file(evidence: Evidence) -> None:
    assert {one.key.qualname for one in evidence.classes} == set(NETS)
    assert {one.key.module for one in evidence.classes} == {"models"}


def test_each_size_is_solved_whoever_saw_it(evidence: Evidence) -> None:
    solved = {
        one.key.qualname: {size.expression for size in one.sizes.values()}
        for one in evidence.classes
    }
    assert all("x.shape[-1]" in expressions for expressions in solved.values())


def test_the_same_run_again_adds_nothing(done: tuple[Path, dict[str, int]]) -> None:
    before = load(done[0]).classes
    assert record(done[0].parent, WAYS["python"][0]) == 0
    assert load(done[0]).classes == before
