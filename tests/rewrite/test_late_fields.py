"""Fields of a submodule that depend on the call: set where it is called, when that is safe."""

from __future__ import annotations

import pytest

from tests.rewrite.projects import outcomes, rewrite, texts
from tests.rewrite.running import refused

BLOCK = """\
import flax.linen as nn


class Block(nn.Module):
    width: int
    train: bool = False

    @nn.compact
    def __call__(self, x):
        {body}


class Model(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        {call}
"""
DROPS = "return nn.Dropout(0.1)(nn.Dense(self.width)(x), deterministic=not self.train)"


def project(body: str, call: str) -> dict[str, str]:
    return {"m.py": BLOCK.format(body=body, call=call)}


@pytest.mark.parametrize(
    ("call", "built", "called"),
    [
        (
            "return Block(4, train)(x)",
            "self.Block_0 = Block(4, None, in_features=in_features, rngs=rngs)",
            "return nnm.with_fields(self.Block_0, train=train)(x)",
        ),
        (
            "return Block(4, train=not train)(x)",
            "self.Block_0 = Block(4, train=None, in_features=in_features, rngs=rngs)",
            "return nnm.with_fields(self.Block_0, train=not train)(x)",
        ),
        (
            "block = Block(4, train=train, name='b'); return block(x)",
            "self.b = Block(4, train=None, in_features=in_features, rngs=rngs)",
            "block = nnm.with_fields(self.b, train=train); return block(x)",
        ),
    ],
)
def test_a_field_that_the_constructor_only_stores_is_set_late(
    call: str, built: str, called: str
) -> None:
    files = project(DROPS, call)
    result = rewrite(files)
    assert set(outcomes(result).values()) == {"rewritten"}
    text = texts(result, files)["m.py"]
    assert built in text
    assert called in text


@pytest.mark.parametrize(
    "body",
    [
        "return nn.Dense(self.width if self.train else 2)(x)",
        "return nn.Dropout(0.1, deterministic=not self.train)(nn.Dense(self.width)(x))",
        "y = nn.Dense(self.width)(x) if self.train else x\n        return y",
    ],
)
def test_a_field_that_decides_what_is_built_is_refused(body: str) -> None:
    result = rewrite(project(body, "return Block(4, train)(x)"))
    assert outcomes(result) == {"m.Block": "rewritten", "m.Model": "refused"}
    assert any("depends on 'train'" in one.message for one in result.findings)


def test_fields_of_unpacked_arguments_are_refused() -> None:
    result = rewrite(project(DROPS, "return Block(*(4, train))(x)"))
    assert outcomes(result)["m.Model"] == "refused"


# ---- fields that the call takes, too

NORM = """\
from functools import partial

import flax.linen as nn
import jax.numpy as jnp


class Norm(nn.Module):
    train: bool | None = None
    scale: float = 2.0

    @nn.compact
    def __call__(self, x, train: bool | None = None):
        {merge}
        mean = self.variable("batch_stats", "mean", lambda: jnp.zeros(()))
        return (x - x.mean(0) if train else x - mean.value) * self.scale


class Model(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        {call}
"""
MERGE = 'train = nn.merge_param("train", self.train, train)'


@pytest.mark.parametrize(
    ("call", "built", "called"),
    [
        (
            "return Norm(train=not train, scale=3.0)(x)",
            "self.Norm_0 = Norm(scale=3.0, rngs=rngs)",
            "return self.Norm_0(x, train=not train)",
        ),
        (
            "norm = Norm(train=train, name='b'); return norm(norm(x))",
            "self.b = Norm(rngs=rngs)",
            "norm = self.b; return norm(norm(x, train=train), train=train)",
        ),
        (
            "norm = partial(Norm, train=not train)\n        return norm(scale=4.0)(x)",
            "self.Norm_0 = norm(scale=4.0, rngs=rngs)",
            "return self.Norm_0(x, train=not train)",
        ),
    ],
)
def test_what_a_call_merges_with_a_field_is_given_to_the_call(
    call: str, built: str, called: str
) -> None:
    files = {"m.py": NORM.format(merge=MERGE, call=call)}
    result = rewrite(files)
    assert set(outcomes(result).values()) == {"rewritten"}
    text = texts(result, files)["m.py"]
    assert built in text
    assert called in text


@pytest.mark.parametrize(
    "merge",
    [
        "train = self.train",
        "given = train\n        " + MERGE,
        MERGE + "\n        x = x if self.train else 2 * x",
        MERGE + "\n        x = x * len(vars(self))",
        'train = nn.merge_param("train", train, self.train)',
    ],
)
def test_a_field_that_is_read_otherwise_is_set_late(merge: str) -> None:
    files = {"m.py": NORM.format(merge=merge, call="return Norm(train=not train)(x)")}
    assert (
        "nnm.with_fields(self.Norm_0, train=not train)(x)" in texts(rewrite(files), files)["m.py"]
    )


@pytest.mark.parametrize(
    "call",
    [
        "norm = Norm(train=train); train = 0; return norm(x)",
        "return Norm(train=train)(x, train=None)",
    ],
)
def test_a_call_that_would_get_another_value_gets_none(call: str) -> None:
    files = {"m.py": NORM.format(merge=MERGE, call=call)}
    assert "nnm.with_fields(self.Norm_0, train=train)" in texts(rewrite(files), files)["m.py"]


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (
            "drop = nn.Dropout(0.5, deterministic=train); train = 0; return drop(x)",
            "it reads 'train', which is bound again",
        ),
        (
            "drop = partial(nn.Dropout, 0.5, deterministic=train); train = 0; return drop()(x)",
            "it reads 'train', which is bound again",
        ),
        (
            "drop = nn.Dropout(0.5, deterministic=train); return drop(x, deterministic=None)",
            "a call may give what the constructor is given",
        ),
        (
            "drop = partial(nn.Dropout, deterministic=train); half = partial(drop, 0.5); return half()(x)",
            "a partial with an argument that depends on the call is not just called",
        ),
        (
            "drop = partial(nn.Dropout, deterministic=train); return drop(**{'rate': 0.5})(x)",
            "the arguments that are unpacked here may give",
        ),
        (
            "norm = partial(Norm, train=train); return Uses(norm)(x)",
            "depends on 'train', which is only known in the call",
        ),
    ],
)
def test_a_flag_that_would_not_reach_the_same_calls_is_refused(call: str, reason: str) -> None:
    uses = (
        "\n\nclass Uses(nn.Module):\n    make: type\n\n    @nn.compact\n    def __call__(self, x):\n"
        "        return self.make()(nn.Dropout(0.1, deterministic=False)(x))\n"
    )
    assert reason in refused(NORM.format(merge=MERGE, call=call) + uses)


def test_what_an_argument_of_a_call_overrides_stays_with_the_constructor() -> None:
    call = (
        "drop = partial(nn.Dropout, 0.5, deterministic=train); return drop(deterministic=True)(x)"
    )
    files = {"m.py": NORM.format(merge=MERGE, call=call)}
    text = texts(rewrite(files), files)["m.py"]
    assert "self.Dropout_0 = drop(deterministic=True, rngs=rngs)" in text
    assert "return self.Dropout_0(x)" in text


@pytest.mark.parametrize(
    ("other", "outcome"),
    [
        ("nn.Dropout(0.1)(x, deterministic=False)", "rewritten"),
        ("nn.Dropout(0.1, deterministic=False)(x)", "refused"),
        ("nn.Dropout(0.1, (), False)(x)", "refused"),
        ("self.make(deterministic=True)(x)", "refused"),
        ("Inner(self.make)(x)", "rewritten"),
        ("Deep()(x)", "refused"),
        ("deep(x)", "refused"),
    ],
)
def test_a_view_sets_no_flag_of_layers_that_have_it_from_elsewhere(
    other: str, outcome: str
) -> None:
    call = "drop = partial(nn.Dropout, 0.5, deterministic=train); return Uses(drop)(x)"
    uses = (
        "\n\ndef deep(x):\n    return nn.Dropout(0.1, deterministic=False, name='deep')(x)\n"
        "\n\nclass Deep(nn.Module):\n    @nn.compact\n    def __call__(self, x):\n        return deep(x)\n"
        "\n\nclass Inner(nn.Module):\n    make: type\n\n    @nn.compact\n    def __call__(self, x):\n"
        "        return self.make()(x)\n"
        "\n\nclass Uses(nn.Module):\n    make: type\n\n    @nn.compact\n    def __call__(self, x):\n"
        f"        return self.make()({other})\n"
    )
    files = {"m.py": NORM.format(merge=MERGE, call=call) + uses}
    assert outcomes(rewrite(files))["m.Model"] == outcome
