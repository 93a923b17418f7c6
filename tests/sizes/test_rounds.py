"""What rounds of a loop change is not what it was before the loop."""

from __future__ import annotations

import pytest

from tests.sizes.inference import LAZY, carried, compact, in_features, sites, sizes_of


def test_spatial_sizes_that_a_loop_shrinks_are_unknown_afterwards() -> None:
    body = (
        "for i in range(self.n):\n    x = nn.Conv(8, (3, 3), strides=2)(x)\n"
        "return nn.Dense(3)(x.reshape((x.shape[0], -1)))"
    )
    result = sizes_of(compact(body, "n: int = 2"))
    assert in_features(result) == ["x_features", "Dense_0_in_features"]


def test_spatial_sizes_that_a_loop_keeps_are_still_known_afterwards() -> None:
    body = (
        "x = jnp.zeros((2, 5, 7, 1))\nfor i in range(self.n):\n    x = nn.Conv(8, (3, 3))(x)\n"
        "return nn.Dense(3)(x.reshape((x.shape[0], -1)))"
    )
    result = sizes_of(compact(body, "n: int = 2"))
    assert in_features(result)[-1] == "35 * x_features"


def test_a_plain_value_that_rounds_change_is_no_size() -> None:
    body = "w = 4\nfor i in range(self.n):\n    x = nn.Dense(w)(x)\n    w = w * 2\nreturn x"
    assert in_features(sizes_of(compact(body, "n: int = 2"))) == [LAZY]


def test_a_plain_value_that_rounds_leave_alone_is_a_size() -> None:
    body = "w = 4\nfor i in range(self.n):\n    x = nn.Dense(w)(x)\nreturn nn.Dense(3)(x)"
    result = sizes_of(compact(body, "n: int = 2"))
    assert in_features(result) == ["x_features", "x_features"]


@pytest.mark.parametrize(
    ("items", "layer"),
    [
        ("[(4, nn.relu), (8, nn.gelu)]", "nn.Dense(w)"),
        ("[(1, nn.relu), (2, nn.gelu)]", "nn.Dense(w * 9)"),
    ],
)
def test_what_a_constructor_call_builds_is_lazy_where_items_meet_it_with_several_sizes(
    items: str, layer: str
) -> None:
    body = f"for w, act in {items}:\n    x = act({layer}(x))\nreturn x"
    assert in_features(sizes_of(compact(body))) == [LAZY]


def test_a_constructor_call_that_items_meet_with_one_size_has_it() -> None:
    body = (
        "x = nn.Dense(4)(x)\nfor act in [nn.relu, nn.gelu]:\n    x = act(nn.Dense(4)(x))\nreturn x"
    )
    assert in_features(sizes_of(compact(body))) == ["in_features", "4"]


def test_a_list_that_grows_and_is_read_in_the_same_loop_has_no_known_total() -> None:
    body = (
        "past = [x]\nfor w in self.widths:\n    x = nn.Dense(w)(jnp.concatenate(past, axis=-1))\n"
        "    past.append(x)\nreturn x"
    )
    assert in_features(sizes_of(compact(body, "widths: Sequence[int] = (4, 5)"))) == [LAZY]


def test_what_a_loop_kept_for_another_one_differs_from_round_to_round() -> None:
    body = (
        "past = []\nfor w in self.widths:\n    x = nn.Dense(w)(x)\n    past.append(x)\n"
        "for w in self.widths:\n    x = nn.Dense(w)(jnp.concatenate([x, past.pop()], axis=-1))\n"
        "return x"
    )
    result = sizes_of(compact(body, "widths: Sequence[int] = (4, 5)"))
    assert in_features(result) == ["x_features", LAZY]


def test_equal_sizes_that_a_loop_kept_add_up_in_another_one() -> None:
    body = (
        "past = []\nfor i in range(self.n):\n    x = nn.Dense(6)(x)\n    past.append(x)\n"
        "for i in range(self.n):\n    x = nn.Dense(6)(jnp.concatenate([x, past.pop()], axis=-1))\n"
        "return x"
    )
    result = sizes_of(compact(body, "n: int = 2"))
    assert in_features(result) == ["x_features", "x_features_2 + 6"]


def test_a_loop_left_early_gives_the_size_of_either_end() -> None:
    body = (
        "for i in range(self.n):\n    x = nn.Dense(6)(x)\n    if self.stop:\n        break\n"
        "    x = nn.Dense(7)(x)\nreturn nn.Dense(3, name='head')(x)"
    )
    result = sizes_of(compact(body, "n: int = 2;stop: bool = False"))
    assert in_features(result)[-1] == "head_in_features"


def test_a_while_loop_forgets_the_sizes_it_changes() -> None:
    body = "while x.shape[0] > 1:\n    x = jnp.concatenate([x, x], axis=-1)\nreturn nn.Dense(2)(x)"
    assert in_features(sizes_of(compact(body))) == ["Dense_0_in_features"]


def test_a_list_that_two_loops_run_over_carries_the_size_of_its_first_call() -> None:
    source = """
class Model(nn.Module):
    def setup(self):
        self.layers = [nn.Dense(4) for _ in range(3)]

    def __call__(self, x, y):
        for layer in self.layers:
            x = layer(x)
        for layer in self.layers:
            y = layer(y)
        return x + y
"""
    result = sizes_of(source)
    assert carried(result) == [("x_features", "in_features", "4")]
    assert in_features(result) == ["x_features"]


def test_submodules_of_two_classes_in_one_list_are_told_apart_by_isinstance() -> None:
    source = """
class Wide(nn.Module):
    @nn.compact
    def __call__(self, x, y):
        return nn.Dense(4)(x) + nn.Dense(4)(y)

class Narrow(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(4)(x)

class Model(nn.Module):
    wide: bool
    @nn.compact
    def __call__(self, x, y):
        layers = []
        for i in range(3):
            if self.wide:
                layers.append(Wide())
            else:
                layers.append(Narrow())
        for layer in layers:
            if isinstance(layer, Wide):
                x = layer(x, y)
            else:
                x = layer(x)
        return x
"""
    result = sizes_of(source)
    assert sites(result) == {
        "Wide()": {"x_features": "x_features", "y_features": "y_features"},
        "Narrow()": {"in_features": "x_features"},
    }


@pytest.mark.parametrize("function", ["nn.gelu", "jnp.tanh", "lambda y: y * 2", "double"])
def test_a_function_among_submodules_is_none_of_their_class(function: str) -> None:
    source = f"""
def double(x):
    return x * 2

class Model(nn.Module):
    width: int
    def setup(self):
        self.layers = [nn.Dense(4 * self.width), {function}, nn.Dense(3), nn.Dropout(0.1)]

    def __call__(self, x, train=False):
        for layer in self.layers:
            x = layer(x, deterministic=not train) if isinstance(layer, nn.Dropout) else layer(x)
        return x
"""
    assert in_features(sizes_of(source))[:2] == ["in_features", "4 * self.width"]


def test_a_tuple_argument_that_rounds_shorten_has_items_nobody_knows() -> None:
    body = (
        "for i in range(self.n):\n    x = nn.Dense(4)(jnp.concatenate([x, rest[-1]], axis=-1))\n"
        "    rest = rest[:-1]\nreturn x"
    )
    result = sizes_of(compact(body, "n: int = 2", arguments="x, rest"))
    assert in_features(result) == [LAZY]
    assert not result.new_arguments


def test_what_setup_builds_in_locals_has_no_number_of_linens() -> None:
    source = """
class Model(nn.Module):
    def setup(self):
        layers = []
        layer = nn.Dense(3)
        layers.append(layer)
        self.layers = layers

    def __call__(self, x):
        return self.layers[0](mystery(x))
"""
    assert in_features(sizes_of(source)) == [LAZY]
