"""``match`` over values is followed like a chain of tests."""

from __future__ import annotations

import pytest

from tests.sizes.inference import compact, in_features, problems, sites, sizes_of

BLOCK = """
class Block(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(4)(x)

class Other(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(4)(x)

class Model(nn.Module):
    kind: str

    def setup(self):
        match {}:
            case {}:
                self.first = Block()
            case {}:
                self.second = Other()

    @property
    def inner(self):
        match self.kind:
            case "a":
                return self.first
            case _:
                return self.second

    def __call__(self, x):
        return self.inner(nn.relu(x))
"""


@pytest.mark.parametrize(
    ("subject", "first", "second"),
    [
        ("self.kind", '"a"', '"b"'),
        ("self.kind", '"a"', "_"),
        ("self.kind", '"a" | "c"', '"b"'),
        ("self.kind", "None", "True"),
        ("self.kind", '"a" if self.kind', "_"),
    ],
)
def test_every_case_is_studied(subject: str, first: str, second: str) -> None:
    found = sizes_of(BLOCK.format(subject, first, second))
    assert problems(found) == []
    assert sites(found) == {
        "Block()": {"in_features": "in_features"},
        "Other()": {"in_features": "in_features"},
    }


@pytest.mark.parametrize(
    ("subject", "first", "second"),
    [
        ("self.kind", "str(a)", "_"),
        ("self.kind", "[a, b]", "_"),
        ("self.kind", '"a"', "other"),
        ("next(self.kind)", '"a"', '"b"'),
    ],
)
def test_submodules_under_other_patterns_are_a_problem(
    subject: str, first: str, second: str
) -> None:
    found = problems(sizes_of(BLOCK.format(subject, first, second)))
    assert len(found) == 2
    assert all("where size inference did not come by" in one for one in found)


def test_sizes_after_a_match_are_those_of_its_cases() -> None:
    body = """
        match self.width:
            case None:
                x = nn.Dense(4)(x)
            case _:
                x = nn.Dense(self.width)(x)
        return nn.Dense(3)(x)
    """
    found = in_features(sizes_of(compact(body, fields="width: int | None")))
    assert found[-1] == "4 if self.width is None else self.width"
