"""Options of a lift are data: a field that gives one holds no module, whatever a caller gives it."""

from __future__ import annotations

import pytest

from tests.rewrite.projects import LINEN, dense
from tests.rewrite.test_forms import auto, reason, said

BLOCK = dense("Block", width=4) + (
    "def policy_of(name):\n"
    "    return {'dots': jax.checkpoint_policies.checkpoint_dots, '': None}[name]\n\n\n"
)
MAIN = "\n\ndef main(config, key, x):\n    return Model({given}).init(key, x)\n"
COMPACT = """\
class Model(nn.Module):
    option: {type}

    @nn.compact
    def __call__(self, x):
        return {block}(name="block")(x)
"""
SETUP = """\
class Model(nn.Module):
    option: str

    def setup(self):
        block = Block
        if self.option:
            block = nn.remat(block, policy={policy})
        self.block = block()

    def __call__(self, x):
        return self.block(x)
"""
OPTIONS = {
    "a policy of jax": "nn.remat(Block, policy=getattr(jax.checkpoint_policies, self.option))",
    "a policy of the project": "nn.remat(Block, policy=policy_of(self.option))",
    "an axis size": "nn.vmap(Block, variable_axes={'params': 0}, split_rngs={'params': True},"
    " in_axes=None, axis_size=self.option)",
}


def program(model: str, given: str) -> dict[str, str]:
    return {"m.py": "import jax\n" + LINEN + BLOCK + model + MAIN.format(given=given)}


@pytest.mark.parametrize("option", OPTIONS)
def test_an_option_that_only_the_program_knows_is_data(option: str) -> None:
    kind = "int" if option == "an axis size" else "str"
    result = auto(program(COMPACT.format(type=kind, block=OPTIONS[option]), "config.option"))
    assert said(result) == {"m.Block": "explicit", "m.Model": "explicit"}


def test_a_function_that_gives_a_policy_builds_nothing() -> None:
    result = auto(program(SETUP.format(policy="policy_of(self.option)"), "config.option"))
    assert said(result) == {"m.Block": "explicit", "m.Model": "explicit"}


def test_what_is_called_beside_a_policy_may_build_a_module() -> None:
    model = SETUP.format(policy="TABLE[self.option]()").replace(
        "= block()", "= TABLE[self.option](4)"
    )
    result = auto(program(model, "config.option"))
    assert said(result)["m.Model"] == "lazy"
    assert "may build a submodule" in reason(result, "m.Model")


def test_the_class_that_is_lifted_must_be_explicit() -> None:
    model = COMPACT.format(type="type", block="nn.remat(self.option, policy=None)")
    result = auto(program(model, "config.option"))
    assert said(result)["m.Model"] == "lazy"
