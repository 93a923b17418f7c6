"""The mutation score of this version: counted by ``make mutants``, kept beside this file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nnx_migrate import __version__
from nnx_migrate.digests import text_digest
from nnx_migrate.parity.certificate.data import (
    OF_ANOTHER,
    OF_THIS_VERSION,
    Count,
    Digest,
    MutationScore,
    Tally,
)

FILE = Path(__file__).with_name("mutation_score.json")
_PARITY = Path(__file__).parents[1]
_SCHEMA = 1


def source_digest(folder: Path = _PARITY) -> Digest:
    """A hash over the sources of parity: what a mutation score is of."""
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        name = path.relative_to(folder).as_posix()
        found.update(f"{name} {text_digest(path.read_bytes())}\n".encode())
    return Digest(found.hexdigest())


def text_of(sizes: Mapping[str, Tally], source: Digest | None) -> str:
    """The file's text; ``source`` is None where the rows are of several sources."""
    content = {
        "schema": _SCHEMA,
        "version": __version__,
        "source": source,
        "sizes": {size: vars(tally) for size, tally in sizes.items()},
    }
    return json.dumps(content, indent=1) + "\n"


def mutation_score(file: Path = FILE) -> MutationScore:
    """The score that was counted with the installed sources, or that there is none.

    Raises:
        ValueError: the installation is broken: the file is not what `text_of` writes.
    """
    source = source_digest()
    content = json.loads(file.read_text(encoding="utf-8"))
    if content["schema"] != _SCHEMA:
        raise ValueError(f"{file}: expected schema {_SCHEMA}, found {content['schema']!r}")
    if (content["version"], content["source"]) != (__version__, source):
        return MutationScore(OF_ANOTHER, source, {})
    sizes = {size: _tally(one) for size, one in content["sizes"].items()}
    return MutationScore(OF_THIS_VERSION, source, sizes)


def _tally(content: Mapping[str, Any]) -> Tally:
    return Tally(**{name: Count(int(number)) for name, number in content.items()})
