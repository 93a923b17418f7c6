"""What expressions change that may not run, or that are read more than once: ``flag and ws.pop()``."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from nnx_migrate.abstract.values import Unknown, Value
from nnx_migrate.sizes.frames import Frame
from nnx_migrate.source.walking import walk

if TYPE_CHECKING:
    from nnx_migrate.sizes.interpreter import Interpreter


class Before:
    """What locals and attributes held before; every new reading starts from there."""

    def __init__(self, spaces: Iterable[dict[str, Value]]) -> None:
        """Note what these hold."""
        self._held = [(space, dict(space)) for space in {id(one): one for one in spaces}.values()]
        self._changed: set[tuple[int, str]] = set()

    def restore(self) -> None:
        """Go back to it."""
        for space, values in self._held:
            for name, old in values.items():
                new = space.get(name)
                if new is not old and new != old:
                    self._changed.add((id(space), name))
                space[name] = old

    def lose(self) -> None:
        """Take for unknown what any of the readings has changed."""
        self.restore()
        for space, values in self._held:
            for name in values:
                if (id(space), name) in self._changed:
                    space[name] = Unknown("an operand that may not run changes it")


@contextmanager
def doubtful(interpreter: Interpreter, frame: Frame, *nodes: ast.AST) -> Iterator[Before]:
    """Read ``nodes``, which may not run or be read again: what they change is unknown afterwards."""
    # Calls alone change anything in place.
    calls = any(isinstance(one, ast.Call) for node in nodes for one in walk(node))
    before = Before(_spaces(interpreter, frame) if calls else ())
    yield before
    before.lose()


def _spaces(interpreter: Interpreter, frame: Frame) -> Iterator[dict[str, Value]]:
    for one in (frame, *interpreter.frames):
        yield one.env
        if one.instance is not None:
            yield one.instance.attributes
