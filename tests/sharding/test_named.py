"""NamedShardings of states: in their Variables, and bare."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
import pytest
from flax import linen, nnx
from jax.sharding import NamedSharding, PartitionSpec

from nnx_migrate import nn as nnm
from nnx_migrate.sharding import (
    SilentResolutionError,
    abstract_sharded,
    constrain,
    construct_named_sharding,
    create_sharded,
    describe_shardings,
    extract_named_sharding,
    linen_sharding,
    resolve_spec,
    unannotated,
)
from tests.sharding.meshes import AUTO, EXPLICIT, abstract_mesh, mesh
from tests.sharding.variables import MESH, RULES, param, spec_of

P = PartitionSpec


@pytest.fixture(autouse=True)
def _constructed_without_a_mesh() -> Any:
    """Names are given without a mesh here, where NNX would want to shard at once."""
    with nnx.use_eager_sharding(False):
        yield


class Model(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs) -> None:
        init = nnx.initializers.lecun_normal()
        self.wi = nnx.Linear(8, 16, kernel_metadata={"out_sharding": ("embed", "mlp")}, rngs=rngs)
        named = nnm.with_logical_partitioning(init, ("mlp", "embed"))
        self.wo = nnx.Linear(16, 8, kernel_init=named, use_bias=False, rngs=rngs)
        self.dropout = nnx.Dropout(0.5, rngs=rngs)
        self.norm = nnx.BatchNorm(8, rngs=rngs)


def states() -> dict[str, Any]:
    model = Model(rngs=nnx.Rngs(0))
    mask = lambda tree: jax.tree.map_with_path(lambda path, _: "wi" in str(path[0]), tree)
    optimizer = nnx.Optimizer(model, optax.masked(optax.adam(1e-3), mask), wrt=nnx.Param)
    return {
        "state": nnx.state(model),
        "abstract": nnx.state(nnx.eval_shape(lambda: Model(rngs=nnx.Rngs(0)))),
        "model": model,
        "optimizer": optimizer,
        "optimizer state": nnx.state(optimizer),
        "dict": {"a": [param((8, 8), out_sharding=("embed", "mlp"))], "b": jnp.ones(3), "c": None},
    }


KINDS = ("state", "abstract", "model", "optimizer", "optimizer state", "dict")


@pytest.mark.parametrize("kind", KINDS)
def test_the_tree_stays_and_every_array_becomes_a_sharding(kind: str) -> None:
    assert set(states()) == set(KINDS)
    state = states()[kind]
    found = construct_named_sharding(state, mesh(**MESH), RULES)
    assert jax.tree.structure(found) == jax.tree.structure(state)
    assert jax.tree.leaves(found)
    assert all(isinstance(leaf, NamedSharding) for leaf in jax.tree.leaves(found))
    zipped = jax.tree.map(lambda x, sharding: sharding.shard_shape(x.shape), state, found)
    assert len(jax.tree.leaves(zipped)) >= len(jax.tree.leaves(state))


def test_a_models_specs_are_linens() -> None:
    found = construct_named_sharding(states()["state"], mesh(**MESH), RULES)
    names = {"wi": ("embed", "mlp"), "wo": ("mlp", "embed")}
    for layer, its_names in names.items():
        expected = linen.logical_to_mesh_axes(its_names, RULES)
        assert found[layer]["kernel"].get_raw_value().spec == expected
    assert found["wi"]["bias"].get_raw_value().spec == P()


def test_moments_of_an_optimizer_are_sharded_like_their_parameters() -> None:
    found = construct_named_sharding(states()["optimizer state"], mesh(**MESH), RULES)
    inner = found["opt_state"]["inner_state"][0]
    for moment in ("mu", "nu"):
        assert inner[moment]["wi"]["kernel"].get_raw_value().spec == P("fsdp", "expert")
        assert jax.tree.leaves(inner[moment]["wo"]["kernel"]) == []  # optax.MaskedNode
    assert found["step"].get_raw_value().spec == P()


@pytest.mark.parametrize("kind", [AUTO, EXPLICIT])
@pytest.mark.parametrize("bare", [False, True])
def test_the_result_is_an_in_shardings_and_out_shardings_of_jit(kind: Any, bare: bool) -> None:
    devices = mesh(kind, **MESH)
    _, state = nnx.split(Model(rngs=nnx.Rngs(0)))
    shardings = construct_named_sharding(state, devices, RULES)
    given = extract_named_sharding(shardings) if bare else shardings
    placed = jax.device_put(state, given)
    step = jax.jit(lambda s: s, in_shardings=(given,), out_shardings=given)
    after = step(placed)
    assert jax.tree.structure(after) == jax.tree.structure(state)
    jax.tree.map(lambda x, s: _equivalent(x, s), after, shardings)


def _equivalent(x: jax.Array, sharding: NamedSharding) -> None:
    assert x.sharding.is_equivalent_to(sharding, x.ndim)


@pytest.mark.parametrize("key", ["out_sharding", "sharding_names", "sharding", "logical_axes"])
@pytest.mark.parametrize("names", [("embed", "mlp"), ["embed", "mlp"], ("embed", None), "embed"])
def test_names_are_read_under_every_key(key: str, names: Any) -> None:
    listed = (names,) if isinstance(names, str) else names
    assert spec_of(param((8, 8), **{key: names})) == linen.logical_to_mesh_axes(listed, RULES)


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"out_sharding": ("embed",), "sharding_names": ("mlp",)}, P("fsdp")),
        ({"sharding_names": ("mlp",), "sharding": ("embed",)}, P("expert")),
        ({"out_sharding": (), "sharding": ("embed",)}, P("fsdp")),
        ({"out_sharding": None, "logical_axes": ("embed",)}, P("fsdp")),
        ({"out_sharding": ()}, P()),
        ({}, P()),
    ],
)
def test_the_first_key_that_says_something_counts(metadata: Any, expected: PartitionSpec) -> None:
    assert spec_of(param((8,), **metadata)) == expected


@pytest.mark.parametrize(
    ("names", "rules", "expected"),
    [
        (("embed", "mlp"), (("embed", "fsdp"), ("mlp", "fsdp")), P("fsdp", None)),
        (("mlp", "embed"), (("embed", "fsdp"), ("mlp", ("fsdp", "expert"))), P(None, "fsdp")),
        (("embed",), (("embed", "absent"),), P(None)),
        (("unknown",), RULES, P(None)),
        (("embed",), (("embed", "expert"), ("embed", "fsdp")), P("expert")),
        ((("fsdp", "expert"), None), RULES, P(("fsdp", "expert"), None)),
    ],
)
def test_resolution_is_linens(names: Any, rules: Any, expected: PartitionSpec) -> None:
    assert spec_of(param((8, 8), out_sharding=names), rules) == expected
    assert resolve_spec(names, rules, mesh(**MESH)) == expected


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("fsdp", None), P("fsdp", None)),
        ((("fsdp", "expert"),), P(("fsdp", "expert"))),
        (("embed",), P(None)),
    ],
)
def test_without_any_rules_names_are_mesh_axes(names: Any, expected: PartitionSpec) -> None:
    assert spec_of(param((8, 8), out_sharding=names), None) == expected


def test_names_without_any_rules_that_are_no_mesh_axes_are_logged_or_refused(
    caplog: pytest.LogCaptureFixture,
) -> None:
    state = {
        "a": param((8, 8), out_sharding=("mlp", "fsdp")),
        "b": param((8,), out_sharding=("embed",)),
        "c": param((8,), out_sharding=("heads",), sharding_rules=(("heads", "fsdp"),)),
    }
    with caplog.at_level(logging.WARNING):
        construct_named_sharding(state, mesh(**MESH))
    (record,) = caplog.records
    assert record.getMessage() == (
        "names without rules that are no mesh axes, replicated (2): embed, mlp"
    )
    with pytest.raises(ValueError, match="no mesh axes, found 2: embed, mlp"):
        construct_named_sharding(state, mesh(**MESH), missing="raise")


@pytest.mark.parametrize("context", [nnx.logical_axis_rules, linen.logical_axis_rules])
def test_rules_come_from_the_context(context: Any) -> None:
    with context(RULES):
        assert spec_of(param((8,), out_sharding=("mlp",)), None) == P("expert")
        assert spec_of(param((8,), out_sharding=("mlp",)), (("mlp", "fsdp"),)) == P("fsdp")


@pytest.mark.parametrize("key", ["sharding_rules", "logical_axis_rules"])
def test_rules_of_the_variable_come_first(key: str) -> None:
    own = param((8, 8), out_sharding=("embed", "mlp"), **{key: (("embed", "expert"),)})
    assert spec_of(own) == P("expert", "fsdp")


def test_resolved_shardings_stay_as_they_are() -> None:
    one = mesh(fsdp=8, expert=1)
    given = NamedSharding(one, P("fsdp", "expert"))
    state = {
        "named": param((8, 8), out_sharding=given),
        "spec": param((8, 8), out_sharding=P("fsdp", "expert")),
    }
    found = construct_named_sharding(state, one, RULES)
    assert found["named"].get_raw_value() is given
    assert found["spec"].get_raw_value() == given


def test_resolved_shardings_that_do_not_fit_are_refused_or_dropped() -> None:
    given = NamedSharding(mesh(**MESH), P("fsdp", "expert"))
    long = {"x": param((8,), out_sharding=given)}
    uneven = {"x": param((7, 8), out_sharding=given)}
    for state, message, expected in (
        (long, "at most 1 entries", P("fsdp")),
        (uneven, "divisible by 4", P(None, "expert")),
    ):
        with pytest.raises(ValueError, match=f"^x: expected .*{message}"):
            construct_named_sharding(state, mesh(**MESH), RULES)
        found = construct_named_sharding(state, mesh(**MESH), RULES, misfit="drop")
        assert found["x"].get_raw_value() == given.update(spec=expected)


def test_strict_lists_what_was_lost_on_every_array() -> None:
    state = {
        "wi": param((8, 8), out_sharding=("embed", "mlp")),
        "wo": param((8, 8), out_sharding=("heads", "mlp")),
        "norm": param((8,), out_sharding=("unknown",)),
    }
    with pytest.raises(SilentResolutionError) as caught:
        construct_named_sharding(state, mesh(**MESH), RULES, strict=True)
    assert [(one.array, one.name) for one in caught.value.silent] == [
        ("norm", "unknown"),
        ("wo", "heads"),
    ]
    assert "  wo, dimension 0: rule 3 ('heads' -> 'expert') lost: 'expert' is used by 'mlp'" in str(
        caught.value
    )
    own = {"x": param((8, 8), out_sharding=("embed", "mlp"))}
    found = construct_named_sharding(own, mesh(**MESH), RULES[:2], strict=True)
    assert found == construct_named_sharding(own, mesh(**MESH), RULES)


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"out_sharding": ("embed", "mlp", None)}, "expected at most 2 entries .* found 3"),
        ({"out_sharding": (None, "mlp")}, "divisible by 2 .* in dimension 1, found 3"),
        ({"out_sharding": ("embed", "embed")}, "'embed' more than once"),
        ({"out_sharding": P("embed")}, "mesh axes among .* found 'embed': a PartitionSpec"),
        ({"out_sharding": 3}, "expected logical axis names, .* found int"),
        (
            {
                "out_sharding": ("layers", "embed"),
                "partition_name": "layers",
                "param_scan_axis": 1,
            },
            "stacking axis 'layers' at position 1",
        ),
        ({"out_sharding": ("embed",), "param_scan_axis": 0}, "name of the scan axis"),
        (
            {"out_sharding": ("embed",), "partition_name": "layers", "param_scan_axis": -1},
            "an index counted from the front",
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_its_path(metadata: Any, message: str) -> None:
    state = {"layer": {"kernel": param((8, 3), **metadata)}}
    with pytest.raises(ValueError, match=f"^layer/kernel: .*{message}"):
        construct_named_sharding(state, mesh(**MESH), RULES)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("embed", "mlp", None), P("fsdp", None)),
        ((None, "mlp"), P(None, None)),
        ((("fsdp", "expert"), None), P(None, None)),
    ],
)
def test_what_does_not_fit_is_dropped_on_request(names: Any, expected: PartitionSpec) -> None:
    assert spec_of(param((4, 3), out_sharding=names), misfit="drop") == expected


def test_arrays_without_names_are_listed_and_parameters_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    state = states()["state"]
    assert unannotated(state) == (
        "dropout/rngs/count",
        "dropout/rngs/key",
        *(f"norm/{name}" for name in ("bias", "mean", "scale", "var")),
        "wi/bias",
    )
    with caplog.at_level(logging.WARNING):
        construct_named_sharding(state, mesh(**MESH), RULES)
    (record,) = caplog.records
    assert record.getMessage() == (
        "parameters without logical axis names, replicated (3): norm/bias, norm/scale, wi/bias"
    )


def test_arrays_that_lost_their_variables_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    state = nnx.to_pure_dict(nnx.state(states()["state"], nnx.Param))
    with caplog.at_level(logging.WARNING):
        construct_named_sharding({**state, "step": jnp.zeros(())}, mesh(**MESH), RULES)
    (record,) = caplog.records
    assert record.getMessage().endswith(
        "replicated (5): norm/bias, norm/scale, wi/bias, wi/kernel, wo/kernel"
    )


def test_parameters_without_names_are_refused_on_request() -> None:
    with pytest.raises(
        ValueError, match=r"expected no parameters without .* found 3: norm/bias, norm/scale"
    ):
        construct_named_sharding(states()["state"], mesh(**MESH), RULES, missing="raise")
    named = {"a": param((8,), out_sharding=("embed",)), "b": nnx.BatchStat(jnp.ones(3))}
    found = construct_named_sharding(named, mesh(**MESH), RULES, missing="raise")
    assert found["b"].get_raw_value().spec == P()


@pytest.mark.parametrize("leaf", ["text", object()])
def test_leaves_that_are_no_arrays_are_refused(leaf: Any) -> None:
    with pytest.raises(TypeError, match=r"^x: expected an array or a ShapeDtypeStruct"):
        construct_named_sharding({"x": leaf}, mesh(**MESH), RULES)
    with pytest.raises(TypeError, match="expected NamedShardings"):
        extract_named_sharding({"x": nnx.Param(leaf)})


def test_an_abstract_mesh_will_do() -> None:
    large = abstract_mesh(fsdp=256, expert=2)
    state = {"x": nnx.Param(jax.ShapeDtypeStruct((512, 8), float), out_sharding=("embed", "mlp"))}
    sharding = construct_named_sharding(state, large, RULES)["x"].get_raw_value()
    assert sharding == NamedSharding(large, P("fsdp", "expert"))
    assert sharding.shard_shape((512, 8)) == (2, 4)


def test_words_that_choose_nothing_are_refused() -> None:
    """``missing="rasie"`` replicated in silence."""
    devices, state = mesh(**MESH), param((4, 2), out_sharding=("embed", "mlp"))
    with pytest.raises(ValueError, match="expected missing to be 'replicate' or 'raise', found 'r"):
        construct_named_sharding(state, devices, RULES, missing="rasie")  # type: ignore[arg-type]
    wrong: Any = "rasie"
    calls: list[Callable[[], Any]] = [
        lambda: construct_named_sharding(state, devices, RULES, misfit=wrong),
        lambda: construct_named_sharding({}, devices, RULES, misfit=wrong),
        lambda: describe_shardings(state, devices, RULES, misfit=wrong),
        lambda: create_sharded(lambda: Model(rngs=nnx.Rngs(0)), devices, RULES, misfit=wrong),
        lambda: linen_sharding(RULES, devices, misfit=wrong).__enter__(),
        lambda: constrain(jnp.zeros(2), ("embed",), misfit=wrong),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"expected misfit to be 'raise' or 'drop'.*'rasie'"):
            call()


def test_no_mesh_is_said_to_be_none() -> None:
    nothing: Any = None
    calls: list[Callable[[], Any]] = [
        lambda: construct_named_sharding(param((4, 2)), nothing, RULES),
        lambda: describe_shardings(param((4, 2)), nothing, RULES),
        lambda: abstract_sharded(lambda: Model(rngs=nnx.Rngs(0)), nothing, RULES),
    ]
    for call in calls:
        with pytest.raises(TypeError, match="expected a Mesh or an AbstractMesh, found NoneType"):
            call()
