"""A submodule in several places: its parameters keep the path where it was built."""

import dataclasses

import flax.linen as nn
import numpy as np
import pytest
from flax import nnx

from nnx_migrate.nn.variables.sharing import shared_paths
from nnx_migrate.parity import ParityCase, check

TOKENS = np.arange(6, dtype=np.int32).reshape(2, 3)


class LinenDecoder(nn.Module):
    table: nn.Embed

    @nn.compact
    def __call__(self, tokens):
        return nn.Dense(3)(self.table(tokens))


class LinenTied(nn.Module):
    def setup(self):
        self.shared = nn.Embed(7, 4)
        self.decoder = LinenDecoder(self.shared)

    def __call__(self, tokens):
        return self.decoder(tokens).sum(-1) + self.shared(tokens).sum(-1)


class Decoder(nnx.Module):
    def __init__(self, table, rngs):
        self.table = table
        self.Dense_0 = nnx.Linear(4, 3, rngs=rngs)

    def __call__(self, tokens):
        return self.Dense_0(self.table(tokens))


class Tied(nnx.Module):
    def __init__(self, *, tied=True, rngs):
        self.shared = nnx.Embed(7, 4, rngs=rngs)
        self.decoder = Decoder(self.shared if tied else nnx.Embed(7, 4, rngs=rngs), rngs)

    def __call__(self, tokens):
        return self.decoder(tokens).sum(-1) + self.shared(tokens).sum(-1)


CASE = ParityCase(
    linen=LinenTied(),
    nnx=lambda rngs: Tied(rngs=rngs),
    inputs=(TOKENS,),
)


def test_a_shared_submodule_keeps_the_path_where_it_was_built():
    report = check(CASE)
    paths = next(one for one in report.checks if one.name == "paths")
    assert report.ok, report.to_json()
    assert paths.details == (
        "shared, so nnx.state lists them elsewhere: shared (as decoder/table)",
    )


def test_a_submodule_that_should_be_shared_and_is_not_fails():
    untied = dataclasses.replace(CASE, nnx=lambda rngs: Tied(tied=False, rngs=rngs))
    report = check(untied)
    paths = next(one for one in report.checks if one.name == "paths")
    assert not report.ok
    assert "params/decoder/table/embedding: only in NNX" in paths.details


def test_two_places_at_the_same_depth_stay_as_nnx_lists_them():
    class Pair(nnx.Module):
        def __init__(self, rngs):
            self.b = self.a = nnx.Linear(2, 2, rngs=rngs)

    assert shared_paths(Pair(nnx.Rngs(0))) == {}


@pytest.mark.parametrize("holder", [list, tuple, dict])
def test_containers_are_searched(holder):
    class Holder(nnx.Module):
        def __init__(self, rngs):
            self.last = nnx.Linear(2, 2, rngs=rngs)
            many = {"x": self.last} if holder is dict else holder([self.last])
            self.many = nnx.data(many)
            self.inner = Inner(self.last)

    class Inner(nnx.Module):
        def __init__(self, layer):
            self.layer = layer

    assert shared_paths(Holder(nnx.Rngs(0))) == {"last": "inner/layer"}


def test_a_module_that_shares_nothing_has_no_other_paths():
    assert shared_paths(nnx.Linear(2, 2, rngs=nnx.Rngs(0))) == {}
