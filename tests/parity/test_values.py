import jax.numpy as jnp
import numpy as np
import pytest

from nnx_migrate.parity.values import (
    ShapeDtype,
    describe_difference,
    emptiness,
    named_leaves,
    random_value,
    same_bits,
    within,
)

KERNEL = ShapeDtype((64, 32), "float32")


def test_a_value_depends_on_path_shape_dtype_and_seed_alone():
    value = random_value("params/a/kernel", KERNEL, None, 0)
    assert same_bits(value, random_value("params/a/kernel", KERNEL, np.ones(3), 0))
    assert not np.array_equal(value, random_value("params/b/kernel", KERNEL, None, 0))
    assert not np.array_equal(value, random_value("params/a/kernel", KERNEL, None, 1))


@pytest.mark.parametrize(
    ("path", "low", "high"),
    [
        ("params/a/kernel", 0.1, 0.16),  # 64 ** -0.5
        ("params/a/embedding", 0.1, 0.16),
    ],
)
def test_kernels_have_the_scale_of_their_fan_in(path, low, high):
    assert low < random_value(path, KERNEL, None, 0).std() < high


def test_vectors_are_not_zero_and_scales_are_about_one():
    vector = ShapeDtype((256,), "float32")
    assert np.all(random_value("params/a/bias", vector, None, 0) != 0)
    assert abs(random_value("params/a/scale", vector, None, 0).mean() - 1) < 0.05


def test_variables_that_are_no_parameters_are_positive():
    value = random_value("batch_stats/norm/var", ShapeDtype((256,), "float32"), None, 0)
    assert value.min() >= 0.5


@pytest.mark.parametrize("name", ["mean", "running_mean", "moving_mean"])
def test_running_means_have_both_signs(name):
    value = random_value(f"batch_stats/norm/{name}", ShapeDtype((256,), "float32"), None, 0)
    assert 64 < np.sum(value < 0) < 192


@pytest.mark.parametrize("name", ["mean_square", "meaning", "var", "m"])
def test_names_that_only_look_like_means_stay_positive(name):
    value = random_value(f"batch_stats/mean/{name}", ShapeDtype((256,), "float32"), None, 0)
    assert value.min() >= 0.5


@pytest.mark.parametrize(
    ("path", "dtype"),
    [("cache/index", "bool"), ("rng/key", "key<fry>"), ("params/a", "int32"), ("params/a", "bool")],
)
def test_what_is_not_floating_point_keeps_its_value(path, dtype):
    initial = object()
    assert random_value(path, ShapeDtype((), dtype), initial, 0) is initial


@pytest.mark.parametrize(
    ("initial", "expected"), [(0, 1), (3, 3), ([0, 0], [1, 1]), ([0, 2], [0, 2])]
)
@pytest.mark.parametrize("dtype", ["int32", "uint8"])
def test_counters_that_start_at_zero_are_one(initial, expected, dtype):
    initial = np.array(initial, dtype)
    value = random_value("cache/index", ShapeDtype(initial.shape, dtype), initial, 0)
    assert same_bits(np.asarray(value), np.array(expected, dtype))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float8_e4m3fn", "complex64", "float64"])
def test_other_dtypes_are_kept(dtype):
    value = random_value("params/a/kernel", ShapeDtype((4, 4), dtype), None, 0)
    assert str(value.dtype) == dtype
    assert emptiness([value]) is None


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        (np.float32([1.0]), np.float32([1.0]), True),
        (np.float32([np.nan]), np.float32([np.nan]), True),
        (np.float32([0.0]), np.float32([-0.0]), False),
        (np.float32([1.0]), np.float64([1.0]), False),
        (np.float32([1.0]), np.float32([[1.0]]), False),
        (np.float32([1.0]), np.float32([1.0000001]), False),
        (np.zeros((0, 2)), np.zeros((0, 2)), True),
        (np.array([True]), np.array([True]), True),
    ],
)
def test_only_the_same_bits_are_the_same(left, right, same):
    assert same_bits(left, right) is same


@pytest.mark.parametrize(
    ("left", "right", "fits"),
    [
        (np.float32([1.0, 100.0]), np.float32([1.05, 100.0]), True),
        (np.float32([1.0, 100.0]), np.float32([1.2, 100.0]), False),
        (np.float32([np.nan]), np.float32([np.nan]), False),
        (np.float32([1.0]), np.float64([1.0]), False),
        (np.int32([1000]), np.int32([1001]), False),
    ],
)
def test_a_tolerance_is_relative_to_the_largest_value_and_for_floats_only(left, right, fits):
    assert within(left, right, 1e-3) is fits


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        ([], "nothing was compared"),
        ([np.zeros((0, 3))], "nothing was compared"),
        ([np.zeros(3), np.int32([0])], "every number is zero"),
        ([np.float32([np.nan, np.nan])], "every number is NaN"),
        ([np.array([False])], "every number is zero"),
        ([np.zeros(3), np.ones(1)], None),
        ([np.float32([np.nan, 1])], None),
        ([np.full(2, np.nan, jnp.bfloat16)], "every number is NaN"),
        ([np.complex64([1j])], None),
    ],
)
def test_arrays_that_prove_nothing_are_named(arrays, reason):
    assert emptiness(arrays) == reason


def test_a_difference_is_told_in_numbers():
    text = describe_difference(np.float32([1, 2]), np.float32([1, 2.5]))
    assert text == "1 of 2 elements differ, largest difference 0.5 where the largest value is 2"
    assert describe_difference(np.zeros(2), np.zeros(3)) == "Linen float64[2], NNX float64[3]"
    assert describe_difference(np.int32([1]), np.int32([2])) == "1 of 1 elements differ"


def test_leaves_are_named_by_their_path():
    leaves, _ = named_leaves({"a": {"b": 1}, "c": (2, 3)})
    assert leaves == {"a/b": 1, "c/0": 2, "c/1": 3}
