"""The other mode of a call: found, run on both sides, compared, and said where it was not."""

import dataclasses

import flax.linen as nn
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from nnx_migrate import linen as lazy_linen
from nnx_migrate.parity import ParityCase, check
from nnx_migrate.parity.case import in_mode
from nnx_migrate.parity.evaluation.results import load, save
from nnx_migrate.parity.files.run import run_case_file
from nnx_migrate.parity.modes import Mode, Switch, booleans, fields, takes
from nnx_migrate.parity.run import judge, modes_of
from nnx_migrate.parity.sides.linen import evaluate_linen
from nnx_migrate.parity.sides.nnx import evaluate_nnx
from tests.parity.file_case import write_trees

X = np.random.default_rng(0).normal(size=(8, 6)).astype(np.float32)


def method(self, x, train, mask=None, *rest, deterministic=True, causal=False, **options):
    """A call with every kind of argument."""


@pytest.mark.parametrize(
    ("args", "kwargs", "expected"),
    [
        ((X, False), {}, {Switch("train", False, 1), Switch("deterministic", True)}),
        ((X,), {"train": True}, {Switch("train", True), Switch("deterministic", True)}),
        ((X, None), {}, {Switch("deterministic", True)}),
        ((X, jnp.array(True)), {}, {Switch("deterministic", True)}),
        (
            (X, True),
            {"deterministic": False, "training": True},
            {Switch("train", True, 1), Switch("deterministic", False), Switch("training", True)},
        ),
    ],
)
def test_booleans_of_a_call_are_those_that_are_passed_and_defaults(args, kwargs, expected):
    assert {*booleans(method, None, args, kwargs)} == {*expected, Switch("causal", False)}


@pytest.mark.parametrize("args", [(), (X, True, None, 1)])
def test_a_call_that_cannot_be_bound_has_none(args):
    assert booleans(lambda self, x: x, None, args, {}) == ()


def test_a_mode_changes_arguments_where_they_are_passed():
    mode = Mode({"train": True, "deterministic": False}, {"train": 1}, ("cache",), ("dropout",))
    assert mode.arguments((X, False), {"mask": None}) == (
        (X, True),
        {"mask": None, "deterministic": False},
    )
    case = ParityCase(inputs=(X, False), collections=("batch_stats",), rngs={"noise": 1}, seed=3)
    other = in_mode(case, mode)
    assert other.inputs[1] is True
    assert other.collections == ("batch_stats", "cache")
    assert other.rngs == {"dropout": 3, "noise": 1}


def test_a_mode_is_named_for_what_it_changes():
    assert Mode({"train": True, "deterministic": False}).name == "train=True, deterministic=False"
    assert Mode({"train": True}, collections=("cache",)).name == "train=True"
    assert Mode(collections=("cache", "stats")).name == "mutable=cache+stats"


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda self, x, train=False: x, True),
        (lambda self, x, **options: x, True),
        (lambda self, x, training=False: x, False),
    ],
)
def test_a_function_takes_what_it_has_parameters_for(function, expected):
    assert takes(function, {"train": True}) is expected


class Linen(nn.Module):
    dropout: float = 0.0

    @nn.compact
    def __call__(self, x, train=False):
        x = nn.Dense(6)(x)
        x = nn.BatchNorm(use_running_average=not train, momentum=0.9)(x)
        if self.dropout:
            x = nn.Dropout(self.dropout, deterministic=not train)(x)
        return nn.Dense(3)(x)


class Migrated(nnx.Module):
    def __init__(self, momentum=0.9, dropout=0.0, *, rngs):
        self.Dense_0 = nnx.Linear(6, 6, rngs=rngs)
        self.BatchNorm_0 = nnx.BatchNorm(6, momentum=momentum, rngs=rngs)
        self.Dropout_0 = nnx.Dropout(dropout, rngs=rngs)
        self.Dense_1 = nnx.Linear(6, 3, rngs=rngs)

    def __call__(self, x, train=False):
        x = self.BatchNorm_0(self.Dense_0(x), use_running_average=not train)
        return self.Dense_1(self.Dropout_0(x, deterministic=not train))


class Unswitched(Migrated):
    def __call__(self, x):
        return super().__call__(x)


class StopsInTraining(Migrated):
    def __call__(self, x, train=False):
        outputs = super().__call__(x, train)
        return outputs * (2 if train else 1)


def case_of(linen=None, migrated=Migrated, **changes):
    options = {name: changes.pop(name) for name in ("momentum", "dropout") if name in changes}
    return ParityCase(
        linen=linen or Linen(),
        nnx=lambda rngs: migrated(rngs=rngs, **options),
        **{"inputs": (X,), **changes},
    )


def failed(report):
    return {entry.name for entry in report.checks if entry.status == "fail"}


def lines(report, start):
    return [line for line in report.not_checked if line.startswith(start)]


EVAL = {"collections": ("batch_stats",)}


@pytest.mark.parametrize(
    "changes",
    [{}, EVAL, {"inputs": (X, False), **EVAL}, {"kwargs": {"train": False}, **EVAL}],
)
def test_another_momentum_is_different_in_a_case_that_only_evaluates(changes):
    report = check(case_of(momentum=0.5, **changes))
    assert failed(report) == {"collections", "program"}
    found = report.check("collections").details[0]
    assert found.startswith("with train=True: batch_stats/BatchNorm_0/mean: 6 of 6 elements differ")
    assert report.modes == ("train=True",)


@pytest.mark.parametrize("changes", [EVAL, {"inputs": (X, True), **EVAL}])
def test_the_same_momentum_passes_in_both_modes_without_a_remark(changes):
    report = check(case_of(**changes))
    assert (report.verdict, failed(report)) == ("equal_by_rules", set())
    assert report.check("collections").leaves == 4
    assert not lines(report, "collections")
    assert not lines(report, "modes")


def test_a_difference_of_evaluation_is_seen_in_a_case_that_trains():
    class IgnoresAverages(Migrated):
        def __call__(self, x, train=False):
            return self.Dense_1(self.BatchNorm_0(self.Dense_0(x), use_running_average=False))

    report = check(case_of(migrated=IgnoresAverages, inputs=(X, True), **EVAL))
    assert "forward" in failed(report)
    assert report.check("forward").details[0].startswith("with train=False: ")
    assert report.first_difference["path"] == "BatchNorm_0"


def test_outputs_and_gradients_of_the_other_mode_are_compared():
    report = check(case_of(migrated=StopsInTraining, **EVAL))
    assert failed(report) == {"forward", "loss", "gradients", "program"}


def test_what_collections_do_is_said_where_nothing_changes_them():
    class Fixed(nn.Module):
        @nn.compact
        def __call__(self, x):
            table = self.variable("constants", "table", jnp.ones, (1, 6))
            return nn.Dense(3)(x * table.value)

    class FixedNnx(nnx.Module):
        def __init__(self, *, rngs):
            self.Dense_0 = nnx.Linear(6, 3, rngs=rngs)
            kind = nnx.variable_type_from_name("constants", allow_register=True)
            self.table = kind(jnp.ones((1, 6)))

        def __call__(self, x):
            return self.Dense_0(x * self.table[...])

    report = check(case_of(Fixed(), FixedNnx))
    assert (report.ok, report.modes) == (True, ("mutable=constants",))
    expected = "collections: constants never changed: not with mutable=constants either"
    assert lines(report, "collections: constants") == [expected]


def test_variables_of_a_collection_that_stay_are_named():
    class Half(nn.Module):
        @nn.compact
        def __call__(self, x):
            count = self.variable("state", "count", jnp.zeros, (), jnp.int32)
            still = self.variable("state", "still", jnp.ones, ())
            if self.is_mutable_collection("state") and not self.is_initializing():
                count.value += 1
            return nn.Dense(3)(x) * still.value

    class HalfNnx(nnx.Module):
        by = 1

        def __init__(self, *, rngs):
            kind = nnx.variable_type_from_name("state", allow_register=True)
            self.Dense_0 = nnx.Linear(6, 3, rngs=rngs)
            self.count, self.still = kind(jnp.zeros((), jnp.int32)), kind(jnp.ones(()))

        def __call__(self, x):
            self.count[...] += self.by
            return self.Dense_0(x) * self.still[...]

    class Twice(HalfNnx):
        by = 2

    report = check(case_of(Half(), HalfNnx))
    assert report.ok
    assert lines(report, "collections") == [
        "collections: 1 of 2 in state never changed: state/still"
    ]
    assert failed(check(case_of(Half(), Twice))) == {"collections", "program"}


@pytest.mark.parametrize(
    ("rngs", "expected"),
    [
        ({"dropout": 0}, []),
        (
            {},
            [
                (
                    "rng: dropout has no seed in this case, so with train=True both sides drew a "
                    "key of parity's: add rngs={'dropout': 0}"
                )
            ],
        ),
        (
            {"dropout": 0, "noise": 0},
            ["rng: noise was never drawn from: not with train=True either"],
        ),
    ],
)
def test_streams_that_are_not_drawn_or_have_no_seed_are_named(rngs, expected):
    report = check(case_of(Linen(0.5), dropout=0.5, rngs=rngs, **EVAL))
    assert report.ok
    assert report.check("rng").status == "pass"
    assert lines(report, "rng") == expected


def test_dropout_that_only_linen_has_is_seen_in_training():
    report = check(case_of(Linen(0.5), rngs={"dropout": 0}, **EVAL))
    assert {"forward", "rng"} <= failed(report)


def test_a_mode_that_linen_cannot_run_is_named_with_its_reason():
    class EvalOnly(nn.Module):
        @nn.compact
        def __call__(self, x, train=False):
            return nn.Dense(5 if train else 3, name="Dense_0")(x)

    class EvalOnlyNnx(nnx.Module):
        def __init__(self, *, rngs):
            self.Dense_0 = nnx.Linear(6, 3, rngs=rngs)

        def __call__(self, x, train=False):
            return self.Dense_0(x)

    report = check(case_of(EvalOnly(), EvalOnlyNnx))
    assert (report.verdict, report.modes) == ("identical", ())
    (line,) = lines(report, "modes")
    assert line.startswith(
        "modes: only train=False (Linen itself cannot run train=True: ScopeParam"
    )


def test_a_call_that_takes_no_switch_is_named():
    report = check(case_of(migrated=Unswitched, **EVAL))
    assert (report.ok, report.modes) == (True, ())
    assert lines(report, "collections") == [
        "collections: batch_stats never changed: pass train=True"
    ]
    assert lines(report, "modes") == [
        "modes: not with train=True (the NNX call takes no argument train)"
    ]


def test_a_mode_that_only_the_nnx_side_cannot_run_fails():
    class Raises(Migrated):
        def __call__(self, x, train=False):
            if train:
                raise TypeError("not migrated")
            return super().__call__(x)

    report = check(case_of(migrated=Raises, **EVAL))
    assert "with train=True: NNX: TypeError: not migrated" in report.check("forward").details


def test_switches_that_exclude_each_other_are_run_one_by_one():
    class Two(nn.Module):
        @nn.compact
        def __call__(self, x, train=False, deterministic=True):
            if train and not deterministic:
                raise ValueError("one or the other")
            return nn.Dense(3)(x) * (2 if train else 1) * (1 if deterministic else 3)

    class TwoNnx(nnx.Module):
        factor = 3

        def __init__(self, *, rngs):
            self.Dense_0 = nnx.Linear(6, 3, rngs=rngs)

        def __call__(self, x, train=False, deterministic=True):
            return self.Dense_0(x) * (2 if train else 1) * (1 if deterministic else self.factor)

    class Other(TwoNnx):
        factor = 4

    report = check(case_of(Two(), TwoNnx))
    assert (report.verdict, report.modes) == ("identical", ("train=True", "deterministic=False"))
    report = check(case_of(Two(), Other))
    assert report.check("forward").details[0].startswith("with deterministic=False: ")


def test_arguments_and_fields_that_parity_does_not_switch_are_named():
    class Many(nn.Module):
        deterministic: bool = True

        @nn.compact
        def __call__(self, x, return_dict=True, causal=False):
            x = nn.Dropout(0.5, deterministic=self.deterministic)(x)
            return {"out": nn.Dense(3)(x)}

    class ManyNnx(nnx.Module):
        def __init__(self, *, rngs):
            self.Dense_0 = nnx.Linear(6, 3, rngs=rngs)

        def __call__(self, x, return_dict=True, causal=False):
            return {"out": self.Dense_0(x)}

    report = check(case_of(Many(), ManyNnx, rngs={"dropout": 0}))
    assert lines(report, "modes") == [
        "modes: only return_dict=True, causal=False (arguments of the call)",
        "modes: only deterministic=True (fields of the module)",
    ]
    assert lines(report, "rng") == [
        "rng: dropout: no effect on either side (is dropout off in this case?)",
        "rng: dropout was never drawn from: build the module with deterministic=False",
    ]


def test_nan_on_both_sides_in_the_other_mode_is_not_compared_and_no_difference():
    class Nan(nn.Module):
        @nn.compact
        def __call__(self, x, train=False):
            return nn.Dense(3)(x) * (jnp.nan if train else 1)

    class NanNnx(nnx.Module):
        factor = jnp.nan

        def __init__(self, *, rngs):
            self.Dense_0 = nnx.Linear(6, 3, rngs=rngs)

        def __call__(self, x, train=False):
            return self.Dense_0(x) * (self.factor if train else 1)

    class Infinite(NanNnx):
        factor = jnp.inf

    report = check(case_of(Nan(), NanNnx))
    assert report.verdict == "identical"
    assert "forward with train=True: Linen: every number is NaN" in report.not_checked
    assert {"forward", "gradients"} <= failed(check(case_of(Nan(), Infinite)))


def test_a_loss_that_only_fits_one_mode_leaves_the_outputs_compared():
    class Pair(nn.Module):
        @nn.compact
        def __call__(self, x, train=False):
            y = nn.Dense(3)(x)
            return (y, y) if train else y

    class PairNnx(nnx.Module):
        def __init__(self, *, rngs):
            self.Dense_0 = nnx.Linear(6, 3, rngs=rngs)

        def __call__(self, x, train=False):
            y = self.Dense_0(x)
            return (y, y) if train else y

    def loss(outputs, x):
        return outputs.sum()

    report = check(case_of(Pair(), PairNnx, loss=loss))
    assert report.verdict == "identical"
    assert "with train=True: 2 compared" in report.check("forward").details
    assert any(line.startswith("loss with train=True: Linen itself") for line in report.not_checked)


def test_the_runs_survive_their_files(tmp_path):
    case = case_of(momentum=0.5, **EVAL)
    linen = evaluate_linen(case)
    assert modes_of(linen) == (Mode({"train": True}),)
    save(linen, tmp_path / "linen")
    assert load(tmp_path / "linen").modes[0].mode == linen.modes[0].mode
    nnx_side = evaluate_nnx(dataclasses.replace(case, modes=modes_of(linen)))
    save(nnx_side, tmp_path / "nnx")
    report = judge(case, load(tmp_path / "linen"), load(tmp_path / "nnx"))
    assert failed(report) == failed(judge(case, linen, nnx_side)) == {"collections", "program"}


@dataclasses.dataclass(frozen=True)
class Config:
    deterministic: bool = True


def test_a_switch_in_what_a_module_holds_is_a_field_of_it():
    class Held(nn.Module):
        config: Config
        norm: nn.Module
        train: bool = False

    held = Held(Config(), nn.BatchNorm(use_running_average=False))
    assert fields(held) == {
        "train": False,
        "config.deterministic": True,
        "norm.use_running_average": False,
    }


class Plain(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(x)


class Clipped(nnx.Module):
    limit = 100.0
    scale = 1.0

    def __init__(self, *, rngs):
        self.Dense_0 = nnx.Linear(6, 3, rngs=rngs)

    def __call__(self, x):
        y = self.Dense_0(x)
        return jnp.where(y > self.limit, self.limit, y)


class NeverClips(Clipped):
    limit = 1e9


@pytest.mark.parametrize(
    ("migrated", "inputs", "verdict"),
    [
        (Clipped, X, "different"),
        (NeverClips, X, "numerically_equal"),
        (Clipped, np.full((1, 6), 2, np.int32), "numerically_equal"),
    ],
)
def test_a_condition_that_only_large_inputs_reach_is_seen(migrated, inputs, verdict):
    # A loss without a sum: XLA adds up in another order where the condition is part of the kernel.
    one = case_of(Plain(), migrated, inputs=(inputs,), loss=lambda output, *_: output[0, 0])
    report = check(one)
    assert report.verdict == verdict
    if verdict == "different":
        large, negative = sorted(report.check("forward").details, reverse=True)
        assert negative.startswith("with float inputs times -1000: output: ")
        assert large.startswith("with float inputs times 1000: output: ")


def test_what_overflows_on_both_sides_is_no_difference():
    class Exp(nn.Module):
        @nn.compact
        def __call__(self, x):
            return jnp.exp(jnp.abs(nn.Dense(3)(x)))

    class ExpNnx(Clipped):
        def __call__(self, x):
            y = jnp.exp(jnp.abs(self.Dense_0(x)))
            return jnp.where(jnp.isinf(y), jnp.nan, y)

    assert check(case_of(Exp(), ExpNnx)).verdict == "numerically_equal"


PACKAGE = """
import flax.linen as nn

class Mlp(nn.Module):
    @nn.compact
    def __call__(self, x, train=False):
        x = nn.BatchNorm(use_running_average=not train, momentum=0.9)(nn.Dense(6)(x))
        return nn.Dense(3)(nn.Dropout(0.5, deterministic=not train)(x))
"""
BY_POSITION = """
import numpy as np

def linen():
    from pkg.models import Mlp
    return Mlp()

def inputs():
    return (np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32), False)
"""
CASE_FILE = """
import numpy as np

def linen():
    from pkg.models import Mlp
    return Mlp()

def inputs():
    return (np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32),)
"""


@pytest.mark.parametrize(
    ("momentum", "verdict", "bad"),
    [("0.9", "identical", set()), ("0.5", "different", {"collections", "program"})],
)
def test_both_processes_of_a_file_case_run_the_other_mode(tmp_path, momentum, verdict, bad):
    lazy = PACKAGE.replace("flax.linen", "nnx_migrate.linen").replace("0.9", momentum)
    case = write_trees(tmp_path, before=PACKAGE, after=lazy, case=CASE_FILE)
    report = run_case_file(case, tmp_path / "before", tmp_path / "after")
    assert (report.verdict, failed(report)) == (verdict, bad)
    assert report.modes == ("train=True",)
    assert [line.split(",")[0] for line in lines(report, "rng")] == [
        "rng: dropout has no seed in this case"
    ]


def test_a_switch_of_a_file_case_may_be_passed_by_position(tmp_path):
    lazy = PACKAGE.replace("flax.linen", "nnx_migrate.linen")
    case = write_trees(tmp_path, before=PACKAGE, after=lazy, case=BY_POSITION)
    report = run_case_file(case, tmp_path / "before", tmp_path / "after")
    assert (report.verdict, report.modes) == ("identical", ("train=True",))


def test_a_lazy_module_has_a_key_for_a_stream_that_only_training_draws_from():
    class Noisy(nn.Module):
        @nn.compact
        def __call__(self, x, train=False):
            return nn.Dropout(0.5, deterministic=not train)(nn.Dense(3)(x))

    class NoisyLazy(lazy_linen.Module):
        @lazy_linen.compact
        def __call__(self, x, train=False):
            x = lazy_linen.Dense(3)(x)
            return lazy_linen.Dropout(0.5, deterministic=not train)(x)

    case = ParityCase(linen=Noisy(), nnx=lambda rngs: NoisyLazy(), inputs=(X,))
    report = check(case)
    assert (report.verdict, report.modes) == ("identical", ("train=True",))
    assert report.check("rng").status == "pass"
