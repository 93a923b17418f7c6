"""Names as people write them."""

from __future__ import annotations

import re

_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def snake_case(name: str) -> str:
    """``LSTMCell`` -> ``lstm_cell``."""
    return _WORD.sub("_", name).lower()
