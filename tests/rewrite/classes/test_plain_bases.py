"""Bases that are no Linen modules: they stay as they are."""

from __future__ import annotations

import pytest

from tests.rewrite.classes.support import converted, refusal

CLASS = """\
class M(Mix, nn.Module):
    @nn.compact
    def __call__(self, x):
        return self.head(nn.Dense(4)(x))
"""


def mixin(body: str) -> str:
    return f"class Mix:\n    def head(self, x):\n        {body}\n\n{CLASS}"


@pytest.mark.parametrize(
    "body",
    ["return nn.Dense(3)(x)", "return [nn.LayerNorm()(x) for _ in range(2)]"],
)
def test_a_plain_base_that_builds_is_refused(body: str) -> None:
    found = refusal(mixin(body))
    assert "which is no Linen module, builds" in found.reason
    assert found.recipe


@pytest.mark.parametrize("body", ["return nn.relu(x)", "return x + jnp.zeros(3)", "pass"])
def test_a_plain_base_that_only_computes_is_kept(body: str) -> None:
    assert "class M(Mix, nnx.Module)" in converted(mixin(body))


@pytest.mark.parametrize(
    "body",
    [
        'return x * self.param("s", nn.initializers.ones, ())',
        'return jax.tree.map(lambda one: one + self.make_rng("noise"), x)',
        'self.sow("losses", "x", x)',
        "return self.variables",
    ],
)
def test_a_plain_base_that_reads_what_every_linen_module_has_is_refused(body: str) -> None:
    assert "which is no Linen module, reads self." in refusal(mixin(body)).reason


def test_unless_the_class_has_its_own() -> None:
    source = mixin("return self.path(x)").replace(
        "M(Mix, nn.Module):", "M(Mix, nn.Module):\n    path: Callable"
    )
    assert "class M(Mix, nnx.Module)" in converted(source)


def test_a_plain_base_with_a_setup_is_refused() -> None:
    """`lazy(M)` would have that method, and a lazy module runs its ``setup`` before every call."""
    source = f"class Mix:\n    def setup(self):\n        self.head = nn.relu\n\n{CLASS}"
    assert "which is no Linen module, has a setup" in refusal(source).reason


@pytest.mark.parametrize("decorator", ["dataclass", "dataclass(frozen=True)"])
def test_a_plain_base_that_is_a_dataclass_is_refused(decorator: str) -> None:
    """Linen's class is a dataclass, too, and its constructor takes the base's fields."""
    source = (
        f"import dataclasses\n\n@dataclasses.{decorator}\nclass Mix:\n    w: int = 3\n\n{CLASS}"
    )
    assert "is a dataclass and has fields" in refusal(source).reason
