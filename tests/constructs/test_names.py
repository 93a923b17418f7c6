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
import pytest
from flax import linen, nnx

from nnx_migrate import nn as nnm
from nnx_migrate import sharding as nnms
from nnx_migrate.constructs import (
    all_rules,
    explain,
    functions,
    name_rule,
    rule_for,
    sharding,
)
from nnx_migrate.constructs.common.base import (
    IMPORTS,
    Code,
    Context,
    Refusal,
)
from nnx_migrate.constructs.common.rules import Layer, RefusalRule
from nnx_migrate.source.names import canonical
from tests.constructs.convert import converted, text_of


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
    "layer", sorted(s for r in all_rules() if isinstance(r, Layer) for s in r.symbols)
)
def test_a_layer_class_as_a_value_is_its_factory(layer: str) -> None:
    found = name_rule(layer, Context.VALUE)
    assert isinstance(found, Code)
    assert callable(_value(text_of(found)))
    assert isinstance(name_rule(layer, Context.BASE), Refusal)


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


def _value(text: str) -> Any:
    return eval(text, {"nnx": nnx, "nnm": nnm, "nnms": nnms, "flax": flax})


@pytest.mark.parametrize(
    ("before", "imports"),
    [
        ("nn.Dense(8)", {"nnx"}),
        ("nn.LayerNorm(dtype=d)", {"nnx", "nnm"}),
        ("nn.Dropout(0.1)", {"nnm"}),
        ("nn.Dense(8, kernel_init=nn.zeros)", {"nnx"}),
        ("nn.Einsum((3, 4), 'ab,bc->ac', use_bias=False)", {"nnx"}),
    ],
)
def test_the_code_names_the_imports_it_needs(before: str, imports: set[str]) -> None:
    found = converted(before)
    assert isinstance(found, Code)
    assert found.imports == imports
