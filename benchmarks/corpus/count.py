"""Count the module classes of a tree, with nothing but ``ast``; the denominator of the corpus.

A class counts when its bases end in a class of ``flax.linen``, followed through imports,
assignments to plain names and other files of the tree. Deliberately independent of
``nnx_migrate``: what the rewriter overlooks has to show.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class _Class:
    path: str
    name: str  # qualified within the file
    line: int
    bases: tuple[str, ...]


@dataclass
class _File:
    module: str
    path: str
    names: dict[str, str] = field(default_factory=dict)  # imported name -> absolute dotted name
    aliases: dict[str, str] = field(default_factory=dict)  # assigned name -> name in this file
    stars: list[str] = field(default_factory=list)
    classes: list[_Class] = field(default_factory=list)


def module_classes(tree: Path) -> list[str]:
    """Return ``path:Qualified.Name`` of every Linen module class under ``tree``, sorted."""
    files = [file for path in _python_files(tree) if (file := _read(path, tree))]
    by_module = {file.module: file for file in files}
    known: set[str] = set()
    while True:
        found = {
            f"{file.module}.{cls.name}"
            for file in files
            for cls in file.classes
            if any(_is_module(base, file, by_module, known) for base in cls.bases)
        }
        if found == known:
            break
        known = found
    return sorted(
        f"{cls.path}:{cls.name}"
        for file in files
        for cls in file.classes
        if f"{file.module}.{cls.name}" in known
    )


def _python_files(tree: Path) -> Iterator[Path]:
    return (path for path in sorted(tree.rglob("*.py")) if path.is_file())


def _read(path: Path, tree: Path) -> _File | None:
    try:
        syntax = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return None
    relative = path.relative_to(tree)
    parts = relative.with_suffix("").parts
    package = parts[:-1]
    module = ".".join(package if parts[-1] == "__init__" else parts)
    file = _File(module=module, path=relative.as_posix())
    for node in ast.walk(syntax):
        if isinstance(node, ast.Import):
            for alias in node.names:
                bound = alias.asname or alias.name.split(".")[0]
                file.names[bound] = alias.name if alias.asname else bound
        elif isinstance(node, ast.ImportFrom):
            origin = _origin(node, package)
            for alias in node.names:
                if alias.name == "*":
                    file.stars.append(origin)
                else:
                    file.names[alias.asname or alias.name] = f"{origin}.{alias.name}"
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], _dotted(node.value)
            if isinstance(target, ast.Name) and value is not None:
                file.aliases.setdefault(target.id, value)
    _collect(syntax, "", file)
    return file


def _origin(node: ast.ImportFrom, package: tuple[str, ...]) -> str:
    if not node.level:
        return node.module or ""
    above = package[: len(package) - node.level + 1]
    return ".".join([*above, *([node.module] if node.module else [])])


def _collect(node: ast.AST, prefix: str, file: _File) -> None:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            name = f"{prefix}{child.name}"
            bases = tuple(base for base in map(_base, child.bases) if base is not None)
            file.classes.append(_Class(file.path, name, child.lineno, bases))
            _collect(child, f"{name}.", file)
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            _collect(child, f"{prefix}{child.name}.<locals>.", file)
        else:
            _collect(child, prefix, file)


def _base(node: ast.expr) -> str | None:
    """Return the dotted name of a base; ``Generic[T]`` and ``Base[T]`` count as their head."""
    return _dotted(node.value if isinstance(node, ast.Subscript) else node)


def _dotted(node: ast.expr) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        head = _dotted(node.value)
        return None if head is None else f"{head}.{node.attr}"
    return None


def _is_module(base: str, file: _File, by_module: dict[str, _File], known: set[str]) -> bool:
    head = base.split(".")[0]
    local = [cls for cls in file.classes if cls.name.split(".")[-1] == base]
    if local and head not in file.names:
        return any(f"{file.module}.{cls.name}" in known for cls in local)
    resolved = _resolve(base, file, by_module, depth=0)
    return _is_linen_class(resolved) or resolved in known


def _resolve(name: str, file: _File, by_module: dict[str, _File], depth: int) -> str:
    """Follow a dotted name through imports and re-exports of the tree."""
    if depth > 20:
        return name
    head, _, rest = name.partition(".")
    if any(cls.name == head for cls in file.classes) and head not in file.names:
        return f"{file.module}.{name}"
    if head in file.names and file.names[head] != head:
        target = file.names[head] + (f".{rest}" if rest else "")
    elif head in file.names:
        target = name
    elif head in file.aliases:
        aliased = file.aliases[head] + (f".{rest}" if rest else "")
        return _resolve(aliased, file, by_module, depth + 1)
    else:
        return _through_stars(name, file, by_module, depth)
    owner, attribute = _split(target, by_module)
    if owner is None:
        return target
    return _resolve(attribute, by_module[owner], by_module, depth + 1) if attribute else target


def _through_stars(name: str, file: _File, by_module: dict[str, _File], depth: int) -> str:
    for origin in file.stars:
        if origin.startswith("flax.linen"):
            return f"{origin}.{name}"
        if origin in by_module:
            found = _resolve(name, by_module[origin], by_module, depth + 1)
            if found != name:
                return found
    return name


def _split(target: str, by_module: dict[str, _File]) -> tuple[str | None, str]:
    """Split a dotted name at the longest prefix that is a file of the tree."""
    parts = target.split(".")
    for length in range(len(parts), 0, -1):
        if ".".join(parts[:length]) in by_module:
            return ".".join(parts[:length]), ".".join(parts[length:])
    return None, target


def _is_linen_class(name: str) -> bool:
    return name.startswith("flax.linen.") and name.rsplit(".", 1)[1][:1].isupper()
