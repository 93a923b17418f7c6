"""How content is recognised: by hashes, SHA-256 in hexadecimal."""

from __future__ import annotations

import hashlib


def digest(content: bytes) -> str:
    """The hash of a file as it is."""
    return hashlib.sha256(content).hexdigest()


def text_digest(content: bytes) -> str:
    """The hash of source code, whatever its line ends; git may check a file out with either."""
    return digest(content.replace(b"\r\n", b"\n"))
