"""Which files a certificate is of, and which of them are others now."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from nnx_migrate import fixtures
from nnx_migrate.parity.certificate.sources import changes, sources_of
from nnx_migrate.parity.words import BadWord
from tests.parity.certificate.certificate_files import write_case

GIVEN = {"case": "case.py", "before": "before", "after": "after", "map": "map.json"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_case(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("case.py", "case: case.py: changed"),
        ("before/models.py", "before: models.py: changed"),
        ("after/models.py", "after: models.py: changed"),
        ("after/new.py", "after: new.py: new"),
        ("after/deep/er/config.yml", "after: deep/er/config.yml: new"),
        ("map.json", "map: map.json: changed"),
        ("helpers.py", "case: helpers.py: new"),
        ("package/__init__.py", "case: package/__init__.py: new"),
    ],
)
def test_a_file_that_is_edited_is_named(folder: Path, path: str, line: str) -> None:
    old = sources_of(GIVEN)
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    with (folder / path).open("a") as file:
        file.write("\nmore = 1\n")
    assert changes(old, sources_of(GIVEN)) == (line,)


def test_a_file_that_is_gone_is_named(folder: Path) -> None:
    old = sources_of(GIVEN)
    (folder / "after" / "models.py").unlink()
    assert changes(old, sources_of(GIVEN)) == ("after: models.py: missing",)


@pytest.mark.parametrize(
    "path",
    [
        "after/data.json",  # where reports go, and certificates
        "after/.venv/a.py",
        "after/__pycache__/a.py",
        "after/env/lib/site-packages/a.py",
        "notebooks/a.py",  # beside the case, and no package
    ],
)
def test_what_is_no_source_of_the_models_is_left_out(folder: Path, path: str) -> None:
    old = sources_of(GIVEN)
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text("more = 1\n")
    assert changes(old, sources_of(GIVEN)) == ()


def test_line_ends_and_links_that_lead_nowhere_are_no_change(folder: Path) -> None:
    old = sources_of(GIVEN)
    file = folder / "after" / "models.py"
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    (folder / "after" / "gone.py").symlink_to("nowhere.py")
    assert changes(old, sources_of(GIVEN)) == ()


def test_a_virtual_environment_of_any_name_is_left_out(folder: Path) -> None:
    old = sources_of(GIVEN)
    (folder / "after" / "python").mkdir()
    for name in ("pyvenv.cfg", "a.py"):
        (folder / "after" / "python" / name).write_text("")
    assert changes(old, sources_of(GIVEN)) == ()


def test_a_revision_is_read_as_it_was(folder: Path) -> None:
    for words in (
        ("init", "-q"),
        ("add", "before"),
        ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "before"),
    ):
        subprocess.run(["git", *words], check=True, cwd=folder)
    given = {"case": "case.py", "before": "HEAD", "after": "."}
    old = sources_of(given)
    assert list(old["before"]) == ["before/models.py"]
    assert list(old["after"]) == ["after/models.py", "before/models.py", "case.py"]
    (folder / "before" / "models.py").write_text("")
    assert changes(old, sources_of(given)) == ("after: before/models.py: changed",)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"case": "no.py"}, "case=no.py: no such file in "),
        ({"map": "no.json"}, "map=no.json: no such file in "),
        ({"before": "no"}, "before=no: no"),
        ({"after": "map.json"}, "after=map.json: expected a directory or a git revision"),
        ({"model": "llama2-7b", "rules": "no/such.yml"}, "rules=no/such.yml: no such file in "),
    ],
)
def test_what_is_not_there_is_one_line(folder: Path, change: dict[str, str], line: str) -> None:
    with pytest.raises(BadWord) as error:
        sources_of({**GIVEN, **change})
    assert str(error.value).startswith(line)


@pytest.mark.parametrize(("form", "folder_name"), [("explicit", "nnx"), ("lazy", "lazy")])
def test_of_a_built_in_model_both_sides_and_what_they_share(form: str, folder_name: str) -> None:
    found = sources_of({"model": "deepseek", "form": form})
    assert {"deepseek/config.py", "deepseek/configs/deepseek2-16b.yml"} <= found["case"].keys()
    names = {path.name for path in (fixtures.path() / "deepseek" / "linen").glob("*.py")}
    assert found["before"].keys() == {f"deepseek/linen/{name}" for name in names}
    assert found["after"].keys() == {f"deepseek/{folder_name}/{name}" for name in names}


def test_a_file_of_rules_is_among_the_sources(tmp_path: Path) -> None:
    rules = tmp_path / "rules.yml"
    rules.write_text("a: 1\n")
    given = {"model": "llama2-7b", "rules": str(rules)}
    old = sources_of(given)
    rules.write_text("a: 2\n")
    assert changes(old, sources_of(given)) == (f"rules: {rules}: changed",)
    assert "rules" not in sources_of({"model": "llama2-7b", "rules": "default"})
