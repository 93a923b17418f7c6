"""Classes that inherit from a Linen module class of another package: they stay Linen.

Nobody's code is imported: the package is looked for beside the project and in the environment, and
its source is read as far as the chain of bases goes. What is not found says nothing.
"""

from __future__ import annotations

import ast
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from nnx_migrate.rewrite.loading import relative
from nnx_migrate.rewrite.request import RewriteRequest
from nnx_migrate.source.names import imported_names
from nnx_migrate.source.roots import imports
from nnx_migrate.source.walking import walk

_DEPTH = 8
_PACKAGE = re.compile(r"\w+")
_FILES = 2000  # of a package, read as bytes
# Packages without Linen modules; a large one costs time to look through.
_NEVER = frozenset(
    "flax nnx_migrate jax jaxlib numpy scipy optax orbax chex torch tensorflow absl pytest pandas"  # noqa: SIM905
    " matplotlib sklearn PIL ml_collections etils typing_extensions".split()
)


def foreign_bases(request: RewriteRequest) -> Iterator[tuple[str, int, str, str]]:
    """Path, line, name and package of every such class of the files to rewrite."""
    files = [*request.files, *request.context]
    own = {part.removesuffix(".py") for source in files for part in source.path.parts}
    places = tuple(_places(request.root))
    for source in request.files:
        if "flax" not in source.text or not _may_inherit(source.text, own, places):
            continue
        for node, target in _imported_bases(source.text):
            package = target.partition(".")[0]
            if _is_known(package, own):
                continue
            if _is_linen(target, places, _DEPTH):
                path = relative(source.path, request.base or request.root)
                module = path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
                yield path, node.lineno, f"{module}.{node.name}", package


def _may_inherit(text: str, own: set[str], places: tuple[Path, ...]) -> bool:
    """Whether a file imports a package that is on disk, has Flax in it, and is not the project's."""
    named = (module or names for module, names in imports(text))
    packages = {match.group() for one in named if (match := _PACKAGE.match(one))}
    return any(_has_linen(one, places) for one in packages if not _is_known(one, own))


def _is_known(package: str, own: set[str]) -> bool:
    return package in _NEVER or package in own or package in sys.stdlib_module_names


@lru_cache(maxsize=4096)
def _has_linen(package: str, places: tuple[Path, ...]) -> bool:
    """Whether a package on disk mentions ``linen`` in a file near its top, or is one file."""
    file = _named(package, places)
    if file is None:
        return False
    files = [file] if file.name != "__init__.py" else sorted(file.parent.rglob("*.py"))[:_FILES]
    return any(_mentions(one) for one in files)


def _mentions(file: Path) -> bool:
    try:
        return b"linen" in file.read_bytes()
    except OSError:
        return False


def _places(root: Path) -> Iterator[Path]:
    """Folders that packages may be in."""
    for folder in (root, root / "src", *root.glob("*/lib/python*/site-packages")):
        if folder.is_dir():
            yield folder
    yield from root.glob(".venv/lib/python*/site-packages")
    yield from (Path(one) for one in sys.path if one and Path(one).is_dir())


def _imported_bases(text: str) -> Iterator[tuple[ast.ClassDef, str]]:
    """Class statements of a file with the imported names that they inherit from."""
    tree = parse(text)
    if tree is None:
        return
    nodes = walk(tree)
    names = dict(_imports(nodes, ""))
    for node in nodes:
        if isinstance(node, ast.ClassDef):
            for base in node.bases:
                target = _target(base, names)
                if target is not None:
                    yield node, target


def _imports(nodes: Iterable[ast.AST], package: str) -> Iterator[tuple[str, str]]:
    """Names that imports bind, and what they name; relative ones only inside a package."""
    for node in nodes:
        if isinstance(node, ast.Import) or (
            isinstance(node, ast.ImportFrom) and (package or not node.level)
        ):
            yield from imported_names(node, package)


def _target(base: ast.expr, names: dict[str, str]) -> str | None:
    parts: list[str] = []
    while isinstance(base, ast.Attribute):
        parts.append(base.attr)
        base = base.value
    if isinstance(base, ast.Subscript):
        return _target(base.value, names)
    if not isinstance(base, ast.Name) or base.id not in names:
        return None
    return ".".join([names[base.id], *reversed(parts)])


@lru_cache(maxsize=4096)
def _is_linen(symbol: str, places: tuple[Path, ...], depth: int) -> bool:
    """Whether the source of a package shows that a class is a Linen module."""
    if symbol.startswith("flax.linen."):
        return True
    if depth == 0 or symbol.partition(".")[0] in _NEVER:
        return False
    parts = symbol.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        file = _named(".".join(parts[:cut]), places)
        if file is not None:
            return _class_is_linen(file, parts[:cut], parts[cut], places, depth)
    return False


def _class_is_linen(
    file: Path, module: list[str], name: str, places: tuple[Path, ...], depth: int
) -> bool:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    tree = parse(text)
    if tree is None:
        return False
    is_package = file.name == "__init__.py"
    own = ".".join(module if is_package else module[:-1])
    names = dict(_imports(walk(tree), own))
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            local = {one.name for one in tree.body if isinstance(one, ast.ClassDef)}
            dotted = ".".join(module)
            targets = [
                f"{dotted}.{base.id}"
                if isinstance(base, ast.Name) and base.id in local
                else _target(base, names)
                for base in node.bases
            ]
            return any(one is not None and _is_linen(one, places, depth - 1) for one in targets)
    return name in names and _is_linen(names[name], places, depth - 1)


@lru_cache(maxsize=4096)
def _named(module: str, places: tuple[Path, ...]) -> Path | None:
    for place in places:
        path = place / module.replace(".", "/")
        for file in (path / "__init__.py", path.with_name(path.name + ".py")):
            if file.is_file():
                return file
    return None


def parse(text: str) -> ast.Module | None:
    """The tree of a file; None where it is no Python, which another part of the report tells."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
