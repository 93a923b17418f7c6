"""``nn.map_variables``, ``nn.add_metadata_axis`` and ``nn.named_call``."""

from __future__ import annotations

import pytest

from tests.linen.side_by_side import paths, same_error, same_model

NET = """
class Block(nn.Module):
    @nn.compact
    def __call__(self, x):
        return Noise()(Mean()(Linear(4)(x)))

def doubled(tree):
    return jax.tree.map(lambda x: 2 * x, tree)

def halved(tree):
    return jax.tree.map(lambda x: x / 2, tree)
"""


@pytest.mark.parametrize(
    "options",
    [
        "'params', doubled, halved, init=True",
        "'params', doubled, halved, mutable=True",
        "['params', 'stats'], doubled, halved, init=True, mutable=True",
        "nn.DenyList('stats'), doubled, halved, init=True, rngs=['params', 'noise']",
    ],
)
@pytest.mark.parametrize("form", ["class", "method"])
def test_views(options: str, form: str) -> None:
    body = (
        f"nn.map_variables(Block, {options})()(x)"
        if form == "class"
        else f"nn.map_variables(lambda module, x: Block(name='b')(x), {options})(self, x)"
    )
    same_model(
        NET
        + f"""
class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return Linear(2)({body})

model, inputs = Net(), (jnp.ones((2, 3)),)
""",
        # With `init` Linen makes all variables anew where any may change.
        mutable=() if "init" in options else ("stats",),
    )


def test_tied_weights_seen_transposed() -> None:
    found = same_model(
        """
class Table(nn.Module):
    shape: tuple

    @nn.compact
    def __call__(self, x):
        return x @ self.param("table", jax.nn.initializers.normal(), self.shape)

class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        table = Table((3, 4))
        y = table(x)

        def back(module, y):
            return y @ module.variables["params"]["table"]

        transposed = functools.partial(jax.tree.map, jnp.transpose)
        return nn.map_variables(back, "params", transposed)(table, y)

model, inputs = Net(), (jnp.ones((2, 3)),)
"""
    )
    assert paths(found["variables"]) == ["params/Table_0/table"]


def test_parameters_cannot_be_made_in_a_view_that_does_not_initialise() -> None:
    same_error(
        NET
        + """
class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.map_variables(Block, "params", doubled)()(x)

def run():
    return Net().init({"params": jax.random.key(0)}, jnp.ones((2, 3)))
"""
    )


def test_metadata_axes() -> None:
    found = same_model(
        """
class Block(nn.Module):
    @nn.compact
    def __call__(self, x):
        init = jax.nn.initializers.lecun_normal()
        boxed = lambda *args: meta.Partitioned(init(*args), names=("in",))
        kernel = self.param("kernel", boxed, (4, 4))
        seen = self.variable("stats", "seen", lambda: meta.Partitioned(jnp.ones(4), names=()))
        return x @ kernel

class Net(nn.Module):
    @functools.partial(
        nn.add_metadata_axis, variable_axes={"params": 0, "stats": 0},
        metadata_params={meta.PARTITION_NAME: "layers"},
    )
    @nn.compact
    def __call__(self, x):
        return nn.add_metadata_axis(
            Block, variable_axes={"params": 1}, metadata_params={meta.PARTITION_NAME: "mlp"}
        )()(x)

model, inputs = Net(), (jnp.ones((2, 4)),)
"""
    )
    (name,) = found["variables"]["params"]
    assert found["variables"]["params"][name]["kernel"].names == ("layers", "in", "mlp")


def test_named_calls_show_in_the_program() -> None:
    same_model(
        """
class Net(nn.Module):
    def setup(self):
        self.linear = Linear(4)

    @nn.named_call
    def part(self, x):
        return self.linear(x)

    @functools.partial(nn.named_call, force=False)
    def __call__(self, x):
        return self.part(x)

model, inputs = Net(), (jnp.ones((2, 3)),)
"""
    )
