"""Reading a case file: what is accepted, and one line for everything that is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnx_migrate.parity.files.case_file import CaseError, call_arguments, case_errors, load_case
from tests.hostile import BYTES, FEW, mutations, refusal

GOOD = "def linen(): pass\ndef inputs(): pass\n"


class Graph(NamedTuple):
    nodes: Any


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "case.py"
    path.write_text(text)
    return path


def test_functions_and_settings_are_found(tmp_path: Path) -> None:
    text = GOOD + "def nnx(rngs): pass\ndef loss(y, x): pass\nCASE = dict(rngs={'dropout': 1})\n"
    case = load_case(write(tmp_path, text))
    assert case.nnx is not None
    assert case.loss is not None
    assert case.settings == {"rngs": {"dropout": 1}}


@pytest.mark.parametrize("rest", ["", "loss = nnx = initial = None"])
def test_optional_parts_may_be_left_out(tmp_path: Path, rest: str) -> None:
    case = load_case(write(tmp_path, GOOD + rest))
    assert (case.nnx, case.loss, dict(case.settings)) == (None, None, {})


def test_importing_flax_nnx_is_no_nnx_function(tmp_path: Path) -> None:
    assert load_case(write(tmp_path, "from flax import nnx\n" + GOOD)).nnx is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def linen(: pass", r"the case file raised SyntaxError: .*\(case.py:1\)"),
        ("import no_such_package", r"raised ModuleNotFoundError: .*\(case.py:1\)"),
        ("\n\nraise SystemExit(3)", r"raised SystemExit: 3 \(case.py:3\)"),
        ("def inputs(): pass", r"case.py: expected a function linen\(\)"),
        ("def linen(): pass\ndef input(): pass", r"inputs\(\); did you mean input\?"),
        (
            GOOD + "loss = 3",
            r"case.py: loss: expected a function loss\(outputs, \*inputs\), found 3: ",
        ),
        (GOOD + "CASE = [1]", "CASE: expected a dict, found list"),
        (GOOD + "CASE = {'rng': {}}", "CASE has no key 'rng'; did you mean rngs?"),
    ],
)
def test_a_bad_case_file_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(CaseError, match=message) as caught:
        load_case(write(tmp_path, text))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        ((1, 2), ((1, 2), {})),
        ([1], ((1,), {})),
        (((1,), {"train": True}), ((1,), {"train": True})),
        (({"a": 1}, {"b": 2}), (({"a": 1}, {"b": 2}), {})),
        (Graph(1), ((Graph(1),), {})),
    ],
)
def test_inputs_are_arguments_or_arguments_and_keywords(returned: Any, expected: Any) -> None:
    assert call_arguments(returned, Path("case.py")) == expected


def test_a_single_array_is_the_only_argument() -> None:
    array = np.ones(3)
    assert call_arguments(array, Path("case.py"))[0][0] is array


@pytest.mark.parametrize("returned", [None, 3, "x", {"x": 1}])
def test_inputs_of_another_type_are_refused(returned: Any) -> None:
    with pytest.raises(CaseError, match=r"inputs\(\) returned a .*: expected a tuple"):
        call_arguments(returned, Path("case.py"))


def test_an_error_is_placed_in_the_users_code_and_not_in_a_library(tmp_path: Path) -> None:
    case = load_case(write(tmp_path, GOOD + "import json\ndef bad():\n    json.loads('{')\n"))
    bad = case.linen.__globals__["bad"]  # type: ignore[attr-defined]
    with (
        pytest.raises(CaseError, match=r"bad\(\) raised JSONDecodeError: .* \(case.py:5\)$"),
        case_errors("bad()"),
    ):
        bad()


def test_a_long_message_is_cut_and_put_on_one_line() -> None:
    with pytest.raises(CaseError) as caught, case_errors("linen()"):
        raise ValueError("a\nb " + "x" * 1000)
    assert str(caught.value).startswith("linen() raised ValueError: a b xxx")
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("case", BYTES)
def test_a_hostile_case_file_is_one_line(tmp_path: Path, case: str) -> None:
    path = tmp_path / "case.py"
    path.write_bytes(BYTES[case])
    line = refusal(lambda: load_case(path), CaseError)
    assert line
    assert "\n" not in line


VALID = b"""import math


def linen():
    return None


def inputs():
    return ()


CASE = {"rngs": {"dropout": 1}, "steps": 2}
"""


@FEW
@given(st.binary(max_size=40) | st.text(max_size=40).map(str.encode) | mutations(VALID))
def test_any_case_file_is_loaded_or_refused_with_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "case.py"
    path.write_bytes(content)
    assert "\n" not in refusal(lambda: load_case(path), CaseError)
