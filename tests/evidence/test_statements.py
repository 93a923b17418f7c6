"""Names of running classes that tell statements of one name apart."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from nnx_migrate.evidence.statements import statement_name


def twice() -> list[Any]:
    class A:
        def f(self) -> int:
            return 1

    first = A

    class A:  # type: ignore[no-redef]
        @functools.lru_cache  # noqa: B019
        def f(self) -> int:
            return 2

    class B:
        pass

    return [first, A, B]


def without_methods() -> list[Any]:
    class A:
        x = 1

    first = A

    class A:  # type: ignore[no-redef]
        x = 2

    return [first, A]


class Outer:
    def f(self) -> None:
        """Of a class that no function holds."""


@pytest.mark.parametrize(
    ("classes", "names"),
    [
        (twice, ["A:1", "A", "B"]),
        (without_methods, ["A:?", "A:?"]),
        (lambda: [Outer], ["Outer"]),
    ],
    ids=["two", "without methods", "global"],
)
def test_only_classes_of_one_name_are_numbered(classes: Any, names: list[str]) -> None:
    assert [statement_name(one).rpartition("<locals>.")[2] for one in classes()] == names
