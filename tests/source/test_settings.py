"""The project's settings in its pyproject.toml."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnx_migrate.source.settings import Settings, SettingsError, read_settings
from tests.hostile import BYTES, DEEP, FEW, mutations, refusal


def settings(tmp_path: Path, text: str) -> Settings:
    (tmp_path / "pyproject.toml").write_text(text)
    return read_settings(tmp_path)


def test_a_project_without_settings_has_the_defaults(tmp_path: Path) -> None:
    assert read_settings(tmp_path) == Settings()
    assert settings(tmp_path, "[project]\nname = 'x'\n") == Settings()


def test_imports_are_read_from_pyproject(tmp_path: Path) -> None:
    text = '[tool.nnx-migrate.imports]\n"lib.load" = ["lib.models.*"]\nlib = []\n'
    assert settings(tmp_path, text).imports == {"lib.load": ("lib.models.*",), "lib": ()}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[tool.nnx-migrate\n", "cannot be read"),
        ("[tool.nnx-migrate.import]\n", "unknown key 'import'; did you mean imports?"),
        ("[tool.nnx-migrate]\ncolour = 1\n", "known keys: imports"),
        ("[tool]\nnnx-migrate = 1\n", "expected a table, found 1"),
        ("[tool.nnx-migrate]\nimports = []\n", "imports]: expected a table, found []"),
        ('[tool.nnx-migrate.imports]\n"lib/f" = []\n', '"lib/f": expected the full name'),
        ('[tool.nnx-migrate.imports]\n"lib.f" = "m"\n', '"lib.f": expected a list of modules'),
        ('[tool.nnx-migrate.imports]\n"lib.f" = [1]\n', '"lib.f": expected a list of modules'),
    ],
)
def test_bad_settings_name_the_file_and_the_problem(
    tmp_path: Path, text: str, problem: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        settings(tmp_path, text)
    assert str(caught.value).startswith("pyproject.toml: ")
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


TABLES = {
    "deep": f"a = {DEEP}",
    "many digits": "a = " + "9" * 5000,
    "no date": "a = 2020-99-99",
    "a deep key": "tool.nnx-migrate.imports." + ".".join("a" * 2_000) + " = 1",
    "two lines": '[tool.nnx-migrate.imports]\n"a\\nb" = 1',
}


def reason(root: Path) -> str:
    """Why the settings in a folder are refused; nothing when they can be used."""
    return refusal(lambda: read_settings(root), SettingsError)


@pytest.mark.parametrize("case", [*TABLES, *BYTES])
def test_a_hostile_file_is_one_short_line_or_harmless(tmp_path: Path, case: str) -> None:
    content = TABLES[case].encode() if case in TABLES else BYTES[case]
    (tmp_path / "pyproject.toml").write_bytes(content)
    line = reason(tmp_path)
    assert line.startswith("pyproject.toml: ") or case in ("empty", "another kind")
    assert "\n" not in line
    assert len(line) < 300


VALID = b"""[project]
name = "x"

[tool.nnx-migrate.imports]
"lib.load" = ["lib.models.*"]
lib = []
"""


@FEW
@given(st.binary(max_size=60) | mutations(VALID) | st.text(max_size=60).map(str.encode))
def test_any_file_is_read_or_refused_with_one_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "pyproject.toml").write_bytes(content)
    assert "\n" not in reason(tmp_path)


@FEW
@given(st.text(alphabet="xd[]().,->+*/ 12\n'\0", max_size=20))
def test_any_entry_is_read_or_refused_with_one_line(tmp_path: Path, text: str) -> None:
    entry = f"{json.dumps(text)} = [{json.dumps(text)}]\n"
    content = f'[tool.nnx-migrate.imports]\n{entry}"a.b" = {json.dumps(text)}\n'
    (tmp_path / "pyproject.toml").write_text(content)
    assert "\n" not in reason(tmp_path)


RUNS = {
    "pytest.ini": "[pytest]\naddopts = --doctest-modules\n",
    "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '--doctest-modules'\n",
    "Makefile": "test:\n\tpython -m doctest README.md\n",
    ".github/workflows/ci.yml": "run: pytest --doctest-glob='*.md'\n",
}


@pytest.mark.parametrize(("name", "text"), RUNS.items(), ids=RUNS)
def test_a_project_says_that_its_tests_run_examples(tmp_path: Path, name: str, text: str) -> None:
    assert not read_settings(tmp_path).runs_examples
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text(text)
    assert read_settings(tmp_path).runs_examples
