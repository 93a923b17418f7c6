"""Compact methods that go on where their base's compact method ends."""

from __future__ import annotations

import inspect

import jax
import jax.numpy as jnp
import pytest
from flax import nnx

from tests.rewrite.classes.support import converted, loaded, refusal
from tests.rewrite.projects import one_line

BASE = """
class Base(nn.Module):
  sizes: Sequence[int] = (4, 5)

  @nn.compact
  def __call__(self, x):
    {}
    return x


class Child(Base):
  features: int = 3

  @nn.compact
  def __call__(self, x):
    {}
"""
LOOP = "for size in self.sizes:\n      x = nn.relu(nn.Dense(size)(x))"
AFTER = "x = super().__call__(x)\n    return nn.Dense(self.features)(x)"


def child(base: str = LOOP, own: str = AFTER) -> str:
    return BASE.format(base, own)


@pytest.mark.parametrize(
    ("base", "names"),
    [
        (LOOP, {"Dense_0", "Dense_1", "Dense_2"}),
        ("x = nn.Dense(4)(nn.Dense(7)(x))", {"Dense_0", "Dense_1", "Dense_2"}),
        ("x = nn.Dense(4)(nn.LayerNorm()(x))", {"LayerNorm_0", "Dense_0", "Dense_1"}),
        ("x = nn.Dense(4, name='first')(x)", {"first", "Dense_0"}),
        ("for i in range(3):\n      x = nn.Dense(4)(x)", {f"Dense_{i}" for i in range(4)}),
        (
            "for s in self.sizes:\n      x = nn.Dense(s)(nn.Dense(2)(x))\n    x = nn.Dense(9)(x)",
            {f"Dense_{i}" for i in range(6)},
        ),
    ],
)
def test_the_childs_names_go_on_from_the_bases(base: str, names: set[str]) -> None:
    source = child(base)
    x = jnp.ones((2, 6))
    with loaded(source, "before") as before, loaded(converted(source), "after") as after:
        variables = before.Child().init(jax.random.key(0), x)["params"]
        sizes = {"in_features": 6, "x_features": 6}
        model = nnx.eval_shape(lambda: _build(after.Child, sizes))
        assert set(variables) == names
        assert {name for name, _ in nnx.iter_children(model)} == names
        assert {name: variables[name].get("kernel", jnp.zeros(0)).shape for name in names} == {
            name: getattr(getattr(model, name), "kernel", jnp.zeros(0)).shape for name in names
        }
        assert before.Child().apply({"params": variables}, x).shape == (2, 3)


def _build(cls: type[nnx.Module], sizes: dict[str, int]) -> nnx.Module:
    wanted = inspect.signature(cls.__init__).parameters
    return cls(**{k: v for k, v in sizes.items() if k in wanted}, rngs=nnx.Rngs(0))  # type: ignore[call-arg]


def test_the_call_reads_the_attribute_that_init_sets() -> None:
    text = one_line(converted(child()))
    assert 'getattr(self, f"Dense_{len(self.sizes)}")(x)' in text
    assert 'setattr(self, f"Dense_{len(self.sizes)}", ' in text
    assert "x = super().__call__(x)" in text


def test_a_child_that_builds_nothing_calls_its_base() -> None:
    assert "return 2 * super().__call__(x)" in converted(
        child(own="return 2 * super().__call__(x)")
    )


@pytest.mark.parametrize(
    ("base", "own", "reason"),
    [
        (LOOP, "return nn.Dense(3)(super().__call__(x))", "both number"),
        (LOOP, "x = nn.Dense(3)(x)\n    return super().__call__(x)", "both number"),
        (
            LOOP,
            "if self.features:\n      x = super().__call__(x)\n    return nn.Dense(3)(x)",
            "both number",
        ),
        (
            "for size, _ in zip(self.sizes, self.sizes):\n      x = nn.Dense(size)(x)",
            AFTER,
            "is not known",
        ),
        ("if self.sizes:\n      x = nn.Dense(4)(x)", AFTER, "is not known"),
    ],
)
def test_other_ways_to_go_on_are_refused(base: str, own: str, reason: str) -> None:
    assert reason in refusal(child(base, own)).reason


@pytest.mark.parametrize(
    "own", ["return 2 * {}(x)", "x = {}(x)\n    return nn.Dense(self.features)(x)"]
)
def test_a_base_that_is_named_is_called_as_super(own: str) -> None:
    named = child("x = nn.Dense(4)(x)", own.format("Base.__call__").replace("__(x)", "__(self, x)"))
    through_super = child("x = nn.Dense(4)(x)", own.format("super().__call__"))
    text = converted(named).replace("Base.__call__(self, x)", "super().__call__(x)")
    assert text == converted(through_super)


def test_a_base_that_another_method_calls_is_built() -> None:
    own = "return x\n\n  def both(self, x):\n    return super().__call__(x) + self(x)"
    assert "super().__init__(" in converted(
        child(own=own).replace(
            "  @nn.compact\n  def __call__(self, x):\n    return x\n\n  def", "  def"
        )
    )


def test_a_base_called_by_a_helper_of_a_compact_method_is_refused() -> None:
    own = "return nn.Dense(3)(self.base(x))\n\n  def base(self, x):\n    return Base.__call__(self, x)"
    assert "both number" in refusal(child("x = nn.Dense(4)(x)", own)).reason
