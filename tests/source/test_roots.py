"""Under which name each file is imported: packages, namespace packages, scripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from nnx_migrate.source.files import SourceText
from nnx_migrate.source.roots import import_names

ROOT = Path("/project")


def names(files: dict[str, str]) -> dict[str, str]:
    sources = [SourceText(ROOT / path, text) for path, text in files.items()]
    found = import_names(sources, ROOT)
    return {path: found[id(one)][0] for path, one in zip(files, sources, strict=True)}


def test_a_package_is_named_from_the_folder_above_it() -> None:
    files = {"src/pkg/__init__.py": "", "src/pkg/sub/__init__.py": "", "src/pkg/sub/a.py": ""}
    assert list(names(files).values()) == ["pkg", "pkg.sub", "pkg.sub.a"]


@pytest.mark.parametrize(
    "statement",
    [
        "from pkg.inner import a",
        "from pkg.inner.a import Model",
        "import pkg.inner.a",
        "import os, pkg.inner.a as a",
        "from pkg.inner import (\n    other,\n    a as b,\n)",
        "def load():\n    from pkg.inner import a",
    ],
)
def test_a_namespace_package_is_named_as_it_is_imported(statement: str) -> None:
    files = {"pkg/inner/a.py": "", "pkg/inner/other.py": "", "main.py": statement}
    assert list(names(files).values()) == ["pkg.inner.a", "pkg.inner.other", "main"]


def test_a_package_inside_a_namespace_package_has_its_full_name() -> None:
    files = {
        "top/jax/__init__.py": "",
        "top/jax/layers.py": "import jax\nimport jax.numpy as jnp",
        "top/run.py": "from top.jax import layers",
    }
    assert list(names(files).values()) == ["top.jax", "top.jax.layers", "top.run"]


@pytest.mark.parametrize("statement", ["import models", "from models import Model", "x = 1"])
def test_a_script_beside_its_modules_keeps_their_short_names(statement: str) -> None:
    files = {"examples/vae/models.py": "", "examples/vae/train.py": statement}
    assert list(names(files).values()) == ["models", "train"]


def test_two_files_of_one_name_are_told_apart() -> None:
    files = {"examples/vae/models.py": "", "examples/ppo/models.py": ""}
    assert list(names(files).values()) == ["models", "examples.ppo.models"]


def test_a_relative_import_says_nothing_about_the_root() -> None:
    files = {"pkg/inner/a.py": "", "pkg/inner/b.py": "from . import a\nfrom .a import Model"}
    assert list(names(files).values()) == ["a", "b"]


def test_relative_imports_from_above_need_the_package_above() -> None:
    files = {
        "src/lib/__init__.py": "",
        "src/lib/models/nets.py": "from . import layers",
        "src/lib/models/layers.py": "",
        "src/lib/train/loop.py": "from ..models.nets import Net",
    }
    assert names(files)["src/lib/train/loop.py"] == "lib.train.loop"
    assert names(files)["src/lib/models/layers.py"] == "lib.models.layers"
    assert names({**files, "src/lib/run.py": "from .models import nets"})["src/lib/run.py"] == (
        "lib.run"
    )


def test_relative_imports_from_above_the_root_leave_the_name() -> None:
    assert names({"a.py": "from ...x import y", "sub/b.py": "from ....x import y"}) == {
        "a.py": "a",
        "sub/b.py": "b",
    }
