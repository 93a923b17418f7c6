"""Processes: a job of runs, and a program's own tests."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.corpus.packages import CHECKOUT
from benchmarks.flax_suite.running import Outcome, Outcomes
from benchmarks.programs.programs import Program, Tree

MORE = 2  # steps after the checkpoint


@dataclass(frozen=True)
class Runner:
    """Runs programs with one Python; results go under ``cache/results``."""

    python: Path
    cache: Path
    timeout: float

    def results(self, program: Program, side: str) -> Path:
        """Where the runs of one side of a program lie."""
        return self.cache / "results" / program.name / side

    def before(self, program: Program, tree: Tree) -> str:
        """Run under Linen: ``fresh``, and ``again`` from its checkpoint. An error, or nothing."""
        out = self.results(program, "before")
        return self._job(
            program,
            tree,
            out,
            [
                {"name": "fresh", "steps": program.steps},
                {"name": "again", "steps": program.steps + MORE, "start": str(out / "fresh")},
            ],
        )

    def after(self, program: Program, tree: Tree, *, crossed: bool = True) -> str:
        """Run rewritten: ``fresh``, and, if asked, ``crossed`` from Linen's checkpoint."""
        start = self.results(program, "before") / "fresh"
        return self._job(
            program,
            tree,
            self.results(program, tree.side),
            [
                {"name": "fresh", "steps": program.steps, "build": crossed},
                {"name": "crossed", "steps": program.steps + MORE, "start": str(start)},
            ][: 1 + crossed],
        )

    def back(self, program: Program, before: Tree, after: Tree) -> str:
        """Run under Linen from the rewritten program's checkpoint: ``back``."""
        start = self.results(program, after.side) / "fresh"
        out = self.results(program, f"before-from-{after.side}")
        run = {"name": "back", "steps": program.steps + MORE, "start": str(start)}
        return self._job(program, before, out, [run])

    def _job(self, program: Program, tree: Tree, out: Path, runs: list[Any]) -> str:
        out.mkdir(parents=True, exist_ok=True)
        job: dict[str, Any] = {"module": program.name, "folder": str(tree.folder)}
        job |= {"out": str(out), "runs": runs}
        job["block"] = tree.side != "before"
        file = out / f"{runs[0]['name']}.json"
        file.write_text(json.dumps(job), encoding="utf-8")
        command = ["-m", "benchmarks.programs.worker", str(file)]
        return self._run(command, out, out / f"{runs[0]['name']}.txt", {})

    def tests(self, tree: Tree) -> Outcomes:
        """What became of a program's own tests, run in one process."""
        folder = self.cache / "results" / "tests" / tree.side
        folder.mkdir(parents=True, exist_ok=True)
        results, log = (folder / f"{tree.folder.name}.{kind}" for kind in ("json", "txt"))
        results.unlink(missing_ok=True)
        variables = {"FLAX_SUITE_RESULTS": str(results), "PYTHONDONTWRITEBYTECODE": "1"}
        if tree.side != "before":
            variables["FLAX_SUITE_BLOCK"] = "1"
        command = ["-m", "pytest", "-q", "-p", "benchmarks.flax_suite.plugin"]
        command += ["-p", "benchmarks.programs.plugin", "-p", "no:cacheprovider"]
        command += ["--rootdir", str(tree.folder), *tree.tests]  # names of tests begin there
        error = self._run(command, tree.folder, log, variables)
        if not results.exists():
            return {f"{tree.folder.name} (all)": Outcome("failed", error)}
        found = json.loads(results.read_text(encoding="utf-8"))
        return {name: Outcome(**entry) for name, entry in found.items()}

    def _run(self, command: Sequence[str], cwd: Path, log: Path, variables: dict[str, str]) -> str:
        environment = {**os.environ, **variables, "PYTHONPATH": str(CHECKOUT)}
        environment |= {"JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3"}
        environment |= {"TF_ENABLE_ONEDNN_OPTS": "0", "JAX_TRACEBACK_FILTERING": "off"}
        # What one side has compiled need not be compiled again for its next run.
        environment |= {"JAX_COMPILATION_CACHE_DIR": str(self.cache / "compiled")}
        environment |= {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
        environment |= {"JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1"}
        with log.open("w", encoding="utf-8") as output:
            try:
                done = subprocess.run(
                    [str(self.python), *command],
                    cwd=cwd,
                    env=environment,
                    timeout=self.timeout,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                return f"not finished after {self.timeout:g} s"
        if done.returncode == 0:
            return ""
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return f"{(lines or ['no output'])[-1]} (see {log})"
