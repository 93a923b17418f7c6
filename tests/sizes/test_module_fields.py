"""A field that some call gives a module is no activation: the size after it is asked for."""

import pytest

from nnx_migrate.sizes.fields.constructor_arguments import fields_with_modules
from nnx_migrate.source.project import Project, parse
from tests.sizes.inference import compact, sites, sizes_of

TEXT = """
import flax.linen as nn


class Block(nn.Module):
    act: object = nn.relu
    width: int = 2


class Outer(nn.Module):
    mix: object = None

    def setup(self):
        self.inner = nn.Dense(3)
        self.label = "plain"

    def __call__(self, x):
        local = nn.Dense(4)
        other = nn.relu
        return {}(x)
"""
WITH = {
    "a layer": "Block(act=nn.Dense(3))",
    "a layer by its place": "Block(nn.Dense(3))",
    "an attribute of setup": "Block(act=self.inner)",
    "a local name": "Block(act=local)",
    "a list": "Block(act=[nn.relu, nn.Dense(3)])",
}
WITHOUT = {
    "a function": "Block(act=nn.tanh)",
    "a local name": "Block(act=other)",
    "another attribute": "Block(act=self.label)",
    "a class": "Block(act=nn.Dense)",
    "nothing": "Block()",
}


def found(call: str) -> set[tuple[str, str]]:
    return {*fields_with_modules(Project({"m": parse("m", "m.py", TEXT.format(call))}))}


@pytest.mark.parametrize("call", WITH.values(), ids=WITH)
def test_a_module_makes_the_field_no_activation(call: str) -> None:
    assert found(call) == {("m.Block", "act")}


@pytest.mark.parametrize("call", WITHOUT.values(), ids=WITHOUT)
def test_what_is_no_module_leaves_the_field_alone(call: str) -> None:
    assert found(call) == set()


@pytest.mark.parametrize(
    ("field", "size"),
    [
        ("body: nn.Module", "LayerNorm_0_in_features"),
        ("body: nn.Module | None = None", "LayerNorm_0_in_features"),
        ("body: Any", "in_features"),  # of ``self.config.act(x)``
    ],
)
def test_the_size_after_a_method_of_a_module_is_asked_for(field: str, size: str) -> None:
    result = sizes_of(compact("return nn.LayerNorm()(self.body.features(x))", field))
    assert sites(result)["nn.LayerNorm()"] == {"in_features": size}


@pytest.mark.parametrize(
    ("field", "size"),
    [
        ("parts: dict[str, nn.Module]", "LayerNorm_0_in_features"),
        ("parts: dict", "LayerNorm_0_in_features"),
        ("parts: Any", "LayerNorm_0_in_features"),
        ("parts: 'Mapping[str, nn.Module]'", "LayerNorm_0_in_features"),
        ("parts: dict[str, Callable]", "in_features"),
    ],
)
@pytest.mark.parametrize("item", ["self.parts['body']", "self.parts[self.kind]"])
def test_the_size_after_an_entry_of_a_table_is_asked_for_unless_it_holds_functions(
    field: str, size: str, item: str
) -> None:
    fields = f"{field}\n    kind: str = 'body'"
    result = sizes_of(compact(f"return nn.LayerNorm()({item}(x))", fields))
    assert sites(result)["nn.LayerNorm()"] == {"in_features": size}
