"""Whole shapes that a class hands on to those it builds."""

from __future__ import annotations

import pytest

from nnx_migrate.sizes import ClassSizes, Extras, analyse
from tests.sizes.inference import arguments, project_of, sites

SCALE = """
class Scale(nn.Module):
    @nn.compact
    def __call__(self, x):
        return x * self.param("scale", nn.initializers.ones, axes_of(x.shape))

class Outer(nn.Module):
    @nn.compact
    def __call__(self, x):
        return Scale()(x)

def outer(x):
    return Scale()(x)


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        return {}
"""
WHOLE = {"main.Scale": Extras(shapes=frozenset({"x"}))}


def model(call: str) -> ClassSizes:
    return analyse(project_of({"main": SCALE.format(call)}), extras=WHOLE)["main.Model"]


@pytest.mark.parametrize("name", ["Scale()", "Outer()", "outer"])
@pytest.mark.parametrize("given", ["nn.Dense(4)(x)", "nn.relu(nn.Dense(4)(x))", "x[..., :3]"])
def test_of_an_array_of_unknown_rank_the_last_size_is_not_the_shape(name: str, given: str) -> None:
    result = model(f"{name}({given})")
    (asked,) = [one for one in arguments(result) if one.endswith("_0_x_shape")]
    assert {"x_shape": asked} in sites(result).values()


@pytest.mark.parametrize("name", ["Scale()", "Outer()", "outer"])
def test_the_shape_of_an_array_of_known_rank_is_handed_on(name: str) -> None:
    result = model(f"{name}(nn.Dense(4)(jnp.ones((2, 3))))")
    assert {"x_shape": "(2, 4)"} in sites(result).values()
    assert arguments(result) == []


@pytest.mark.parametrize("name", ["Scale()", "Outer()", "outer"])
def test_the_shape_of_an_input_is_handed_on_whole(name: str) -> None:
    result = model(f"{name}(x)")
    assert {"x_shape": "x_shape"} in sites(result).values()
    assert arguments(result) == ["x_shape"]
