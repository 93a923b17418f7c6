"""``nn.vmap``: variables of each element's own or shared, keys split or not, boxes, batch norm."""

from __future__ import annotations

import pytest

from tests.linen.side_by_side import paths, same_error, same_model

OWN = "variable_axes={'params': 0, 'stats': 0}"


@pytest.mark.parametrize(
    "options",
    [
        f"{OWN}, split_rngs={{'params': True, 'noise': True}}",
        "variable_axes={'params': 1, 'stats': -1}, split_rngs={'params': True, 'noise': False}",
        "variable_axes={'params': None, 'stats': 0}, split_rngs={'params': False, 'noise': True}",
        "variable_axes={True: 0}, split_rngs={True: True}, in_axes=1, out_axes=-1",
        f"{OWN}, split_rngs={{True: True}}, in_axes=None, axis_size=3",
        f"{OWN}, split_rngs={{True: True}}, axis_name='batch', spmd_axis_name='data'",
    ],
)
def test_classes(options: str) -> None:
    found = same_model(
        f"""
class Block(nn.Module):
    @nn.compact
    def __call__(self, x):
        return Noise()(Mean()(Linear(4)(x)))

class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.vmap(Block, {options})()(Linear(5)(x))

model, inputs = Net(), (jnp.arange(24.0).reshape(3, 2, 4),)
"""
    )
    assert paths(found["variables"])[-1] == "stats/VmapBlock_0/Mean_0/mean"


def test_axes_of_single_arguments_and_methods() -> None:
    same_model(
        """
class Pair(nn.Module):
    def setup(self):
        self.a, self.b = Linear(4), Linear(4)

    def __call__(self, x, y):
        return self.a(x["x"]) + self.b(y)

    def only_a(self, x):
        return self.a(x)

Both = nn.vmap(
    Pair,
    methods={
        "__call__": dict(
            variable_axes={"params": 0}, split_rngs={"params": True}, in_axes=({"x": 1}, None)
        ),
        "only_a": dict(variable_axes={"params": 0}, split_rngs={"params": True}),
    },
)

class Net(nn.Module):
    def setup(self):
        self.both = Both()

    def __call__(self, x):
        y = self.both({"x": x}, x[:, 0])
        return self.both.only_a(y)

model, inputs = Net(), (jnp.arange(24.0).reshape(2, 3, 4),)
"""
    )


def test_a_sum_over_the_named_axis() -> None:
    same_model(
        """
class Net(nn.Module):
    @functools.partial(
        nn.vmap, variable_axes={"params": None}, split_rngs={"params": False}, axis_name="batch"
    )
    @nn.compact
    def __call__(self, x):
        return jax.lax.pmean(Linear(4)(x), "batch")

model, inputs = Net(), (jnp.arange(24.0).reshape(3, 2, 4),)
"""
    )


def test_boxes_name_the_axis() -> None:
    found = same_model(
        """
class Block(nn.Module):
    @nn.compact
    def __call__(self, x):
        init = jax.nn.initializers.lecun_normal()
        boxed = lambda *args: meta.Partitioned(init(*args), names=("in", "out"))
        return x @ self.param("kernel", boxed, (4, 4))

class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.vmap(
            Block,
            variable_axes={"params": 0},
            split_rngs={"params": True},
            metadata_params={meta.PARTITION_NAME: "heads"},
        )()(x)

model, inputs = Net(), (jnp.ones((3, 2, 4)),)
"""
    )
    assert found["variables"]["params"]["VmapBlock_0"]["kernel"].names == ("heads", "in", "out")


def test_function_that_makes_submodules() -> None:
    same_model(
        """
class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        def heads(module, x):
            return Linear(2, name="head")(x)

        lifted = nn.vmap(heads, variable_axes={"params": 0}, split_rngs={"params": True})
        return lifted(self, x)

model, inputs = Net(), (jnp.ones((3, 2, 4)),)
"""
    )


ERRORS = {
    "sizes differ": "in_axes=(0, 0))()(x, x[:2])",
    "no size": "in_axes=(None, None))()(x, x)",
    "collection that is not lifted": "in_axes=(0, 0), variable_axes={})()(x, x)",
}


@pytest.mark.parametrize("call", ERRORS.values(), ids=ERRORS.keys())
def test_errors(call: str) -> None:
    axes = "" if "variable_axes" in call else "variable_axes={'params': 0}, "
    same_error(
        f"""
class Block(nn.Module):
    @nn.compact
    def __call__(self, x, y):
        return Linear(4)(x + y)

class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.vmap(Block, {axes}split_rngs={{'params': True}}, {call}

def run():
    return Net().init(jax.random.key(0), jnp.ones((3, 4)))
"""
    )
