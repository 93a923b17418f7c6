"""How a file of source code is recognised: by a hash that does not depend on its line ends."""

from __future__ import annotations

import hashlib


def text_digest(content: bytes) -> str:
    """SHA-256 in hexadecimal; git may check a file out with either line end."""
    return hashlib.sha256(content.replace(b"\r\n", b"\n")).hexdigest()
