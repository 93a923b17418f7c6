"""Who may name whom in a project: its top-level functions, classes and module code as one graph.

Names are compared as words, within the modules that a file imports at any remove: a link too many
costs a class its explicit form, one too few would break a caller.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from nnx_migrate.rewrite.proof.pieces import DEFINITIONS, Key, import_renames, pieces
from nnx_migrate.rewrite.proof.tables import TableLinks
from nnx_migrate.rewrite.proof.ways import ways
from nnx_migrate.source.bindings import bound_names
from nnx_migrate.source.facts import Fact
from nnx_migrate.source.growth import reachable
from nnx_migrate.source.names import relative_target
from nnx_migrate.source.project import Module, Project
from nnx_migrate.source.takers import imports_by_name
from nnx_migrate.source.walking import walk


@dataclass
class Graph:
    """Nodes with their statements, and which other nodes each of them names."""

    statements: dict[Key, list[ast.stmt]] = field(default_factory=dict)
    names: dict[Key, set[Key]] = field(default_factory=dict)
    lines: dict[str, list[tuple[int, int, Key]]] = field(default_factory=dict)  # by path

    def at(self, path: str, line: int) -> Key | None:
        """The node whose text holds a line."""
        for first, last, key in self.lines.get(path, ()):
            if first <= line <= last:
                return key
        return None

    def around(self, key: Key) -> set[Key]:
        """All that this node and those that reach it name, at any remove: callers hand it their models."""
        above: dict[Key, set[Key]] = {}
        for one, named in self.names.items():
            for other in named:
                above.setdefault(other, set()).add(one)
        callers = reachable([key], lambda one: above.get(one, ()))
        return reachable(callers, lambda one: self.names.get(one, ()))


@Fact  # every attempt of a run asks
def graph_of(project: Project) -> Graph:
    """Read the graph of a project."""
    graph = Graph()
    defined: dict[str, dict[str, Key]] = {}
    for module in project.modules.values():
        defined[module.name] = _read(module, graph)
    reach = _reach(project)
    renamed = import_renames(project)
    definers = _definers(defined)
    meant: dict[Key, dict[str, set[Key]]] = {}
    for key, statements in graph.statements.items():
        words = _words(statements)
        words |= {renamed[key[0]][one] for one in words & renamed[key[0]].keys()}
        meant[key] = _meant(words, definers, reach[key[0]])
        graph.names[key] = set().union(*meant[key].values()) - {key}
    opened: set[tuple[Key, Key]] = set()
    for one in ways(project).accesses:
        at = graph.at(one.path, one.line)
        if at is not None and one.module is not None:
            definitions = defined[one.module]
            met = (
                {*definitions.values()}
                if one.word is None
                else {*_definition_keys(definitions, one.word)}
            )
            graph.names[at] |= met
            opened |= {(at, key) for key in met}
    filled = TableLinks(project, graph.statements, renamed)
    for readers, fillers in [*filled.links(graph.names, meant, opened)]:
        for reader in readers:
            graph.names[reader] |= fillers - {reader}
    return graph


def _definers(definitions: Mapping[str, Mapping[str, Key]]) -> dict[str, dict[str, Key]]:
    """The nodes that define a word, by the word and the name of their module."""
    found: dict[str, dict[str, Key]] = defaultdict(dict)
    for module, every in definitions.items():
        for word, key in every.items():
            found[word][module] = key
    return found


def _meant(
    words: set[str], definers: Mapping[str, Mapping[str, Key]], reach: set[str]
) -> dict[str, set[Key]]:
    """The nodes of the modules in reach that define words of a piece of code."""
    found: dict[str, set[Key]] = {}
    for word in words & definers.keys():
        modules = definers[word].keys() & reach
        if modules:
            found[word] = {definers[word][one] for one in modules}
    return found


def _definition_keys(definitions: Mapping[str, Key], word: str) -> Iterator[Key]:
    if word in definitions:
        yield definitions[word]


def _read(module: Module, graph: Graph) -> dict[str, Key]:
    """Add a module's nodes; which node defines which of its names."""
    defined: dict[str, Key] = {}
    spans: list[tuple[int, int, Key]] = []
    for key, statement in pieces(module):
        graph.statements.setdefault(key, []).append(statement)
        decorators = getattr(statement, "decorator_list", [])
        first = min([statement.lineno, *(one.lineno for one in decorators)])
        spans.append((first, statement.end_lineno or first, key))
        for one in [key[1]] if key[1] else _bound(statement):
            defined.setdefault(one, key)
    graph.lines[module.path] = spans
    return defined


def _bound(statement: ast.stmt) -> set[str]:
    found = set(bound_names(statement))
    for node in walk(statement):
        if isinstance(node, DEFINITIONS):
            found.add(node.name)
    return found


def loaded_word(node: ast.AST) -> str | None:
    """The last name of what a node loads, also by ``getattr`` with a constant."""
    match node:
        case ast.Name(id=word, ctx=ast.Load()) | ast.Attribute(attr=word, ctx=ast.Load()):
            return word
        case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value=str() as word), *_]):
            return word
    return None


def _words(statements: Iterable[ast.AST]) -> set[str]:
    """Identifiers and one-word strings of a piece of code."""
    found: set[str] = set()
    for statement in statements:
        if isinstance(statement, ast.Assign) and "__all__" in set(bound_names(statement)):
            continue
        for node in walk(statement):
            match node:
                case ast.Name(id=word) | ast.Attribute(attr=word) | ast.alias(name=word):
                    found.add(word.rpartition(".")[2])
                case ast.Constant(value=str() as text) if len(text) < 200:
                    found.update(_parts(text))
    return found


def _parts(text: str) -> Iterator[str]:
    """A name in a string: a class of a registry, a quoted annotation, ``module:Class``."""
    for word in text.replace("[", ".").replace("]", ".").replace(":", ".").split("."):
        if word.strip().isidentifier():
            yield word.strip()


def _reach(project: Project) -> dict[str, set[str]]:
    """The modules each module imports, itself and those at further removes included."""
    tails: dict[str, set[str]] = defaultdict(set)
    for name in project.modules:
        parts = name.split(".")
        for start in range(len(parts)):
            tails[".".join(parts[start:])].add(name)
    paths = {one.path: one.name for one in project.modules.values()}
    direct: dict[str, set[str]] = {}
    for module in project.modules.values():
        found: set[str] = set()
        for target in import_names(module):
            found |= _named(target, module, tails, paths)
        for source in imports_by_name(project)[module.name]:
            fitting = (names for tail, names in tails.items() if source.fits(tail))
            found.update(name for names in fitting for name in names)
        direct[module.name] = found
    return {name: reachable([name], direct.__getitem__) for name in project.modules}


def _named(
    target: str,
    importer: Module,
    tails: Mapping[str, set[str]],
    paths: Mapping[str, str],
) -> set[str]:
    """The project's modules that an import may mean: the longest part of it that is one.

    The one of that whole name and the nearest file beside the importing one or in a folder above it
    (scripts, ``src``): which of them Python finds depends on how it is started. Without a file so
    near every module whose name ends like it.
    """
    parts = target.split(".")
    for size in range(len(parts), 0, -1):
        every = tails.get(".".join(parts[:size]), set())
        if every:
            near = _near(parts[:size], importer, paths)
            return {near, *every & {".".join(parts[:size])}} if near is not None else every
    return set()


def _near(parts: list[str], importer: Module, paths: Mapping[str, str]) -> str | None:
    rest = "/".join(parts)
    folder = importer.path
    while folder not in ("", "/"):
        folder = folder[: folder.rstrip("/").rfind("/") + 1]
        for file in (f"{folder}{rest}.py", f"{folder}{rest}/__init__.py"):
            if file in paths:
                return paths[file]
    return None


def import_names(module: Module) -> Iterator[str]:
    """Dotted names that a module imports anywhere, also by ``import_module`` of a constant."""
    for node in module.nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            owner = relative_target(module.package, node.level, node.module)
            yield owner
            yield from (f"{owner}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and _is_dotted(node.value):
            yield str(node.value)


def _is_dotted(value: object) -> bool:
    words = value.split(".") if isinstance(value, str) else []
    return len(words) > 1 and all(one.isidentifier() for one in words)
