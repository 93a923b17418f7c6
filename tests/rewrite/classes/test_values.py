"""``variable.value``: read whatever it holds, and replaced whole, as in Linen."""

from __future__ import annotations

import numpy as np
import pytest

from nnx_migrate.parity import ParityCase, check
from tests.rewrite.classes.support import converted, loaded, refusal

MODEL = """\
class M(nn.Module):
  @nn.compact
  def __call__(self, x):
    v = self.variable("state", "v", {init})
    {use}
    return nn.Dense(2)(x)
"""
X = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)


@pytest.mark.parametrize(
    ("init", "read"),
    [
        ("jnp.zeros, (3,)", "v[...]"),
        ("lambda: jnp.ones(3)", "v[...]"),
        ("nn.initializers.normal(0.1), jax.random.key(0), (3,)", "v[...]"),
        ("nn.initializers.zeros, None, (3,)", "v[...]"),
        ("lambda: None", "v.get_value()"),
        ("lambda: {'a': jnp.ones(3)}", "v.get_value()"),
        ("dict", "v.get_value()"),
        ("self.start", "v.get_value()"),
    ],
)
def test_a_value_is_indexed_only_where_it_is_plainly_an_array(init: str, read: str) -> None:
    source = MODEL.format(init=init, use="print(v.value)")
    text = converted(source + "\n  def start(self):\n    return None\n")
    assert f"print({read})" in text


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("v.value = x", "v.set_value(x)"),
        ("v.value = v.value * 2 + x", "v.set_value(v[...] * 2 + x)"),
        ("v.value += x", "v.set_value(v[...] + x)"),
        ("v.value *= x - 1", "v.set_value(v[...] * (x - 1))"),
        ("v.value **= 2", "v.set_value(v[...] ** 2)"),
        ("v.value = (\n      x +\n      1)", "v.set_value(x +\n      1)"),
        ("v.value = x if True else (x, 1)", "v.set_value(x if True else (x, 1))"),
    ],
)
def test_an_assignment_replaces_the_value(statement: str, expected: str) -> None:
    assert f"    {expected}\n" in converted(MODEL.format(init="jnp.zeros, (3,)", use=statement))


def test_an_attribute_of_setup_is_read_and_replaced_likewise() -> None:
    text = converted(
        """\
        class M(nn.Module):
          def setup(self):
            self.a = self.variable("state", "a", jnp.zeros, (3,))
            self.b = self.variable("state", "b", tuple)

          def __call__(self, x):
            self.a.value = x
            self.b.value = (x, self.a.value)
            return self.b.value[0]
        """
    )
    assert "self.a.set_value(x)" in text
    assert "self.b.set_value((x, self.a[...]))" in text
    assert "return self.b.get_value()[0]" in text


@pytest.mark.parametrize("statement", ["v.value, n = x, 1", "n = v.value = x", "(v.value,) = x"])
def test_a_value_assigned_together_with_something_else_is_refused(statement: str) -> None:
    found = refusal(MODEL.format(init="jnp.zeros, (3,)", use=statement))
    assert found.reason == "a variable is assigned together with something else"


RUNNING = {
    "another dtype": ("jnp.zeros, (), jnp.int32", "v.value = v.value + x.mean()"),
    "another shape": ("jnp.zeros, ()", "v.value = x"),
    "a container": ("lambda: (jnp.ones(2), jnp.zeros(2))", "v.value = v.value[::-1]"),
    "nothing, and then something": ("lambda: None", "v.value = x"),
}


@pytest.mark.parametrize(("init", "use"), RUNNING.values(), ids=RUNNING.keys())
def test_the_value_is_what_linen_leaves(init: str, use: str) -> None:
    source = MODEL.format(init=init, use=f"if not self.is_initializing(): {use}")
    with loaded(source, "before") as before, loaded(converted(source), "after") as after:
        report = check(
            ParityCase(
                linen=before.M(),
                nnx=lambda rngs: after.M(in_features=4, rngs=rngs),
                inputs=(X,),
                collections=("state",),
            )
        )
    assert (report.check("collections").status, report.verdict) == ("pass", "identical")
