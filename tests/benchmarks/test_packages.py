"""What the comparison of packages calls the same, and what it does not."""

from pathlib import Path

import pytest

from benchmarks.corpus.packages import Case
from benchmarks.packages import table
from benchmarks.packages.comparing import compare

CASE = Case("mlp", "rest", "package", Path("mlp.py"))
DIGESTS = {"params/kernel": "(2,) float32 aa"}
BEFORE = {"mode": "jit", "variables": DIGESTS, "outputs": {"": "(2,) float32 bb"}}
AFTER = {**BEFORE, "built": DIGESTS, "linen_modules": []}


def test_equal_digests_are_the_same_and_counted():
    found = compare(CASE, BEFORE, AFTER)
    assert found.same
    assert found.counts == {"variables": 1, "outputs": 1, "built": 1}


@pytest.mark.parametrize(
    ("after", "told"),
    [
        ({"outputs": {"": "(2,) float32 cc"}}, "outputs: 1 of 1 differ"),
        ({"variables": {}}, "variables: paths missing ['params/kernel']"),
        ({"built": {**DIGESTS, "params/bias": "() float32 dd"}}, "built: paths missing [] (0)"),
        ({"linen_modules": ["package.Mlp"]}, "Linen modules are left: package.Mlp"),
        ({"mode": "eager"}, "compiled only before the rewrite"),
        ({"error": "TypeError: no"}, "after: TypeError: no"),
        (
            {"built_call": {"": "(2,) float32 ee"}, "built_apply": {"": "(2,) float32 bb"}},
            "built_call: 1 of 1 differ",
        ),
    ],
)
def test_anything_else_is_a_difference(after, told):
    found = compare(CASE, BEFORE, {**AFTER, **after})
    assert not found.same
    assert told in found.detail


def test_a_case_without_outputs_is_no_pass():
    nothing = {"outputs": {}}
    assert compare(CASE, {**BEFORE, **nothing}, {**AFTER, **nothing}).detail == (
        "nothing was compared"
    )


def test_problems_name_classes_that_are_not_nnx_and_cases_that_differ():
    result = {
        "name": "package",
        "error": "",
        "classes": {"failed": {}, "others": {"a.py:A": "refused"}, "internal_errors": 1},
        "cases": [{"case": "mlp", "same": False, "detail": "outputs: 1 of 1 differ"}],
    }
    assert table.problems(result) == [
        "package: a.py:A is not NNX: refused",
        "package: 1 internal errors",
        "package: case mlp: outputs: 1 of 1 differ",
    ]
