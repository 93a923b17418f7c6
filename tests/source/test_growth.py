"""Sets that grow until nothing new is found."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from nnx_migrate.source.growth import grown, reachable

LINKS = {"a": "b", "b": "cd", "c": "a", "d": "", "e": "a"}


@pytest.mark.parametrize(("start", "found"), [("", ""), ("d", "d"), ("b", "abcd"), ("e", "abcde")])
def test_links_are_followed_round_and_round(start: str, found: str) -> None:
    assert reachable(start, LINKS.__getitem__) == set(found)


def test_a_set_grows_by_the_whole_of_it() -> None:
    def both(known: frozenset[int]) -> Iterable[int]:
        return {one + other for one in known for other in known if one + other <= 6}

    assert grown([2], both) == {2, 4, 6}
    assert grown([], both) == set()
