"""What is read of a whole project once, and kept with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar, cast

from nnx_migrate.source.project import Project

T = TypeVar("T")


class Fact(Generic[T]):
    """A function of a project that reads it once; ``@Fact`` above the function makes one of it."""

    def __init__(self, read: Callable[[Project], T]) -> None:
        """Nothing is read yet."""
        self.name = f"{read.__module__}.{read.__qualname__}"
        self._read = read

    def __call__(self, project: Project) -> T:
        """What the function finds."""
        if self.name not in project.memo:
            project.memo[self.name] = self._read(project)
        return cast("T", project.memo[self.name])

    def accept(self, project: Project, value: object) -> None:
        """Take over what another process found, unless it was read here."""
        project.memo.setdefault(self.name, value)
