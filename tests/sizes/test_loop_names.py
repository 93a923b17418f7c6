"""Sizes that read the variable of a loop are written only where its name means that loop's."""

from __future__ import annotations

import pytest

from tests.sizes.inference import LAZY, compact, in_features, sizes_of

LISTS = """
class Model(nn.Module):
    p: Any
    q: Any

    def setup(self):
        self.first = [nn.Dense(w) for w in {first}]
        self.second = [nn.Dense(w) for w in {second}]
        self.last = nn.Dense(3)

    def __call__(self, x):
        {loop}
        return self.last(x)
"""
ZIPPED = "for one, two in zip(self.first, self.second{part}):\n            x = two(one(x))"
NESTED = (
    "for one in self.first:\n            y = one(x)\n"
    "            for two in self.second:\n                x = x + two(y).sum()"
)


def _lists(loop: str, first: str = "self.p", second: str = "self.p") -> list[str | None]:
    return in_features(sizes_of(LISTS.format(first=first, second=second, loop=loop)))


def test_lists_made_from_one_field_and_zipped_go_through_the_same_items() -> None:
    assert _lists(ZIPPED.format(part="")) == [
        "x_features",
        "w",
        "self.p[-1] if len(self.p) > 0 else in_features",
    ]


def test_lists_made_from_two_fields_do_not() -> None:
    found = _lists(ZIPPED.format(part=""), second="self.q")
    assert found == [LAZY, LAZY, "last_in_features"]


def test_lists_met_in_another_order_do_not() -> None:
    assert _lists(ZIPPED.format(part="[::-1]")) == [LAZY, LAZY, "last_in_features"]


def test_a_list_run_over_in_the_loop_over_another_does_not() -> None:
    assert _lists(NESTED)[1] == LAZY


def test_counters_from_0_are_one_where_an_index_says_so() -> None:
    loop = "for i, one in enumerate(self.first):\n            x = self.second[i](one(x))"
    numbers = "range(self.p)"
    assert _lists(loop.replace("i,", "w,").replace("[i]", "[w]"), numbers, numbers)[1] == "w"
    assert _lists(loop, numbers, "range(1, self.p)")[1] == LAZY


@pytest.mark.parametrize(
    ("rebound", "expected"),
    [("", "w"), ("w = 3", LAZY), ("for w in self.q: pass", LAZY)],
)
def test_a_variable_that_the_body_binds_again_is_not_its_loops(rebound: str, expected: str) -> None:
    body = f"""
for w in self.p:
    x = nn.Dense(w)(x)
    {rebound or "pass"}
    x = x + nn.Dense(2)(x).sum()
return x
"""
    assert in_features(sizes_of(compact(body, "p: Any;q: Any")))[1] == expected


@pytest.mark.parametrize("items", ["self.p", "reversed(self.p)", "self.p.values()"])
def test_a_loop_that_may_have_no_round_ends_with_what_it_carries(items: str) -> None:
    body = f"for w in {items}:\n    x = nn.Dense(w)(x)\nreturn nn.Dense(3)(x)"
    assert in_features(sizes_of(compact(body, "p: Any")))[1] == "x_features"


@pytest.mark.parametrize("view", ["items", "keys", "values"])
def test_a_dict_is_asked_how_many_items_it_has_and_not_its_view(view: str) -> None:
    target, width = ("_, w", "[1]") if view == "items" else ("w", "")
    items = f"self.p.{view}()"
    body = f"""
last = nn.Dense(3)
for {target} in sorted({items}):
    x = nn.Dense(w)(x)
return last(x)
"""
    expected = f"sorted({items})[-1]{width} if len(self.p) > 0 else in_features"
    assert in_features(sizes_of(compact(body, "p: Any")))[0] == expected


@pytest.mark.parametrize(
    ("items", "last"),
    [
        ("self.p", "self.p[-1]"),
        ("reversed(self.p)", "self.p[0]"),
        ("sorted(self.p)", "sorted(self.p)[-1]"),
        ("zip(self.p, self.p)", "self.p[-1]"),
    ],
)
def test_only_what_can_be_asked_for_its_last_item_is(items: str, last: str) -> None:
    target = "w, v" if "zip" in items else "w"
    source = f"""
class Body(nn.Module):
    p: Any

    @nn.compact
    def __call__(self, x):
        for {target} in {items}:
            x = nn.Dense(w)(x)
        return x

class Model(nn.Module):
    p: Any

    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(Body(self.p)(x))
"""
    size, *_ = in_features(sizes_of(source))
    assert size.startswith(f"{last} if len(self.p) > 0 else in_features")


@pytest.mark.parametrize(
    ("loop", "expected"),
    [
        ("for i in range(len(self.p)): x = both(x, self.first[i](x))", "x_features"),
        ("for i in range(self.q): x = both(x, self.first[i](x))", "last_in_features"),
        ("for f, _ in zip(self.first, self.q): x = both(x, f(x))", "last_in_features"),
    ],
)
def test_what_a_list_carries_is_the_end_of_a_loop_that_meets_all_of_it(
    loop: str, expected: str
) -> None:
    before = "def both(x, y):\n    return jnp.concatenate([x, y], -1)\n"
    source = before + LISTS.format(first="self.p", second="self.p", loop=loop)
    assert in_features(sizes_of(source))[-1] == expected


LOOP = """
for i, w in enumerate(self.p):
    {body}
return nn.Dense(3)(y)
"""


@pytest.mark.parametrize(
    "body",
    [
        "y = x; x = both(x, nn.Dense(w)(x))",
        "x = nn.Dense(w)(x)\n    if i == 0: y = x",
        "x = nn.Dense(w)(x)\n    if i == 2: continue\n    y = x",
        "x = nn.Dense(w)(x)\n    for _ in range(i): y = x",
        "x = nn.Dense(w)(x)\n    try: y = x\n    except ValueError: pass",
    ],
)
def test_what_is_not_bound_by_the_last_round_has_no_known_size(body: str) -> None:
    before = "def both(x, y):\n    return jnp.concatenate([x, y], -1)\n"
    assert (
        in_features(sizes_of(compact(LOOP.format(body=body), "p: Any", before=before)))[1] == LAZY
    )


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("x = nn.Dense(w)(x); y = x", "self.p[-1]"),
        ("x = nn.Dense(w)(x)\n    with jax.named_scope('a'): y = x", "self.p[-1]"),
        (
            "x = nn.Dense(w)(x)\n    if i == 0: y = x\n    else: y = x[..., :2]",
            "self.p[-1] if len(self.p) - 1 == 0 else min(self.p[-1], 2)",
        ),
    ],
)
def test_what_the_last_round_binds_has_its_size(body: str, expected: str) -> None:
    assert in_features(sizes_of(compact(LOOP.format(body=body), "p: Any")))[1] == expected


def test_sizes_that_two_locals_hand_on_to_each_other_are_not_carried() -> None:
    body = "y = x\nfor w in self.p:\n    y = x\n    x = nn.Dense(w)(x)\nreturn nn.Dense(3)(y)"
    assert in_features(sizes_of(compact(body, "p: Any"))) == ["x_features", LAZY]
