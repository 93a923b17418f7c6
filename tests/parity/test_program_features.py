"""What numbers do not show of a program: collected with its place, and compared by itself."""

import dataclasses
import functools
import re

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax.experimental import io_callback
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from nnx_migrate.parity.case import ParityCase
from nnx_migrate.parity.checks.compare import compare
from nnx_migrate.parity.evaluation.program_features import ProgramFeature, features_of
from nnx_migrate.parity.programs import graphs
from nnx_migrate.parity.programs.canonical import canonical
from nnx_migrate.parity.programs.equivalences import WITHOUT_MARKS
from nnx_migrate.parity.unit_axis_notes import note_unit_axes
from nnx_migrate.sharding import constrain
from tests.parity.test_compare import CASE, failed, side

X = np.ones((2, 4), np.float32)
MESH = Mesh(np.array(jax.devices()[:1]), ("data",))
POLICIES = jax.checkpoint_policies


def constrained(x):
    return jax.lax.with_sharding_constraint(x, NamedSharding(MESH, PartitionSpec("data")))


def remat(x, policy=None, **options):
    return jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)), policy=policy, **options)(x)


def collected(function):
    return features_of(jax.jit(function).trace(X).jaxpr.jaxpr)


def traced(stack, function):
    found = jax.jit(function).trace(X)
    return dataclasses.replace(
        side(stack),
        programs={"forward": canonical(found.lower().as_text())},
        features={"forward": features_of(found.jaxpr.jaxpr)},
    )


def judged(linen, nnx):
    return compare(CASE, traced("linen", linen), traced("nnx", nnx))


def details(result):
    return next(check for check in result.checks if check.name == "program").details


@pytest.mark.parametrize(
    ("function", "kind", "what"),
    [
        (constrained, "constraint", "P() on float32[2,4]"),
        (lambda x: jax.jit(constrained)(x), "constraint", "P() on float32[2,4]"),
        (remat, "remat", "with policy none, prevent_cse=True"),
        (jax.lax.optimization_barrier, "barrier", "over float32[2,4]"),
        (lambda x: jax.jit(lambda x: x + 1, donate_argnums=0)(x), "donation", "of 1 arguments"),
        (lambda x: jax.vmap(lambda x: jax.lax.scan(
            lambda c, _: (jax.lax.optimization_barrier(c), None), x, length=2)[0])(x),
         "barrier", "over float32[2,4]"),
    ],
)  # fmt: skip
def test_an_operation_that_numbers_do_not_show_is_collected(function, kind, what):
    assert [(one.kind, one.what) for one in collected(function)] == [(kind, what)]


def log(x):
    return x


def product(x, **options):
    return jax.lax.dot_general(x, x, (((1,), (1,)), ((), ())), **options)


@pytest.mark.parametrize(
    ("function", "found"),
    [
        (lambda x: product(x, precision="highest"), ("precision", "HIGHEST of dot_general")),
        (lambda x: product(x, precision="BF16_BF16_F32"),
         ("precision", "BF16_BF16_F32 of dot_general")),
        (lambda x: product(x, precision=("high", "default")),
         ("precision", "HIGH and DEFAULT of dot_general")),
        (lambda x: jax.lax.conv(x[None], x[None, :, :1], (1,), "SAME", precision="high"),
         ("precision", "HIGH of conv_general_dilated")),
        (lambda x: product(x.astype(jnp.bfloat16), preferred_element_type=jnp.float32),
         ("preferred_element_type", "float32 of dot_general of bfloat16")),
        (lambda x: jax.debug.callback(log, x), ("callback", "debug_callback of float32[2,4]")),
        (lambda x: jax.pure_callback(log, x, x), ("callback", "pure_callback of float32[2,4]")),
        (lambda x: io_callback(log, None, x), ("callback", "io_callback of float32[2,4]")),
    ],
)  # fmt: skip
def test_precisions_and_callbacks_are_collected(function, found):
    assert [(one.kind, one.what) for one in collected(function)] == [found]


@pytest.mark.parametrize("precision", [None, "default"])
def test_what_a_product_does_by_default_is_not_collected(precision):
    assert collected(lambda x: product(x, precision=precision)) == ()
    assert collected(lambda x: jnp.dot(x, x.T, precision=precision)) == ()


def test_a_lost_precision_fails_the_program_of_gradients():
    def gradient(**options):
        return jax.grad(lambda x: jnp.sum(product(jnp.sin(x), **options)))

    result = judged(gradient(precision="highest"), gradient())
    assert (result.verdict, failed(result)) == ("different", {"program"})
    assert re.match(
        "precision HIGHEST of dot_general lost: .*test_program_features.py:", details(result)[0]
    )


def test_a_lost_callback_fails_and_is_named():
    def linen(x):
        with jax.named_scope("mlp"):
            jax.debug.callback(log, x)
        return x + 1

    result = judged(linen, lambda x: x + 1)
    assert (result.verdict, failed(result)) == ("different", {"program"})
    start = "callback debug_callback of float32[2,4] lost: mlp (test_program_features.py:"
    assert details(result)[0].startswith(start)


def test_a_precision_of_another_product_fails():
    def model(first, second):
        return lambda x: product(product(x, precision=first), precision=second)

    result = judged(model("highest", None), model(None, "highest"))
    assert failed(result) == {"program"}
    assert details(result)[0].startswith("forward: precisions are those of other products")


# JAX 0.10 has functions for policies and JAX 0.12 classes: dots_saveable, DotsSaveable(...).
@pytest.mark.parametrize(
    ("function", "policy"),
    [
        (lambda x: remat(x, POLICIES.dots_saveable, prevent_cse=False),
         r"(dots_saveable|DotsSaveable\(.*\)), prevent_cse=False"),
        (lambda x: remat(x, POLICIES.save_only_these_names("b", "a")),
         r"(save_only_these_names|SaveOnlyTheseNames).*\{'a', 'b'\}.*, prevent_cse=True"),
    ],
)  # fmt: skip
def test_a_policy_is_named_with_what_it_keeps(function, policy):
    ((kind, what),) = [(one.kind, one.what) for one in collected(function)]
    assert kind == "remat"
    assert re.fullmatch(f"with policy {policy}", what)


@pytest.mark.parametrize(
    ("kind", "kinds"), [(AxisType.Auto, set()), (AxisType.Explicit, {"reshard"})]
)
def test_dropout_of_nnx_reshards_its_masks_on_a_mesh_of_explicit_axes_alone(kind, kinds):
    drop = functools.partial(nnx.Dropout(0.5, deterministic=False), rngs=jax.random.key(0))
    with jax.set_mesh(jax.make_mesh((1,), ("data",), axis_types=(kind,))):
        found = features_of(jax.jit(drop).trace(jnp.asarray(X)).jaxpr.jaxpr)
    assert {one.kind for one in found} == kinds


def test_arithmetic_is_not_collected():
    assert collected(lambda x: jnp.sin(x) @ x.T) == ()


def test_the_place_is_the_module_and_the_lines_of_the_model():
    def model(x):
        with jax.named_scope("block"), jax.named_scope("mlp"):
            return jnp.sum(constrained(x))

    first, *_ = features_of(jax.jit(jax.grad(model)).trace(X).jaxpr.jaxpr)
    assert first.module == "block/mlp"
    assert [text for _, text in first.lines] == [
        'return jax.lax.with_sharding_constraint(x, NamedSharding(MESH, PartitionSpec("data")))',
        "return jnp.sum(constrained(x))",
    ]
    assert "in constrained from test_program_features.py:" in first.place


def test_a_lost_constraint_fails_although_all_numbers_are_equal_and_is_named():
    def linen(x):
        with jax.named_scope("mlp"):
            y = constrained(x)
        return constrained(y * 2)

    def nnx(x):
        y = x
        return constrained(y * 2)

    result = judged(linen, nnx)
    assert (result.verdict, failed(result)) == ("different", {"program"})
    line = details(result)[0]
    assert line.startswith("constraint P() on float32[2,4] lost: mlp (test_program_features.py:")
    assert "one of" not in line


@pytest.mark.parametrize(
    ("linen", "nnx", "line"),
    [
        (lambda x: x + 1, lambda x: constrained(x) + 1,
         "constraint P() on float32[2,4] only in NNX: "),
        (lambda x: x + 1, lambda x: jax.lax.optimization_barrier(x) + 1,
         "barrier over float32[2,4] only in NNX: "),
        (lambda x: constrained(jnp.sin(x)), lambda x: jnp.sin(constrained(x)),
         "forward: constraints or barriers are on other values, or in another order"),
    ],
)  # fmt: skip
def test_other_operations_that_numbers_do_not_show_fail(linen, nnx, line):
    result = judged(linen, nnx)
    assert (result.verdict, failed(result)) == ("different", {"program"})
    assert details(result)[0].startswith(line)


def test_a_constraint_on_another_value_is_placed_by_the_text_of_its_line():
    def linen(x):
        with jax.named_scope("mlp"):
            return constrained(jnp.sin(x)) + 1

    def nnx(x):
        with jax.named_scope("mlp"):
            return jnp.sin(constrained(x)) + 1

    line = details(judged(linen, nnx))[0]
    assert "are on other values, or in another order: mlp (test_program_features.py:" in line


def test_a_lost_remat_fails_the_program_of_gradients():
    def gradient(function):
        return jax.grad(lambda x: jnp.sum(function(x)))

    result = judged(gradient(remat), gradient(lambda x: jnp.sin(jnp.sin(x))))
    assert failed(result) == {"program"}
    assert details(result)[0].startswith("remat with policy none, prevent_cse=True lost: ")


def test_other_arithmetic_with_equal_numbers_is_told():
    result = judged(lambda x: x, lambda x: jnp.where(x > 100, 0, x))
    assert (result.verdict, failed(result)) == ("numerically_equal", set())
    assert any(
        line.startswith("program: not the same, so the numbers") for line in result.not_checked
    )


def test_what_both_sides_mark_alike_is_no_difference():
    def marked(x):
        return remat(constrained(x))

    assert judged(marked, marked).verdict == "identical"


def test_marks_left_out_leave_the_arithmetic():
    def text(function):
        return jax.jit(function).lower(X).as_text()

    before, after = text(lambda x: constrained(x) * 2), text(lambda x: constrained(x * 2))
    assert graphs.same_but(before, after, WITHOUT_MARKS)
    assert not graphs.same_but(before, text(lambda x: constrained(x * 3)), WITHOUT_MARKS)


def test_a_place_that_may_be_one_of_several_is_not_claimed():
    one = ProgramFeature("constraint", "P(data)", "", (("a.py:1 in f", "y = g(x)"),))
    other = dataclasses.replace(one, module="b")
    linen = dataclasses.replace(traced("linen", jnp.sin), features={"forward": (one, other)})
    nnx = dataclasses.replace(traced("nnx", jnp.cos), features={"forward": (one,)})
    line = details(compare(ParityCase(), linen, nnx))[0]
    assert line == "constraint P(data) lost: one of (a.py:1 in f); b (a.py:1 in f)"


def test_the_names_of_a_policy_are_in_one_order_in_every_process():
    names = [f"name_{number}" for number in range(8)]
    (found,) = collected(lambda x: remat(x, POLICIES.save_only_these_names(*names)))
    assert ", ".join(map(repr, names)) in found.what


def test_policies_of_one_function_are_told_apart_by_what_they_close_over():
    def policy(saved):
        return POLICIES.save_and_offload_only_these_names(
            names_which_can_be_saved=saved, names_which_can_be_offloaded=(),
            offload_src="device", offload_dst="pinned_host",
        )  # fmt: skip

    ours, theirs = (collected(lambda x, name=name: remat(x, policy([name]))) for name in "ab")
    assert ours[0].what != theirs[0].what


UNITS = Mesh(np.array(jax.devices()[:1]).reshape(1, 1), ("data", "tensor"))


def over_units(*axes):
    sharding = NamedSharding(UNITS, PartitionSpec(*axes))
    return lambda x: jax.lax.with_sharding_constraint(x, sharding) + 1


@pytest.mark.parametrize("axes", [("data",), ("tensor", "data"), ("data", None)])
def test_other_mesh_axes_of_size_1_are_other_logical_names(axes):
    result = judged(over_units("data", "tensor"), over_units(*axes))
    assert (result.verdict, failed(result)) == ("different", {"program"})
    line = "constraint P() on float32[2,4] with P(data, tensor) of size 1 lost: (test_program_features.py:"
    assert details(result)[0].startswith(line)
    assert not any(one.startswith("constraints: ") for one in result.not_checked)


def test_mesh_axes_of_size_1_that_nnx_leaves_out_are_said():
    result = judged(over_units("data", "tensor"), over_units())
    assert not failed(result)
    line = "constraints: over mesh axes of size 1, which NNX leaves out: data, tensor"
    assert line in result.not_checked


def test_the_same_mesh_axes_of_size_1_are_no_difference():
    result = judged(over_units("data", "tensor"), over_units("data", "tensor"))
    assert not failed(result)
    assert not any(one.startswith("constraints: ") for one in result.not_checked)


RULES = (("batch", "data"), ("embed", "tensor"), ("mlp", "tensor"), ("heads", None))
LIFTS = {
    "call": lambda function: lambda x: function(x) + 1,
    "vmap": lambda function: lambda x: jax.vmap(function, 1)(jnp.stack([x, x], 1)),
    "scan": lambda function: (
        lambda x: jax.lax.scan(lambda y, _: (function(y), None), x, None, 2)[0]
    ),
    "grad": lambda function: jax.grad(lambda x: (function(x) ** 2).sum()),
}


def by_names(*names, lift, stack):
    constraint = nn.with_logical_constraint if stack == "linen" else constrain
    function = LIFTS[lift](lambda x: constraint(x, names))
    with jax.set_mesh(UNITS), nn.logical_axis_rules(RULES), note_unit_axes():
        return traced(stack, function)


@pytest.mark.parametrize("lift", LIFTS)
@pytest.mark.parametrize(
    ("names", "other"),
    [(("batch", "mlp"), ""), (("batch", "heads"), "data"), ((None, None), "none")],
)
def test_logical_names_of_other_mesh_axes_of_size_1_are_a_difference(lift, names, other):
    linen = by_names("batch", "embed", lift=lift, stack="linen")
    result = compare(CASE, linen, by_names(*names, lift=lift, stack="nnx"))
    assert failed(result) == ({"program"} if other else set())
    if other:
        line = (
            f"over mesh axes of size 1: Linen data, tensor, NNX {other}: (test_program_features.py:"
        )
        assert line in details(result)[0]


def test_a_name_that_only_nnx_has_a_mesh_axis_of_size_1_for_is_a_difference():
    linen = by_names("heads", None, lift="call", stack="linen")
    result = compare(CASE, linen, by_names("heads", "mlp", lift="call", stack="nnx"))
    assert "over mesh axes of size 1: Linen none, NNX tensor: (" in details(result)[0]


def test_the_note_of_axes_is_no_module():
    nnx = by_names("batch", "mlp", lift="grad", stack="nnx")
    found = nnx.features["forward"]
    assert {one.spec_axes for one in found} == {("data", "tensor")}
    assert {one.module for one in found} == {""}
