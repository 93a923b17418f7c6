import flax.linen as nn
import jax
import numpy as np
import pytest
from flax import nnx
from flax.core.scope import Scope
from flax.nnx.rnglib import RngStream

from nnx_migrate.parity.evaluation.constant_key import constant_key, record_draws

KEY = jax.random.key(5)
X = np.ones((2, 3), np.float32)


def test_both_sides_draw_the_same_value_everywhere():
    expected = nnx.initializers.lecun_normal()(KEY, (3, 4))
    with constant_key(KEY):
        linen = nn.Dense(4).init(jax.random.key(0), X)["params"]["kernel"]
        layer = nnx.Linear(3, 4, rngs=nnx.Rngs(1))
    np.testing.assert_array_equal(linen, expected)
    np.testing.assert_array_equal(layer.kernel[...], expected)


def test_flax_is_as_it_was_afterwards_also_after_an_error():
    before = Scope.make_rng, RngStream.__call__
    with pytest.raises(RuntimeError, match="inside"), constant_key(KEY):
        raise RuntimeError("inside")
    assert (Scope.make_rng, RngStream.__call__) == before


def test_counters_advance_and_missing_streams_still_raise():
    rngs = nnx.Rngs(params=0)
    with constant_key(KEY):
        rngs.params()
        with pytest.raises(Exception, match="dropout"):
            nn.Dropout(0.5, deterministic=False).apply({}, X)
    assert int(rngs.params.count[...]) == 1


def test_draws_are_recorded_one_per_lane_of_a_lift():
    keys = []

    @nnx.split_rngs(splits=4)
    @nnx.vmap(in_axes=(0,), out_axes=0)
    def build(rngs):
        return nnx.Linear(3, 4, rngs=rngs)

    with record_draws(keys):
        build(nnx.Rngs(0))
    assert len(keys) >= 4
    assert len(set(keys)) == len(keys)


def test_a_key_handed_out_twice_is_seen():
    keys = []
    with record_draws(keys):
        nnx.Linear(3, 4, rngs=nnx.Rngs(0))
        nnx.Linear(3, 4, rngs=nnx.Rngs(0))
    assert len(set(keys)) == len(keys) // 2


@pytest.mark.parametrize(("name", "count"), [("params", 2), ("dropout", 0)])
def test_only_draws_of_initial_values_are_recorded(name, count):
    keys = []
    streams = nnx.Rngs(params=0, dropout=1)
    with record_draws(keys):
        streams[name]()
        streams[name]()
    assert len(keys) == count
