"""Each test of a file as a project of its own, so that classes beside it keep none of its classes lazy.

``python -m benchmarks.flax_suite.splitting BEFORE AFTER`` rewrites the tests of the files in BEFORE with
``--form auto``: the test ``Case.test_it`` of ``a_test.py`` becomes ``AFTER/Case.test_it/a_test.py``.
"""

from __future__ import annotations

import ast
import contextlib
import io
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from nnx_migrate.cli import main as nnx_migrate


def each_alone(text: str) -> Iterator[tuple[str, str]]:
    """Every test method of a file, ``Case.test_it``, and the file with this test alone."""
    cases = [one for one in ast.parse(text).body if isinstance(one, ast.ClassDef)]
    for case in cases:
        for test in _tests(case):
            others = [one for one in cases if one is not case and _tests(one)]
            gone = [*others, *(one for one in _tests(case) if one is not test)]
            yield f"{case.name}.{test.name}", _without(text, gone)


def _tests(case: ast.ClassDef) -> list[ast.FunctionDef]:
    methods = (one for one in case.body if isinstance(one, ast.FunctionDef))
    return [one for one in methods if one.name.startswith("test")]


def _without(text: str, gone: list[ast.ClassDef | ast.FunctionDef]) -> str:
    """The text without these statements and their decorators."""
    lines = {
        line
        for one in gone
        for line in range(
            min([one.lineno, *(each.lineno for each in one.decorator_list)]),
            (one.end_lineno or one.lineno) + 1,
        )
    }
    kept = enumerate(text.splitlines(keepends=True), start=1)
    return "".join(line for number, line in kept if number not in lines)


def rewrite_alone(before: Path, after: Path) -> None:
    """Rewrite every test of the files in a folder.

    Raises:
      RuntimeError: a project is not rewritten, with what the command says.
    """
    for file in sorted(before.glob("*_test.py")):
        for name, text in each_alone(file.read_text(encoding="utf-8")):
            with tempfile.TemporaryDirectory() as root:
                project = Path(root) / name
                project.mkdir()
                (project / file.name).write_text(text, encoding="utf-8")
                (project / "pyproject.toml").write_text("", encoding="utf-8")
                _rewrite(project, after / name)


def _rewrite(project: Path, output: Path) -> None:
    said = io.StringIO()
    report = output.parent / "reports" / f"{output.name}.json"
    words = ["rewrite", project, "--form", "auto", "--output", output, "--report", report]
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = nnx_migrate([str(word) for word in words])
    if code == 2 or not output.exists():
        raise RuntimeError(f"{project.name}: {said.getvalue()}")


if __name__ == "__main__":
    before, after = map(Path, sys.argv[1:])
    (after / "reports").mkdir(parents=True)
    shutil.copy(before / "pyproject.toml", after)
    rewrite_alone(before, after)
