"""Every public name of flax.linen is claimed once; replacements are what they are said to be."""

from __future__ import annotations

import inspect
import types
from typing import Any

import flax.core
import flax.linen
import flax.linen.initializers
import flax.linen.partitioning
import flax.linen.spmd
import flax.typing
import jax
import pytest
from flax import linen, nnx

from nnx_migrate import nn as nnm
from nnx_migrate import sharding as nnms
from nnx_migrate.constructs import (
    all_rules,
    explain,
    functions,
    initializers,
    name_rule,
    rule_for,
    sharding,
)
from nnx_migrate.constructs.base import (
    IMPORTS,
    Code,
    Context,
    LayerRule,
    Refusal,
    RefusalRule,
)
from nnx_migrate.source.names import canonical
from tests.constructs.convert import refusal, text, text_of


def _public(module: types.ModuleType) -> list[str]:
    # Without packages below it, which are attributes as soon as another test has imported them.
    below = {name for name, one in vars(module).items() if hasattr(one, "__path__")}
    return [name for name in dir(module) if not name.startswith("_") and name not in below]


def _own(module: types.ModuleType) -> list[str]:
    """Names of a module that are flax.linen's, not typing's or those of other packages."""
    found = []
    for name in _public(module):
        home = getattr(getattr(module, name), "__module__", None) or ""
        if home.startswith(("flax.linen", "flax.core.spmd")):
            found.append(canonical(f"{module.__name__}.{name}"))
    return found


LINEN = sorted(f"flax.linen.{name}" for name in _public(linen))
BELOW = sorted(
    {
        *(f"flax.linen.initializers.{name}" for name in _public(linen.initializers)),
        *_own(linen.partitioning),
        *_own(linen.spmd),
    }
)


@pytest.mark.parametrize("symbol", [*LINEN, *BELOW])
def test_every_public_linen_name_is_claimed_by_exactly_one_rule(symbol: str) -> None:
    assert sum(symbol in rule.symbols for rule in all_rules()) == 1


def test_flax_linen_has_the_names_that_were_counted() -> None:
    assert len(LINEN) >= 123


def test_a_name_that_no_rule_claims_is_refused() -> None:
    assert rule_for("flax.linen.Brandnew") is None
    found = name_rule("flax.linen.Brandnew")
    assert isinstance(found, Refusal)
    assert "no rule knows" in found.reason


@pytest.mark.parametrize("name", functions.SAME_IN_NNX)
def test_a_renamed_function_is_the_same_object_in_nnx(name: str) -> None:
    assert _linen(f"flax.linen.{name}") is getattr(nnx, name)


@pytest.mark.parametrize(
    ("before", "after"), [*functions.SAME_ELSEWHERE.items(), *sharding.SAME_ELSEWHERE.items()]
)
def test_a_moved_name_is_the_same_object(before: str, after: str) -> None:
    assert _linen(before) is _value(after)


@pytest.mark.parametrize(("before", "after"), sharding.SAME_IN_SHIM.items())
def test_a_name_of_the_shim_takes_linens_arguments(before: str, after: str) -> None:
    symbol = before.replace("linen.RulesFallback", "linen.spmd.RulesFallback")
    theirs, ours = _linen(symbol), _value(after)
    if "RulesFallback" in before:
        assert _members(ours) == _members(theirs) != []
    else:
        theirs, ours = inspect.signature(theirs), inspect.signature(ours)
        assert list(ours.parameters) == list(theirs.parameters)


def _members(kind: Any) -> list[tuple[str, str]]:
    members = kind if isinstance(kind, type) else [kind]
    return [(one.name, one.value) for one in members]


@pytest.mark.parametrize("name", initializers.SAME)
def test_an_initialiser_is_the_same_object_in_nnx(name: str) -> None:
    assert getattr(linen.initializers, name) is getattr(nnx.initializers, name)


@pytest.mark.parametrize("name", initializers.SAME_RESULT)
def test_zeros_init_and_ones_init_return_the_same_initialiser(name: str) -> None:
    before = getattr(linen, name)()
    assert before is getattr(nnx.initializers, name)()
    assert before is getattr(jax.nn.initializers, name.removesuffix("_init"))


def test_combine_masks_computes_the_same_in_nnx() -> None:
    """Only the error differs: AssertionError in Linen, ValueError in NNX."""
    masks = (jax.numpy.ones((2, 3)), None, jax.numpy.eye(3)[:2])
    before, after = (jax.make_jaxpr(one.combine_masks)(*masks) for one in (linen, nnx))
    assert str(before) == str(after)


@pytest.mark.parametrize("name", ["make_attention_mask", "make_causal_mask"])
def test_mask_functions_have_the_same_code_in_nnx(name: str) -> None:
    before, after = (inspect.getsource(getattr(one, name)) for one in (linen, nnx))
    assert _code(before) == _code(after)


PARTS = ("linear", "module", "attention", "spmd", "normalization", "summary")


@pytest.mark.parametrize("name", functions.TYPES)
def test_a_type_is_flax_typings(name: str) -> None:
    homes = [getattr(linen, part) for part in PARTS]
    values = [getattr(home, name) for home in homes if hasattr(home, name)]
    assert values
    assert all(value == getattr(flax.typing, name) for value in values)


@pytest.mark.parametrize("name", initializers.DEFAULTS)
def test_a_default_initialiser_gives_linens_values(name: str) -> None:
    after = eval(initializers.DEFAULTS[name], {"nnx": nnx})
    key = jax.random.key(0)
    assert bool((getattr(linen.linear, name)(key, (4, 6)) == after(key, (4, 6))).all())


@pytest.mark.parametrize("context", Context)
def test_every_replacement_exists(context: Context) -> None:
    for symbol in (*LINEN, *BELOW):
        _check_replacement(name_rule(symbol, context))


def _check_replacement(found: Code | Refusal) -> None:
    if isinstance(found, Refusal):
        assert found.reason
        assert found.recipe
    elif text_of(found):
        assert found.imports
        assert found.imports <= IMPORTS.keys()
        assert _value(text_of(found)) is not None


@pytest.mark.parametrize(
    "layer", sorted(s for r in all_rules() if isinstance(r, LayerRule) for s in r.symbols)
)
def test_a_layer_class_as_a_value_is_its_factory(layer: str) -> None:
    found = name_rule(layer, Context.VALUE)
    assert isinstance(found, Code)
    assert callable(_value(text_of(found)))
    assert isinstance(name_rule(layer, Context.BASE), Refusal)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("nn.relu", "nnx.relu"),
        ("nn.softmax(x, axis=-1)", "nnx.softmax(x, axis=-1)"),
        ("nn.normalize(x)", "nnx.standardize(x)"),
        ("nn.max_pool(x, (2, 2))", "nnx.max_pool(x, (2, 2))"),
        ("nn.pooling.min_pool(x, (2, 2))", "nnx.min_pool(x, (2, 2))"),
        ("nn.zeros", "nnx.initializers.zeros"),
        ("nn.initializers.ones_init()", "nnx.initializers.ones_init()"),
        ("nn.make_causal_mask(x, dtype=bool)", "nnx.make_causal_mask(x, dtype=bool)"),
        ("nn.attention.dot_product_attention(q, k, v)", "nnm.dot_product_attention(q, k, v)"),
        ("nn.module.merge_param('d', a, b)", "nnm.merge_param('d', a, b)"),
        (
            "functools.partial(nn.Conv, use_bias=False)",
            "functools.partial(nnm.factory.Conv, use_bias=False)",
        ),
        ("{'layer': nn.LayerNorm}", "{'layer': nnm.factory.LayerNorm}"),
        ("nn.FrozenDict({})", "flax.core.FrozenDict({})"),
        ("lambda x: nn.gelu(nn.tanh(x))", "lambda x: nnx.gelu(nnx.tanh(x))"),
        ("nn.PARTITION_NAME", "nnx.PARTITION_NAME"),
        ("nn.remat(Block)", "nnm.remat(Block)"),
        (
            "nn.checkpoint(Block, prevent_cse=False, static_argnums=(2, 3))",
            "nnm.remat(Block, prevent_cse=False, static_argnums=(2, 3))",
        ),
        (
            "partitioning.remat(Block, static_argnums=(1,), policy=p)",
            "nnm.remat(Block, static_argnums=(1,), policy=p, counts_self=False)",
        ),
        (
            "nn.with_logical_partitioning(nn.zeros, ('embed',))",
            "nnm.with_logical_partitioning(nnx.initializers.zeros, ('embed',))",
        ),
        ("nn.remat(Block, True, True)", "nnm.remat(Block)"),
        (
            "nn.with_partitioning(nn.ones, ('data', None), mesh=mesh)",
            "nnm.with_partitioning(nnx.initializers.ones, ('data', None), mesh=mesh)",
        ),
        (
            "nn.with_logical_constraint(x, ('batch', 'embed'), rules=rules, mesh=mesh)",
            "nnms.with_logical_constraint(x, ('batch', 'embed'), rules=rules, mesh=mesh)",
        ),
        (
            "partitioning.with_sharding_constraint(x, ('batch',))",
            "nnms.with_logical_constraint(x, ('batch',))",
        ),
        (
            "nn.with_logical_constraint(x, n, fallback=nn.spmd.RulesFallback.RAISE_ERROR)",
            "nnms.with_logical_constraint(x, n, fallback=nnms.RulesFallback.RAISE_ERROR)",
        ),
        ("nn.logical_to_mesh_axes(names)", "nnms.logical_to_mesh_axes(names)"),
        ("nn.spmd.logical_to_mesh(tree, rules)", "nnms.logical_to_mesh(tree, rules)"),
        ("partitioning.logical_to_mesh(tree)", "nnms.logical_to_mesh(tree)"),
        ("nn.logical_to_mesh_sharding(t, mesh)", "nnms.logical_to_mesh_sharding(t, mesh)"),
        ("nn.unbox(params)", "nnms.unbox(params)"),
        ("nn.meta.unbox(params)", "nnms.unbox(params)"),
        ("nn.meta.replace_boxed(box, x)", "nnms.replace_boxed(box, x)"),
        ("nn.get_partition_spec(variables)", "nnms.get_partition_spec(variables)"),
        ("nn.get_sharding(variables, mesh)", "nnms.get_sharding(variables, mesh)"),
        ("nn.LogicallyPartitioned(x, names)", "nnms.LogicallyPartitioned(x, names)"),
        ("nn.spmd.LogicallyPartitioned(x, n)", "nnms.LogicallyPartitioned(x, n)"),
        ("isinstance(x, nn.Partitioned)", "isinstance(x, nnms.Partitioned)"),
        ("isinstance(x, nn.meta.AxisMetadata)", "isinstance(x, nnms.AxisMetadata)"),
        ("{nn.meta.PARTITION_NAME: 'layers'}", "{nnx.PARTITION_NAME: 'layers'}"),
        ("nn.remat(nn.Dense)", "nnm.remat(nnm.factory.Dense)"),
        ("nn.remat(Block, methods=['f'])", "nnm.remat(Block, methods=['f'])"),
        ("nn.scan(Block, methods=['f'])", "nnm.scan(Block, methods=['f'])"),
        ("nn.vmap(Block, methods={'f': {}})", "nnm.vmap(Block, methods={'f': {}})"),
        ("nn.remat(lambda m, x: m(x))", "nnm.remat(lambda m, x: m(x))"),
    ],
)
def test_a_name_is_rewritten(before: str, after: str) -> None:
    assert text(before) == after


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ("nn.scan(Layer, methods=NAMES)", "scan with methods="),
        ("nn.vmap(Layer, methods=NAMES)", "vmap with methods="),
        ("nn.share_scope(a, b)", "share_scope"),
        ("nn.fold_rngs(f)", "fold_rngs"),
        ("nn.jit(Layer)", "nn.jit"),
        ("nn.remat_scan(Layer, (2, n))", "remat_scan"),
        ("nn.map_variables(Layer, 'params', f)", "map_variables"),
        ("nn.cond(p, f, g, self, x)", "cond is not rewritten"),
        ("nn.switch(i, fs, self, x)", "switch is not rewritten"),
        ("nn.while_loop(f, g, self, x)", "while_loop is not rewritten"),
        ("nn.vjp(f, self, x)", "vjp is not rewritten"),
        ("nn.custom_vjp(f, fwd, bwd)", "custom_vjp is not rewritten"),
        ("nn.SpectralNorm(layer)", "SpectralNorm is not rewritten"),
        ("partitioning.ScanOut(0)", "only makes"),
        ("partitioning.AxisMetadata(names)", "a box of axis names in a collection"),
        ("nn.meta", "module flax.core.meta"),
        ("partitioning.get_axis_names(variables)", "axis names of variables"),
        ("partitioning.param_with_axes('k', i)", "param_with_axes"),
        ("nn.intercept_methods(f)", "intercept_methods"),
        ("nn.apply(f, m)", "nn.apply"),
        ("nn.tabulate(m, k)", "nn.tabulate"),
        ("nn.compact", "other than as a decorator"),
        ("nn.Variable", "used as a value"),
        ("nn.attention", "module flax.linen.attention"),
        ("getattr(nn, name)", "module flax.linen itself"),
        ("nn.remat", "used as a value"),
        ("functools.partial(nn.remat, prevent_cse=False)", "used as a value"),
        ("nn.remat(Block, rngs=False)", "remat with rngs="),
        ("nn.remat(Block, variables='params')", "remat with variables="),
        ("nn.remat(**options)", "does not show"),
        ("nn.linear.Brandnew(3)", "no rule knows"),
        ("nn.Dense.from_config(c)", "no rule knows"),
    ],
)
def test_a_name_is_refused(before: str, reason: str) -> None:
    assert reason in refusal(before).reason


def test_contexts_decide_what_a_name_becomes() -> None:
    def found(name: str, context: Context) -> str:
        code = name_rule(f"flax.linen.{name}", context)
        assert isinstance(code, Code)
        return text_of(code)

    assert found("Module", Context.BASE) == "nnx.Module"
    assert found("Dense", Context.ANNOTATION) == "nnx.Linear"
    assert found("Variable", Context.ANNOTATION) == "nnx.Variable"
    assert found("compact", Context.DECORATOR) == ""
    assert found("remat", Context.DECORATOR) == "nnm.remat"


def test_every_rule_has_documentation_and_an_example() -> None:
    for rule in all_rules():
        assert "0.12.8" in explain(rule.name)
        assert rule.example.before in explain(rule.name)


def test_rule_names_are_unique() -> None:
    names = [rule.name for rule in all_rules()]
    assert len(names) == len(set(names))


def test_explain_takes_linen_names_and_refuses_unknown_ones() -> None:
    assert "nnx.Linear" in explain("Dense")
    assert "nnx.Linear" in explain("flax.linen.Dense")
    with pytest.raises(KeyError):
        explain("Brandnew")


def test_every_refusal_has_a_reason_and_a_recipe() -> None:
    refusals = [
        r for rule in all_rules() if isinstance(rule, RefusalRule) for r in rule.refusals.values()
    ]
    assert refusals
    assert all(one.reason and one.recipe and one.message for one in refusals)


def _linen(symbol: str) -> Any:
    value: Any = flax
    for part in symbol.split(".")[1:]:
        value = linen.pooling.min_pool if part == "min_pool" else getattr(value, part)
    return value


def _value(dotted: str) -> Any:
    head, *rest = dotted.split(".")
    value: Any = {"nnx": nnx, "nnm": nnm, "nnms": nnms, "flax": flax}[head]
    for part in rest:
        value = getattr(value, part)
    return value


def _code(source: str) -> str:
    return "".join(source.split('"""')[::2]).replace(" ", "")
