"""``setup`` moves into ``__init__``; lists, names and arrays follow Linen."""

from __future__ import annotations

import textwrap

import jax.numpy as jnp
import pytest
from flax import nnx

from tests.rewrite.classes.support import converted, loaded, refusal


def same(before: str, after: str) -> None:
    assert converted(before) == textwrap.dedent(after)


def test_statements_and_comments_move_as_they_are() -> None:
    same(
        '''\
        class M(nn.Module):
            """Doc."""

            features: int = 3

            def setup(self):
                """Build."""
                # the projection
                self.proj = nn.Dense(self.features)  # no bias?

            def __call__(self, x):
                return self.proj(x)
        ''',
        '''\
        class M(nnx.Module):
            """Doc.

            Args:
                in_features: size of the last axis of x.
            """

            def __init__(self, features: int = 3, *, in_features: int, rngs: nnx.Rngs):
                self.features = features
                # the projection
                self.proj = nnx.Linear(in_features, self.features, rngs=rngs)  # no bias?

            def __call__(self, x):
                return self.proj(x)
        ''',
    )


def test_a_list_becomes_numbered_attributes_and_a_property() -> None:
    text = converted(
        """\
        class M(nn.Module):
            depth: int

            def setup(self):
                self.layers = [nn.Dense(8) for i in range(self.depth)]

            def __call__(self, x):
                for layer in self.layers:
                    x = layer(x)
                return x
        """
    )
    assert 'setattr(self, f"layers_{i}", nnx.Linear(' in text
    assert 'return tuple(getattr(self, f"layers_{i}") for i in range(self.depth))' in text
    assert "for layer in self.layers:" in text


def test_an_explicit_name_is_the_path() -> None:
    text = converted(
        """\
        class M(nn.Module):
            def setup(self):
                self.proj = nn.Dense(8, name="out")

            def __call__(self, x):
                return self.proj(x)
        """
    )
    assert "self.out = nnx.Linear(in_features, 8, rngs=rngs)" in text
    assert "def proj(self):\n        return self.out\n" in text


def test_named_elements_of_a_growing_tuple_keep_their_names() -> None:
    text = converted(
        """\
        class M(nn.Module):
            def setup(self):
                self.layer = (nn.Dense(8, name=str(0)),)
                self.layer += (nn.Dense(8, name=str(1)),)

            def __call__(self, x):
                return self.layer[1](self.layer[0](x))
        """
    )
    assert 'self, "layer", (nnm.named(str(0), nnx.Linear(' in text.replace(
        "\n        ", "\n"
    ).replace("(\n    self", "(self")
    assert "self.layer + (nnm.named(str(1), nnx.Linear(" in text
    assert 'return nnm.get_submodules(self, "layer")' in text


def test_parameters_of_setup_are_read_with_an_index() -> None:
    text = converted(
        """\
        class M(nn.Module):
            def setup(self):
                self.scale = self.param("scale", nn.initializers.ones, (4,))
                self.shift = self.param("bias", nn.initializers.zeros, (4,))

            def __call__(self, x):
                return x * self.scale + self.shift
        """
    )
    assert "self.scale = nnx.Param(nnx.initializers.ones(rngs.params(), (4,)))" in text
    assert "self.bias = nnx.Param(nnx.initializers.zeros(rngs.params(), (4,)))" in text
    assert "return x * self.scale[...] + self.bias[...]" in text


def test_an_array_is_computed_where_it_is_read() -> None:
    text = converted(
        """\
        class M(nn.Module):
            length: int
            causal: bool = True

            def setup(self):
                size = self.length
                if self.causal:
                    self.mask = jnp.tril(jnp.ones((size, size)))
                self.width = 2 * size

            def __call__(self, x):
                return x * self.mask
        """
    )
    assert (
        "def mask(self):\n        return jnp.tril(jnp.ones((self.length, self.length)))\n" in text
    )
    assert "self.mask =" not in text
    assert "if self.causal" not in text


@pytest.mark.parametrize(
    ("lines", "attribute"),
    [
        ("freq = jnp.arange(4)\nself.table = 2 * freq", "return 2 * jnp.arange(4)"),
        (
            "freq = jnp.arange(4)\nself.table = {'a': freq}",
            "self.table = nnm.as_field({'a': freq})",
        ),
        (
            "freq = []\nfor i in range(2):\n    freq.append(i * jnp.ones(3))\nself.table = freq",
            "self.table = nnm.as_field(freq)",
        ),
        (
            "freq = {}\nfreq['a'] = jnp.ones(3)\nself.table = freq",
            "self.table = nnm.as_field(freq)",
        ),
        ("for freq in jnp.ones((2, 3)):\n    self.table = freq", "self.table = nnm.as_field(freq)"),
        (
            "for freq in jnp.ones((2, 3)):\n    self.table = 2 * freq",
            "self.table = nnm.constant(2 * freq)",
        ),
    ],
)
def test_arrays_under_local_names_are_no_static_values(lines: str, attribute: str) -> None:
    body = textwrap.indent(lines, " " * 8)
    text = converted(
        f"class M(nn.Module):\n    def setup(self):\n{body}\n\n"
        "    def __call__(self, x):\n        return x * self.table\n"
    )
    assert f"{attribute}\n" in text


@pytest.mark.parametrize(
    ("lines", "stays"),
    [
        ("half = 4 // 2\nself.table = jnp.ones(half)", ""),
        ("half = 4\nfreq = jnp.ones(half)\nself.table = 2 * freq", ""),
        ("half = 4\nself.table = jnp.ones(half)\nself.half = half", "half = 4"),
        ("half = len('abcd')\nself.table = jnp.ones(half)", ""),
        ("half = print('abcd') or 4\nself.table = jnp.ones(half)", "half = print('abcd') or 4"),
        ("half = 4\nself.table = jnp.ones(half)\nhalf += 1", ""),
        ("half = [4].pop()\nself.table = jnp.ones(half)\nhalf += 1", "half = [4].pop()"),
        ("other = 4\nself.table = jnp.ones(3)", "other = 4"),
    ],
)
def test_local_names_that_only_an_array_reads_go_with_it(lines: str, stays: str) -> None:
    body = textwrap.indent(lines, " " * 8)
    text = converted(
        f"class M(nn.Module):\n    def setup(self):\n{body}\n\n"
        "    def __call__(self, x):\n        return x * self.table\n"
    )
    assert "    @property\n    def table(self):\n" in text
    init = text[: text.index("@property")]
    assert stays in init
    assert (" = " in init.replace("self.half = half", "")) == bool(stays)


ROTARY = """\
class Rotary:
    def __init__(self, dim):
        self.dim = dim
        self.table = None

    def {method}(self, x):
        {body}
        return x


class M(nn.Module):
    def setup(self):
        self.rotary = Rotary(4)

    def __call__(self, x):
        return self.rotary.turn(x)
"""


@pytest.mark.parametrize(
    "body", ["self.table = x", "self.table[0] = x", "self.table.append(x)", "self.dim += 1"]
)
def test_an_object_that_calls_change_is_made_anew_only_by_linen(body: str) -> None:
    found = refusal(ROTARY.format(method="turn", body=body))
    assert found.reason.startswith("Rotary.turn changes its object")


@pytest.mark.parametrize(
    ("method", "body"),
    [("turn", "table = x"), ("turn", "y = self.table"), ("__post_init__", "self.table = 1")],
)
def test_other_objects_are_attributes(method: str, body: str) -> None:
    text = converted(ROTARY.format(method=method, body=body))
    assert "        self.rotary = Rotary(4)\n" in text


def test_a_tied_head_gets_its_kernel_in_the_call() -> None:
    text = converted(
        """\
        class M(nn.Module):
            size: int

            def setup(self):
                self.embed = nn.Embed(self.size, 8)
                self.head = nn.Dense(self.size, use_bias=False)

            def __call__(self, ids):
                h = self.embed(ids)
                table = self.embed.variables["params"]["embedding"]
                return self.head.apply({"params": {"kernel": table.T}}, h)
        """
    )
    assert "table = self.embed.embedding[...]" in text
    assert "nnm.with_params( lambda rngs: nnx.Linear(" in " ".join(text.split())
    assert "self.head = " not in text


def test_what_a_tied_head_is_given_by_two_stars_is_handed_on() -> None:
    text = converted(
        """\
        class M(nn.Module):
            size: int

            def setup(self):
                self.embed = nn.Embed(self.size, 8)
                self.head = nn.Dense(self.size, use_bias=False)

            def __call__(self, ids, **options):
                table = self.embed.variables["params"]["embedding"]
                return self.head.apply({"params": {"kernel": table.T}}, self.embed(ids), **options)
        """
    )
    assert ")(self.embed(ids), **options)" in text


def test_a_tied_head_whose_fields_are_read_is_refused() -> None:
    found = refusal(
        """\
class M(nn.Module):
    def setup(self):
        self.head = nn.Dense(5)
        self.kernel = self.param("kernel", nn.initializers.ones, (4, self.head.features))

    def __call__(self, x):
        return self.head.apply({"params": {"kernel": self.kernel}}, x)
"""
    )
    assert found.reason == "self.head is only applied to given parameters, and its fields are read"


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        (
            "self.a = 2 * self.param('a', nn.initializers.ones, (2,)) if x else 0",
            "larger expression",
        ),
        ("self.a = nn.Dense(2, parent=self.scope)", "a lazy submodule may be given a module here"),
        ("self.a = self.init(jax.random.key(0), 1)", "self.init has no NNX counterpart"),
    ],
)
def test_refused(statement: str, reason: str) -> None:
    found = refusal(
        f"class M(nn.Module):\n  label: str = 'x'\n\n  def setup(self):\n    {statement}\n\n"
        "  def __call__(self, x):\n    return x * self.a\n"
    )
    assert reason in found.reason
    assert found.recipe


def test_a_submodule_of_a_computed_name_is_refused() -> None:
    found = refusal(
        "class M(nn.Module):\n  label: str = 'x'\n\n  def setup(self):\n"
        "    self.a = nn.Dense(2, name=self.label)\n\n  def __call__(self, x):\n    return self.a(x)\n"
    )
    assert found.reason == "the name of an attribute's submodule is computed"


MATCH = """
class M(nn.Module):
  kind: str

  def setup(self):
    match self.kind:
      case "a":
        self.first = nn.Dense(3)
      case _:
        self.second = nn.LayerNorm()

  def __call__(self, x):
    match self.kind:
      case "a":
        return self.first(x)
      case _:
        return self.second(x)
"""


@pytest.mark.parametrize(("kind", "held"), [("a", {"first"}), ("b", {"second"})])
def test_a_match_in_setup_builds_what_its_case_says(kind: str, held: set[str]) -> None:
    with loaded(converted(MATCH), "matching") as module:
        model = module.M(kind=kind, in_features=5, rngs=nnx.Rngs(0))
        assert {name for name, _ in nnx.iter_children(model)} == held
        assert model(jnp.ones((2, 5))).shape == (2, 3 if kind == "a" else 5)


ASKING = """\
class M(nn.Module):
  def setup(self):
    self.layers = [nn.Dense(2), nn.Dropout(0.5)]

  def __call__(self, x):
    for layer in self.layers:
      x = layer(x, True) if isinstance(layer, nn.Dropout) else layer(x)
    return x
"""


def test_asking_for_dropout_asks_for_the_class_that_rewritten_modules_build() -> None:
    text = converted(ASKING)
    assert "isinstance(layer, nnx.Dropout)" in text
    with loaded(text, "asking") as module:
        made = module.M(in_features=3, rngs=nnx.Rngs(0))
        assert made(jnp.ones((1, 3))).shape == (1, 2)


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ("nn.Dense", "isinstance asks for flax.linen.Dense"),
        ("(nn.Dropout, nn.Dense)", "a lazy submodule is more than called here"),
        ("nn.Dropout | nn.Dense", "a lazy submodule is more than called here"),
    ],
)
def test_asking_for_the_class_of_another_layer_is_refused(asked: str, reason: str) -> None:
    found = refusal(ASKING.replace("layer, nn.Dropout", f"layer, {asked}"))
    assert reason in found.reason


def test_running_the_setup_of_another_class_is_refused() -> None:
    found = refusal(
        """\
        class M(nn.Module):
            def setup(self):
                Other.setup(self)

            def __call__(self, x):
                return self.mask * x
        """
    )
    assert found.reason == "it runs the setup of Other, which NNX has in __init__"


@pytest.mark.parametrize(
    ("value", "test", "stored"),
    [
        ("nn.Dense(2) if wide else None", "not wide", "None"),
        ("None if narrow else nn.Dense(2)", "narrow", "None"),
        ("nn.Dense(2) if wide and self.n else 0", "not (wide and self.n)", "0"),
    ],
)
def test_what_stands_for_a_submodule_that_is_not_called_is_stored(
    value: str, test: str, stored: str
) -> None:
    text = converted(
        f"""\
        class M(nn.Module):
            n: int = 3

            def setup(self):
                wide = self.n > 2
                narrow = self.n <= 2
                self.a = {value}

            def __call__(self, x):
                y = x + 1
                if self.n > 2:
                    y = self.a(x)
                return y if self.a is None else 2 * y
        """
    )
    assert "if self.n > 2:" in text
    assert f"elif {test}:\n            self.a = {stored}\n" in text


@pytest.mark.parametrize("call", ["super().setup()", "super(M, self).setup()"])
def test_a_call_of_linens_own_setup_goes(call: str) -> None:
    text = converted(
        f"""\
class M(nn.Module):
    def setup(self):
        self.act = nn.relu
        {call}

    @nn.compact
    def __call__(self, x):
        return self.act(nn.Dense(3)(x))
"""
    )
    assert "setup" not in text
    assert "self.act = nnx.relu" in text


@pytest.mark.parametrize("statement", ["if self.deep:\n            ", "done = "])
def test_a_call_of_linens_own_setup_elsewhere_is_refused(statement: str) -> None:
    source = f"""\
class M(nn.Module):
    deep: bool = False

    def setup(self):
        {statement}super().setup()
        self.dense = nn.Dense(3)

    def __call__(self, x):
        return self.dense(x)
"""
    assert "it calls the setup of its base" in refusal(source).reason
