"""Sizes that classes of the project pass on to each other."""

from __future__ import annotations

import pytest

from nnx_migrate.sizes import SiteKind
from tests.sizes.inference import arguments, compact, problems, sites, sizes_of

BLOCK = """
class Block(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.width)(x)
"""
MODEL = """
class Model(nn.Module):
    block: Any = Block

    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(self.block(8)(x))
"""


def test_a_class_gives_and_takes_sizes_like_a_layer() -> None:
    result = sizes_of(BLOCK + compact("return Block(3)(Block(8)(x))"))
    assert sites(result) == {
        "Block(8)": {"in_features": "in_features"},
        "Block(3)": {"in_features": "8"},
    }
    assert {site.kind for site in result.sites.values()} == {SiteKind.CLASS}


def test_a_class_of_another_file_is_followed() -> None:
    source = "from layers import Block\n" + compact("return nn.Dense(2)(Block(8)(x))")
    assert sites(sizes_of(source, layers=BLOCK)) == {
        "Block(8)": {"in_features": "in_features"},
        "nn.Dense(2)": {"in_features": "8"},
    }


def test_a_helper_of_another_file_is_followed() -> None:
    helper = "def twice(x):\n    return jnp.concatenate([x, x], axis=-1)\n"
    source = "from helpers import twice\n" + compact("return nn.Dense(2)(twice(nn.Dense(4)(x)))")
    found = sites(sizes_of(source, helpers=helper))
    assert found["nn.Dense(2)"] == {"in_features": "8"}


def test_a_class_valued_field_is_a_factory_of_what_constructors_give_it() -> None:
    other = BLOCK.replace("Block", "Other").replace("(self.width)", "(self.width)")
    result = sizes_of(BLOCK + other + MODEL + "def build():\n    return Model(Other)\n")
    site = next(one for one in result.sites.values() if one.kind is SiteKind.FACTORY)
    assert site.sizes == {"in_features": "in_features"}
    assert sites(result)["nn.Dense(3)"] == {"in_features": "8"}


def test_candidates_that_disagree_are_asked_for_their_output() -> None:
    other = BLOCK.replace("Block", "Other").replace("Dense(self.width)", "Dense(2 * self.width)")
    text = BLOCK + other + MODEL + "def build(big):\n    return Model(Other if big else Block)\n"
    result = sizes_of(text)
    site = next(one for one in result.sites.values() if one.kind is SiteKind.FACTORY)
    assert site.out_variable is not None
    assert sites(result)["nn.Dense(3)"] == {"in_features": site.out_variable}


def test_a_class_that_constructs_itself_is_a_problem() -> None:
    result = sizes_of(compact("return Model()(nn.Dense(4)(x))"))
    assert "the class constructs itself" in problems(result)


def test_what_an_unknown_callable_builds_is_a_problem() -> None:
    for body in ("self.make.of(3)(x)", "jax.vmap(lambda y: Block(3)(y))(x)"):
        result = sizes_of(BLOCK + compact(f"return nn.Dense(2)({body})", "make: Callable"))
        assert problems(result) != []


def test_what_a_field_builds_of_a_class_nobody_knows_is_left_to_its_first_call() -> None:
    result = sizes_of(BLOCK + compact("return nn.Dense(2)(self.make(3)(x))", "make: Callable"))
    (site,) = (one for one in result.sites.values() if one.is_open)
    assert (problems(result), site.symbol, site.sizes, site.is_lazy) == ([], None, {}, True)


def test_an_unknown_function_of_an_array_only_hides_the_size() -> None:
    result = sizes_of(compact("return nn.Dense(3)(self.fn(x, 1))", "fn: Callable"))
    assert problems(result) == []
    assert arguments(result) == ["Dense_0_in_features"]


def test_starred_arguments_hide_the_size() -> None:
    result = sizes_of(compact("return nn.Dense(3)(jnp.concatenate([*xs], -1))", arguments="*xs"))
    assert arguments(result) == ["Dense_0_in_features"]


def test_a_class_built_in_a_function_that_cannot_be_followed_is_a_problem() -> None:
    text = BLOCK + "@mystery\ndef make(x):\n    return Block(3)(x)\n" + compact("return make(x)")
    assert problems(sizes_of(text)) == ["main.make builds submodules for it and cannot be followed"]


def test_one_of_several_classes_is_offered_what_any_of_them_takes() -> None:
    source = """
class Cross(nn.Module):
    @nn.compact
    def __call__(self, x, y):
        return nn.Dense(4)(x) + nn.Dense(4)(y)

class Other(nn.Module):
    @nn.compact
    def __call__(self, x, y):
        return nn.Dense(5)(x)

class Model(nn.Module):
    other: bool = False

    @nn.compact
    def __call__(self, x, y):
        cls = Other if self.other else Cross
        return cls()(x, y)
"""
    result = sizes_of(source)
    (site,) = result.sites.values()
    sizes = {"in_features": "x_features", "x_features": "x_features", "y_features": "y_features"}
    assert (site.sizes, site.takes_some) == (sizes, True)
    assert problems(result) == []


def held(part: str) -> str:
    """A class that is given one that is given a module of the annotation ``part``."""
    whole = "class Whole(nn.Module):\n    part: {}\n\n    def __call__(self, x):\n"
    whole = whole.format(part) + "        return self.part(x)\n\n"
    return (
        BLOCK.replace("Dense(self.width)", "Dense(self.width + 1)")
        + whole
        + compact("return nn.Dense(6)(self.whole(x))", "whole: Whole")
    )


def test_a_module_in_a_field_of_a_module_in_a_field_is_followed() -> None:
    assert sites(sizes_of(held("Block")))["nn.Dense(6)"] == {
        "in_features": "self.whole.part.width + 1"
    }


def test_a_module_of_any_class_in_a_field_of_a_field_is_not_taken_for_an_activation() -> None:
    result = sizes_of(held("nn.Module"))
    assert sites(result)["nn.Dense(6)"] == {"in_features": "Dense_0_in_features"}
    endless = held("Whole | None")
    assert sites(sizes_of(endless))["nn.Dense(6)"] == {"in_features": "Dense_0_in_features"}


SIZED = """
class Sized(nn.Module):
    @classmethod
    def width(cls, n=4):
        return n

    @staticmethod
    def half(n):
        return n // 2

    def twice(self):
        return 2 * self.width(3)
"""


@pytest.mark.parametrize(
    ("called", "expected"),
    [
        ("Sized.width(8)", "8"),
        ("Sized.width()", "4"),
        ("Sized.width(n=2)", "2"),
        ("Sized.half(8)", "4"),
        ("self.width(8)", "8"),
        ("self.half(8)", "4"),
        ("self.twice()", "6"),
    ],
)
def test_class_methods_get_the_class_and_static_methods_nothing(called: str, expected: str) -> None:
    body = compact(f"return nn.Dense(2)(nn.Dense({called})(x))").replace("nn.Module", "Sized")
    assert sites(sizes_of(SIZED + body))["nn.Dense(2)"] == {"in_features": expected}
