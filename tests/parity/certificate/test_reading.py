"""The reader of certificates: what it lets through, and its one line about everything else."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnx_migrate.parity.certificate.data import KIND, SCHEMA
from nnx_migrate.parity.certificate.reading import CertificateError, certificate_of, load
from tests.hostile import BYTES, DEEP, FEW, json_values, mutations, refusal
from tests.parity.certificate.certificate_files import changed

LEAF = {"shape": [4, 8], "dtype": "float32", "sha256": "a" * 64}
SIDE = {
    "model": "models.Model",
    "initial": {"params/up": LEAF, "params/abstract": {**LEAF, "sha256": None}},
    "outputs": {"": LEAF},
    "gradients": {},
    "after_steps": {},
    "specs": {
        "params/up": {"names": ["embed", None], "spec": "P()", "placed": "P()", "after_step": None},
        "params/scale": {"names": None, "spec": "P()", "placed": "P()", "after_step": "P()"},
    },
    "programs": {"forward": "b" * 64},
    "losses": {"step 1": "-0x1.8p+3", "step 2": "nan", "step 3": "-inf", "step 4": "0x0.0p+0"},
}
CONTENT = {
    "kind": KIND,
    "schema": SCHEMA,
    "command": ["case=case.py", "steps=2"],
    "provenance": {"versions": {"jax": "1"}, "machine": {}, "settings": {}},
    "sources": {"case": {"case.py": "c" * 64}},
    "verdict": "identical",
    "ok": True,
    "model": "models.Model",
    "mesh": None,
    "checks": [{"name": "stacks", "status": "pass", "leaves": 2}],
    "modes": [],
    "rules_used": [],
    "not_checked": ["rng: nothing"],
    "without_values": "",
    "linen": SIDE,
    "nnx": SIDE,
    "mutation_score": {
        "state": "of this version",
        "source": "d" * 64,
        "sizes": {"tiny": {"total": 3, "equivalent": 0, "killed": 2, "named": 1}},
    },
}
TEXT = json.dumps(CONTENT)
WORDS = (*CONTENT, *SIDE, *LEAF, "params/up", "a" * 64, "0x1.8p+3", KIND)


def test_what_is_read_is_written_again() -> None:
    assert json.loads(certificate_of(TEXT).to_json()) == CONTENT


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda c: c.pop("kind"), "expected a parity certificate with 'kind': "),
        (lambda c: c.update(kind="report"), "expected a parity certificate with 'kind': "),
        (lambda c: c.pop("schema"), "expected schema 1, found None: another version of nnx-migr"),
        (lambda c: c.update(schema=2), "expected schema 1, found 2: another version of nnx-migrate"),
        (lambda c: c.update(schema=True), "expected schema 1, found True: another version"),
        (lambda c: c.update(schema="1"), "expected schema 1, found '1': another version"),
        (lambda c: c.pop("verdict"), "the certificate: expected entry 'verdict', found none"),
        (lambda c: c.update(more=1), "the certificate: expected no entry 'more', found it"),
        (lambda c: c.update(verdict="equal"), "verdict: expected identical or equal_by_rules or"),
        (lambda c: c.update(verdict=[]), "verdict: expected identical or equal_by_rules or"),
        (lambda c: c.update(ok=1), "ok: expected true or false, found 1"),
        (lambda c: c.update(ok=None), "ok: expected true or false, found None"),
        (lambda c: c.update(mesh=[]), "mesh: expected a text, found []"),
        (lambda c: c.update(model="\ud800"), "model: expected a text, found '\\ud800'"),
        (lambda c: c.update(command="model=a"), "command: expected a list, found 'model=a'"),
        (lambda c: c.update(command=["model"]), "command[0]: expected key=value, and none of"),
        (lambda c: c.update(command=["report=a.py"]), "command[0]: expected key=value, and none"),
        (lambda c: c.update(command=["certificate=a"]), "command[0]: expected key=value, and non"),
        (lambda c: c.update(checks={}), "checks: expected a list, found {}"),
        (lambda c: c["checks"].append(1), "checks[1]: expected an object, found 1"),
        (lambda c: c["checks"][0].update(leaves=-1), "checks[0].leaves: expected a whole number"),
        (lambda c: c["checks"][0].update(leaves=2.0), "checks[0].leaves: expected a whole number"),
        (lambda c: c["checks"][0].update(leaves=True), "checks[0].leaves: expected a whole number"),
        (lambda c: c["checks"][0].update(leaves=10**30), "checks[0].leaves: expected a whole numb"),
        (lambda c: c["checks"][0].pop("status"), "checks[0]: expected entry 'status', found none"),
        (lambda c: c["sources"]["case"].update(a="A" * 64),
         "sources['case']['a']: expected a SHA-256 of 64 hexadecimal digits, found 'AAAA"),
        (lambda c: c["sources"].update(case=[]), "sources['case']: expected an object, found []"),
        (lambda c: c["linen"]["initial"]["params/up"].update(shape=[1, None]),
         "linen.initial['params/up'].shape[1]: expected a whole number of at least 0, found None"),
        (lambda c: c["nnx"]["losses"].update({"step 1": 1.5}),
         "nnx.losses['step 1']: expected a number as float.hex() spells it, found 1.5"),
        (lambda c: c["nnx"]["losses"].update({"step 1": "NaN"}),
         "nnx.losses['step 1']: expected a number as float.hex() spells it, found 'NaN'"),
        (lambda c: c["nnx"]["specs"]["params/up"].update(names=[1]),
         "nnx.specs['params/up'].names[0]: expected a text, found 1"),
        (lambda c: c["mutation_score"].update(state="best"),
         "mutation_score.state: expected of this version or of another version, found 'best'"),
    ],
)  # fmt: skip
def test_what_is_no_certificate_is_refused_with_its_place(
    change: Callable[[dict[str, Any]], object], line: str
) -> None:
    with pytest.raises(ValueError, match="expected") as error:
        certificate_of(changed(TEXT, change))
    assert str(error.value).startswith(line)


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"", "expected JSON: Expecting value"),
        (b"[]", "expected a parity certificate with"),
        (b"NaN", "expected JSON, found NaN"),
        (TEXT.replace('"leaves": 2', '"leaves": Infinity').encode(), "expected JSON, found Infinity"),
        (TEXT.replace('"leaves": 2', '"leaves": -1e999').encode(), "checks[0].leaves: expected a who"),
        (TEXT.replace('"ok"', '"verdict"').encode(), "expected every name once, found 'verdict' twice"),
        (TEXT[:-20].encode(), "expected JSON: "),
        (b'{"kind": "\xe9"}', "expected JSON in UTF-8, found other bytes"),
        (DEEP.encode(), "not a certificate: nested too deeply"),
        (f'{{"kind": "{KIND}", "schema": {"9" * 5000}}}'.encode(), "Exceeds the limit"),
    ],
    ids=["empty", "list", "NaN", "infinite", "huge", "twice", "cut", "bytes", "deep", "digits"],
)  # fmt: skip
def test_a_file_that_cannot_be_used_is_one_line(tmp_path: Path, content: bytes, line: str) -> None:
    file = tmp_path / "c.json"
    file.write_bytes(content)
    with pytest.raises(CertificateError) as error:
        load(file)
    assert str(error.value).startswith(f"{file}: {line}")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "reason"),
    [("no.json", "No such file"), (".", "Is a directory"), ("a\0b", "embedded null")],
)
def test_a_file_that_is_not_there_is_one_line(tmp_path: Path, name: str, reason: str) -> None:
    with pytest.raises(CertificateError, match=reason):
        load(tmp_path / name)


@pytest.mark.parametrize("name", BYTES)
def test_hostile_bytes_are_refused(tmp_path: Path, name: str) -> None:
    file = tmp_path / "c.json"
    file.write_bytes(BYTES[name])
    assert refusal(lambda: load(file), CertificateError)


@FEW
@given(st.binary(max_size=80))
def test_any_bytes_are_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "c.json"
    file.write_bytes(content)
    assert refusal(lambda: load(file), CertificateError)


@FEW
@given(mutations(TEXT.encode()))
def test_any_change_of_bytes_is_read_or_refused_with_one_line(
    tmp_path: Path, content: bytes
) -> None:
    file = tmp_path / "c.json"
    file.write_bytes(content)
    assert "\n" not in refusal(lambda: load(file), CertificateError)


def _places(content: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in JSON, as the names and numbers that lead there."""
    if not isinstance(content, dict | list):
        return [path]
    inner = content.items() if isinstance(content, dict) else enumerate(content)
    return [path, *(place for name, one in inner for place in _places(one, (*path, name)))]


@FEW
@given(st.sampled_from(_places(CONTENT)[1:]), json_values(*WORDS))
def test_any_value_anywhere_is_refused_or_kept(
    tmp_path: Path, place: tuple[Any, ...], value: object
) -> None:
    def change(content: dict[str, Any]) -> None:
        for name in place[:-1]:
            content = content[name]
        content[place[-1]] = value

    text = changed(TEXT, change)
    file = tmp_path / "c.json"
    file.write_text(text)
    reason = refusal(lambda: load(file), CertificateError)
    if reason:
        assert "\n" not in reason
    else:
        assert json.loads(load(file).to_json()) == json.loads(text)


def test_a_device_is_no_certificate() -> None:
    with pytest.raises(CertificateError, match="/dev/zero: expected a file"):
        load(Path("/dev/zero"))
