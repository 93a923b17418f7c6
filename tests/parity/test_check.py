"""Real pairs: a faithful migration passes, each defect fails the check it belongs to."""

import dataclasses
import json

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from nnx_migrate import nn as nnm
from nnx_migrate.parity import BadCase, ParityCase, ParityFailure, check
from nnx_migrate.parity.run import judge
from nnx_migrate.parity.sides.linen import evaluate_linen
from nnx_migrate.parity.sides.nnx import evaluate_nnx

X = np.random.default_rng(0).normal(size=(8, 6)).astype(np.float32)


class LinenNet(nn.Module):
    @nn.compact
    def __call__(self, x, train=False):
        gate = nn.sigmoid(nn.Dense(6, name="gate")(x))
        x = nn.Dense(6, name="value")(x) * gate
        x = nn.BatchNorm(use_running_average=not train)(x)
        x = nn.Dropout(0.5, deterministic=not train)(x)
        return {"out": nn.Dense(3)(x), "mean": x.mean(-1)}


class Net(nnx.Module):
    epsilon = 1e-5
    dtype = None
    dropout = True
    bias = True
    init = staticmethod(nnx.initializers.lecun_normal())
    swapped = False

    def __init__(self, *, rngs):
        self.gate = nnx.Linear(6, 6, rngs=rngs)
        self.value = nnx.Linear(6, 6, kernel_init=self.init, dtype=self.dtype, rngs=rngs)
        self.BatchNorm_0 = nnx.BatchNorm(6, epsilon=self.epsilon, rngs=rngs)
        self.Dropout_0 = nnx.Dropout(0.5, rngs=rngs)
        self.Dense_0 = nnx.Linear(6, 3, use_bias=self.bias, rngs=rngs)

    def __call__(self, x, train=False):
        gate, value = (self.value, self.gate) if self.swapped else (self.gate, self.value)
        x = value(x) * nnx.sigmoid(gate(x))
        x = self.BatchNorm_0(x, use_running_average=not train)
        if self.dropout:
            x = self.Dropout_0(x, deterministic=not train)
        return {"out": self.Dense_0(x), "mean": x.mean(-1)}


CASE = ParityCase(
    linen=LinenNet(),
    nnx=lambda rngs: Net(rngs=rngs),
    inputs=(X,),
    kwargs={"train": True},
    rngs={"dropout": 0},
    collections=("batch_stats",),
)


@pytest.fixture(scope="module")
def linen():
    return evaluate_linen(CASE)


def verdict_on(linen, cls):
    return judge(
        CASE, linen, evaluate_nnx(dataclasses.replace(CASE, nnx=lambda rngs: cls(rngs=rngs)))
    )


def failed(report):
    return {entry.name for entry in report.checks if entry.status == "fail"}


def test_a_faithful_migration_passes_every_check_it_has(linen):
    report = verdict_on(linen, Net)
    assert failed(report) == set()
    assert report.verdict == "equal_by_rules"
    assert report.ok
    passed = {entry.name for entry in report.checks if entry.status == "pass"}
    assert passed == {
        "stacks", "control", "paths", "shapes", "init_values", "forward", "loss", "gradients",
        "rng", "collections", "program",
    }  # fmt: skip
    assert "broadcast_as_reshape" in report.rules_used
    report.raise_if_different()


class Swapped(Net):
    swapped = True


class OtherEpsilon(Net):
    epsilon = 1e-3


class WithoutDropout(Net):
    dropout = False


class WithoutBias(Net):
    bias = False


class OtherInitialiser(Net):
    init = staticmethod(nnx.initializers.variance_scaling(2.0, "fan_in", "truncated_normal"))


class HalfPrecision(Net):
    dtype = jnp.bfloat16


class Renamed(Net):
    def __init__(self, *, rngs):
        super().__init__(rngs=rngs)
        self.Dense_1 = self.Dense_0
        del self.Dense_0

    def __call__(self, x, train=False):
        self.Dense_0 = self.Dense_1
        try:
            return super().__call__(x, train)
        finally:
            del self.Dense_0


class WithoutOutput(Net):
    def __call__(self, x, train=False):
        return {**super().__call__(x, train), "mean": None}


class TupleOutput(Net):
    def __call__(self, x, train=False):
        return tuple(super().__call__(x, train).values())


class Zeros(Net):
    def __call__(self, x, train=False):
        return jax.tree.map(jnp.zeros_like, super().__call__(x, train))


class NotANumber(Net):
    def __call__(self, x, train=False):
        return jax.tree.map(lambda value: value * jnp.nan, super().__call__(x, train))


class KeepsStatistics(Net):
    def __call__(self, x, train=False):
        mean = self.BatchNorm_0.mean[...]
        outputs = super().__call__(x, train)
        self.BatchNorm_0.mean[...] = mean
        return outputs


class StopsGradient(Net):
    def __call__(self, x, train=False):
        return jax.lax.stop_gradient(super().__call__(x, train))


class SharedKey(Net):
    def __init__(self, *, rngs):
        super().__init__(rngs=rngs)
        key = rngs.params()
        self.gate.kernel[...] = nnx.initializers.lecun_normal()(key, (6, 6))
        self.value.kernel[...] = nnx.initializers.lecun_normal()(key, (6, 6))


class CannotBeBuilt(Net):
    def __init__(self, *, rngs):
        raise TypeError("missing argument in_features")


class CannotBeCalled(Net):
    def __call__(self, x):
        return super().__call__(x)


class Extra(Net):
    def __init__(self, *, rngs):
        super().__init__(rngs=rngs)
        self.scale = nnx.Param(jnp.ones(3))


class RunsLinen(Net):
    def __call__(self, x, train=False):
        outputs = super().__call__(x, train)
        nn.Dropout(0.0, deterministic=True).apply({}, x)
        return outputs


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mutant", "checks", "exactly"),
    [
        (Swapped, {"forward", "loss", "gradients", "program"}, False),
        (OtherEpsilon, {"forward", "loss", "gradients", "program"}, False),
        (WithoutDropout, {"rng", "forward", "program"}, False),
        (WithoutBias, {"paths", "init_values", "gradients"}, False),
        (OtherInitialiser, {"init_values"}, True),
        (HalfPrecision, {"forward", "gradients", "program"}, False),
        (Renamed, {"paths"}, False),
        (WithoutOutput, {"forward"}, False),
        (TupleOutput, {"forward"}, False),
        (Zeros, {"forward", "gradients"}, False),
        (NotANumber, {"forward", "loss", "gradients"}, False),
        (KeepsStatistics, {"collections"}, False),
        (StopsGradient, {"gradients"}, False),
        (SharedKey, {"init_values"}, True),
        (CannotBeBuilt, {"stacks", "paths", "init_values", "forward", "program"}, False),
        (CannotBeCalled, {"forward", "loss", "gradients", "program"}, False),
        (Extra, {"paths"}, False),
        (RunsLinen, {"stacks"}, True),
    ],
)
def test_a_defect_fails_its_checks(linen, mutant, checks, exactly):
    report = verdict_on(linen, mutant)
    assert failed(report) >= checks
    assert not exactly or failed(report) == checks
    assert report.verdict == "different"
    assert not report.ok


class Small(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(2)(x)


class SmallNnx(nnx.Module):
    def __init__(self, name="Dense_0", *, rngs):
        setattr(self, name, nnx.Linear(6, 2, rngs=rngs))
        self.child = name

    def __call__(self, x):
        return getattr(self, self.child)(x)


SMALL = ParityCase(linen=Small(), nnx=lambda rngs: SmallNnx(rngs=rngs), inputs=(X,))


def test_a_plain_layer_is_identical_and_its_report_is_json():
    report = check(SMALL)
    data = json.loads(report.to_json())
    assert (data["schema"], data["verdict"], data["ok"]) == (1, "identical", True)
    assert data["model"].endswith(".Small")
    assert data["first_difference"] is None
    assert data["mesh"] is None
    assert set(data["versions"]) >= {"jax", "flax", "python"}
    assert data["seconds"] > 0
    assert data["peak_rss_bytes"] > 10_000_000
    assert data["rules_used"] == []
    assert {"rng", "collections"} <= {line.split(":")[0] for line in data["not_checked"]}


def test_a_path_map_names_what_moved():
    moved = dataclasses.replace(SMALL, nnx=lambda rngs: SmallNnx("dense", rngs=rngs))
    assert check(dataclasses.replace(moved, path_map={"Dense_0": "dense"})).verdict == "identical"
    assert "paths" in failed(check(moved))


def test_a_bridge_is_listed_and_a_whole_bridge_fails():
    class Bridged(nnx.Module):
        def __init__(self, *, rngs):
            self.Dense_0 = nnx.bridge.ToNNX(nn.Dense(2), rngs=rngs)

        def __call__(self, x):
            return self.Dense_0(x)

    report = check(dataclasses.replace(SMALL, nnx=lambda rngs: Bridged(rngs=rngs)))
    assert report.verdict == "identical"
    assert "still Linen, behind ToNNX: Dense_0 (Dense)" in report.not_checked
    whole = dataclasses.replace(SMALL, nnx=lambda rngs: nnx.bridge.ToNNX(Small(), rngs=rngs))
    assert failed(check(whole)) == {"stacks"}


def test_a_layer_that_a_bridged_module_applies_is_its_own() -> None:
    class Tied(nn.Module):
        """Applies a layer to parameters of its own, as transformers' wav2vec2 does."""

        def setup(self) -> None:
            self.layer = nn.Dense(2)
            self.weight = self.param("weight", nn.initializers.normal(), (2, 4))

        def __call__(self, x: jax.Array) -> jax.Array:
            params = {"kernel": self.weight.T, "bias": jnp.zeros(2)}
            return self.layer.apply({"params": params}, x)

    class Linen(nn.Module):
        @nn.compact
        def __call__(self, x: jax.Array) -> jax.Array:
            return Tied()(nn.Dense(4)(x))

    class Migrated(nnx.Module):
        def __init__(self, *, rngs: nnx.Rngs) -> None:
            self.Dense_0 = nnx.Linear(6, 4, rngs=rngs)
            self.Tied_0 = nnx.bridge.ToNNX(Tied(), rngs=rngs)

        def __call__(self, x: jax.Array) -> jax.Array:
            return self.Tied_0(self.Dense_0(x))

    case = ParityCase(linen=Linen(), nnx=lambda rngs: Migrated(rngs=rngs), inputs=(X,))
    report = check(case)
    assert report.verdict == "identical", report.to_json()
    assert any("behind ToNNX: Tied_0" in one for one in report.not_checked)


def test_the_same_stack_twice_fails():
    report = check(dataclasses.replace(SMALL, nnx=lambda rngs: Small()))
    assert "stacks" in failed(report)
    with pytest.raises(ParityFailure, match=r"stacks: .*Small is not a flax\.nnx\.Module"):
        report.raise_if_different()


@pytest.mark.slow
def test_the_first_submodule_that_differs_is_named():
    report = check(dataclasses.replace(CASE, nnx=lambda rngs: OtherEpsilon(rngs=rngs)))
    assert report.first_difference["path"] == "BatchNorm_0"
    assert report.first_difference["linen"].startswith("float32[8,6] ")
    assert report.first_difference["linen"] != report.first_difference["nnx"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"linen": None}, r"linen: expected a flax\.linen\.Module, found None"),
        ({"nnx": None}, "nnx: expected a callable rngs -> module or a migrated class"),
        ({"nnx": SmallNnx(rngs=nnx.Rngs(0))}, "expected a callable rngs -> module"),
        ({"inputs": ()}, "Small: the Linen module cannot be initialised: TypeError"),
        ({"mesh": {"data": 1000}}, "mesh data:1000 needs 1000 devices"),
    ],
)
def test_a_case_that_cannot_run_is_refused(changes, message):
    with pytest.raises(BadCase, match=message):
        check(dataclasses.replace(SMALL, **changes))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"inputs": X}, r"inputs: expected a tuple .* found ndarray: write inputs=\(x,\)"),
        ({"collections": "cache"}, r"write collections=\('cache',\)"),
        ({"shard_mode": "manual"}, "expected 'auto' or 'explicit', found 'manual'"),
        ({"tolerance": -1.0}, "tolerance: expected 0 <= t < 1"),
    ],
)
def test_a_malformed_case_is_refused_at_once(arguments, message):
    with pytest.raises(BadCase, match=message):
        ParityCase(**arguments)


class LinenScale(nn.Module):
    by: float = 2.0

    def __call__(self, x):
        return x * self.by


class Scale(nnx.Module):
    def __init__(self, by=2.0, *, named=False, rngs):
        self.by = by
        if named:
            self.count = nnm.variable("state", jnp.zeros(()))

    def __call__(self, x):
        return x * self.by


@pytest.mark.parametrize(
    ("stateless", "inputs", "after", "bad"),
    [
        (True, (X,), {}, set()),
        (False, (X,), {}, {"paths", "shapes", "init_values"}),
        (True, (X,), {"by": 3.0}, {"forward", "gradients", "program"}),
        (True, (X,), {"named": True}, {"paths", "shapes", "init_values"}),
        (True, (0 * X,), {}, {"forward"}),
    ],
)
def test_a_model_that_is_known_to_have_no_variables_shows_what_it_computes(
    stateless, inputs, after, bad
):
    case = ParityCase(
        linen=LinenScale(),
        nnx=lambda rngs: Scale(**after, rngs=rngs),
        inputs=inputs,
        stateless=stateless,
    )
    report = check(case)
    assert failed(report) == bad
    assert report.ok is not bool(bad)
    if not stateless:
        assert report.check("paths").details[0].endswith("(CASE = dict(stateless=True))")
    if not bad:
        assert report.verdict == "identical"
        assert any("no variables, as the case says" in one for one in report.not_checked)


class LinenNormed(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        y = nn.Dense(3)(x)
        mean = self.variable("batch_stats", "mean", jnp.zeros, (1, 3))
        if train:
            mean.value = y.mean(0, keepdims=True)
        return y - mean.value


class Normed(nnx.Module):
    def __init__(self, started, *, rngs):
        self.Dense_0 = nnx.Linear(6, 3, rngs=rngs)
        self.mean = nnx.BatchStat(
            self.Dense_0(X).mean(0, keepdims=True) if started else jnp.zeros((1, 3))
        )

    def __call__(self, x, train):
        y = self.Dense_0(x)
        if train:
            self.mean[...] = y.mean(0, keepdims=True)
        return y - self.mean[...]


@pytest.mark.parametrize(
    ("train", "started", "verdict"),
    [
        (False, False, "identical"),
        (True, True, "identical"),
        (True, False, "different"),
        (False, True, "different"),
    ],
)
def test_a_model_may_be_initialised_with_another_call(train, started, verdict):
    case = ParityCase(
        linen=LinenNormed(),
        nnx=lambda rngs: Normed(started, rngs=rngs),
        inputs=(X,),
        kwargs={"train": True},
        initial=((X,), {"train": train}),
        collections=("batch_stats",),
    )
    assert check(case).verdict == verdict


def test_a_loss_that_linen_itself_cannot_compute_is_no_case():
    def loss(outputs, x):
        return outputs["no such output"]

    case = ParityCase(linen=LinenNet(), inputs=(X,), loss=loss)
    with pytest.raises(BadCase, match="the case's loss cannot be computed on the Linen side: KeyE"):
        evaluate_linen(case)


def test_steps_that_linen_itself_cannot_take_fail():
    report = check(
        ParityCase(
            linen=LinenNet(),
            nnx=lambda rngs: Net(rngs=rngs),
            inputs=(X,),
            steps=2,
            optimizer="none at all",
        )
    )
    assert (report.ok, report.check("losses_over_steps").status) == (False, "fail")
    assert "asked for, and Linen itself cannot" in report.check("losses_over_steps").details[0]
