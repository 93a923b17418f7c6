"""Modules that code imports by their names: ``import_module(path)``, ``sys.modules[path]``.

What the name may be is read from the code, and where only the running program knows it, from the table
``[tool.nnx-migrate.imports]`` of the project's pyproject.toml::

    [tool.nnx-migrate.imports]
    "mylib.hub.load" = []                     # none of this project's modules
    "mylib.zoo.build" = ["mylib.models.*"]    # modules like these, and no others

A key is the full name of the function in whose own text the import stands, or of the file's module
where it stands in none; both outlive edits around them.
"""

from __future__ import annotations

import ast
import reprlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import chain
from typing import Any

from nnx_migrate.source.modules import Module
from nnx_migrate.source.names import root_name
from nnx_migrate.source.texts import ANY, Reader

_BY_NAME = frozenset({"import_module", "__import__"})  # import a module by its name
_IMPORTERS = frozenset({"importlib.import_module", "import_module", "builtins.__import__"})
_IMPORTERS |= {"__import__"}
# Run a file.
_BY_PATH = frozenset(
    {
        "imp.load_module",
        "imp.load_source",
        "importlib.util.module_from_spec",
        "runpy.run_module",
        "runpy.run_path",
    }
)
# Give what a path of names leads to, ``models.Net``, which stands in a configuration or on the command line.
GIVERS = frozenset(
    {
        *("pkgutil.resolve_name", "pydoc.locate"),
        *("django.utils.module_loading.import_string", "werkzeug.utils.import_string"),
        *("importlib.metadata.entry_points", "importlib_metadata.entry_points"),
        *("pkg_resources.iter_entry_points", "pkg_resources.load_entry_point"),
        *(f"chz.{one}" for one in ("Blueprint", "entrypoint", "nested_entrypoint")),
        *(
            f"gin.{one}"
            for one in ("parse_config", "parse_config_file", "parse_config_files_and_bindings")
        ),
        *(f"hydra.utils.{one}" for one in ("call", "get_class", "get_method", "get_object")),
        *(f"hydra.utils.{one}" for one in ("get_static_method", "instantiate")),
        *(f"hydra_zen.{one}" for one in ("instantiate", "launch", "zen")),
        *(f"jsonargparse.{one}" for one in ("ArgumentParser", "CLI", "auto_cli", "auto_parser")),
    }
)
CLASS_GIVERS = frozenset({"hydra.utils.get_class"})  # never a module
_GIVER_WORDS = frozenset(one.rpartition(".")[2] for one in GIVERS)
TABLE = "[tool.nnx-migrate.imports]"
_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)

Declared = Mapping[str, tuple[str, ...]]  # patterns of modules, by place


class DeclarationError(ValueError):
    """The table cannot be used; the text says what was expected."""


@dataclass(frozen=True)
class NamedImport:
    """An expression for a module; one for each name that it may have.

    Attributes:
      start: how the module's dotted name begins; "" where nothing is known of it.
      end: how it ends.
      whole: whether ``start`` is the whole name.
      relative: whether the code gives the name relative to a package.
      giver: the function that gives something of the module, and not the module itself.
    """

    module: Module
    node: ast.expr
    start: str
    whole: bool = False
    relative: bool = False
    end: str = ""
    giver: str | None = None

    @cached_property
    def place(self) -> str:
        """The full name of the function around it, or of the module."""
        above = self.module.parents.above(self.node)
        names = [one.name for one in above if isinstance(one, _NAMED)]
        return ".".join([self.module.name, *reversed(names)])

    def may_be(self, module: str, declaration: Declared) -> bool:
        """Whether it may be the module of that name; ``src.models`` may be imported as ``models``."""
        patterns = None if self.whole else declaration.get(self.place)
        if patterns is not None and not any(is_like(module, one) for one in patterns):
            return False
        return any(map(self.fits, _ends(module)))

    def fits(self, name: str) -> bool:
        """Whether a dotted name may be the one that the code computes."""
        if self.whole:
            return name == self.start
        is_long_enough = len(name) >= len(self.start) + len(self.end)
        return is_long_enough and name.startswith(self.start) and name.endswith(self.end)


def named_imports(module: Module, modules: Iterable[Module] | None) -> Iterator[NamedImport]:
    """Modules that are imported by a name, or taken from those that are imported.

    Args:
      modules: all of the project: functions of the module may be called in these, and its names changed;
        None where not all are known.
    """
    aliases = _aliases(module)
    reader = Reader(module, modules)
    for node in module.nodes:
        match node:
            case ast.Subscript(value=owner, slice=name, ctx=ast.Load()):
                if _is_loaded(owner, aliases):
                    yield from _imports(reader, node, name, None)
            case ast.Call(func=ast.Attribute(attr="get", value=owner), args=[name, *_]):
                if _is_loaded(owner, aliases):
                    yield from _imports(reader, node, name, None)
            case ast.Call(func=ast.Attribute(attr="copy" | "items" | "values", value=owner)):
                if _symbol(owner, aliases) == "sys.modules":
                    yield NamedImport(module, node, "")
            case ast.Call(func=function):
                symbol = _symbol(function, aliases)
                if symbol.rpartition(".")[2] in _BY_NAME:
                    yield from _imports_of_call(reader, node, symbol.rpartition(".")[2])
                elif symbol in _BY_PATH and (node.args or node.keywords):
                    yield NamedImport(module, node, "")
            case ast.Name() | ast.Attribute() if _is_handed_on(module, node, aliases):
                yield NamedImport(module, node, "")  # whoever has it imports anything
            case ast.Name(id=word, ctx=ast.Load()) | ast.Attribute(attr=word, ctx=ast.Load()):
                if word not in aliases and word not in _GIVER_WORDS:
                    continue  # as most names: the dotted name is not put together
                symbol = _symbol(node, aliases)
                if symbol in GIVERS:
                    yield NamedImport(module, node, "", giver=symbol)


def _is_handed_on(
    module: Module, node: ast.Name | ast.Attribute, aliases: Mapping[str, str]
) -> bool:
    """Whether a function that imports is a value: ``load = importlib.import_module``."""
    if isinstance(node, ast.Attribute):
        word = node.attr
    else:
        word = aliases.get(node.id, node.id).rpartition(".")[2]
    if word not in _BY_NAME or not isinstance(node.ctx, ast.Load):
        return False
    if _symbol(node, aliases) not in _IMPORTERS:
        return False
    match module.parents.of(node):
        case ast.Call(func=called) if called is node:
            return False
        case ast.Attribute() | ast.Compare():
            return False
    return True


def _imports_of_call(reader: Reader, call: ast.Call, function: str) -> Iterator[NamedImport]:
    """What a call of a function imports that is given a name."""
    module = reader.module
    keywords = {one.arg: one.value for one in call.keywords}
    name = call.args[0] if call.args else keywords.get("name")
    package = call.args[1] if call.args[1:] else keywords.get("package")
    if None in keywords or name is None or isinstance(name, ast.Starred):
        if call.args or call.keywords:
            yield NamedImport(module, call, "")
    elif function == "import_module":
        yield from _imports(reader, call, name, package)
    else:
        is_leaf = len(call.args) > 3 or "fromlist" in keywords
        for one in _imports(reader, call, name, None):
            # ``__import__("a.b")`` gives ``a``
            yield one
            head, dot, _ = one.start.partition(".")
            if dot and not is_leaf:
                yield replace(one, start=head, end="", whole=True)


def _is_loaded(node: ast.expr, aliases: Mapping[str, str]) -> bool:
    """``sys.modules``, also of a ``sys`` by another name; ``self.modules`` is a field."""
    if isinstance(node, ast.Attribute):
        return node.attr == "modules" and root_name(node) != "self"
    return isinstance(node, ast.Name) and aliases.get(node.id) == "sys.modules"


def _aliases(module: Module) -> dict[str, str]:
    """What the names stand for that import statements bind anywhere in a file."""
    found: dict[str, str] = {}
    for node in module.nodes:
        if isinstance(node, ast.Import):
            found |= {one.asname: one.name for one in node.names if one.asname}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found |= {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names}
    return found


def _symbol(node: ast.expr, aliases: Mapping[str, str]) -> str:
    """The full name of a dotted expression."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    head = node.id if isinstance(node, ast.Name) else ""
    return ".".join([aliases.get(head, head), *parts])


def is_like(module: str, pattern: str) -> bool:
    """Whether a pattern may mean a module.

    >>> is_like("src.models.vit", "models.*"), is_like("models", "models.*")
    (True, False)
    """
    return any(fnmatchcase(one, pattern) for one in _ends(module))


def _ends(module: str) -> Iterator[str]:
    """The names under which a module may be imported: ``a.b.c``, ``b.c`` and ``c``."""
    parts = module.split(".")
    return (".".join(parts[start:]) for start in range(len(parts)))


def _imports(
    reader: Reader, node: ast.expr, name: ast.expr, package: ast.expr | None
) -> Iterator[NamedImport]:
    """The names of a module that may be relative to the package behind it: ``..a`` to ``b.c``."""
    module = reader.module
    packages = reader.texts_of(package) if package is not None else [ANY]
    for one in reader.texts_of(name):
        plain = one.start.lstrip(".")
        if plain == one.start:
            yield NamedImport(module, node, one.start, one.whole, end=one.end)
            continue
        for around in packages:
            parts = around.start.split(".")
            up = len(one.start) - len(plain) - 1
            is_known = around.whole and around.start
            full = ".".join([*parts[: len(parts) - up], plain]) if is_known else plain
            yield NamedImport(module, node, full, one.whole, relative=True, end=one.end)


# ---- what the settings say


def declared_imports(settings: Mapping[str, Any]) -> Declared:
    """The entries of the table, by place.

    Raises:
        DeclarationError: an entry is not a place with a list of modules.
    """
    found: dict[str, tuple[str, ...]] = {}
    for place, patterns in settings.items():
        if not all(part.isidentifier() for part in place.split(".")):
            raise DeclarationError(
                f'"{place}": expected the full name of the function that imports, as in '
                '"mylib.hub.load"'
            )
        if not isinstance(patterns, list) or not all(isinstance(one, str) for one in patterns):
            raise DeclarationError(
                f'"{place}": expected a list of modules such as ["mylib.models.*"], or [] for none '
                f"of this project's, found {reprlib.repr(patterns)}"
            )
        found[place] = tuple(patterns)
    return found


def check_declaration(
    declaration: Declared,
    modules: Iterable[Module],
    every: Collection[str],
    broken_modules: Collection[str],
    *,
    is_whole: bool = True,
) -> None:
    """Hold what is declared against the code: an entry that is stale must not speak of later code.

    Args:
      modules: the files that are read.
      is_whole: whether these are all.
      every: the names of all the project's modules.
      broken_modules: the names of those that cannot be parsed, so that nothing is known of them.

    Raises:
      DeclarationError: there is no such import or no such module.
    """
    read = [*modules]

    def places(some: Iterable[Module]) -> dict[str, bool]:
        return _places(named_imports(one, read if is_whole else None) for one in some)

    for place, patterns in declaration.items():
        if any(_is_below(place, one) for one in broken_modules):
            continue
        if places(one for one in read if _is_below(place, one.name)).get(place, True):
            raise DeclarationError(f'"{place}": {_instead(place, places(read))}')
        for pattern in patterns:
            if not any(is_like(one, pattern) for one in every):
                raise DeclarationError(
                    f'"{place}": no module of this project is like "{pattern}"; [] says none of them'
                )


def _is_below(place: str, module: str) -> bool:
    return f"{place}.".startswith(f"{module}.")


def _places(imports: Iterable[Iterable[NamedImport]]) -> dict[str, bool]:
    """Where modules are imported by their names, and whether the whole name is always known."""
    found: dict[str, bool] = {}
    for one in chain.from_iterable(imports):
        found[one.place] = found.get(one.place, True) and one.whole
    return found


def _instead(place: str, answers: Mapping[str, bool]) -> str:
    if place in answers:
        return "what is imported there is read from the code; remove the entry"
    dynamic = sorted(one for one, is_whole in answers.items() if not is_whole)
    close = get_close_matches(place, dynamic, n=1)
    hint = f"; did you mean {close[0]}?" if close else "; remove the entry"
    return f"nothing is imported there by a name that only the running program knows{hint}"
