"""What has to be known of a run before it begins, so that its certificate is of what was there then."""

from __future__ import annotations

from collections.abc import Mapping

from nnx_migrate.parity.certificate.data import RunContext, Word
from nnx_migrate.parity.certificate.provenance import settings
from nnx_migrate.parity.certificate.sources import changes, sources_of
from nnx_migrate.parity.words import OUTPUTS, BadWord


def prepare(values: Mapping[str, str], environment: Mapping[str, str]) -> RunContext:
    """Read what the words name. Raises BadWord when a file or tree is not there."""
    words = tuple(Word(f"{key}={value}") for key, value in values.items() if key not in OUTPUTS)
    return RunContext(words, sources_of(values), settings(environment))


def require_unchanged(context: RunContext, values: Mapping[str, str]) -> None:
    """Refuse a run whose files were edited meanwhile. Raises BadWord."""
    change_texts = changes(context.sources, sources_of(values))
    if change_texts:
        raise BadWord(
            f"certificate={values['certificate']}: not written: {change_texts[0]} while parity ran; "
            "run it again"
        )
