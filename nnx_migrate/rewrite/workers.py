"""Processes that decide one run side by side, and tell each other what they find.

Once a project is read, the process forks, and each copy goes on with the same code: all of them come to the
same decisions. Where work falls apart by files, `Team.each` does that of the files that a copy owns, and takes what
the others found for the rest. So nothing is asked of the code between, and what is cached stays where it is.

What is told may name ``ast`` nodes, also by their ``id``: forks have them at the same address, and nothing that
was parsed before is let go. Other nodes are told by their value, and no ``id`` of theirs is asked for elsewhere.
A copy that fails, or that decides otherwise, ends the team (`TeamError`): one process alone then decides anew, and
says what there is to say.
"""

from __future__ import annotations

import io
import os
import pickle
import signal
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import is_dataclass
from itertools import count
from multiprocessing.connection import Connection, Pipe
from types import TracebackType
from typing import Any, Self, TypeVar

T = TypeVar("T")

_Token = (
    int | tuple[int, int]
)  # the address of a node; of what was told, by whom and as which of theirs


class TeamError(Exception):
    """Another process of the team has ended, or has decided something else."""


def can_fork() -> bool:
    """Whether a copy of this process works: macOS and Windows have no such copies.

    The threads of jax are not in a copy, and what they hold stays locked there.
    """
    return sys.platform == "linux" and "jax" not in sys.modules


class Team:
    """The processes of a run; as long as it is not started, this one alone."""

    def __init__(self) -> None:
        """One process."""
        self.rank = 0  # 0 is the process that started the others
        self.size = 1
        self.was_started = False
        self._lines: list[Connection] = []  # to the others; of those, to the first
        self._others: list[int] = []  # process ids
        self._owners: Mapping[str, int] = {}
        self._values: dict[_Token, object] = {}
        self._tokens: dict[int, _Token] = {}  # of what was told, by its id
        self._numbers = count()
        self._turn = 0

    def __enter__(self) -> Self:
        """The team; it ends with the block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End all processes but the first."""
        if self.rank:
            os._exit(0 if kind is None else 1)
        for line in self._lines:
            line.close()
        for process in self._others:
            os.kill(process, signal.SIGKILL)  # it has nothing left to tell
            os.waitpid(process, 0)
        self._lines, self._others, self.size = [], [], 1

    def start(self, owners: Mapping[str, int], objects: Iterable[object]) -> None:
        """Fork the other processes: from here on, all of them run.

        Args:
          owners: which process does the work of a file, by path; 0 does that of others.
          objects: what the processes may tell each other of, as they have it: all nodes of the files.
        """
        size = 1 + max(owners.values(), default=0)
        if size == 1:
            return
        self.was_started = True
        self._owners, self._values = owners, {id(one): one for one in objects}
        for rank in range(1, size):
            mine, theirs = Pipe()
            process = _fork()
            if not process:
                for line in (mine, *self._lines):
                    line.close()
                self.rank, self._lines, self._others = rank, [theirs], []
                break
            theirs.close()
            self._lines.append(mine)
            self._others.append(process)
        self.size = size

    def owns(self, path: str) -> bool:
        """Whether the work of a file is this process's."""
        return self._owners.get(path, 0) == self.rank

    def each(
        self,
        paths: Mapping[str, str],
        work: Callable[[str], T],
        outline: Callable[[T], T] | None = None,
    ) -> dict[str, T]:
        """What the work on each item comes to, in their order.

        Args:
          paths: the file of each item.
          outline: what the other processes are told in place of it.

        Raises:
          TeamError: another process has ended.
        """
        found = {name: work(name) for name, path in paths.items() if self.owns(path)}
        if self.size > 1:
            found = self.together(found, outline)
            if found.keys() != paths.keys():
                raise TeamError("the others work on something else")
        return {name: found[name] for name in paths}

    def divide(self, works: Mapping[str, Callable[[], T]]) -> Mapping[str, T]:
        """What several works come to, each done by one process.

        Raises:
          TeamError: another process has ended.
        """
        every = enumerate(works.items())
        return self.together(
            {name: work() for place, (name, work) in every if place % self.size == self.rank}
        )

    def together(
        self, mine: Mapping[str, T], outline: Callable[[T], T] | None = None
    ) -> dict[str, T]:
        """What all processes have; of what several have, their own.

        Raises:
          TeamError: another process has ended.
        """
        if self.size == 1:
            return dict(mine)
        self._turn += 1
        try:
            every = self._tell(self._pack(mine, outline))
        except (EOFError, OSError) as error:
            raise TeamError(str(error)) from error
        found: dict[str, T] = {}
        for part in every:
            found.update(self._unpack(part))
        return {**found, **mine}

    def _tell(self, part: bytes) -> list[bytes]:
        """Tell the others; returns what they tell."""
        if self.rank:
            self._lines[0].send_bytes(part)
            every: list[bytes] = self._lines[0].recv()
            return every
        others = [line.recv_bytes() for line in self._lines]
        for number, line in enumerate(self._lines):
            line.send([part, *others[:number], *others[number + 1 :]])
        return others

    def _pack(self, mine: Mapping[str, T], outline: Callable[[T], T] | None) -> bytes:
        """What was told before is only named, so that it is the same object everywhere."""
        named: dict[str, _Token] = {}
        fresh: dict[_Token, T] = {}
        for name, value in mine.items():
            token = self._tokens.get(id(value))
            if token is None:
                token = (self.rank, next(self._numbers))
                fresh[token] = value
            named[name] = token
        file = io.BytesIO()
        outlines = fresh if outline is None else {key: outline(one) for key, one in fresh.items()}
        _Pickler(file, self._values, self._tokens).dump((self._turn, named, outlines))
        self._keep(fresh)
        return file.getvalue()

    def _unpack(self, part: bytes) -> dict[str, Any]:
        turn, named, outlines = _Unpickler(io.BytesIO(part), self._values).load()
        if turn != self._turn:
            raise TeamError("another process has come to something else")
        self._keep(outlines)
        return {
            name: outlines[token] if token in outlines else self._values[token]
            for name, token in named.items()
        }

    def _keep(self, known_objects: Mapping[_Token, object]) -> None:
        """Objects that may be told again; others are too many, and the same as any of their value."""
        for token, value in known_objects.items():
            if is_dataclass(value):
                self._values[token] = value
                self._tokens[id(value)] = token


class _Pickler(pickle.Pickler):
    def __init__(
        self, file: io.BytesIO, values: Mapping[_Token, object], tokens: Mapping[int, _Token]
    ) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._values, self._tokens = values, tokens

    def persistent_id(self, value: object) -> _Token | None:
        key = id(value)
        return key if key in self._values else self._tokens.get(key)


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, values: Mapping[_Token, object]) -> None:
        super().__init__(file)
        self._values = values

    def persistent_load(self, token: Any) -> object:
        return self._values[token]


def _fork() -> int:
    """A copy of this process, which has the timers of this one; the number is 0 there."""
    timers = [(one, signal.getitimer(one)) for one in (signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)]
    with warnings.catch_warnings():
        # The one thread that may run turns the spinner, and no copy prints.
        warnings.simplefilter("ignore", DeprecationWarning)
        process = os.fork()
    if not process:
        for one, (seconds, interval) in timers:
            signal.setitimer(one, seconds, interval)
    return process
