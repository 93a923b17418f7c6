"""What would replace something else without an error is refused."""

from __future__ import annotations

import textwrap

import pytest

from tests.rewrite.classes.support import converted, refusal
from tests.rewrite.running import printed_alike


def test_one_name_in_two_collections_is_refused() -> None:
    found = refusal(
        """\
        class M(nn.Module):
          @nn.compact
          def __call__(self, x):
            w = self.param("w", nn.initializers.ones, (x.shape[-1],))
            v = self.variable("stats", "w", jnp.ones, (6,))
            return x * w * v.value
        """
    )
    assert "two collections have 'w'" in found.reason


SOWN = """\
class M(nn.Module):
  @nn.compact
  def __call__(self, x):
    w = self.variable("stats", "w", jnp.ones, x.shape)
    self.sow({}, w.value)
    return x * w.value
"""


def test_a_variable_whose_name_is_sown_into_another_collection_is_refused() -> None:
    assert "it sows 'w' into another collection" in refusal(SOWN.format('"losses", "w"')).reason


def test_a_variable_beside_another_name_that_is_sown_is_none() -> None:
    assert 'nnm.sow(self, "losses", "v", w[...])' in converted(SOWN.format('"losses", "v"'))


PUT = """\
class M(nn.Module):
  kind: str = "a"
  SIZE = 3

  def setup(self):
    self.dense = nn.Dense(6)
    self.held = self.variable("cache", "held", jnp.zeros, ())
    self.twice = 2

  def __call__(self, x):
    {put}
    return self.step(self.dense(x)) * self.twice

  def step(self, x):
    return x
"""


@pytest.mark.parametrize(
    ("put", "name"),
    [
        ('self.put_variable("cache", "step", x)', "step"),
        ('x = self.perturb("step", x)', "step"),
        ('x = self.perturb("kind", x)', "kind"),
        ('self.put_variable("cache", "SIZE", x)', "SIZE"),
        ('x = self.perturb("twice", x)', "twice"),
        ('x = self.perturb("held", x)', "held"),
        ('self.put_variable(name="held", col="stats", value=x)', "held"),
    ],
)
def test_a_variable_that_is_put_under_the_name_of_something_else_is_refused(
    put: str, name: str
) -> None:
    assert f"{name!r} names something else as well" in refusal(PUT.format(put=put)).reason


@pytest.mark.parametrize(
    "put",
    [
        'self.put_variable("cache", "held", x.sum())',
        'x = self.perturb("x", x)',
        'self.put_variable("cache", "other", x)',
    ],
)
def test_a_variable_that_is_put_under_a_name_of_its_own_is_none(put: str) -> None:
    assert "nnx.Module" in converted(PUT.format(put=put))


def test_one_parameter_declared_in_two_branches_is_no_conflict() -> None:
    text = converted(
        """\
        class M(nn.Module):
          flag: bool

          @nn.compact
          def __call__(self, x):
            if self.flag:
              w = self.param("w", nn.initializers.ones, (6,))
            else:
              w = self.param("w", nn.initializers.zeros, (6,))
            return x * w
        """
    )
    assert text.count("self.w = nnx.Param(") == 2


@pytest.mark.parametrize(
    "other", ["self.k = 3.0", "self.k = nn.Dense(3)", 'self.v = self.param("k", init, (6,))']
)
def test_a_stored_name_that_another_attribute_has_is_refused(other: str) -> None:
    found = refusal(
        f"""\
        init = jax.nn.initializers.ones

        class M(nn.Module):
          def setup(self):
            self.w = self.param("k", init, (6,))
            {other}

          def __call__(self, x):
            return x * self.w
        """
    )
    assert "'k' names self.w" in found.reason


def test_exchanged_names_of_submodules_are_refused() -> None:
    found = refusal(
        """\
        class M(nn.Module):
          def setup(self):
            self.a = nn.Dense(6, name="b")
            self.b = nn.Dense(6, name="a")

          def __call__(self, x):
            return self.b(self.a(x))
        """
    )
    assert "'b' names self.a" in found.reason


def test_a_compact_method_that_goes_on_from_its_bases_is_refused() -> None:
    found = refusal(
        """\
        class Base(nn.Module):
          @nn.compact
          def __call__(self, x):
            return nn.Dense(3)(x)

        class M(Base):
          @nn.compact
          def __call__(self, x):
            return nn.Dense(2)(super().__call__(x))
        """
    )
    assert "both number their submodules" in found.reason


def test_a_plain_method_may_go_on_from_the_compact_one_of_its_base() -> None:
    text = converted(
        """\
        class Base(nn.Module):
          @nn.compact
          def __call__(self, x):
            return nn.Dense(3)(x)

        class M(Base):
          def __call__(self, x):
            return super().__call__(x) * 2
        """
    )
    assert text.count("self.Dense_0 = ") == 1


def test_a_size_that_a_later_loop_carries_is_refused() -> None:
    found = refusal(
        """\
        class M(nn.Module):
          @nn.compact
          def __call__(self, x):
            d = nn.Dense(6)
            for i in range(3):
              x = d(x)
              x = nn.LayerNorm()(x)
            return x
        """
    )
    assert "before it is known" in found.reason


def test_reading_before_binding_is_found() -> None:
    import ast

    from nnx_migrate.rewrite.classes.checks.conflicts import read_too_early

    def early(body: str) -> str | None:
        tree = ast.parse("def f(a):\n" + textwrap.indent(textwrap.dedent(body), "  "))
        function = tree.body[0]
        assert isinstance(function, ast.FunctionDef)
        return read_too_early(function)

    assert early("b = c\nc = 1") == "c"
    assert early("for i in range(c):\n  c = 1") == "c"
    assert early("b = [c for c in a]\nc = b") is None
    assert early("if a:\n  c = 1\nb = c") is None
    assert early("b = lambda: c\nc = 1") is None
    assert early("c = c + 1") == "c"


@pytest.mark.parametrize("taken", ["Dense_0: int = 3", "def Dense_0(self, x):\n    return x * 2"])
def test_an_automatic_name_that_a_field_or_method_has_is_refused(taken: str) -> None:
    found = refusal(
        f"""\
class M(nn.Module):
  {taken}

  @nn.compact
  def __call__(self, x):
    return nn.Dense(3)(x)
"""
    )
    assert "'Dense_0' names a " in found.reason


def test_an_attribute_that_holds_one_submodule_here_and_some_of_a_list_there_is_refused() -> None:
    found = refusal(
        """\
        class M(nn.Module):
          tied: bool

          def setup(self):
            self.layers = [nn.Dense(6)]
            if self.tied:
              self.c = self.layers[0]
            else:
              self.c = nn.Dense(6)

          def __call__(self, x):
            return self.c(self.layers[0](x))
        """
    )
    assert "self.c holds a submodule of its own here" in found.reason


PRIVATE = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class __Inner(nn.Module):
    def setup(self):
        self.__dense = nn.Dense(2)

    def __call__(self, x):
        return self.__dense(x)


Inner = __Inner


class Model(nn.Module):
{body}


def main():
    x = jnp.sin(jnp.arange(12.0)).reshape(2, 6)
    variables = Model().init(jax.random.key(0), x)
    for path, leaf in jax.tree_util.tree_leaves_with_path(variables):
        print(jax.tree_util.keystr(path), leaf.shape, float(leaf.sum()))
    print(Model().apply(jax.tree.map(lambda v: v * 1.1, variables), x).tolist())
"""
COMPACT = "    @nn.compact\n    def __call__(self, x):\n"
MANGLED = {
    "submodule": f"{COMPACT}        return nn.Dense(3, name='__d')(x)\n",
    "parameter": f"{COMPACT}        return x * self.param('__w', nn.initializers.normal(), (1, 6))\n",
    "variable": f"{COMPACT}        return x * self.variable('s', '__w', jnp.ones, (1, 6)).value\n",
    "class": f"{COMPACT}        return Inner()(x)\n",
    "list": (
        "    def setup(self):\n        self.__parts = [nn.Dense(3), nn.Dense(2)]\n\n"
        "    def __call__(self, x):\n        for part in self.__parts:\n            x = part(x)\n"
        "        return x\n"
    ),
}
KEPT = {
    "dunder": f"{COMPACT}        return nn.Dense(3, name='__d__')(x)\n",
    "one line": f"{COMPACT}        return nn.Dense(3, name='_d')(x)\n",
    "f-string": (
        f"{COMPACT}        for i in range(2):\n            x = nn.Dense(3, name=f'__d{{i}}')(x)\n"
        "        return x\n"
    ),
    "attribute": (
        "    def setup(self):\n        self.__part = nn.Dense(3)\n\n"
        "    def __call__(self, x):\n        return self.__part(x)\n"
    ),
    "stored as another": (
        "    def setup(self):\n        self.__w = self.param('w', nn.initializers.normal(), (1, 6))\n\n"
        "    def __call__(self, x):\n        return x * self.__w\n"
    ),
}


@pytest.mark.parametrize("body", MANGLED.values(), ids=MANGLED)
def test_a_name_that_python_changes_in_a_class_is_lazy(body: str) -> None:
    assert printed_alike(PRIVATE.replace("{body}", body))["m.Model"] == "lazy"


@pytest.mark.parametrize("body", KEPT.values(), ids=KEPT)
def test_a_name_that_python_leaves_is_explicit(body: str) -> None:
    assert printed_alike(PRIVATE.replace("{body}", body))["m.Model"] == "explicit"
