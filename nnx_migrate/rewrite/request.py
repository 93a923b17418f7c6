"""What one rewriting run is asked to do."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from nnx_migrate.rewrite.relevant import relevant
from nnx_migrate.source.settings import Settings

if TYPE_CHECKING:
    from nnx_migrate.source.files import SourceText


@dataclass(frozen=True)
class RewriteRequest:
    """Files to rewrite and the project around them.

    ``files`` are rewritten, ``context`` only read. Paths in results are relative to ``base``.
    ``select`` and ``exclude`` are globs over qualified class names. ``evidence`` is a file that
    ``record`` wrote, ``settings`` what the project's pyproject.toml says.
    """

    root: Path
    files: tuple[SourceText, ...]
    context: tuple[SourceText, ...] = ()
    select: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    jobs: int = 1
    base: Path | None = None
    evidence: Path | None = None
    settings: Settings = field(default_factory=Settings)

    @cached_property
    def relevant(self) -> tuple[SourceText, ...]:
        """Those of the files that can have to do with Flax."""
        return (*relevant([*self.files, *self.context]),)
