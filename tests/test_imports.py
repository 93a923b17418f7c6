"""Imports point one way, and reading code loads nothing heavy."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "nnx_migrate"

# What each part may import besides itself; model.py and __init__.py are open to all.
ALLOWED = {
    "model": set(),
    "fixtures": set(),
    "outputs": set(),
    "digests": set(),
    "json_values": set(),
    "source": set(),
    "ledger": set(),
    "evidence": {"json_values"},
    "abstract": {"source"},
    "edit": set(),
    "constructs": {"source", "abstract", "edit"},
    "sizes": {"source", "evidence", "abstract", "constructs"},
    "rewrite": {
        "abstract",
        "sizes",
        "source",
        "ledger",
        "evidence",
        "edit",
        "constructs",
        "digests",
    },
    "numerics": set(),
    "linen": {"sharding", "numerics", "nn"},
    "nn": {"sharding", "numerics"},
    "sharding": set(),
    "parity": {
        "sharding",
        "linen",
        "nn",
        "fixtures",
        "evidence",
        "outputs",
        "digests",
        "json_values",
    },
    "record": {"evidence", "digests"},
    "cli": {"rewrite", "parity", "source", "fixtures", "evidence", "record", "outputs"},
    "__main__": {"cli"},
}
LIGHT = (
    "model",
    "fixtures",
    "outputs",
    "digests",
    "json_values",
    "source",
    "ledger",
    "evidence",
    "abstract",
    "sizes",
    "edit",
    "constructs",
    "rewrite",
    "cli",
    "__main__",
    "__init__",
)
HEAVY = {"jax", "jaxlib", "numpy", "flax", "optax", "orbax"}


def part_of(path: Path) -> str:
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def imports(path: Path) -> Iterator[str]:
    """Dotted names that a file imports anywhere, also inside functions."""
    package = ["nnx_migrate", *path.relative_to(PACKAGE).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*above, *filter(None, [node.module])])
            yield from (f"{module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_part_imports_only_the_parts_below_it(path: Path) -> None:
    part = part_of(path)
    if part == "__init__":  # the package's Python interface loads parts when they are asked for
        return
    own = {
        name.split(".")[1]
        for name in imports(path)
        if name.startswith("nnx_migrate.") and not name.startswith("nnx_migrate.__version__")
    }
    assert own - {part, "model"} <= ALLOWED[part]


@pytest.mark.parametrize(
    "path",
    [path for path in modules() if part_of(path) in LIGHT],
    ids=lambda path: str(path.relative_to(PACKAGE)),
)
def test_reading_and_rewriting_need_no_array_library(path: Path) -> None:
    assert {name.split(".")[0] for name in imports(path)} & HEAVY == set()


@pytest.mark.parametrize(
    "path",
    [path for path in modules() if part_of(path) in ("linen", "nn", "numerics", "sharding")],
    ids=lambda path: str(path.relative_to(PACKAGE)),
)
def test_what_migrated_code_imports_never_uses_linen(path: Path) -> None:
    assert [name for name in imports(path) if name.startswith("flax.linen")] == []


def test_the_rule_is_about_files_that_exist() -> None:
    assert {part_of(path) for path in modules()} - {"__init__"} <= set(ALLOWED)


def loaded_by(words: list[str]) -> tuple[int, set[str]]:
    """Exit code of a command and the top-level modules that are loaded after it."""
    code = (
        "import sys\n"
        "from nnx_migrate.cli import main\n"
        f"code = main({words!r})\n"
        "sys.stderr.write(' '.join(sorted({name.split('.')[0] for name in sys.modules})))\n"
        "sys.exit(code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        cwd=PACKAGE.parent,
    )
    return done.returncode, set(done.stderr.split())


def test_help_loads_no_array_library() -> None:
    code, loaded = loaded_by(["--help"])
    assert code == 0
    assert "argparse" in loaded
    assert loaded & HEAVY == set()


def test_rewriting_loads_no_array_library_and_not_the_users_code(tmp_path: Path) -> None:
    (tmp_path / "models.py").write_text(
        "import flax.linen as nn\n\n\n"
        "class Model(nn.Module):\n"
        "    @nn.compact\n"
        "    def __call__(self, x):\n"
        "        return nn.Dense(3)(x)\n"
    )
    (tmp_path / "trap.py").write_text("import models\nraise SystemExit('imported')\n")
    code, loaded = loaded_by(["rewrite", str(tmp_path)])
    assert code == 0
    assert "nnx.Linear" in (tmp_path / "models.py").read_text()
    assert "ast" in loaded
    assert loaded & (HEAVY | {"models", "trap"}) == set()


def file_links() -> dict[str, set[str | None]]:
    """The files of the package that each of them imports, itself left out."""
    files = {name_of(path): path for path in modules()}
    return {
        name: {file_of(target, files) for target in imports(path)} - {None, name}
        for name, path in files.items()
    }


def test_no_file_imports_itself_by_way_of_others() -> None:
    links = file_links()
    assert sorted(name for name, found in links.items() if name in reached(found, links)) == []


def name_of(path: Path) -> str:
    parts = ("nnx_migrate", *path.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(parts).removesuffix(".__init__")


def file_of(target: str, files: dict[str, Path]) -> str | None:
    """The file that an imported name is, or is taken from."""
    return next((name for name in (target, target.rpartition(".")[0]) if name in files), None)


def reached(start: set[str | None], links: dict[str, set[str | None]]) -> set[str | None]:
    found, todo = set(start), list(start)
    while todo:
        for one in links.get(str(todo.pop()), set()) - found:
            found.add(one)
            todo.append(one)
    return found


def test_the_entries_of_a_folder_import_one_another_one_way() -> None:
    """Files and subfolders of each folder, a subfolder with all that is in it."""
    files = file_links()
    folders = {name.rsplit(".", depth)[0] for name in files for depth in range(1, name.count("."))}
    links: dict[str, dict[str, set[str | None]]] = {folder: {} for folder in folders}
    for name, targets in files.items():
        for folder in folders:
            entry = entry_of(name, folder)
            if entry is not None:
                others = {entry_of(one, folder) for one in targets if one} - {None, entry}
                links[folder].setdefault(entry, set()).update(others)
    circles = {
        folder
        for folder, entries in links.items()
        if any(entry in reached(found, entries) for entry, found in entries.items())
    }
    assert circles == set()


def entry_of(name: str, folder: str) -> str | None:
    """The file or folder directly in ``folder`` that a file is, or lies in."""
    head, _, rest = name.partition(f"{folder}.")
    return rest.split(".")[0] if rest and not head else None
