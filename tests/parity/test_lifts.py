"""Lifted transforms: stacked layers, remat, recurrent cells, dropout inside them."""

import flax.linen as nn
import jax
import numpy as np
import pytest
from flax import nnx

from nnx_migrate.parity import ParityCase, check

X = np.random.default_rng(0).normal(size=(2, 5, 4)).astype(np.float32)


class LinenBlock(nn.Module):
    @nn.compact
    def __call__(self, x, _):
        h = nn.Dropout(0.3, deterministic=False, name="drop")(nn.Dense(4, name="wi")(x))
        return x + jax.nn.relu(h), None


class LinenStack(nn.Module):
    remat: bool = False

    @nn.compact
    def __call__(self, x):
        block = nn.remat(LinenBlock, prevent_cse=False) if self.remat else LinenBlock
        stack = nn.scan(
            block,
            variable_axes={"params": 0},
            split_rngs={"params": True, "dropout": True},
            length=3,
        )
        return stack(name="layers")(x, None)[0]


class Block(nnx.Module):
    def __init__(self, *, rngs):
        self.wi = nnx.Linear(4, 4, rngs=rngs)
        self.drop = nnx.Dropout(0.3, deterministic=False, rngs=rngs)

    def __call__(self, x):
        return x + jax.nn.relu(self.drop(self.wi(x)))


class Stack(nnx.Module):
    def __init__(self, remat=False, split=True, slope=1.0, *, rngs):
        self.remat = remat
        self.slope = slope

        def build(rngs):
            return Block(rngs=rngs)

        if split:
            many = nnx.vmap(build, in_axes=(0,), out_axes=0)
            self.layers = nnx.split_rngs(splits=3)(many)(rngs)
        else:
            self.layers = nnx.vmap(build, in_axes=(None,), out_axes=0, axis_size=3)(rngs)

    def __call__(self, x):
        def body(block, x):
            return block(x) if self.slope == 1 else block(x) * self.slope

        step = nnx.remat(body, prevent_cse=False) if self.remat else body
        return nnx.scan(step, in_axes=(0, nnx.Carry), out_axes=nnx.Carry)(self.layers, x)


def case(linen, **arguments):
    return ParityCase(
        linen=linen,
        nnx=lambda rngs: Stack(**arguments, rngs=rngs),
        inputs=(X,),
        rngs={"dropout": 0},
    )


@pytest.mark.slow
@pytest.mark.parametrize("remat", [False, True])
def test_a_scanned_stack_with_dropout_is_the_same_program(remat):
    report = check(case(LinenStack(remat=remat), remat=remat))
    assert report.verdict == "identical"
    assert report.check("rng").status == "pass"
    assert report.check("collections").details == ("the case has no mutable collections",)


@pytest.mark.slow
def test_layers_of_a_stack_that_share_a_key_fail_the_initial_values():
    report = check(case(LinenStack(), split=False))
    failed = [entry.name for entry in report.checks if entry.status == "fail"]
    assert failed == ["init_values", "rng"]  # dropout shares one, too
    assert "every slice along axis 0 is the same" in report.check("init_values").details[0]


@pytest.mark.slow
def test_a_difference_inside_a_scan_is_located_around_it():
    report = check(case(LinenStack(), slope=1.5))
    assert report.verdict == "different"
    # The first call of the block agrees: only what it is fed in the second step differs.
    assert report.first_difference["path"].startswith("layers")


class LinenRecurrent(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.RNN(nn.LSTMCell(3))(x)


class Recurrent(nnx.Module):
    def __init__(self, *, rngs):
        self.LSTMCell_0 = nnx.LSTMCell(4, 3, rngs=rngs)
        self.RNN_0 = nnx.RNN(self.LSTMCell_0)

    def __call__(self, x):
        return self.RNN_0(x)


@pytest.mark.slow
def test_a_recurrent_cell_is_equal_by_rules():
    report = check(
        ParityCase(
            linen=LinenRecurrent(),
            nnx=lambda rngs: Recurrent(rngs=rngs),
            inputs=(X,),
            path_map={"LSTMCell_0/if": "LSTMCell_0/if_"},
        )
    )
    assert report.verdict in ("identical", "equal_by_rules")
    assert report.check("paths").leaves == 12
