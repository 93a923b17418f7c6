"""Sizes of submodules that a loop builds, looked up under the submodule's scope name."""

from __future__ import annotations

import pytest

from nnx_migrate.model import Outcome
from tests.rewrite.projects import explicit_source as rewrite_source
from tests.rewrite.running import in_auto, printed_alike

HEADER = """import flax.linen as nn


class Model(nn.Module):
    widths: tuple

"""
COMPACT = """    @nn.compact
    def __call__(self, x):
        for i, w in enumerate(self.widths):
            x = nn.Dense(w{name})(mystery(x))
        return x
"""
SETUP = """    def setup(self):
{body}

    def __call__(self, x):
        for layer in self.layers:
            x = mystery(layer(x))
        return x
"""


def built(source: str) -> str:
    """The constructor of the class, whose sizes are looked up in ``in_features_of``."""
    result = rewrite_source(HEADER + source)
    (found,) = result.classes
    assert (found.outcome, found.reason) == (Outcome.REWRITTEN, None)
    assert found.new_arguments == ("in_features_of",)
    assert "in_features_of: dict[str, int]," in result.code
    return result.code.split("self.widths = widths\\n")[-1].split("def __call__")[0]


@pytest.mark.parametrize(
    ("name", "text"), [("", 'f"Dense_{i}"'), (", name=f'layer_{i}'", "f'layer_{i}'")]
)
def test_a_compact_loop_binds_the_name_first(name: str, text: str) -> None:
    code = built(COMPACT.format(name=name))
    assert f"scope_name = {text}" in code
    assert "setattr(self, scope_name, nnx.Linear(in_features_of[scope_name], w, rngs=rngs))" in code


def test_a_counted_comprehension_of_setup_binds_the_name_first() -> None:
    code = built(
        SETUP.format(body="        self.layers = [nn.Dense(4) for i in range(len(self.widths))]")
    )
    assert 'scope_name = f"layers_{i}"' in code
    assert "setattr(self, scope_name, nnx.Linear(in_features_of[scope_name], 4, rngs=rngs))" in code


def test_a_comprehension_over_items_names_them_by_their_index() -> None:
    code = built(SETUP.format(body="        self.layers = [nn.Dense(w) for w in self.widths]"))
    assert 'scope_name = f"layers_{len(layers_list)}"' in code
    assert "in_features_of[scope_name], w" in code


@pytest.mark.parametrize(
    "append",
    [
        "layers.append(nn.Dense(w))",
        "layer = nn.Dense(w)\n            layers.append(layer)",
        (
            "if w > 3:\n                layer = nn.Dense(w)\n            else:\n"
            "                layer = nn.Dense(3)\n            layers.append(layer)"
        ),
    ],
)
def test_a_list_that_becomes_an_attribute_names_items_by_its_length(append: str) -> None:
    body = (
        "        layers = []\n        for w in self.widths:\n"
        f"            {append}\n        self.layers = layers"
    )
    assert 'in_features_of[f"layers_{len(layers)}"]' in built(SETUP.format(body=body))


def test_an_item_with_a_name_of_its_own_is_looked_up_under_it() -> None:
    body = (
        "        layers = []\n        for i in range(3):\n"
        "            layers.append(nn.Dense(4, name=f'd{i}'))\n        self.layers = layers"
    )
    assert "in_features_of[f'd{i}']" in built(SETUP.format(body=body))


def test_an_item_without_a_name_that_is_known_is_refused() -> None:
    body = "        self.layers = {w: nn.Dense(w) for w in self.widths}"
    source = SETUP.format(body=body).replace("self.layers:", "self.layers.values():")
    (found,) = rewrite_source(HEADER + source).classes
    assert found.outcome is Outcome.REFUSED
    assert found.reason


def test_a_caller_asks_for_the_sizes_of_each_of_its_submodules() -> None:
    source = (
        HEADER
        + COMPACT.format(name="")
        + """

class Outer(nn.Module):
    @nn.compact
    def __call__(self, x):
        for i in range(2):
            x = Model((3, 4))(mystery(x))
        return Model((5,), name="last")(x)
"""
    )
    result = rewrite_source(source)
    assert {one.outcome for one in result.classes} == {Outcome.REWRITTEN}
    assert "in_features_of_of: dict[str, dict[str, int]]," in result.code
    assert "in_features_of=(in_features_of_of or {}).get(scope_name)" in result.code
    assert "last_in_features_of: dict[str, int]," in result.code
    assert "in_features_of=last_in_features_of" in result.code


NESTED = """

class Layer(nn.Module):
    cell: Model

    def __call__(self, x):
        return self.cell(mystery(x))


class Net(nn.Module):
    def setup(self):
{body}

    def __call__(self, x):
        for layer in self.layers:
            x = mystery(layer(x))
        return x
"""

APPENDED = """        layers = []
        for w in (3, 4):
            layers.append(Layer(Model((w,))))
        self.layers = layers"""


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("        self.layers = [Layer(cell=Model((w,))) for w in (3, 4)]", "scope_name"),
        ("        self.layers = [Layer(Model((w,))) for w in range(3)]", "scope_name"),
        (
            APPENDED,
            'f"layers_{len(layers)}"',
        ),
    ],
)
def test_a_submodule_inside_an_element_is_looked_up_under_the_element(body: str, name: str) -> None:
    model = HEADER + COMPACT.format(name="")
    result = rewrite_source(model + NESTED.format(body=body))
    assert {(one.outcome, one.reason) for one in result.classes} == {(Outcome.REWRITTEN, None)}
    assert "cell_in_features_of_of: dict[str, dict[str, int]]," in result.code
    assert f"in_features_of=(cell_in_features_of_of or {{}}).get({name})" in result.code


def test_a_submodule_inside_an_element_that_is_built_otherwise_is_refused() -> None:
    body = "        self.layers = [Layer(wrap(Model((w,)))) for w in (3, 4)]"
    result = rewrite_source(HEADER + COMPACT.format(name="") + NESTED.format(body=body))
    (found,) = [one for one in result.classes if one.name.endswith("Net")]
    assert found.outcome is Outcome.REFUSED
    assert found.reason


OPEN = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Model(nn.Module):
    times: int = 3
    centred: bool = True

    @nn.compact
    def __call__(self, x):
        norm = nn.LayerNorm if self.centred else nn.RMSNorm
        x = jnp.tile({first}(x), self.times)
        return {second}(x)


def main():
    x = jnp.linspace(-1, 1, 12).reshape(3, 4)
    for model in (Model(), Model(centred=False)):
        variables = model.init(jax.random.key(0), x)
        print(sorted((name, one["scale"].shape) for name, one in variables["params"].items()))
        print(jnp.abs(model.apply(variables, x)).sum())
"""


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("norm()", "nn.LayerNorm()"),  # LayerNorm_1, or LayerNorm_0
        ("nn.LayerNorm()", "norm()"),
        ("norm(name='first')", "nn.LayerNorm()"),
        ("nn.RMSNorm()", "nn.LayerNorm()"),
    ],
)
def test_no_size_is_read_by_a_number_that_a_class_of_the_run_decides(
    first: str, second: str
) -> None:
    source = OPEN.format(first=first, second=second)
    assert printed_alike(source) == {"m.Model": "explicit"}
    is_open = first == "norm()"
    assert ("LayerNorm_0_in_features" in in_auto(source)) == (
        not is_open and second == "nn.LayerNorm()"
    )
