"""``nn.scan``: variables stacked, shared or carried; keys split or not; classes and methods."""

from __future__ import annotations

import pytest

from tests.linen.side_by_side import paths, same_error, same_model, same_run

BLOCK = """
class Block(nn.Module):
    features: int = 4

    @nn.compact
    def __call__(self, carry, x):
        y = Linear(self.features)(carry + x)
        y = Noise()(Mean()(y))
        return jnp.tanh(y), Linear(3)(y)
"""


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("split", [True, False])
def test_class_with_stacked_parameters(check: bool, split: bool) -> None:
    found = same_model(
        BLOCK
        + f"""
class Net(nn.Module):
    @nn.compact
    def __call__(self, x, xs):
        scanned = nn.scan(
            Block,
            variable_axes={{"params": 0, "stats": 0}},
            split_rngs={{"params": {split}, "noise": True}},
            length=5,
            check_constancy_invariants={check},
        )
        return scanned(name=None)(Linear(4)(x), xs)

model, inputs = Net(), (jnp.ones((2, 4)), jnp.ones((5, 2, 4)))
"""
    )
    assert paths(found["variables"])[-1] == "stats/ScanBlock_0/Mean_0/mean"
    assert found["variables"]["params"]["ScanBlock_0"]["Linear_0"]["kernel"].shape == (5, 4, 4)


def test_other_axes_reverse_and_unroll() -> None:
    same_model(
        BLOCK
        + """
class Net(nn.Module):
    @nn.compact
    def __call__(self, x, xs):
        scanned = nn.scan(
            Block,
            variable_axes={"params": 1, "stats": -1},
            split_rngs={"params": True, "noise": True},
            in_axes=1,
            out_axes=-1,
            reverse=True,
            unroll=2,
        )
        return scanned()(x, xs)

model, inputs = Net(), (jnp.ones((2, 4)), jnp.arange(40.0).reshape(2, 5, 4))
"""
    )


def test_shared_parameters_and_carried_state() -> None:
    found = same_model(
        BLOCK
        + """
class Net(nn.Module):
    @nn.compact
    def __call__(self, x, xs):
        scanned = nn.scan(
            Block,
            variable_broadcast="params",
            variable_carry="stats",
            split_rngs={"params": False, "noise": True},
        )
        # What is carried has to be there before the loop begins.
        if self.is_initializing():
            self.put_variable("stats", "ScanBlock_0", {"Mean_0": {"mean": jnp.zeros(4)}})
        return scanned()(x, xs)

model, inputs = Net(), (jnp.ones((2, 4)), jnp.arange(40.0).reshape(5, 2, 4))
"""
    )
    assert found["variables"]["params"]["ScanBlock_0"]["Linear_0"]["kernel"].shape == (4, 4)


def test_arguments_that_are_not_scanned() -> None:
    same_model(
        """
class Block(nn.Module):
    @nn.compact
    def __call__(self, carry, shared, x):
        y = Linear(4)(carry) + jnp.broadcast_to(shared["bias"], x.shape) + x
        return y, {"y": y, "shared": shared["bias"]}

class Net(nn.Module):
    @nn.compact
    def __call__(self, x, shared, xs):
        scanned = nn.scan(
            Block,
            variable_axes={"params": 0},
            split_rngs={"params": True},
            in_axes=(nn.broadcast, 0),
            out_axes={"y": 0, "shared": nn.broadcast},
        )
        return scanned()(x, shared, xs)

model, inputs = Net(), (jnp.ones((2, 4)), {"bias": jnp.ones(4)}, jnp.ones((3, 2, 4)))
"""
    )


def test_methods_by_name_and_as_decorator() -> None:
    same_model(
        """
class Net(nn.Module):
    def setup(self):
        self.inner = Linear(4)

    @functools.partial(
        nn.scan, variable_broadcast="params", split_rngs={"params": False}, in_axes=0
    )
    def step(self, carry, x):
        y = self.inner(carry + x)
        return y, y

    def __call__(self, x, xs):
        return self.step(x, xs)

class Twice(nn.Module):
    def setup(self):
        self.inner = Linear(4)

    def one(self, carry, x):
        return self.inner(carry) + x, x

    def two(self, carry, x):
        return self.inner(carry) * x, x

Lifted = nn.scan(
    Twice,
    methods={
        "one": dict(variable_axes={"params": 0}, split_rngs={"params": True}, length=3),
        "two": dict(variable_axes={"params": 0}, split_rngs={"params": True}, in_axes=1),
    },
)

class Both(nn.Module):
    @nn.compact
    def __call__(self, x, xs):
        x, _ = Net()(x, xs)
        lifted = Lifted()
        x, _ = lifted.one(x, xs)
        return lifted.two(x, xs.swapaxes(0, 1))

model, inputs = Both(), (jnp.ones((2, 4)), jnp.arange(24.0).reshape(3, 2, 4))
"""
    )


def test_function_of_a_module_in_a_compact_method() -> None:
    same_model(
        """
class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        outer = Linear(4, name="outer")

        def body(module, carry, _):
            y = Linear(4, name="inner")(carry)
            return outer(y), y.sum()

        scanned = nn.scan(
            body, variable_broadcast="params", split_rngs={"params": False}, length=3
        )
        return scanned(self, outer(x), None)

model, inputs = Net(), (jnp.ones((2, 4)),)
""".replace("outer(y), y.sum()", "y, y.sum()")
    )


def test_modules_among_arguments_and_fields_keep_one_path() -> None:
    found = same_model(
        """
class Block(nn.Module):
    shared: nn.Module

    @nn.compact
    def __call__(self, carry, other, x):
        y = self.shared(carry) + other(x)
        return Linear(4)(y), None

class Net(nn.Module):
    @nn.compact
    def __call__(self, x, xs):
        shared, other = Linear(4, name="shared"), Linear(4, name="other")
        x = shared(x)
        scanned = nn.scan(
            Block,
            variable_broadcast="params",
            split_rngs={"params": False},
            in_axes=(nn.broadcast, 0),
        )
        x, _ = scanned(shared)(x, other, xs)
        return other(x)

model, inputs = Net(), (jnp.ones((2, 4)), jnp.ones((3, 2, 4)))
"""
    )
    assert {path.split("/")[1] for path in paths(found["variables"])} == {
        "shared",
        "other",
        "ScanBlock_0",
    }


def test_boxes_name_the_axis_of_layers() -> None:
    found = same_model(
        """
class Block(nn.Module):
    @nn.compact
    def __call__(self, carry, _):
        init = jax.nn.initializers.lecun_normal()
        boxed = lambda *args: meta.Partitioned(init(*args), names=("in", "out"))
        return carry @ self.param("kernel", boxed, (4, 4)), None

class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        scanned = nn.scan(
            Block,
            variable_axes={"params": 1},
            split_rngs={"params": True},
            length=3,
            metadata_params={meta.PARTITION_NAME: "layers"},
        )
        return scanned()(x, None)[0]

model, inputs = Net(), (jnp.ones((2, 4)),)
"""
    )
    box = found["variables"]["params"]["ScanBlock_0"]["kernel"]
    assert box.names == ("in", "layers", "out")


def test_data_transform_sees_groups_of_each_step() -> None:
    same_model(
        BLOCK
        + """
def doubled(variables, rngs):
    shared, carried, stacked = variables
    return (shared, carried, jax.tree.map(lambda x: 2 * x, stacked)), rngs

class Net(nn.Module):
    @nn.compact
    def __call__(self, x, xs):
        scanned = nn.scan(
            Block,
            variable_axes={"params": 0},
            variable_broadcast="stats",
            split_rngs={"params": True, "noise": True},
            data_transform=doubled,
        )
        return scanned()(x, xs)

model, inputs = Net(), (jnp.ones((2, 4)), jnp.ones((5, 2, 4)))
""",
        mutable=(),
    )


def test_in_and_out_only() -> None:
    same_model(
        """
from flax.typing import In, Out

class Block(nn.Module):
    @nn.compact
    def __call__(self, carry, x):
        self.variable("seen", "x", lambda: x).value = x
        return Linear(4)(carry) + x, None

class Net(nn.Module):
    @nn.compact
    def __call__(self, x, xs):
        scanned = nn.scan(
            Block,
            variable_axes={"params": In(0), "seen": Out(1)},
            split_rngs={"params": True},
        )
        return scanned()(x, xs)[0]

class Ready(nn.Module):
    @nn.compact
    def __call__(self, x, xs):
        scanned = nn.scan(
            Block, variable_axes={"params": 0, "seen": Out(1)}, split_rngs={"params": True}
        )
        return scanned()(x, xs)[0]

model, inputs = Ready(), (jnp.ones((2, 4)), jnp.ones((3, 2, 4)))
""",
        mutable=("seen",),
    )


def test_scan_in_scan_in_remat() -> None:
    found = same_model(
        BLOCK
        + """
class Inner(nn.Module):
    @nn.compact
    def __call__(self, carry, xs):
        axes = dict(variable_axes={"params": 0, "stats": 0}, split_rngs={"params": True, "noise": True})
        return nn.scan(nn.remat(Block, prevent_cse=False), **axes)(name="blocks")(carry, xs)

class Net(nn.Module):
    @nn.compact
    def __call__(self, x, xs):
        axes = dict(variable_axes={"params": 0, "stats": 1}, split_rngs={"params": True, "noise": True})
        return nn.scan(Inner, **axes)()(x, xs)

model, inputs = Net(), (jnp.ones((2, 4)), jnp.ones((3, 5, 2, 4)))
"""
    )
    kernel = found["variables"]["params"]["ScanInner_0"]["blocks"]["Linear_0"]["kernel"]
    assert kernel.shape == (3, 5, 4, 4)


ERRORS = {
    "no length": "nn.scan(Block, variable_axes={'params': 0}, split_rngs={'params': True})()(x, None)",
    "lengths differ": (
        "nn.scan(Pair, variable_axes={'params': 0}, split_rngs={'params': True})()"
        "(x, (jnp.ones((3, 4)), jnp.ones((5, 4))))"
    ),
    "broadcast output": (
        "nn.scan(Block, variable_axes={'params': 0}, split_rngs={'params': True}, length=2,"
        " out_axes=nn.broadcast, check_constancy_invariants=False)()(x, None)"
    ),
    "shared variable depends on the loop": (
        "nn.scan(Writes, variable_broadcast='seen', length=2)()(x, None)"
    ),
    "collection that is not lifted": "nn.scan(Block, length=2, split_rngs={'params': True})()(x, None)",
    "variables appear in the carry": (
        "nn.scan(Block, variable_carry='params', split_rngs={'params': True}, length=2)()(x, None)"
    ),
    "methods is a string": "nn.scan(Block, methods='__call__', length=2)()(x, None)",
    "a module is no target": "nn.scan(Block(), length=2)",
    "a module is returned": "nn.scan(Returns, length=2)()(x, None)",
}


@pytest.mark.parametrize("call", ERRORS.values(), ids=ERRORS.keys())
def test_errors(call: str) -> None:
    same_error(
        f"""
class Block(nn.Module):
    @nn.compact
    def __call__(self, carry, _):
        return Linear(4)(carry), None

class Pair(Block):
    @nn.compact
    def __call__(self, carry, pair):
        return Linear(4)(carry) + pair[0] + pair[1], None

class Writes(nn.Module):
    @nn.compact
    def __call__(self, carry, _):
        seen = self.variable("seen", "x", lambda: carry)
        seen.value = carry
        return carry, None

class Returns(nn.Module):
    @nn.compact
    def __call__(self, carry, _):
        return carry, Linear(3)

class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return {call}

def run():
    return Net().init(jax.random.key(0), jnp.ones((2, 4)))
"""
    )


def test_keyword_arguments_are_said_to_be_ignored() -> None:
    with pytest.warns(RuntimeWarning, match="kwargs are not supported in scan"):
        same_run(
            """
class Block(nn.Module):
    @nn.compact
    def __call__(self, carry, _, train=False):
        return Linear(4)(carry), train

class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        scanned = nn.scan(
            Block, variable_axes={"params": 0}, split_rngs={"params": True}, length=2
        )
        return scanned()(x, None, train=True)

def run():
    return Net().init(jax.random.key(0), jnp.ones((2, 4)))
"""
        )
