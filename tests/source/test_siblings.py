"""Absolute imports of scripts that stand beside what they import."""

from __future__ import annotations

from nnx_migrate.source.project import Project, Scope, parse

MODEL = "import flax.linen as nn\nclass {name}(nn.Module): ...\n"


def _project(*, package: bool = False) -> Project:
    modules = {
        "models": parse("models", "a/models.py", MODEL.format(name="A")),
        "b.models": parse("b.models", "b/models.py", MODEL.format(name="B")),
        "b.train": parse("b.train", "b/train.py", "import models\nmodels.B\nmodels.A\n"),
    }
    if package:
        modules["b"] = parse("b", "b/__init__.py", "", is_package=True)
    return Project(modules)


def _symbol(project: Project, line: int) -> str | None:
    module = project.modules["b.train"]

    return project.resolve(module.tree.body[line].value, Scope(module))  # type: ignore[attr-defined]


def test_a_script_imports_the_file_beside_it() -> None:
    assert _symbol(_project(), 1) == "b.models.B"


def test_a_script_does_not_import_a_namesake_elsewhere() -> None:
    assert _symbol(_project(), 2) not in _project().linen


def test_a_module_of_a_package_imports_absolutely() -> None:
    assert _symbol(_project(package=True), 1) == "models.B"
