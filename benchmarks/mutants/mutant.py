"""What a mutant is, and the tree it is applied to."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from benchmarks.sources import ROOT, sources_digest

TREES = ("nnx_migrate", "fixtures")
# Folders of the package that parity never imports: what they hold decides no row.
REWRITER = ("abstract", "constructs", "edit", "ledger", "record", "rewrite", "sizes", "source")
MODES = ("tiny", "full")
SHORT = {"ds": "fixtures/deepseek/nnx", "gqa": "fixtures/gqa/nnx"}


class MutantError(Exception):
    """A mutant that cannot be applied; the message says which and why."""


@dataclass(frozen=True)
class Mutant:
    """One line of one side that is another.

    Attributes:
      file: from the root; ``ds/`` and ``gqa/`` are the NNX sides of the two families.
      old, new: ``old`` stands exactly once in the file.
      tiny: words of the ``parity`` command whose checks have to see it; ``full``: those at full
        size, "" where that says nothing.
      place: what the message has to contain, the path of the module as a rule; ``a | b``: one of them, as
        the two sizes may have other layers.
      hazards: ids of the catalogue of real bugs that it is.
      equivalent: why no check can see it; such a mutant has to survive.
    """

    name: str
    file: str
    old: str
    new: str
    tiny: str
    full: str
    place: str
    hazards: str = ""
    equivalent: str = ""

    @property
    def path(self) -> str:
        """The file, from the root."""
        head, _, rest = self.file.partition("/")
        return f"{SHORT[head]}/{rest}" if head in SHORT else self.file

    def words(self, mode: str) -> tuple[str, ...]:
        """The words of the command in a mode; none where it does not apply."""
        return tuple((self.tiny if mode == "tiny" else self.full).split())

    def applied(self, text: str) -> str:
        """The text of the file with the fault.

        Raises:
          MutantError: the original does not stand there exactly once.
        """
        count = text.count(self.old)
        if count != 1:
            raise MutantError(
                f"{self.name}: expected {self.old!r} once in {self.path}, found it {count} times: "
                "change its line in benchmarks/mutants/catalogue.py"
            )
        return text.replace(self.old, self.new)

    def digest(self) -> str:
        """A hash of what the mutant changes and runs."""
        parts = [self.path, self.old, self.new, self.tiny, self.full]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def require_applicable(mutants: tuple[Mutant, ...]) -> None:
    """Refuse mutants of which one cannot be applied, or two have one name. Raises MutantError."""
    names = [one.name for one in mutants]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise MutantError(f"expected every mutant to have its own name, found twice: {twice}")
    for one in mutants:
        path = ROOT / one.path
        if not path.is_file():
            raise MutantError(f"{one.name}: there is no file {one.path}")
        one.applied(path.read_text(encoding="utf-8"))


def tree_digest() -> str:
    """A hash of all sources that a row depends on."""
    package = (one.name for one in (ROOT / "nnx_migrate").iterdir())
    parts = sorted(f"nnx_migrate/{name}" for name in package if name not in REWRITER)
    return sources_digest((*parts, "fixtures"), (".py", ".yml"))
