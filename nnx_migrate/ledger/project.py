"""The project's files: which exist, which can matter, parsed when first asked for."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Sequence

from nnx_migrate.ledger.data import Source
from nnx_migrate.ledger.scopes import Unit, analyse

_NEWLINE = re.compile(r"\r\n|\r|\n")


Read = dict[Source, Unit | None]  # None: it does not parse


class Project:
    """Every source by module name; ``unit`` parses and remembers, in ``read`` if that is given."""

    def __init__(self, sources: Sequence[Source], read: Read | None = None) -> None:
        self.sources = {source.path: source for source in sources}
        self.by_module: dict[str, Source] = {}
        self.packages: set[str] = set()
        for source in sources:
            self.by_module.setdefault(source.module, source)
            parts = source.module.split(".")
            self.packages.update(".".join(parts[:size]) for size in range(1, len(parts)))
        self._read: Read = {} if read is None else read

    def unit(self, path: str) -> Unit | None:
        """The parsed file, or None when it does not parse."""
        source = self.sources[path]
        if source not in self._read:
            self._read[source] = _parse(source)
        return self._read[source]

    def module(self, name: str) -> Unit | None:
        """The parsed module of that dotted name, if it is a file of the project."""
        source = self.by_module.get(name)
        return None if source is None else self.unit(source.path)

    def has(self, name: str) -> bool:
        """Whether a module or package of that dotted name is part of the project."""
        return name in self.by_module or name in self.packages

    def locate(self, name: str, importer: str) -> str:
        """The project's name for an absolute import written in the module ``importer``.

        A script's neighbours are importable by their bare names (Python puts the script's
        directory on the path) and a ``src`` folder is no package, so a name the project lacks is
        looked for beside the importer and in the folders above it.
        ``flax`` is always the installed package, even inside a checkout of Flax itself.
        """
        if name.partition(".")[0] == "flax" or not name or self.has(name):
            return name
        found = (one for one in _beside(name, importer) if self.has(one))
        return next(found, name)


def _beside(name: str, importer: str) -> list[str]:
    """A name in the importer's folder and in those above it, nearest first."""
    parts = importer.split(".")[:-1]
    return [".".join([*parts[:size], name]) for size in range(len(parts), 0, -1)]


def _absolute(base: str, module: str, is_package: bool) -> str:
    level = len(base) - len(base.lstrip("."))
    rest = base[level:]
    if not level:
        return rest
    parts = module.split(".")
    keep = parts[: len(parts) - level + (1 if is_package else 0)]
    return ".".join([*keep, rest] if rest else keep)


def _parse(source: Source) -> Unit | None:
    text = source.text.removeprefix("\ufeff")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes are the user's business
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return analyse(tree, source.path, source.module, _NEWLINE.split(text))
