"""The checks and the verdict, on made-up sides: no model runs here."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nnx_migrate.parity.case import ParityCase
from nnx_migrate.parity.checks.base import differences, one_sided_lines
from nnx_migrate.parity.checks.compare import compare
from nnx_migrate.parity.evaluation.results import Numbers, SideResult
from nnx_migrate.parity.programs.canonical import canonical
from nnx_migrate.parity.report import CHECKS
from nnx_migrate.parity.values import ShapeDtype

ONES = np.float32([1.0, 2.0])
OTHER = np.float32([1.0, 3.0])
ZEROS = np.zeros(2, np.float32)
NANS = np.float32([np.nan, np.nan])


def program(function):
    return canonical(jax.jit(function).lower(np.ones((2, 3), np.float32)).as_text())


BROADCAST = program(lambda x: jax.lax.broadcast_in_dim(x, (2, 1, 3), (0, 2)))
RESHAPED = program(lambda x: x.reshape(2, 1, 3))
DOUBLED = program(lambda x: x * 2)


def numbers(value=ONES, **changes):
    made = Numbers("*", {"": value}, {"loss": value}, {"params/a": value}, {"batch_stats/m": value})
    return dataclasses.replace(made, **changes)


UNTRAINED = dict.fromkeys(("specs", "specs_after_step", "losses_over_steps"), "not wanted")


def side(stack, **changes):
    made = SideResult(
        stack,
        f"m.{stack}",
        shapes={"params/a": ShapeDtype((2,), "float32")},
        init_values={"params/a": ONES},
        first=numbers(),
        second=numbers(OTHER),
        programs={"forward": BROADCAST, "loss_and_grad": BROADCAST},
        control_leaves=3 if stack == "linen" else 0,
        skip_reasons=UNTRAINED,
    )
    return dataclasses.replace(made, **changes)


CASE = ParityCase(rngs={"dropout": 0}, collections=("batch_stats",))


def judged(case=CASE, linen=None, **nnx):
    return compare(case, linen or side("linen"), side("nnx", **nnx))


def statuses(result):
    return {check.name: check.status for check in result.checks}


def failed(result):
    return {name for name, status in statuses(result).items() if status == "fail"}


def test_sides_that_agree_in_text_and_bits_are_identical():
    result = judged()
    assert (result.verdict, failed(result), result.rules_used) == ("identical", set(), ())


def test_every_check_is_reported_once_in_its_order():
    assert tuple(check.name for check in judged().checks) == CHECKS


def test_programs_that_agree_by_rules_name_them():
    result = judged(programs={"forward": RESHAPED, "loss_and_grad": BROADCAST})
    assert result.verdict == "equal_by_rules"
    assert result.rules_used == ("dataflow", "broadcast_as_reshape")


def test_other_programs_with_equal_numbers_are_numerically_equal_and_say_so():
    result = judged(programs={"forward": DOUBLED, "loss_and_grad": BROADCAST})
    assert result.verdict == "numerically_equal"
    assert failed(result) == set()
    assert any(line.startswith("program: not the same") for line in result.not_checked)


def test_other_programs_are_different_where_no_number_was_computed():
    without = {
        "skip_reasons": dict.fromkeys(
            (*UNTRAINED, "init_values", "forward", "loss", "gradients"), "no"
        ),
        "first": Numbers(),
        "second": Numbers(),
        "init_values": {},
    }
    linen, same = side("linen", **without), side("nnx", **without)
    assert compare(ParityCase(), linen, same).verdict == "identical"
    other = dataclasses.replace(same, programs={"forward": DOUBLED, "loss_and_grad": BROADCAST})
    result = compare(ParityCase(), linen, other)
    assert (result.verdict, failed(result)) == ("different", {"program"})


def test_other_programs_with_other_numbers_fail_the_program_check_too():
    result = judged(programs={"forward": DOUBLED, "loss_and_grad": BROADCAST}, first=numbers(OTHER))
    assert "program" in failed(result)
    assert result.verdict == "different"


def test_a_tolerance_of_the_case_makes_close_numbers_numerically_equal():
    close = np.float32([1.0, 2.0002])
    case = dataclasses.replace(CASE, tolerance=1e-3)
    result = judged(case, first=numbers(close))
    assert (result.verdict, failed(result)) == ("numerically_equal", set())
    details = next(check for check in result.checks if check.name == "forward").details
    assert "within the case's tolerance 0.001" in details[0]
    assert failed(judged(first=numbers(close))) >= {"forward", "loss", "gradients", "collections"}


@pytest.mark.parametrize(
    ("check", "changes"),
    [
        ("stacks", {"stack": "linen"}),
        ("stacks", {"problems": ("the NNX side runs the Linen module Dense",)}),
        ("stacks", {"errors": {"construct": "TypeError: no"}}),
        ("paths", {"shapes": {}}),
        ("paths", {"shapes": {"params/b": ShapeDtype((2,), "float32")}}),
        ("shapes", {"shapes": {"params/a": ShapeDtype((3,), "float32")}}),
        ("shapes", {"shapes": {"params/a": ShapeDtype((2,), "bfloat16")}}),
        ("init_values", {"init_values": {"params/a": OTHER}}),
        ("init_values", {"init_values": {"params/a": ONES.astype(jnp.bfloat16)}}),
        ("init_values", {"init_values": {}}),
        ("init_values", {"duplicates": ("params/a = params/b",)}),
        ("init_values", {"draws": 4, "repeated_draws": 1}),
        ("init_values", {"errors": {"init_values": "TypeError: no"}}),
        ("forward", {"first": numbers(outputs={"": OTHER})}),
        ("forward", {"first": numbers(outputs={})}),
        ("forward", {"first": numbers(structure="tuple(*)")}),
        ("forward", {"first": numbers(outputs={"": ONES, "1": ONES})}),
        ("forward", {"first": numbers(outputs={"": ONES.astype(np.float64)})}),
        ("forward", {"errors": {"forward": "TypeError: no"}}),
        ("loss", {"first": numbers(loss={"loss": OTHER})}),
        ("loss", {"first": numbers(loss={})}),
        ("loss", {"skip_reasons": {"loss": "the model has no floating-point output"}}),
        ("gradients", {"first": numbers(gradients={"params/a": OTHER})}),
        ("gradients", {"first": numbers(gradients={"params/b": ONES})}),
        ("gradients", {"errors": {"gradients": "TypeError: no"}}),
        ("collections", {"first": numbers(collections={"batch_stats/m": OTHER})}),
        ("collections", {"first": numbers(collections={})}),
        ("rng", {"second": numbers()}),
        ("rng", {"second": numbers(OTHER, gradients={"params/a": ONES})}),
        ("program", {"programs": {"forward": BROADCAST}}),
        ("program", {"programs": {}}),
    ],
)
def test_a_defect_of_the_nnx_side_fails_its_check(check, changes):
    result = compare(CASE, side("linen"), dataclasses.replace(side("nnx"), **changes))
    assert check in failed(result)
    assert result.verdict == "different"


@pytest.mark.parametrize("value", [ZEROS, NANS])
@pytest.mark.parametrize("name", ["outputs", "loss", "gradients", "collections"])
def test_zeros_or_nan_on_both_sides_prove_nothing(name, value):
    place = {"outputs": "", "loss": "loss", "gradients": "params/a", "collections": "batch_stats/m"}
    run = numbers(**{name: {place[name]: value}})
    result = compare(CASE, side("linen", first=run), side("nnx", first=run))
    check = "forward" if name == "outputs" else name
    assert failed(result) == {check}
    assert result.verdict == "different"


def test_initial_values_that_are_all_zero_are_named_as_not_checked():
    empty = {"params/a": ZEROS}
    result = compare(CASE, side("linen", init_values=empty), side("nnx", init_values=empty))
    assert failed(result) == set()
    assert any(
        line.startswith("init_values: all initial values are zero") for line in result.not_checked
    )


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({"params/a": ZEROS}, {"params/a": ONES}),
        ({"params/a": ONES}, {"params/a": ZEROS}),
        ({"params/a": ZEROS}, {"params/a": -ZEROS}),
        ({"params/a": ZEROS}, {"params/a": ZEROS.astype(jnp.bfloat16)}),
        ({"params/a": ZEROS}, {"params/b": ZEROS}),
        ({"params/a": ZEROS}, {}),
        ({"params/a": NANS}, {"params/a": NANS}),
        ({}, {}),
    ],
)
def test_initial_values_that_differ_or_show_nothing_fail(ours, theirs):
    result = compare(CASE, side("linen", init_values=ours), side("nnx", init_values=theirs))
    assert failed(result) == {"init_values"}


def test_draws_that_share_a_key_fail_beside_zeros():
    empty = {"params/a": ZEROS}
    other = side("nnx", init_values=empty, draws=4, repeated_draws=1)
    assert failed(compare(CASE, side("linen", init_values=empty), other)) == {"init_values"}


def test_a_model_of_zeros_fails_where_its_outputs_are_zero_too():
    empty, run = {"params/a": ZEROS}, numbers(outputs={"": ZEROS})
    result = compare(
        CASE, side("linen", init_values=empty, first=run), side("nnx", init_values=empty, first=run)
    )
    assert failed(result) == {"forward"}


def test_a_model_without_variables_proves_nothing():
    result = compare(CASE, side("linen", shapes={}), side("nnx", shapes={}))
    assert failed(result) >= {"paths", "shapes"}


def test_a_linen_model_that_differs_from_itself_fails_the_control():
    result = compare(CASE, side("linen", control=("forward: line 3",)), side("nnx"))
    assert failed(result) == {"control"}


def test_a_control_that_compared_nothing_fails():
    result = compare(CASE, side("linen", control_leaves=0), side("nnx"))
    assert failed(result) == {"control"}


def test_repeats_that_linen_has_too_are_no_defect():
    line = ("params/a: every slice along axis 0 is the same",)
    result = compare(CASE, side("linen", duplicates=line), side("nnx", duplicates=line))
    assert result.verdict == "identical"


@pytest.mark.parametrize(("ours", "theirs", "name"), [(1, 0, "Linen"), (0, 1, "NNX")])
def test_a_stack_that_repeats_on_one_side_fails_the_initial_values(ours, theirs, name):
    line = ("params/h: every slice along axis 0 is the same",)
    linen, nnx = side("linen", duplicates=line * ours), side("nnx", duplicates=line * theirs)
    found = next(one for one in compare(CASE, linen, nnx).checks if one.status == "fail")
    assert (found.name, found.details) == (
        "init_values",
        (f"under real keys only {name} repeats itself: {line[0]}",),
    )


def test_variables_of_another_name_are_told_in_turns():
    linen, nnx = ({f"params/{name}/{i}" for i in "ab"} for name in ("layers", "blocks"))
    assert one_sided_lines(linen, {*nnx, "params/more"}) == [
        "params/layers/a: only in Linen",
        "params/blocks/a: only in NNX",
        "params/layers/b: only in Linen",
        "params/blocks/b: only in NNX",
        "params/more: only in NNX",
    ]


def test_rngs_without_effect_on_either_side_are_not_checked():
    result = compare(CASE, side("linen", second=numbers()), side("nnx", second=numbers()))
    assert statuses(result)["rng"] == "not_run"
    assert any(line.startswith("rng: dropout: no effect") for line in result.not_checked)
    assert result.verdict == "identical"


def test_what_a_case_does_not_have_is_not_checked():
    result = judged(ParityCase())
    assert statuses(result)["rng"] == "not_run"
    assert statuses(result)["collections"] == "not_run"
    assert {line.split(":")[0] for line in result.not_checked} >= {"rng", "collections", "specs"}


def test_a_loss_that_neither_side_can_have_is_not_checked():
    skipped = {**UNTRAINED, "loss": "no float output", "gradients": "no float output"}
    run = numbers(loss={}, gradients={})
    result = compare(
        CASE,
        side("linen", first=run, skip_reasons=skipped),
        side("nnx", first=run, skip_reasons=skipped),
    )
    assert (statuses(result)["loss"], statuses(result)["gradients"]) == ("not_run", "not_run")
    assert result.verdict == "identical"


def test_writes_outside_the_mutable_collections_are_told():
    result = judged(ParityCase(), writes=("cache/index",))
    assert any("cache/index" in line for line in result.not_checked)


def test_one_side_compiled_and_the_other_not_is_no_comparison():
    assert "stacks" in failed(judged(eager_reason="run operation by operation"))


def test_sides_that_were_not_compiled_are_never_identical():
    linen = side("linen", programs={}, eager_reason="Linen itself cannot be traced")
    result = judged(linen=linen, programs={}, eager_reason="run operation by operation")
    assert (result.verdict, statuses(result)["program"]) == ("numerically_equal", "not_run")
    assert "program: Linen itself cannot be traced" in result.not_checked


def test_bridged_submodules_are_told():
    result = judged(bridges=("inner (Dense)",))
    assert "still Linen, behind ToNNX: inner (Dense)" in result.not_checked
    assert result.verdict == "identical"


def test_long_lists_of_differences_are_cut():
    many = {f"params/{i}": ShapeDtype((), "float32") for i in range(50)}
    result = compare(CASE, side("linen", shapes=many), side("nnx"))
    details = next(check for check in result.checks if check.name == "paths").details
    assert len(details) == 21
    assert details[-1] == "and 31 more"


def without_arrays(**changes):
    return Numbers("tuple(1, None)", plain={"0": "1"}, **changes)


def plain(stack, one, **changes):
    skipped = {**UNTRAINED, "loss": "no output", "gradients": "no output"}
    made = side(stack, first=one, second=one, skip_reasons=skipped, shapes={}, init_values={})
    return dataclasses.replace(made, **{"control_leaves": len(one.plain), **changes})


STATELESS = ParityCase(stateless=True)


def test_values_of_python_are_compared_where_a_call_returns_no_array():
    linen = plain("linen", without_arrays())
    result = compare(STATELESS, linen, plain("nnx", without_arrays()))
    assert (result.verdict, statuses(result)["forward"]) == ("identical", "pass")


@pytest.mark.parametrize(
    "other",
    [
        Numbers("tuple(2, None)", plain={"0": "2"}),
        Numbers("tuple(1)", plain={"0": "1"}),
        Numbers("dict(1, None)", plain={"a": "1"}),
        Numbers("tuple(None, None)"),
        Numbers("*", {"": ONES}),
    ],
)
def test_other_values_of_python_differ(other):
    linen = plain("linen", without_arrays())
    result = compare(STATELESS, linen, plain("nnx", other))
    assert (result.verdict, "forward" in failed(result)) == ("different", True)


def test_collections_of_a_model_that_has_no_variables_are_not_compared():
    sides = [plain(stack, without_arrays()) for stack in ("linen", "nnx")]
    case = ParityCase(stateless=True, collections=("cache",))
    assert compare(case, *sides).verdict == "identical"
    assert "collections" in failed(compare(dataclasses.replace(case, stateless=False), *sides))
    made = Numbers("tuple(1, None)", plain={"0": "1"}, collections={"cache/a": ONES})
    assert "collections" in failed(compare(case, sides[0], plain("nnx", made)))


def test_a_value_of_python_beside_arrays_is_compared():
    ours, theirs = (numbers(structure="dict(*, 1)", plain={"b": value}) for value in "12")
    assert "forward" in failed(judged(linen=side("linen", first=ours), first=theirs))


def test_names_of_values_of_python_are_compared():
    ours, theirs = (numbers(structure="dict(*, 1)", plain={name: "1"}) for name in "bc")
    assert "forward" in failed(judged(linen=side("linen", first=ours), first=theirs))


def test_a_call_that_returns_none_shows_nothing():
    nothing = Numbers("None")
    result = compare(STATELESS, plain("linen", nothing), plain("nnx", nothing))
    assert {"control", "forward"} <= failed(result)


VARIABLES = {"shapes": {"params/a": ShapeDtype((2,), "float32")}, "init_values": {"params/a": ONES}}


def test_of_a_call_that_returns_none_the_variables_are_compared():
    sides = (plain(stack, Numbers("None"), **VARIABLES) for stack in ("linen", "nnx"))
    result = compare(ParityCase(), *sides)
    assert result.verdict == "identical"
    told = statuses(result)
    assert [told[name] for name in ("control", "init_values", "forward")] == [
        "not_run",
        "pass",
        "not_run",
    ]


def test_none_and_zeros_show_nothing():
    zeros = {**VARIABLES, "init_values": {"params/a": 0 * ONES}}
    sides = (plain(stack, Numbers("None"), **zeros) for stack in ("linen", "nnx"))
    assert {"control", "forward"} <= failed(compare(ParityCase(), *sides))


def test_a_value_where_linen_returns_none_differs():
    ours = plain("linen", Numbers("None"), **VARIABLES)
    theirs = plain("nnx", Numbers("1", plain={"": "1"}), **VARIABLES)
    assert "forward" in failed(compare(ParityCase(), ours, theirs))


def test_of_what_differs_the_worst_comes_first():
    ours = {name: np.float32([100.0, 2.0]) for name in "abcdefghi"}
    ours |= {"f": ZEROS, "i": np.int32([4, 4])}
    theirs = {
        "a": np.float32([100.0, 3.0]),  # a hundredth
        "b": np.float32([100.0, 2.0]),
        "c": np.float32([150.0, 2.0]),  # a half
        "d": np.float32([100.0, np.nan]),
        "e": np.float32([101.0, 2.0]),  # a hundredth
        "f": -ZEROS,
        "g": np.float32([100.0, np.inf]),
        "h": np.float32([[100.0, 2.0]]),
        "i": np.int32([4, 3]),  # a quarter
        "z": ONES,
    }
    failures, notes = differences(ours, theirs, None)
    assert "".join(line[0] for line in failures) == "zdghciaef"
    assert notes == []
    failures, notes = differences(ours, theirs, 0.02)
    assert "".join(line[0] for line in failures) == "zdghci"
    assert len(notes) == 3
