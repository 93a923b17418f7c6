"""Constraints by logical names, under Auto and Explicit axes."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, nnx
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from nnx_migrate.sharding import RulesFallback, constrain, with_logical_constraint
from tests.sharding.meshes import AUTO, EXPLICIT, abstract_mesh, mesh

P = PartitionSpec
RULES = (("batch", ("data", "fsdp")), ("length", "context"), ("embed", "tensor"), ("heads", "fsdp"))
X = np.arange(64, dtype=np.float32).reshape(8, 2, 4)


def sharding_of(kind: AxisType, names: Any, x: Any = X, **options: Any) -> Any:
    """The sharding a traced array gets on a mesh data:2, fsdp:2, tensor:2, context:1."""
    with jax.set_mesh(mesh(kind, data=2, fsdp=2, tensor=2, context=1)):
        y = jax.jit(lambda x: constrain(x, names, RULES, **options))(x)
        np.testing.assert_array_equal(y, x)
        return y.sharding


@pytest.mark.parametrize("kind", [AUTO, EXPLICIT])
@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("batch", "length", "embed"), P(("data", "fsdp"), None, "tensor")),
        (("batch", None, None), P(("data", "fsdp"), None, None)),
        (("batch",), P(("data", "fsdp"))),
        (("batch", "heads", "embed"), P(("data", "fsdp"), None, "tensor")),
        (P("batch", None, "embed"), P(("data", "fsdp"), None, "tensor")),
        ("batch", P(("data", "fsdp"))),
        ((None, "unknown", "embed"), P(None, None, "tensor")),
    ],
)
def test_an_array_is_sharded_by_its_names(kind: AxisType, names: Any, expected: Any) -> None:
    found = sharding_of(kind, names)
    assert found.is_equivalent_to(NamedSharding(found.mesh, expected), 3)


@pytest.mark.parametrize("kind", [AUTO, EXPLICIT])
def test_a_named_sharding_is_taken_as_it_is(kind: AxisType) -> None:
    devices = mesh(kind, data=2, fsdp=2, tensor=2, context=1)
    given = NamedSharding(devices, P("fsdp", "tensor"))
    assert sharding_of(kind, given).is_equivalent_to(given, 3)


@pytest.mark.parametrize("kind", [AUTO, EXPLICIT])
@pytest.mark.parametrize("traced", [True, False])
def test_a_named_sharding_keeps_its_memory(kind: AxisType, traced: bool) -> None:
    devices = mesh(kind, data=2, fsdp=2)
    given = NamedSharding(devices, P("data"), memory_kind="pinned_host")
    with jax.set_mesh(devices):
        y = (jax.jit if traced else lambda f: f)(lambda x: constrain(x, given))(jnp.asarray(X))
    assert y.sharding.memory_kind == "pinned_host"
    assert y.sharding.is_equivalent_to(given, 3)


@pytest.mark.parametrize("kind", [AUTO, EXPLICIT])
def test_arrays_with_values_are_moved(kind: AxisType) -> None:
    devices = mesh(kind, data=2, fsdp=2, tensor=2)
    expected = NamedSharding(devices, P(("data", "fsdp"), None, "tensor"))
    with jax.set_mesh(devices), nnx.logical_axis_rules(RULES):
        y = constrain(jnp.asarray(X), ("batch", "length", "embed"))
    assert y.sharding.is_equivalent_to(expected, 3)
    z = constrain(jnp.asarray(X), ("batch", "length", "embed"), RULES, devices)
    assert z.sharding.is_equivalent_to(expected, 3)


def test_explicit_axes_raw_constraint_with_a_size_one_axis_asserts_and_ours_does_not() -> None:
    """MaxText's #4208: targets were constrained over `context`, which activations had dropped."""
    devices = mesh(EXPLICIT, data=8, context=1)
    rules = (("batch", "data"), ("length", "context"))
    names = ("batch", "length")

    def loss(constraint: Any) -> Any:
        def of(logits: jax.Array) -> jax.Array:
            return jnp.sum(constraint(jnp.exp(logits)))

        logits = jax.device_put(jnp.ones((8, 4)), NamedSharding(devices, P("data", None)))
        with jax.set_mesh(devices):
            return jax.jit(jax.value_and_grad(of))(logits)

    raw_spec = linen.logical_to_mesh_axes(names, rules)
    assert raw_spec == P("data", "context")
    with pytest.raises(AssertionError, match="acts as an assert when all axes"):
        loss(lambda x: jax.lax.with_sharding_constraint(x, raw_spec))
    value, grad = loss(lambda x: constrain(x, names, rules))
    np.testing.assert_allclose(value, 32 * np.e, rtol=1e-6)
    assert grad.sharding.spec == P("data", None)


@pytest.mark.parametrize("without", ["names", "rules", "mesh", "set rules"])
def test_without_names_rules_or_mesh_nothing_happens(without: str) -> None:
    x = jnp.asarray(X)
    devices = None if without == "mesh" else mesh(data=2, fsdp=2)
    names = None if without == "names" else ("batch", None, None)
    rules: Any = {"rules": (), "set rules": None}.get(without, RULES)
    assert constrain(x, names, rules, devices) is x
    assert with_logical_constraint(x, names, rules, devices) is x


@pytest.mark.parametrize("kind", [AUTO, EXPLICIT])
@pytest.mark.parametrize(
    ("names", "shape", "message"),
    [
        (("batch", None, None, None), (8, 2, 4), "at most 3 entries .*, found 4"),
        (("batch",), (6, 2), r"divisible by 4 .* in dimension 0, found 6 in shape \(6, 2\)"),
        (("batch", "batch"), (8, 8), "'batch' more than once"),
        (P("data"), (8,), r"found mesh axes \['data'\] that no rule mentions"),
    ],
)
def test_names_that_do_not_fit_are_refused(
    kind: AxisType, names: Any, shape: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        sharding_of(kind, names, np.zeros(shape))


@pytest.mark.parametrize("kind", [AUTO, EXPLICIT])
@pytest.mark.parametrize(
    ("names", "shape", "expected"),
    [(("batch", "embed", "x"), (8, 2), P(("data", "fsdp"), "tensor")), (("batch",), (6,), P())],
)
def test_what_does_not_fit_is_dropped_on_request(
    kind: AxisType, names: Any, shape: Any, expected: Any
) -> None:
    found = sharding_of(kind, names, np.zeros(shape), misfit="drop")
    assert found.is_equivalent_to(NamedSharding(found.mesh, expected), len(shape))


def test_linens_constraint_pads_under_auto_axes_and_so_does_ours() -> None:
    def text(function: Any) -> str:
        def f(x: jax.Array) -> Any:
            return function(x, ("batch", None))

        with jax.set_mesh(mesh(data=2, fsdp=2)), nnx.logical_axis_rules(RULES):
            return jax.jit(f).lower(jnp.zeros((3, 2))).as_text()

    assert text(with_logical_constraint) == text(linen.with_logical_constraint)
    assert 'sharding_constraint %arg0 <@mesh, [{"data", "fsdp"}, {}]>' in text(
        with_logical_constraint
    )
    with (
        jax.set_mesh(mesh(EXPLICIT, data=2, fsdp=2)),
        nnx.logical_axis_rules(RULES),
        pytest.raises(ValueError, match="divisible by 4"),
    ):
        jax.jit(lambda x: with_logical_constraint(x, ("batch", None)))(jnp.zeros((3, 2)))


@pytest.mark.parametrize(
    "names",
    [
        ("batch", "length"),
        ("batch", "unknown"),
        ("heads", "batch"),
        (None, P.UNCONSTRAINED),
        P("batch", None),
        ("length", "batch"),
    ],
)
@pytest.mark.parametrize("fallback", list(RulesFallback))
def test_programs_are_those_of_linen(names: Any, fallback: RulesFallback) -> None:
    def text(function: Any, fallback: Any) -> str:
        def f(x: jax.Array) -> Any:
            return function(x, names, fallback=fallback)

        with jax.set_mesh(mesh(data=2, fsdp=2, context=2)), nnx.logical_axis_rules(RULES):
            try:
                return jax.jit(f).lower(jnp.zeros((8, 4))).as_text()
            except ValueError:
                return "refused"

    expected = text(linen.with_logical_constraint, linen.spmd.RulesFallback(fallback.value))
    assert text(with_logical_constraint, fallback) == expected
    unmatched = fallback is RulesFallback.RAISE_ERROR and names in [
        ("batch", "unknown"),
        ("heads", "batch"),
    ]
    assert (expected == "refused") == unmatched


@pytest.mark.parametrize("fallback", list(RulesFallback))
@pytest.mark.parametrize("has_mesh", [True, False])
@pytest.mark.parametrize(
    "names",
    [
        P("data", "embed"),
        ("data", "embed"),
        P("fsdp", None),
        P("data", "data"),
        P("unknown", "embed"),
        P(("data", "fsdp"), "embed"),
        P("data", "batch"),
        ("batch", "batch"),
        P(None, "batch"),
    ],
)
def test_mesh_axes_are_names_as_others_in_rewritten_constraints(
    names: Any, has_mesh: bool, fallback: RulesFallback
) -> None:
    """ "data" has no rule, "fsdp" has one; names are looked at without a mesh, too."""
    rules = (("embed", "tensor"), ("batch", "data"), ("fsdp", "fsdp"))
    devices = mesh(data=2, fsdp=2, tensor=2) if has_mesh else None

    def text(function: Any, fallback: Any) -> str:
        with nnx.logical_axis_rules(rules):
            try:
                f = jax.jit(lambda x: function(x, names, mesh=devices, fallback=fallback))
                return str(f.lower(jnp.zeros((8, 4))).as_text())
            except ValueError:
                return "refused"

    expected = text(linen.with_logical_constraint, linen.spmd.RulesFallback(fallback.value))
    assert text(with_logical_constraint, fallback) == expected


def test_without_rules_a_spec_is_not_looked_at_as_in_linen() -> None:
    x = jnp.zeros(8)
    spec = P("data", unreduced={"fsdp"})  # which refuses to be read as names
    assert with_logical_constraint(x, spec, ()) is linen.with_logical_constraint(x, spec, ()) is x


def test_trees_of_arrays_take_trees_of_names() -> None:
    tree = {"q": jnp.zeros((4, 4)), "kv": [jnp.zeros((4,)), jnp.zeros(3)]}
    names = {"q": ("batch", "embed"), "kv": [("batch",), None]}
    devices = mesh(data=2, fsdp=2, tensor=2)
    y = with_logical_constraint(tree, names, RULES, devices)
    assert y["q"].sharding.spec == P(("data", "fsdp"), "tensor")
    assert y["kv"][0].sharding.spec == P(("data", "fsdp"))
    assert y["kv"][1] is tree["kv"][1]
    with pytest.raises(ValueError, match=r"[Dd]ict|structure|arity"):
        with_logical_constraint(tree, {"q": ("batch",)}, RULES, devices)


def test_explicit_axes_refuse_what_is_unconstrained() -> None:
    with pytest.raises(ValueError, match="nobody chooses what is UNCONSTRAINED there"):
        sharding_of(EXPLICIT, ("batch", P.UNCONSTRAINED, None))
    assert sharding_of(AUTO, ("batch", P.UNCONSTRAINED, None)).spec[0] == ("data", "fsdp")


def test_inside_shard_map_the_axes_left_over_are_constrained() -> None:
    devices = mesh(data=2, tensor=4)

    def body(x: jax.Array) -> jax.Array:
        return constrain(x * 2, (None, "embed"), RULES)

    with jax.set_mesh(devices):
        f = jax.shard_map(body, in_specs=P("data"), out_specs=P("data"), axis_names={"data"})
        y = jax.jit(f)(jnp.ones((4, 8)))
    np.testing.assert_array_equal(y, 2 * np.ones((4, 8)))
    assert y.sharding.is_equivalent_to(NamedSharding(devices, P("data", "tensor")), 2)


@pytest.mark.parametrize("kind", [AUTO, EXPLICIT])
def test_an_abstract_mesh_of_512_devices_will_do(kind: AxisType) -> None:
    large = abstract_mesh(kind, data=64, fsdp=2, tensor=4)

    def f(x: jax.Array) -> jax.Array:
        return constrain(x, ("batch", None, "embed"), RULES)

    x = jax.ShapeDtypeStruct((512, 2, 4), jnp.float32)
    with jax.sharding.use_abstract_mesh(large):
        text = jax.jit(f).trace(x).lower(lowering_platforms=("cpu",)).as_text()
        aval = jax.eval_shape(f, x)
    assert '[{"data", "fsdp"}, {}, {"tensor"}]' in text
    if kind is EXPLICIT:
        assert aval.sharding.spec == P(("data", "fsdp"), None, "tensor")


def test_a_concrete_array_needs_a_mesh_with_devices() -> None:
    with (
        jax.sharding.use_abstract_mesh(abstract_mesh(data=4, fsdp=2, tensor=1)),
        pytest.raises(ValueError, match="expected a mesh with devices"),
    ):
        constrain(jnp.zeros((8, 2)), ("batch",), RULES)


def test_explicit_axes_a_constraint_that_already_holds_adds_no_operation() -> None:
    devices = mesh(EXPLICIT, data=4, fsdp=2)
    x = jax.device_put(jnp.ones((8, 4)), jax.NamedSharding(devices, P("data")))

    def text(names: Any) -> str:
        with jax.set_mesh(devices):
            f = jax.jit(lambda x: constrain(x, names, (("batch", "data"), ("embed", "fsdp"))))
            return str(f.lower(x).as_text())

    assert "sharding_constraint" not in text(("batch", None))
    assert "sharding_constraint" in text(("batch", "embed"))
