"""Norms: the same names, bits and program as Linen's; and which native norms are bit-equal."""

from __future__ import annotations

import jax.numpy as jnp
import pytest
from flax import linen, nnx

from nnx_migrate import nn
from tests.nn.oracle import array, check

DTYPES = [(None, jnp.float32), (jnp.bfloat16, jnp.float32), (None, jnp.bfloat16)]
FIELDS = [
    ({}, jnp.float32),
    ({"dtype": jnp.bfloat16}, jnp.float32),
    ({"use_scale": False}, jnp.bfloat16),
    ({"epsilon": 0.25, "use_fast_variance": False}, jnp.float32),
    ({"param_dtype": jnp.bfloat16, "force_float32_reductions": False}, jnp.bfloat16),
]


@pytest.mark.parametrize(("fields", "input_dtype"), FIELDS)
@pytest.mark.parametrize("name", ["LayerNorm", "RMSNorm", "InstanceNorm"])
def test_norm_is_linens_program(name, fields, input_dtype):
    x = array(4, 5, 6, dtype=input_dtype)
    build = getattr(nn, name)
    check(getattr(linen, name)(**fields), lambda r: build(**fields, in_features=6, rngs=r), x)


@pytest.mark.parametrize("name", ["LayerNorm", "RMSNorm", "InstanceNorm", "BatchNorm"])
def test_norm_without_variables_accepts_a_mask(name):
    fields = {"use_scale": False} | ({} if name == "RMSNorm" else {"use_bias": False})
    mutable = ()
    if name == "BatchNorm":
        fields["use_running_average"] = False
        mutable = ("batch_stats",)
    mask = array(4, 5, 6, seed=9) > -1.0
    linen_module = linen.Sequential([getattr(linen, name)(**fields)])
    build = getattr(nn, name)
    check(
        linen_module,
        lambda r: nn.Sequential([build(**fields, in_features=6, rngs=r)]),
        array(4, 5, 6),
        kwargs={"mask": mask},
        mutable=mutable,
        differentiate=False,
    )


@pytest.mark.parametrize("name", ["LayerNorm", "RMSNorm"])
def test_norm_over_several_axes(name):
    fields = {"reduction_axes": (1, 2), "feature_axes": (-2, -1)}
    build = getattr(nn, name)
    check(
        getattr(linen, name)(**fields),
        lambda r: build(**fields, in_features=(5, 6), rngs=r),
        array(4, 5, 6),
    )


@pytest.mark.parametrize(
    ("fields", "input_dtype"),
    [
        ({"num_groups": 2}, jnp.float32),
        ({"num_groups": None, "group_size": 2, "dtype": jnp.bfloat16}, jnp.float32),
        ({"num_groups": 3, "reduction_axes": (-1,)}, jnp.bfloat16),
        ({"num_groups": 3, "reduction_axes": (2, -1), "use_bias": False}, jnp.float32),
    ],
)
def test_group_norm_is_linens_program(fields, input_dtype):
    x = array(2, 3, 5, 6, dtype=input_dtype)
    check(linen.GroupNorm(**fields), lambda r: nn.GroupNorm(**fields, in_features=6, rngs=r), x)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"num_groups": 4}, "does not divide"),
        ({"num_groups": None, "group_size": 4}, "does not divide"),
        ({"num_groups": 2, "group_size": 3}, "exactly one"),
        ({"num_groups": None}, "exactly one"),
        ({"num_groups": 0}, "does not divide"),
    ],
)
def test_group_norm_refuses_groups_that_do_not_fit(fields, message):
    with pytest.raises(ValueError, match=message):
        nn.GroupNorm(**fields, in_features=6, rngs=nnx.Rngs(0))


def test_group_norm_refuses_reductions_without_the_last_axis():
    norm = nn.GroupNorm(2, reduction_axes=(1,), in_features=6, rngs=nnx.Rngs(0))
    with pytest.raises(ValueError, match="last axis"):
        norm(array(2, 3, 6))


def test_instance_norm_refuses_the_batch_axis_as_feature_axis():
    norm = nn.InstanceNorm(feature_axes=0, in_features=2, rngs=nnx.Rngs(0))
    with pytest.raises(ValueError, match="batch axis"):
        norm(array(2, 3, 6))


@pytest.mark.parametrize("running", [False, True])
@pytest.mark.parametrize(
    ("fields", "input_dtype"),
    [({"axis": 1, "momentum": 0.5}, jnp.float32), FIELDS[1], FIELDS[2], FIELDS[4]],
)
def test_batch_norm_is_linens_program_and_updates_its_statistics(fields, running, input_dtype):
    size = 5 if "axis" in fields else 6
    check(
        linen.BatchNorm(**fields),
        lambda r: nn.BatchNorm(**fields, in_features=size, rngs=r),
        array(4, 5, 6, dtype=input_dtype),
        kwargs={"use_running_average": running},
        mutable=("batch_stats",),
    )


@pytest.mark.parametrize(
    ("fields", "call"), [({}, {}), ({"use_running_average": True}, {"use_running_average": True})]
)
def test_batch_norm_needs_use_running_average_exactly_once(fields, call):
    norm = nn.BatchNorm(**fields, in_features=3, rngs=nnx.Rngs(0))
    with pytest.raises(ValueError, match="use_running_average"):
        norm(array(2, 3), **call)


def test_batch_norm_follows_eval_and_train():
    norm = nn.BatchNorm(False, in_features=3, rngs=nnx.Rngs(0))
    norm.eval()
    norm(array(2, 3))
    assert not norm.mean[...].any()
    norm.train()
    norm(array(2, 3))
    assert norm.mean[...].all()


def test_the_mode_of_a_batch_norms_call_counts_more_than_eval():
    norm = nn.BatchNorm(in_features=3, rngs=nnx.Rngs(0))
    norm.eval()
    norm(array(2, 3), use_running_average=False)
    assert norm.mean[...].all()


@pytest.mark.parametrize(("dtype", "input_dtype"), DTYPES)
@pytest.mark.parametrize("name", ["LayerNorm", "RMSNorm", "InstanceNorm", "GroupNorm", "BatchNorm"])
def test_native_norm_with_keep_dtype_has_linens_bits(name, dtype, input_dtype):
    fields = {"dtype": dtype}
    mutable = ()
    if name == "GroupNorm":
        fields["num_groups"] = 2
    if name == "BatchNorm":
        fields["use_running_average"] = False
        mutable = ("batch_stats",)
    native = getattr(nnx, name)
    check(
        getattr(linen, name)(**fields),
        lambda r: native(6, **fields, promote_dtype=nn.keep_dtype, rngs=r),
        array(4, 5, 6, dtype=input_dtype),
        mutable=mutable,
        same_program=False,
    )


@pytest.mark.parametrize("name", ["LayerNorm", "RMSNorm", "InstanceNorm"])
@pytest.mark.parametrize("input_dtype", [jnp.float32, jnp.bfloat16])
def test_native_norm_without_dtype_has_linens_bits(name, input_dtype):
    native = getattr(nnx, name)
    x = array(4, 5, 6, dtype=input_dtype)
    check(getattr(linen, name)(), lambda r: native(6, rngs=r), x, same_program=False)
