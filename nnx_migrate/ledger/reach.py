"""Which files could name Linen, and which of their globals could have anything to do with it.

Parsing is what costs, and in a large project few files have to do with Flax. So a file is parsed
only when its text imports flax, or imports a *tainted* name from a project module. Tainted is a
global whose definition mentions flax or another tainted name (in a module that does not import
flax itself, a class's methods are left out: what they use does not make its instances modules). Text decides never too narrowly
which files to parse; their syntax trees decide what is tainted.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection

from nnx_migrate.ledger.data import Source
from nnx_migrate.ledger.project import Project
from nnx_migrate.ledger.resolve import Taints
from nnx_migrate.ledger.statements import ImportedName, Statement

_IMPORTS_FLAX = re.compile(r"\b(?:from|import)\b[^\n#]*\bflax\b")
# Begins with a letter, so that the search for it is one for a plain word.
_IMPORT = re.compile(r"import\b")
_FROM = re.compile(r".*\bfrom\b([.\w \t]*)\Z", re.DOTALL)  # of a line, what stands before "import"
_LISTED = re.compile(r"\s*(\([^)]*\)|[^\n;#]*)")
_MODULES = re.compile(r"[ \t]+([^\n;#(]*)")
_COMMENT = re.compile(r"#[^\n]*")
_WORD = re.compile(r"\w+")

_Named = tuple[str, str]  # module, and a name in it ("" the module itself, "*" all of them)


def taints(project: Project, size: int) -> Taints:
    """The tainted globals of every module that could name Linen (it may have none).

    ``size`` is how many characters of parsed files are held at a time.
    """
    found: Taints = {}
    named = {one.module: _imports(one, project) for one in project.by_module.values()}
    importers: dict[str, set[str]] = {}
    for module, items in named.items():
        for target, name in items:
            importers.setdefault(target, set()).add(module)
            importers.setdefault(f"{target}.{name}", set()).add(module)
    flax = {module for module, one in project.by_module.items() if _imports_flax(one.text)}
    pending = deque(module for module in project.by_module if module in flax)
    while pending:
        module = pending.popleft()
        reached = module in flax or any(_brings_taint(one, found) for one in named[module])
        if not reached:
            continue
        statements = project.statements(module, bodies=module in flax)
        project.exports(module)  # while it is at hand
        project.trim(size)
        names = _tainted_globals(statements, found, project)
        if found.get(module) != names:
            found[module] = names
            pending.extend(sorted(importers.get(module, ())))
    return found


def _brings_taint(item: _Named, taints: Taints) -> bool:
    """Whether importing that name brings something tainted along."""
    module, name = item
    names = taints.get(module, frozenset())
    whole = name in ("", "*") and bool(names)
    return whole or name in names or "*" in names or bool(taints.get(f"{module}.{name}"))


def _imports_flax(text: str) -> bool:
    return "flax" in text and bool(_IMPORTS_FLAX.search(_join_lines(text)))


def _imports(source: Source, project: Project) -> frozenset[_Named]:
    """Everything a text may import from the project; that hangs on which modules this has alone."""
    if source not in project.imports:
        project.imports[source] = frozenset(_read_imports(source, project))
    return project.imports[source]


def _read_imports(source: Source, project: Project) -> set[_Named]:
    text = _join_lines(source.text)
    found: set[_Named] = set()
    for match in _IMPORT.finditer(text):
        head = _FROM.match(text, text.rfind("\n", 0, match.start()) + 1, match.start())
        if head is not None:
            listed = _match(_LISTED, text, match.end())
            module = project.locate(_absolute("".join(head[1].split()), source), source.module)
            if project.has(module):
                names = _WORD.findall(_COMMENT.sub("", listed))
                found.update((module, name) for name in (names if "*" not in listed else ["*"]))
        for part in _match(_MODULES, text, match.end()).split(","):
            pieces = part.split(" as ")[0].strip().split(".")
            heads = (".".join(pieces[: size + 1]) for size in range(len(pieces)))
            located = (project.locate(head, source.module) for head in heads)
            found.update((module, "") for module in located if project.has(module))
    return found


def _match(pattern: re.Pattern[str], text: str, at: int) -> str:
    match = pattern.match(text, at)
    return match[1] if match is not None else ""


def _tainted_globals(
    statements: list[Statement], taints: Taints, project: Project
) -> frozenset[str]:
    """The globals of a parsed module that mention flax or something tainted, at any remove."""
    names: set[str] = set()
    for one in statements:
        for item in one.imports:
            if brings_flax(item, taints, project):
                names.update(one.definitions or bound_by(item, taints, project))
    while True:
        more = {
            name
            for one in statements
            if not one.mentions.isdisjoint(names)
            for name in one.definitions
        }
        if more <= names:
            return frozenset(names)
        names |= more


def brings_flax(one: ImportedName, taints: Taints, project: Project) -> bool:
    """Whether an import brings flax or something tainted along."""
    if one.target.partition(".")[0] == "flax":
        return True
    module = project.locate(one.target, one.importer)
    if one.kind == "import":
        pieces = module.split(".")
        return any(taints.get(".".join(pieces[:size])) for size in range(1, len(pieces) + 1))
    return _brings_taint((module, "*" if one.kind == "star" else one.name), taints)


def bound_by(one: ImportedName, taints: Taints, project: Project) -> Collection[str]:
    """The names an import binds."""
    if one.kind != "star":
        return one.names
    module = project.locate(one.target, one.importer)
    if module.partition(".")[0] == "flax":
        return {"*"}  # any name at all
    exported = project.exports(module) if taints.get(module) else None
    return {name for name in taints.get(module, ()) if exported is not None and name in exported}


def _join_lines(text: str) -> str:
    """The text with continued lines joined."""
    if "\\" not in text:
        return text
    return text.replace("\\\r\n", " ").replace("\\\n", " ").replace("\\\r", " ")


def _absolute(base: str, source: Source) -> str:
    level = len(base) - len(base.lstrip("."))
    if not level:
        return base
    package = source.path.replace("\\", "/").rpartition("/")[2] == "__init__.py"
    parts = source.module.split(".")
    keep = parts[: max(0, len(parts) - level + (1 if package else 0))]
    return ".".join([*keep, base[level:]] if base[level:] else keep)
