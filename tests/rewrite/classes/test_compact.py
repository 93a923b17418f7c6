"""Compact methods: what moves to ``__init__``, under which name, and what the call keeps."""

from __future__ import annotations

import textwrap

import pytest

from tests.rewrite.classes.support import converted, refusal


def same(before: str, after: str) -> None:
    assert converted(before) == textwrap.dedent(after)


def test_names_count_per_class_in_order_of_construction() -> None:
    same(
        """\
        class M(nn.Module):
          features: int

          @nn.compact
          def __call__(self, x):
            x = nn.Dense(self.features)(nn.relu(nn.Dense(4)(x)))  # outer first
            return nn.LayerNorm()(x)
        """,
        """\
        class M(nnx.Module):
          def __init__(self, features: int, *, in_features: int, rngs: nnx.Rngs):
            self.features = features
            self.Dense_0 = nnx.Linear(4, self.features, rngs=rngs)
            self.Dense_1 = nnx.Linear(in_features, 4, rngs=rngs)
            self.LayerNorm_0 = nnx.LayerNorm(self.features, rngs=rngs)

          def __call__(self, x):
            x = self.Dense_0(nnx.relu(self.Dense_1(x)))  # outer first
            return self.LayerNorm_0(x)
        """,
    )


def test_a_loop_with_an_index_gives_indexed_names_and_carries_the_width() -> None:
    same(
        """\
        class M(nn.Module):
          features: Sequence[int]

          @nn.compact
          def __call__(self, x):
            for i, size in enumerate(self.features):
              x = nn.Dense(size, name=f"layers_{i}")(x)
            return x
        """,
        """\
        class M(nnx.Module):
          def __init__(self, features: Sequence[int], *, in_features: int, rngs: nnx.Rngs):
            self.features = nnm.freeze(features)
            x_features = in_features
            for i, size in enumerate(self.features):
              setattr(self, f"layers_{i}", nnx.Linear(x_features, size, rngs=rngs))
              x_features = size

          def __call__(self, x):
            for i, size in enumerate(self.features):
              x = getattr(self, f"layers_{i}")(x)
            return x
        """,
    )


def test_automatic_names_in_an_indexed_loop_grow_with_the_index() -> None:
    text = converted(
        """\
        class M(nn.Module):
          depth: int

          @nn.compact
          def __call__(self, x):
            x = nn.Dense(8)(x)
            for i in range(self.depth):
              x = x + nn.Dense(8)(nn.Dense(8)(x))
            return x
        """
    )
    assert "self.Dense_0 = nnx.Linear(in_features, 8, rngs=rngs)" in text
    assert 'getattr(self, f"Dense_{2 * i + 1}")(getattr(self, f"Dense_{2 * i + 2}")(x))' in text


def test_names_after_a_loop_of_unknown_length_are_counted_at_run_time() -> None:
    text = converted(
        """\
        class M(nn.Module):
          sizes: Sequence[int]

          @nn.compact
          def __call__(self, x):
            for size in reversed(self.sizes):
              x = nn.Dense(size)(x)
            return nn.Dense(2)(x)
        """
    )
    assert '@nnm.named_in_linen("dense")' in text
    assert 'setattr(self, f"dense_0_{i}", nnx.Linear(x_features, size, rngs=rngs))' in text
    assert "return self.dense_1(x)" in text


def test_conditions_on_fields_move_and_conditions_on_the_call_stay() -> None:
    same(
        """\
        class M(nn.Module):
          project: bool = True

          @nn.compact
          def __call__(self, x, train: bool = False):
            if self.project:
              x = nn.Dense(8, name="proj")(x)
            if train:
              x = nn.Dropout(0.5)(x, deterministic=False)
            return x
        """,
        """\
        class M(nnx.Module):
          def __init__(self, project: bool = True, *, in_features: int, rngs: nnx.Rngs):
            self.project = project
            if self.project:
              self.proj = nnx.Linear(in_features, 8, rngs=rngs)
            self.Dropout_0 = nnx.Dropout(0.5, rngs=rngs)

          def __call__(self, x, train: bool = False):
            if self.project:
              x = self.proj(x)
            if train:
              x = self.Dropout_0(x, deterministic=False)
            return x
        """,
    )


def test_arguments_that_depend_on_the_call_move_to_the_call() -> None:
    text = converted(
        """\
        class M(nn.Module):
          @nn.compact
          def __call__(self, x, train):
            x = nn.BatchNorm(use_running_average=not train, momentum=0.9)(x)
            drop = nn.Dropout(0.1, deterministic=not train)
            return drop(x)
        """
    )
    assert "nnx.Dropout(0.1, rngs=rngs)" in text
    assert "self.BatchNorm_0(x, use_running_average=not train)" in text
    assert "drop = self.Dropout_0" in text
    assert "return drop(x, deterministic=not train)" in text


def test_parameters_take_their_shape_from_sizes_and_are_read_with_an_index() -> None:
    same(
        """\
        class M(nn.Module):
          @nn.compact
          def __call__(self, x):
            width = x.shape[-1]
            scale = self.param("scale", nn.initializers.ones, (width,))
            return x * scale
        """,
        """\
        class M(nnx.Module):
          def __init__(self, *, in_features: int, rngs: nnx.Rngs):
            self.scale = nnx.Param(nnx.initializers.ones(rngs.params(), (in_features,)))

          def __call__(self, x):
            scale = self.scale[...]
            return x * scale
        """,
    )


def test_only_what_constructions_read_moves() -> None:
    text = converted(
        """\
        class M(nn.Module):
          features: int

          @nn.compact
          def __call__(self, x):
            hidden = 4 * self.features
            shift = jnp.ones(())
            return nn.Dense(hidden)(x) + shift
        """
    )
    init = text.partition("def __call__")[0]
    assert "shift" not in init
    assert "nnx.Linear(in_features, hidden, rngs=rngs)" in init
    assert "hidden = 4 * self.features" in init


def test_an_early_return_on_a_field_keeps_what_is_built_apart() -> None:
    text = converted(
        """\
        class M(nn.Module):
          short: bool

          @nn.compact
          def __call__(self, x):
            if self.short:
              return nn.Dense(2, name="a")(x)
            return nn.Dense(3, name="b")(x)
        """
    )
    init = text.partition("def __call__")[0]
    assert "self.a = nnx.Linear(in_features, 2, rngs=rngs)\n      return\n" in init


def test_variables_become_attributes_that_are_read_and_replaced() -> None:
    text = converted(
        """\
        class M(nn.Module):
          @nn.compact
          def __call__(self, x):
            count = self.variable("state", "count", lambda: jnp.zeros((), jnp.int32))
            if not self.is_initializing():
              count.value = count.value + 1
            return x + count.value
        """
    )
    assert 'self.count = nnm.variable("state", jnp.zeros((), jnp.int32))' in text
    assert "count.set_value(count[...] + 1)" in text
    assert "if not nnm.is_initializing():" in text


def test_a_variable_sized_by_the_call_is_made_by_the_call() -> None:
    text = converted(
        """\
        class M(nn.Module):
          @nn.compact
          def __call__(self, x):
            seen = self.has_variable("cache", "last")
            last = self.variable("cache", "last", jnp.zeros, x.shape, x.dtype)
            if seen:
              x = x + last.value
            last.value = x
            return x
        """
    )
    assert 'seen = nnm.has_variable(self, "cache", "last", made_later=True)' in text
    assert 'nnm.lazy_variable(self, "cache", "last", jnp.zeros, x.shape, x.dtype)' in text


def test_variables_behind_one_that_a_call_makes_are_made_by_the_call() -> None:
    """``init`` lists them in the order of the calls."""
    text = converted(
        """\
        class M(nn.Module):
          @nn.compact
          def __call__(self, x):
            first = self.variable("stats", "z", lambda: jnp.zeros(2))
            mean = self.variable("stats", "mean", lambda: x.mean(0))
            count = self.variable("stats", "count", lambda: jnp.zeros(()))
            return x - mean.value + count.value + first.value.sum()
        """
    )
    assert 'self.z = nnm.variable("stats", jnp.zeros(2))' in text
    assert 'nnm.lazy_variable(self, "stats", "count", lambda: jnp.zeros(()))' in text


def test_random_streams_are_owned() -> None:
    text = converted(
        """\
        class M(nn.Module):
          @nn.compact
          def __call__(self, x):
            return x + jax.random.normal(self.make_rng("noise"), x.shape)
        """
    )
    assert 'self.noise_rng = nnm.stream(rngs, "noise")' in text
    assert "jax.random.normal(self.noise_rng(), x.shape)" in text


def test_line_ends_and_indentation_of_the_file_are_kept() -> None:
    source = (
        "class M(nn.Module):\n\tfeatures: int\n\n\t@nn.compact\n"
        "\tdef __call__(self, x):\n\t\treturn nn.Dense(self.features)(x)\n"
    )
    text = converted(source)
    assert "\tdef __init__(self, features: int, *, in_features: int, rngs: nnx.Rngs):\n" in text
    assert "\t\tself.Dense_0 = nnx.Linear(in_features, self.features, rngs=rngs)\n" in text


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            """
            if train:
              x = nn.Dense(2)(x)
            return x
            """,
            "only under a condition on 'train'",
        ),
        (
            """
            if train:
              return x
            return nn.Dense(2)(x)
            """,
            "returns early under a condition on 'train'",
        ),
        ("return nn.Dense(train)(x)", "depends on 'train'"),
        (
            """
            for one in train:
              x = nn.Dense(2)(x)
            return x
            """,
            "in a loop over 'train'",
        ),
        ("return (lambda y: nn.Dense(2)(y))(x)", "inside a lambda"),
        ("return x if self.has_rng('noise') else -x", "self.has_rng has no NNX counterpart"),
        ("return self.scope", "self.scope has no NNX counterpart"),
        ("return self.clone()(x)", "self.clone has no NNX counterpart"),
        ("return self.make_rng(train)", "random stream is computed"),
    ],
)
def test_refused(body: str, reason: str) -> None:
    lines = textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
    source = (
        "class M(nn.Module):\n  features: int = 2\n\n  @nn.compact\n"
        f"  def __call__(self, x, train=1):\n{lines}\n"
    )
    found = refusal(source)
    assert reason in found.reason
    assert found.recipe


def test_a_positional_argument_that_depends_on_the_call_moves_too() -> None:
    text = converted(
        """\
        class M(nn.Module):
          @nn.compact
          def __call__(self, x, deterministic):
            return nn.BatchNorm(deterministic, momentum=0.9)(x)
        """
    )
    assert "self.BatchNorm_0 = nnm.BatchNorm(" in text
    assert "return self.BatchNorm_0(x, use_running_average=deterministic)" in text


def test_wrappers_without_variables_stay_where_they_are_called() -> None:
    text = converted(
        """\
        class M(nn.Module):
          @nn.compact
          def __call__(self, x):
            return nn.Sequential([nn.Dense(4), nn.relu, nn.Dense(2)])(x)
        """
    )
    assert "self.Dense_1 = nnx.Linear(4, 2, rngs=rngs)" in text
    assert "return nnm.Sequential([self.Dense_0, nnx.relu, self.Dense_1])(x)" in text


def test_the_counter_is_local_to_one_class_of_layers() -> None:
    text = converted(
        """\
        class M(nn.Module):
          sizes: Sequence[int]

          @nn.compact
          def __call__(self, x):
            x = nn.LayerNorm()(x)
            for size in self.sizes:
              x = nn.Dense(size)(x)
            return x
        """
    )
    assert "x = self.LayerNorm_0(x)" in text


@pytest.mark.parametrize(
    "name",
    ["'a' if self.flag else None", "None if self.flag else 'a'", "self.flag and 'a' or None"],
)
def test_a_name_that_may_be_none_is_refused(name: str) -> None:
    found = refusal(compact(f"nn.Dense(2, name={name})(x)"))
    assert found.reason == "the name is None under a condition, and then Linen counts one"


NAMED = """\
class M(nn.Module):
  tag: {0}

  @nn.compact
  def __call__(self, x, label: str | None = None, given="b"):
    local = {1}
    return nn.Dense(2, name={2})(x)
"""


@pytest.mark.parametrize(
    ("tag", "local", "name"),
    [
        ("str | None", "'a'", "self.tag"),
        ("str = None", "'a'", "self.tag"),
        ("Optional[str] = 'a'", "'a'", "self.tag"),
        ("str", "'a'", "label"),
        ("str", "None", "local"),
        ("str", "self.tag or None", "local"),
    ],
)
def test_a_name_that_is_a_value_which_may_be_none_is_refused(
    tag: str, local: str, name: str
) -> None:
    found = refusal(NAMED.format(tag, local, name))
    assert found.reason == "the name is None under a condition, and then Linen counts one"


@pytest.mark.parametrize(
    ("tag", "local", "name"),
    [("str", "'a'", "self.tag"), ("str", "'a'", "self.tag or 'b'"), ("str", "'a'", "local")],
)
def test_a_name_that_is_a_value_which_is_given_is_kept(tag: str, local: str, name: str) -> None:
    assert "setattr(" in converted(NAMED.format(tag, local, name))


def test_a_name_that_is_one_of_two_is_kept() -> None:
    text = converted(compact("nn.Dense(2, name='a' if self.flag else 'b')(x)"))
    assert "setattr(self, 'a' if self.flag else 'b', nnx.Linear(" in text


def compact(value: str) -> str:
    return (
        "class M(nn.Module):\n  flag: bool\n\n  @nn.compact\n  def __call__(self, x):\n"
        f"    return {value}\n"
    )
