"""Fields of a submodule that depend on the call: set where it is called, when that is safe."""

from __future__ import annotations

import pytest

from tests.rewrite.projects import outcomes, rewrite, texts

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
