"""Read a certificate, strictly: exactly the entries it has, each of its kind. Loads no jax."""

from __future__ import annotations

import dataclasses
import json
import re
import reprlib
import types
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from nnx_migrate.json_values import text_of, unlike
from nnx_migrate.parity.certificate import data
from nnx_migrate.parity.certificate.data import KIND, SCHEMA, Certificate
from nnx_migrate.parity.words import OUTPUTS

_HEADER = ("kind", "schema")
_MOST = 2**63 - 1
_NUMBER = re.compile(r"-?0x[01]\.[0-9a-f]{1,13}p[+-][0-9]{1,4}|-?inf|nan")


class CertificateError(ValueError):
    """The file is no certificate that can be used; the message is one line."""


def load(path: Path) -> Certificate:
    """Read a certificate.

    Raises:
        CertificateError: it is missing, not ours, of another schema or malformed, and where.
    """
    try:
        return certificate_of(text_of(path))
    except OSError as error:
        raise CertificateError(f"{path}: {error.strerror or error}") from error
    except UnicodeDecodeError:
        raise CertificateError(f"{path}: expected JSON in UTF-8, found other bytes") from None
    except RecursionError:
        raise CertificateError(f"{path}: not a certificate: nested too deeply") from None
    except ValueError as error:
        raise CertificateError(f"{path}: {' '.join(str(error).split())}") from error


def certificate_of(text: str) -> Certificate:
    """The certificate of a JSON text. Raises ValueError that says what was expected where."""
    try:
        content = json.loads(text, parse_constant=_no_number, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        raise ValueError(f"expected JSON: {error}") from error
    if not isinstance(content, dict) or content.get("kind") != KIND:
        raise ValueError(
            f"expected a {KIND} with 'kind': '{KIND}'; "
            "`nnx-migrate parity ... certificate=FILE` writes one"
        )
    found = content.get("schema")
    if type(found) is not int or found != SCHEMA:
        raise ValueError(
            f"expected schema {SCHEMA}, found {reprlib.repr(found)}: another version of nnx-migrate wrote it; "
            "verify it with that one, or run parity again"
        )
    body = {name: value for name, value in content.items() if name not in _HEADER}
    certificate: Certificate = _decode(Certificate, body, "")
    return certificate


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"expected JSON, found {text}")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"expected every name once, found {reprlib.repr(twice)} twice")
    return found


def _decode(hint: Any, value: Any, where: str) -> Any:
    """A value of the annotated kind. Raises ValueError that names the entry."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if dataclasses.is_dataclass(hint):
        return _record(hint, value, where)
    if origin in (types.UnionType, typing.Union):  # one kind, or None
        return None if value is None else _decode(inner[0], value, where)
    if origin is tuple:
        _require(isinstance(value, list), "a list", value, where)
        return tuple(_decode(inner[0], one, f"{where}[{n}]") for n, one in enumerate(value))
    if origin is Mapping:
        _require(isinstance(value, dict), "an object", value, where)
        return {
            _decode(inner[0], name, where): _decode(inner[1], one, f"{where}[{name!r}]")
            for name, one in value.items()
        }
    if origin is typing.Literal:
        _require(isinstance(value, str) and value in inner, " or ".join(inner), value, where)
        return value
    is_right, expected = _KINDS[hint]
    _require(is_right(value), expected, value, where)
    return value


def _record(kind: Any, value: Any, where: str) -> Any:
    _require(isinstance(value, dict), "an object", value, where)
    hints = typing.get_type_hints(kind)
    for name in [*hints, *value]:
        if (name in hints) != (name in value):
            found = "found none" if name in hints else "found it"
            expected = "expected" if name in hints else "expected no"
            raise ValueError(
                f"{where or 'the certificate'}: {expected} entry {reprlib.repr(name)}, {found}"
            )
    return kind(
        **{
            name: _decode(hint, value[name], f"{where}.{name}" if where else name)
            for name, hint in hints.items()
        }
    )


def _require(holds: bool, expected: str, value: Any, where: str) -> None:
    if not holds:
        raise ValueError(f"{where}: {unlike(expected, value)}")


def _is_text(value: Any) -> bool:
    """A text that can be printed: half a character, which JSON lets through, cannot."""
    return isinstance(value, str) and not any("\ud800" <= one <= "\udfff" for one in value)


def _is_word(value: Any) -> bool:
    key, equals, rest = value.partition("=") if _is_text(value) else ("", "", "")
    return bool(equals and rest) and key not in OUTPUTS


_KINDS: Mapping[Any, tuple[Callable[[Any], bool], str]] = {
    str: (_is_text, "a text"),
    bool: (lambda value: isinstance(value, bool), "true or false"),
    data.Count: (
        lambda value: type(value) is int and 0 <= value <= _MOST,
        "a whole number of at least 0",
    ),
    data.Digest: (
        lambda value: isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None,
        "a SHA-256 of 64 hexadecimal digits",
    ),
    data.Number: (
        lambda value: isinstance(value, str) and _NUMBER.fullmatch(value) is not None,
        "a number as float.hex() spells it",
    ),
    data.Word: (_is_word, f"key=value, and none of {', '.join(OUTPUTS)}"),
}
