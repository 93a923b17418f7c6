"""wmt with ``share_embeddings=False``: source and target words have embeddings of their own."""

from __future__ import annotations

from benchmarks.programs.examples import wmt
from benchmarks.programs.session import Session

REPLICATED = True  # its state has an axis of devices


def run(session: Session) -> None:
    """Run wmt."""
    wmt.run(session, share_embeddings=False)
