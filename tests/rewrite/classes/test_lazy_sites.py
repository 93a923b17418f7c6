"""Submodules whose sizes only their calls show, as in loops: they are built as Linen builds them."""

from __future__ import annotations

import pytest

from tests.rewrite.running import in_auto, lazy, printed_alike

PROGRAM = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


def mystery(x):
    return jnp.concatenate([x, x[:, :1]], -1) if x.shape[-1] % 2 else 2 * x


def wrap(module):
    return module


class Block(nn.Module):
    width: int = 4

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.width)(x)


class Layer(nn.Module):
    cell: Block

    def __call__(self, x):
        return self.cell(mystery(x))


class Model(nn.Module):
    widths: tuple = (3, 4, 5)

{body}

def main():
    x = jnp.linspace(-1, 1, 12).reshape(2, 6)
    variables = Model().init(jax.random.key(0), x)
    print(jax.tree.map(jnp.shape, variables))
    print(Model().apply(variables, x), jax.jit(Model().apply)(variables, 2 * x))
    print(jax.grad(lambda one: Model().apply(one, x).sum())(variables))
"""
COMPACT = """    @nn.compact
    def __call__(self, x):
        for i, w in enumerate(self.widths):
            x = {layer}(mystery(x))
        return x
"""
SETUP = """    def setup(self):
        {body}

    def __call__(self, x):
        for layer in {layers}:
            x = mystery(layer(x))
        return x
"""


def setup(body: str, layers: str = "self.layers") -> str:
    return SETUP.format(body=body.replace("\n", "\n        "), layers=layers)


def appended(lines: str) -> str:
    """A list of layers that a loop fills, in ``setup``."""
    lines = lines.replace("\n", "\n    ")
    return setup(
        f"layers = []\nfor i, w in enumerate(self.widths):\n    {lines}\nself.layers = layers"
    )


EXPLICIT = {
    "a layer in a loop": (
        COMPACT.format(layer="nn.Dense(w)"),
        'setattr(self, f"Dense_{i}", nn.Dense(w))',
    ),
    "under a name of its own": (
        COMPACT.format(layer="nn.Dense(w, name=f'layer_{i}')"),
        "setattr(self, f'layer_{i}', nn.Dense(w))",
    ),
    "a class of the project": (
        COMPACT.format(layer="Block(width=w)"),
        'setattr(self, f"Block_{i}", lazy(Block)(width=w))',
    ),
    "a lift of one": (
        COMPACT.format(layer="nn.remat(Block)(w)"),
        'setattr(self, f"CheckpointBlock_{i}", lazy(nnm.remat(Block))(w))',
    ),
    "a comprehension of setup": (
        setup("self.layers = [nn.Dense(w) for w in self.widths]"),
        'nnm.set_submodules(self, "layers", [nn.Dense(w) for w in self.widths])',
    ),
    "a list that becomes an attribute": (
        appended("layers.append(nn.Dense(w))"),
        "layers.append(nn.Dense(w))",
    ),
    "an item that a local holds first": (
        appended("layer = Block(w)\nlayers.append(layer)"),
        "layer = lazy(Block)(w)",
    ),
    "one of two items": (
        appended(
            "if w > 3:\n    layer = nn.Dense(w)\nelse:\n    layer = nn.Dense(3)\nlayers.append(layer)"
        ),
        "layer = nn.Dense(3)",
    ),
    "an item with a name of its own": (
        appended("layers.append(nn.Dense(w, name=f'd{i}'))"),
        "layers.append(nnm.named(f'd{i}', nn.Dense(w)))",
    ),
}


@pytest.mark.parametrize(("body", "line"), EXPLICIT.values(), ids=EXPLICIT)
def test_a_lazy_submodule_is_built_as_linen_builds_it(body: str, line: str) -> None:
    source = PROGRAM.format(body=body)
    found = printed_alike(source)
    assert (found["m.Block"], found["m.Model"]) == ("explicit", "explicit")
    text = in_auto(source)
    assert line in text
    assert "def __init__(self, widths: tuple = (3, 4, 5), *, rngs: nnx.Rngs):" in text


OUTER = """

class Outer(nn.Module):
    @nn.compact
    def __call__(self, x):
        for i in range(2):
            x = Model((3, 4))(mystery(x))
        return Model((5,), name="last")(x)
"""


def test_a_caller_gives_no_sizes_to_a_class_of_lazy_submodules() -> None:
    source = PROGRAM.format(body=COMPACT.format(layer="Block(w)") + OUTER).replace(
        "Model()", "Outer()"
    )
    found = printed_alike(source)
    assert (found["m.Model"], found["m.Outer"]) == ("explicit", "explicit")
    text = in_auto(source)
    assert 'setattr(self, f"Model_{i}", Model((3, 4), rngs=rngs))' in text
    assert "self.last = Model((5,), rngs=rngs)" in text


LAZY = {
    "items of a dict comprehension": setup(
        "self.layers = {str(w): nn.Dense(w) for w in self.widths}", "self.layers.values()"
    ),
    "given to a submodule": setup("self.layers = [Layer(cell=Block(w)) for w in self.widths]"),
    "given to one that is appended": appended("layers.append(Layer(Block(w)))"),
    "given to a function": setup("self.layers = [Layer(wrap(Block(w))) for w in (3, 4)]"),
}


@pytest.mark.parametrize("body", LAZY.values(), ids=LAZY)
def test_a_lazy_submodule_that_is_more_than_called_keeps_the_class_lazy(body: str) -> None:
    source = PROGRAM.format(body=body)
    assert printed_alike(source)["m.Model"] == "lazy"
    assert lazy(source, "Model") == "a lazy submodule is more than called here"


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


HELD = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Odd(nn.Module):
    @nn.compact
    def __call__(self, x):
        width = 0
        while width < 2:
            width += 1
        return nn.Dense(width)(x)


class Block(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.width)(Odd()(x))


class ByValue(nn.Module):
    @nn.compact
    def __call__(self, x):
        kind = Block
        return kind(3, name="block")(x)


class Net(nn.Module):
    depths: tuple = (3, 4)

    @nn.compact
    def __call__(self, x):
        skips = []
        for i, depth in enumerate(self.depths):
            x = nn.Dense(depth, name=f"in_{i}")(x)
            skips.append(x)
        for i, depth in enumerate(self.depths):
            x = Block(depth, name=f"block_{i}")(jnp.concatenate([x, skips.pop()], -1))
        return x


def main():
    for model in (ByValue(), Net()):
        values = model.init(jax.random.key(0), jnp.ones((2, 3)))
        print(jax.tree.map(jnp.shape, values), model.apply(values, jnp.ones((2, 3))))
"""


def test_a_class_that_others_have_as_a_value_is_lazy_by_its_name_too() -> None:
    found = printed_alike(HELD)
    assert (found["m.Block"], found["m.Net"]) == ("explicit", "explicit")
