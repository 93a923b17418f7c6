"""What has to be known of a run before it begins, so that its certificate is of what was there then."""

from __future__ import annotations

from collections.abc import Mapping

from nnx_migrate.parity.certificate.data import Prepared, Word
from nnx_migrate.parity.certificate.provenance import settings
from nnx_migrate.parity.certificate.sources import changes, sources_of
from nnx_migrate.parity.words import OUTPUTS, BadWord


def prepare(given: Mapping[str, str], environment: Mapping[str, str]) -> Prepared:
    """Read what the words name. Raises BadWord when a file or tree is not there."""
    words = tuple(Word(f"{key}={value}") for key, value in given.items() if key not in OUTPUTS)
    return Prepared(words, sources_of(given), settings(environment))


def require_unchanged(prepared: Prepared, given: Mapping[str, str]) -> None:
    """Refuse a run whose files were edited meanwhile. Raises BadWord."""
    changed = changes(prepared.sources, sources_of(given))
    if changed:
        raise BadWord(
            f"certificate={given['certificate']}: not written: {changed[0]} while parity ran; "
            "run it again"
        )
