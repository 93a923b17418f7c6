"""Sizes that loops change, keep or hide."""

from __future__ import annotations

import pytest

from tests.sizes.inference import (
    LAZY,
    arguments,
    carried,
    compact,
    dims,
    in_features,
    problems,
    sites,
    sizes_of,
)


def test_a_loop_over_widths_carries_the_size_from_round_to_round() -> None:
    body = "for w in self.widths:\n    x = nn.Dense(w)(x)\nreturn nn.Dense(3)(x)"
    result = sizes_of(compact(body, "widths: Sequence[int] = (4, 5)"))
    assert carried(result) == [("x_features", "in_features", "w")]
    assert in_features(result) == ["x_features", "x_features"]


def test_a_loop_of_equal_widths_ends_with_that_width_or_without_a_round() -> None:
    body = "for i in range(self.n):\n    x = nn.Dense(16)(x)\nreturn nn.Dense(3)(x)"
    result = sizes_of(compact(body, "n: int = 2"))
    assert carried(result) == [("x_features", "in_features", "16")]
    assert in_features(result) == ["x_features", "x_features"]


def test_a_loop_that_has_rounds_for_sure_ends_with_its_width() -> None:
    body = "for i in range(3):\n    x = nn.Dense(16)(x)\nreturn nn.Dense(3)(x)"
    assert in_features(sizes_of(compact(body)))[-1] == "16"


def test_a_residual_loop_carries_nothing() -> None:
    body = "for i in range(self.n):\n    x = x + nn.Dense(x.shape[-1])(x)\nreturn nn.Dense(3)(x)"
    result = sizes_of(compact(body, "n: int = 2"))
    assert carried(result) == []
    assert in_features(result) == ["in_features", "in_features"]


def test_nested_loops_carry_through_both() -> None:
    body = (
        "for i in range(self.n):\n    for j in range(2):\n"
        "        x = nn.Dense(4 * 2 ** i)(x)\nreturn nn.Dense(3)(x)"
    )
    result = sizes_of(compact(body, "n: int = 2"))
    assert len(carried(result)) == 2
    assert in_features(result)[-1] == "x_features_2"
    assert problems(result) == []


SETUP = """
class Model(nn.Module):
    widths: Sequence[int] = (4, 5)

    def setup(self):
        self.layers = [nn.Dense(w) for w in self.widths]
        self.head = nn.Dense(2)

    def __call__(self, x):
        for layer in self.layers:
            x = nn.relu(layer(x))
        return self.head(x)
"""


def test_a_list_of_setup_carries_through_the_loop_that_calls_it() -> None:
    result = sizes_of(SETUP)
    assert carried(result) == [("x_features", "in_features", "w")]
    assert sites(result)["nn.Dense(2)"] == {"in_features": "x_features"}


def test_a_submodule_whose_size_a_loop_makes_unknown_is_lazy() -> None:
    body = "for i in range(self.n):\n    x = self.fn(x, 1)\n    x = nn.Dense(3)(x)\nreturn x"
    result = sizes_of(compact(body, "fn: Callable;n: int = 2"))
    assert in_features(result) == [LAZY]
    assert arguments(result) == []


def test_a_generator_is_not_followed() -> None:
    text = compact("for y in self.parts(x):\n    x = nn.Dense(3)(y)\nreturn x")
    text += "\n    def parts(self, x):\n        yield x\n"
    assert in_features(sizes_of(text)) == [LAZY]


def test_a_submodule_built_in_a_while_loop_is_a_problem() -> None:
    body = "while x.shape[0] > 1:\n    x = nn.Dense(7)(x)\nreturn nn.Dense(2)(x)"
    assert problems(sizes_of(compact(body))) == ["nn.Dense is built in a while loop"]


def test_reads_of_shapes_in_a_loop_have_their_text_of_this_round() -> None:
    body = (
        "for w in self.widths:\n    d = x.shape[-1]\n    x = nn.Dense(d)(x)\n"
        "    x = nn.Dense(w)(x)\n    x = nn.Dense(x.shape[-1])(x)\nreturn x"
    )
    result = sizes_of(compact(body, "widths: Sequence[int] = (4, 5)"))
    assert in_features(result) == ["x_features", "x_features", "w"]
    assert {"x_features", "w"} <= dims(result)


def test_reads_of_the_shape_of_a_parameter_stay_as_they_are() -> None:
    body = "w = self.param('w', nn.initializers.ones, (3,))\nreturn nn.Dense(w.shape[0])(x)"
    assert dims(sizes_of(compact(body))) == set()


CHOSEN = (
    "if self.dims is None:\n    dims = {first}\nelse:\n    dims = {second}\n"
    "for w in dims:\n    x = nn.Dense(w)(x)\nreturn nn.Dense(3)(x)"
)
DOUBLED = "[2 * d for d in self.factors]"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(DOUBLED, "self.dims", id="a list made of another or a field"),
        pytest.param("[]", "self.dims", id="a list that may be empty"),
        pytest.param(DOUBLED, DOUBLED, id="the same list made twice"),
    ],
)
def test_a_loop_over_one_of_two_lists_carries_the_size_in_its_own_variable(
    first: str, second: str
) -> None:
    body = CHOSEN.format(first=first, second=second)
    result = sizes_of(compact(body, "dims: Any;factors: Any"))
    assert problems(result) == []
    assert carried(result) == [("x_features", "in_features", "w")]
    assert in_features(result) == ["x_features", "x_features"]


def test_a_loop_over_one_of_two_lists_that_a_call_chooses_has_no_known_last_item() -> None:
    body = CHOSEN.format(first=DOUBLED, second="self.dims").replace("self.dims is None", "y")
    result = sizes_of(compact(body, "dims: Any;factors: Any", "x, y"))
    assert in_features(result) == ["x_features", "x_features"]


SKIPPED = """
for w in self.widths:
    x = jnp.concatenate([x, nn.Dense(w)(x)], -1)
y = x
for w in self.widths:
    x = jnp.concatenate([x, nn.Dense(w)(x)], -1)
return nn.Dense(3)(x) + nn.Dense(4)(y)
"""


def test_what_one_loop_left_is_another_size_than_what_the_next_one_leaves() -> None:
    result = sizes_of(compact(SKIPPED, "widths: Any = (2, 4)"))
    first, second, last, skipped = in_features(result)
    assert (first, skipped) == ("x_features", "x_features")
    assert (second, last) == ("x_features_2", "x_features_2")


@pytest.mark.parametrize("rounds", ["range(1)", "range(self.n)"])
def test_a_loop_that_builds_nothing_carries_nothing(rounds: str) -> None:
    body = f"""
for w in self.widths:
    for v in self.widths:
        x = jnp.concatenate([x, nn.Dense(v)(x)], -1)
    for _ in {rounds}:
        x = jnp.pad(x, ((0, 0), (1, 3)))
return nn.Dense(3)(x)
"""
    result = sizes_of(compact(body, "widths: Any = (2, 4);n: int = 1"))
    assert in_features(result) == [LAZY, LAZY]


@pytest.mark.parametrize(
    ("targets", "width"),
    [
        ("*hidden, last", "self.widths[-1]"),
        ("last, *hidden", "self.widths[0]"),
        ("last, *hidden, _", "self.widths[0]"),
    ],
)
def test_a_loop_over_what_a_star_takes_carries_the_size(targets: str, width: str) -> None:
    body = f"{targets} = self.widths\nfor w in hidden:\n    x = nn.Dense(w)(x)\n"
    body += "x = nn.Dense(last)(x)\nreturn nn.Dense(2)(x)"
    result = sizes_of(compact(body, "widths: Sequence[int] = (4, 5)"))
    assert carried(result) == [("x_features", "in_features", "w")]
    assert in_features(result) == ["x_features", "x_features", width]
