"""Names that a star binds anew: after ``from .one import Block``, ``from .two import *`` may bring another ``Block``."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace

from nnx_migrate.source.latest import is_read_between
from nnx_migrate.source.modules import Module
from nnx_migrate.source.names import Binding, Import, Opaque, table_of
from nnx_migrate.source.project import Project

_ROUNDS = 8  # longest chain of modules of which each takes by a star what the one before covers


def shadowed_names(modules: Mapping[str, Module]) -> dict[str, Module]:
    """The modules in which a star binds to something else what another statement has bound before.

    Their tables have both bindings, the star's behind the other: which one is meant where, is for
    :mod:`nnx_migrate.source.latest`. Of two stars the later holds without that, unless something
    may see the earlier.
    """
    every = dict(modules)
    found: dict[str, Module] = {}
    for _ in range(_ROUNDS):
        project = Project(dict(every))
        more = {}
        for module in every.values():
            covered = _StarModule(project, module).shadowed_bindings() if module.stars else {}
            if covered.keys() - module.shadowed_bindings.keys():
                more[module.name] = replace(module, shadowed_bindings=covered)
        if not more:
            break
        found |= more
        every |= more
    return found


class _StarModule:
    """The stars of one module, from the first to the last."""

    def __init__(self, project: Project, module: Module) -> None:
        self._project = project
        self._module = module
        self._own: dict[str, int] = {}  # the last statement that binds each name by itself
        self._taken: dict[str, tuple[int, str, bool]] = {}  # and the last star that does
        self._found: dict[str, list[Binding]] = {}

    def shadowed_bindings(self) -> dict[str, tuple[Binding, ...]]:
        """What stars bind names to that are bound already, by the name."""
        body = self._module.tree.body
        tables = [table_of([one], self._module.package) for one in body]
        for place, (names, _) in enumerate(tables):
            self._own |= dict.fromkeys(names, place)
        for place, (_, targets) in enumerate(tables):
            is_plain = isinstance(body[place], ast.ImportFrom)  # under no condition
            for target in targets:
                is_sure = is_plain and self._project.stars.is_readable(target)
                homes = self._project.stars.names_of(target, self._module.name)
                for name, home in homes.items():
                    if not name.startswith("__"):
                        self._add(place, name, f"{home}.{name}", is_sure)
        return {name: tuple(bindings) for name, bindings in self._found.items()}

    def _add(self, place: int, name: str, symbol: str, is_sure: bool) -> None:
        if name in self._own:
            mine = f"{self._module.name}.{name}"
            is_last = self._own[name] < place
            if (is_last or self._is_read_before(name, place)) and self._differ(mine, symbol):
                self._cover(name, [Import(symbol)], is_sure and is_last)
            return
        before, other, was_sure = self._taken.get(name, (place, symbol, True))
        self._taken[name] = place, symbol, is_sure
        is_sure = is_sure and was_sure
        if self._differ(other, symbol) and not (is_sure and self._is_unread(before, place, name)):
            self._cover(name, [Import(other), Import(symbol)], False)

    def _cover(self, name: str, bindings: list[Binding], is_sure: bool) -> None:
        self._found.setdefault(name, []).extend([*bindings, *([] if is_sure else [Opaque()])])

    def _differ(self, one: str, other: str) -> bool:
        return self._project.canonical(one) != self._project.canonical(other)

    def _is_read_before(self, name: str, place: int) -> bool:
        """Whether the module reads a star's name while it runs, before it binds the name itself."""
        body, own = self._module.tree.body, self._own[name]
        lines = range(body[place].lineno, (body[own].end_lineno or body[own].lineno) + 1)
        return any(
            isinstance(one, ast.Name)
            and isinstance(one.ctx, ast.Load)
            and one.lineno in lines
            and self._module.parents.function(one) is None
            for one in self._module.by_word.get(name, ())
        )

    def _is_unread(self, first: int, last: int, name: str) -> bool:
        return not is_read_between(self._module.tree.body[first:last], name)
