"""Sizes that nobody knows where a loop starts, and loop variables where it ends."""

from __future__ import annotations

import pytest

from nnx_migrate.rewrite.classes.writing.construct import relax
from nnx_migrate.sizes import ClassSizes
from tests.sizes.inference import LAZY, in_features, sizes_of

MLP = """
class MLP(nn.Module):
    sizes: tuple
    @nn.compact
    def __call__(self, x):
        x = x.reshape((x.shape[0], -1))
        for index, size in enumerate(self.sizes):
            x = nn.Dense(size{name})(x)
        return x
class Model(nn.Module):
    sizes: tuple
    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(MLP(self.sizes)(x))
"""


def arguments(sizes: ClassSizes) -> list[tuple[str, str | None]]:
    return [(one.name, one.submodule) for one in sizes.new_arguments]


def test_an_unknown_size_that_enters_a_loop_is_one_argument() -> None:
    found = sizes_of(MLP.format(name=""), "MLP")
    assert found.problems == ()
    assert arguments(found) == [("Dense_0_in_features", "Dense_0")]


def test_the_argument_names_the_first_submodule_of_a_counted_name() -> None:
    found = sizes_of(MLP.format(name=", name=f'hidden_{index}'"), "MLP")
    assert arguments(found) == [("hidden_0_in_features", "hidden_0")]


def test_without_the_name_of_the_first_submodule_every_one_is_lazy() -> None:
    found = sizes_of(MLP.format(name=", name=f'hidden_{size}'"), "MLP")
    assert in_features(found) == [LAZY]
    assert not found.new_arguments


def test_after_a_loop_of_another_class_that_may_have_no_round_the_size_is_asked() -> None:
    found = sizes_of(MLP.format(name=""))
    sizes = [dict(site.sizes) for site in found.sites.values() if site.class_name == "Dense"]
    assert sizes == [{"in_features": "Dense_0_in_features"}]
    assert ("MLP_0_Dense_0_in_features", "MLP_0/Dense_0") in arguments(found)


@pytest.mark.parametrize("built", ["nn.Dense(size)(x)", "nn.Dense(size)(x) + 1"])
def test_submodules_in_a_loop_that_makes_its_array_unknown_are_lazy(built: str) -> None:
    source = f"""
class Model(nn.Module):
    sizes: tuple
    @nn.compact
    def __call__(self, x):
        for size in self.sizes:
            x = mystery({built})
        return x
"""
    assert in_features(sizes_of(source)) == [LAZY]


def test_an_array_that_becomes_unknown_and_gives_no_size_is_no_matter() -> None:
    source = """
class Model(nn.Module):
    sizes: tuple
    @nn.compact
    def __call__(self, x, mask):
        for size in self.sizes:
            x = nn.Dense(size)(x)
            mask = mystery(mask)
        return x
"""
    assert sizes_of(source).problems == ()


@pytest.mark.parametrize(
    ("body", "optional"),
    [
        (
            "if self.deep:\n            for size in self.sizes:\n                x = nn.Dense(size)(x)",
            True,
        ),
        ("for size in self.sizes:\n            x = nn.Dense(size)(x)", False),
        (
            (
                "if self.deep:\n            for size in self.sizes:\n                x = nn.Dense(size)(x)\n"
                "        x = nn.LayerNorm()(x)"
            ),
            True,
        ),
        (
            (
                "if self.deep:\n            for _ in self.sizes:\n"
                "                x = jnp.concatenate([x, nn.Dense(x.shape[-1])(x)], -1)"
            ),
            True,
        ),
    ],
    ids=[
        "conditional",
        "always",
        "the size behind it has an argument of its own",
        "calculated with in the loop",
    ],
)
def test_a_size_that_enters_a_loop_is_optional_where_only_some_instances_run_it(
    body: str, optional: bool
) -> None:
    source = f"""
class Model(nn.Module):
    sizes: tuple
    deep: bool = False
    @nn.compact
    def __call__(self, x):
        x = x.reshape((x.shape[0], -1))
        {body}
        return x
"""
    arguments = relax(sizes_of(source)).new_arguments
    assert [one.optional for one in arguments if one.name == "Dense_0_in_features"] == [optional]


def test_after_a_loop_that_may_have_no_round_the_size_is_what_it_carries() -> None:
    source = """
class Model(nn.Module):
    sizes: tuple
    @nn.compact
    def __call__(self, x):
        x = x.reshape((x.shape[0], -1))
        for size in self.sizes:
            x = nn.Dense(size)(x)
        return nn.Dense(3)(x)
"""
    assert in_features(sizes_of(source)) == ["x_features", "x_features"]
