"""What ``from module import *`` binds: of two stars that have a name, and of a star below a binding of it, the later holds."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from nnx_migrate.source.linen_names import public_names
from nnx_migrate.source.modules import Module
from nnx_migrate.source.names import Assignment, Import
from nnx_migrate.source.walking import is_name

_LINEN = ("flax.linen", "nnx_migrate.linen")

_LONGEST = 16  # chain of imports of one name

Homes = Mapping[str, str]


class Stars:
    """Where the names come from that modules take by stars."""

    def __init__(self, modules: Mapping[str, Module]) -> None:
        """Read nothing yet."""
        self._modules = modules
        self._known: dict[str, tuple[Homes, str | None]] = {}
        self._open: set[str] = set()  # modules whose stars are being followed
        self._circular = False  # whether some modules take all names of one another

    def home(self, name: str, module: Module) -> str | None:
        """The module that a name is taken from by a star; None of one that no star has."""
        homes, rest = self.homes(module)
        if name in homes:
            return homes[name]
        return rest if rest is not None and name in public_names() else None

    def homes(self, module: Module) -> tuple[Homes, str | None]:
        """The module that every name is taken from by a star, and the one that has all other names."""
        if module.name not in self._known:
            self._open.add(module.name)
            found: dict[str, str] = {}
            for target in module.stars:
                found |= self.names_of(target, module.name)
            self._open.discard(module.name)
            every = [*self.sources(module)]
            for target in every if self._circular else ():  # what the circle left out
                source = self._modules.get(target)
                found = {**dict.fromkeys(source.table if source else (), target), **found}
            rest = "flax.linen" if {*_LINEN} & {*every} else None
            self._known[module.name] = found, rest
        return self._known[module.name]

    def names_of(self, target: str, taker: str) -> Homes:
        """The names that a star import of a module binds, each with the module that has it.

        Not those that it has from the module ``taker``, whose star it is, so that they stay what they were:
        ``from .layers import Block`` and ``from .models import *`` in a package, of which ``models.py``
        begins with ``from . import Block``.
        """
        found = self._names_of(target)
        return {name: home for name, home in found.items() if not self._is_of(taker, home, name)}

    def _is_of(self, taker: str, home: str, name: str) -> bool:
        """Whether imports lead from a module's name to what another one has under that name."""
        full_name = f"{taker}.{name}"
        for _ in range(_LONGEST):
            source = self._modules.get(home)
            binding = source.table.get(name) if source is not None else None
            if not isinstance(binding, Import):
                return False
            if binding.target == full_name:
                return True
            home, _, name = binding.target.rpartition(".")
        return False

    def _names_of(self, target: str) -> Homes:
        source = self._modules.get(target)
        if source is None:
            return {}
        found: dict[str, str] = {}
        if target in self._open:
            self._circular = True
        elif source.stars:
            found |= self.homes(source)[0]
        found |= dict.fromkeys(source.table, target)
        if "__all__" not in source.table:
            return {name: home for name, home in found.items() if not name.startswith("_")}
        names = all_names(source)
        return found if names is None else {name: found[name] for name in names & found.keys()}

    def is_readable(self, target: str) -> bool:
        """Whether a module says plainly which names a star takes."""
        source = self._modules.get(target)
        return source is None or "__all__" not in source.table or all_names(source) is not None

    def sources(self, module: Module) -> Iterator[str]:
        """The modules whose names a file takes by stars, also by a star of those; each once, in order."""
        todo, visited = [*reversed(module.stars)], {module.name}
        while todo:
            target = todo.pop()
            if target not in visited:
                visited.add(target)
                yield target
                source = self._modules.get(target)
                todo += reversed(source.stars) if source is not None else ()


def all_names(module: Module) -> frozenset[str] | None:
    """The names that ``from module import *`` takes where ``__all__`` is a plain list; else None."""
    match module.table.get("__all__"):
        case Assignment(value=ast.List(elts=every) | ast.Tuple(elts=every)):
            words = [one.value for one in every if isinstance(one, ast.Constant)]
            said = sum(is_name(one, "__all__") for one in module.nodes)
            if said == 1 and len(words) == len(every):
                return frozenset(str(one) for one in words)
    return None
