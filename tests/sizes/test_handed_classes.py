"""Classes of modules that are handed to code which may call them."""

from __future__ import annotations

import pytest

from tests.sizes.inference import compact, problems, sizes_of

REASON = "may build a submodule of a class that it is given"


@pytest.mark.parametrize(
    ("body", "caller"),
    [
        pytest.param("y = made(nn.Dense)", "made", id="a function of another library"),
        pytest.param("y = registry.add([nn.Dense])", "registry.add", id="in a list"),
        pytest.param("y = list(map(nn.Dense, (3, 4)))", "map", id="map"),
    ],
)
def test_a_class_that_unknown_code_is_given_is_refused(body: str, caller: str) -> None:
    source = compact(f"{body}\nreturn x", before="from elsewhere import made, registry")
    assert problems(sizes_of(source)) == [f"{caller} {REASON}"]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("y = functools.partial(nn.Dense, 3)", id="a partial"),
        pytest.param("y = isinstance(x, nn.Dense)", id="a test"),
        pytest.param("y = made(3)", id="a number"),
    ],
)
def test_what_calls_no_class_is_followed(body: str) -> None:
    source = compact(f"{body}\nreturn x", before="import functools\nfrom elsewhere import made")
    assert problems(sizes_of(source)) == []


def test_methods_after_a_refusal_are_not_read() -> None:
    """The class is lazy whatever they do, and a base with many methods takes long to read for each heir."""
    other = "\n\n    def other(self, x):\n        return second(nn.Conv)\n"
    source = compact("return first(nn.Dense)", before="from elsewhere import first, second")
    assert problems(sizes_of(source + other)) == [f"first {REASON}"]
    harmless = compact("return x", before="from elsewhere import first, second")
    assert problems(sizes_of(harmless + other)) == [f"second {REASON}"]
