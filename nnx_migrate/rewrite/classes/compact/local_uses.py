"""What a method does with the local names that it binds to partials and to what it builds."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from nnx_migrate.rewrite.classes.compact.call_variables import bound_again, parameters_of
from nnx_migrate.rewrite.classes.compact.moves import Moves, refusal
from nnx_migrate.rewrite.classes.reading.evaluation import free_names
from nnx_migrate.source.modules import Parents
from nnx_migrate.source.walking import each, walk


class LocalUses:
    """Where a method calls what it built."""

    def __init__(self, method: ast.FunctionDef) -> None:
        self.parents = Parents(method)
        self.parameters = {*parameters_of(method)}
        self.bound_again = bound_again(method)
        self.bindings: dict[str, list[ast.AST]] = {}
        self.loads: dict[str, list[ast.Name]] = {}
        for node in walk(method):
            if isinstance(node, ast.Name):
                target = self.loads if isinstance(node.ctx, ast.Load) else self.bindings
                target.setdefault(node.id, []).append(node)

    def bound_to(self, value: ast.AST) -> str | None:
        """The local name that holds ``value`` and nothing else."""
        match self.parents.of(value):
            case ast.Assign(targets=[ast.Name(id=name)]) if len(self.bindings[name]) == 1:
                return name
            case _:
                return None

    def bound_among(self, partial: ast.Call) -> str | None:
        """The local name that assignments bind to a partial and to other values."""
        match self._around_choices(partial):
            case ast.Assign(targets=[ast.Name(id=name)]) if len(self.values_of(name)) == len(
                self.bindings[name]
            ):
                return name
        return None

    def values_of(self, name: str) -> list[ast.expr]:
        """What assignments bind a name to."""
        found = [self.parents.of(one) for one in self.bindings.get(name, ())]
        return [one.value for one in found if isinstance(one, ast.Assign)]

    def values_read(self, nodes: Iterable[ast.AST], exception: str) -> list[ast.expr]:
        """What the local names that are read in nodes, or in such values, are bound to, but for a known one."""
        found: dict[str, list[ast.expr]] = {exception: []}
        todo = list(nodes)
        while todo:
            for one in each(todo.pop(), ast.Name):
                if one.id not in found:
                    found[one.id] = self.values_of(one.id)
                    todo += found[one.id]
        return [value for values in found.values() for value in values]

    def are_parameters(self, keywords: Iterable[ast.keyword]) -> bool:
        """Whether keywords read parameters of the method alone."""
        return {name for one in keywords for name in free_names(one.value)} <= self.parameters

    def _around_choices(self, value: ast.AST) -> ast.AST | None:
        """The statement that binds a value, also where it is one of two."""
        parent = self.parents.of(value)
        while isinstance(parent, ast.IfExp) and parent.test is not value:
            value, parent = parent, self.parents.of(parent)
        return parent

    def move(
        self, constructor: ast.Call, moving: list[ast.keyword], source: ast.Call, moves: Moves
    ) -> None:
        """Move keywords of ``source`` to the calls of what ``constructor`` builds.

        Raises:
          Refused: it is not just called, or a call would not get the same.
        """
        reason = self.fault(constructor, moving, source)
        if reason:
            raise refusal(constructor, reason)
        moves.values |= {id(one.value) for one in moving}
        for call in self._calls_of(constructor):
            moves.calls.setdefault(id(call), []).extend(moving)

    def fault(self, constructor: ast.Call, moving: list[ast.keyword], source: ast.Call) -> str:
        """Why keywords cannot move to the calls; "" where they can."""
        calls = self._calls_of(constructor)
        if not calls:
            return "a constructor argument depends on the call, and the layer is not just called"
        names = {None, *(one.arg for one in moving)}
        if any(names & {one.arg for one in call.keywords} for call in calls):
            return "a call may give what the constructor is given, too"
        return self.rebound(moving, source) if calls != [self.parents.of(source)] else ""

    def _calls_of(self, constructor: ast.Call) -> list[ast.Call]:
        """The calls of the built module; none where it is used otherwise."""
        parent = self.parents.of(constructor)
        if isinstance(parent, ast.Call) and parent.func is constructor:
            return [parent]
        name = self.bound_to(constructor)
        loads = self.loads.get(name, []) if name is not None else []
        calls = [(self.parents.of(load), load) for load in loads]
        found = [one for one, load in calls if isinstance(one, ast.Call) and one.func is load]
        return found if len(found) == len(loads) else []

    def rebound(self, moving: Iterable[ast.keyword], source: ast.Call) -> str:
        """Why values of keywords may be others where a built layer is called; "" where they are not."""
        for name in sorted(name for one in moving for name in free_names(one.value)):
            if self.bound_again.get(name, (0, 0)) > (source.lineno, source.col_offset):
                return f"it reads {name!r}, which is bound again before the layer is called"
        return ""
