"""Finding and reading Python files. What cannot be read is a value, never an exception.

Text keeps its newlines, form feeds and byte order mark exactly: ``encode(text)`` of an unchanged
text gives the bytes that were read.
"""

from __future__ import annotations

import codecs
import re
import tokenize
from dataclasses import dataclass
from pathlib import Path

_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")


@dataclass(frozen=True)
class SourceText:
    """One file as read: its text, and how that becomes its bytes."""

    path: Path
    text: str
    encoding: str = "utf-8"
    bom: bool = False

    @property
    def raw(self) -> bytes:
        """The bytes that were read: made anew, since a project's texts are in memory all along."""
        return self.encode(self.text)

    def encode(self, text: str) -> bytes:
        """Bytes of ``text`` in this file's encoding and with its byte order mark.

        Raises:
            UnicodeEncodeError: the encoding has no such character.
        """
        return (codecs.BOM_UTF8 if self.bom else b"") + text.encode(self.encoding)


@dataclass(frozen=True)
class ReadFailure:
    """A file, link or directory that cannot be used, and why (one line)."""

    path: Path
    reason: str


def read(path: Path) -> SourceText | ReadFailure:
    """Read one file by its byte order mark and coding comment (PEP 263); UTF-8 without either."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        return ReadFailure(path, _os_reason(error))
    return decode(path, raw)


def decode(path: Path, raw: bytes) -> SourceText | ReadFailure:
    """Decode the bytes of a file as Python does, newlines untouched."""
    if (nul := raw.find(b"\0")) >= 0:
        return ReadFailure(path, f"binary file: NUL byte at offset {nul}, expected Python source")
    lines = (match.group() for match in _LINE.finditer(raw))
    try:
        encoding, _ = tokenize.detect_encoding(lambda: next(lines, b""))
    except (SyntaxError, UnicodeError) as error:
        return ReadFailure(path, f"undecodable: {_not_utf8(raw) or _one_line(error)}")
    bom = encoding == "utf-8-sig"
    encoding = "utf-8" if bom else encoding
    body = raw.removeprefix(codecs.BOM_UTF8) if bom else raw
    try:
        text = body.decode(encoding)
        same = text.encode(encoding) == body
    except (UnicodeError, LookupError) as error:
        reason = _not_utf8(raw) if encoding == "utf-8" else None
        return ReadFailure(path, f"undecodable: {reason or _one_line(error)}")
    if not same:
        return ReadFailure(path, f"undecodable: {encoding} text does not encode back to its bytes")
    return SourceText(path, text, encoding, bom)


def _not_utf8(raw: bytes) -> str | None:
    """Where the bytes stop being UTF-8, if they do."""
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        return f"byte 0x{raw[error.start]:02x} on line {line} is not UTF-8"
    return None


def _os_reason(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "no such file or directory"
    return f"unreadable: {error.strerror or _one_line(error)}"


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def find_root(path: Path, explicit: Path | None = None) -> Path:
    """The project's root: ``explicit``, else the nearest pyproject.toml or .git above ``path``.

    Without either it is the directory that holds ``path``'s outermost package.
    """
    if explicit is not None:
        return explicit.resolve()
    start = path.resolve()
    start = start if start.is_dir() else start.parent
    for directory in (start, *start.parents):
        if (directory / "pyproject.toml").is_file() or (directory / ".git").exists():
            return directory
    while (start / "__init__.py").is_file() and start != start.parent:
        start = start.parent
    return start
