"""Names in local lists, arrays that are inlined, and blocks that become empty."""

from __future__ import annotations

import pytest

from tests.rewrite.classes.support import converted, refusal

CALL = """
    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
"""


def listed(setup: str) -> str:
    lines = [f"        {line}" for line in setup.splitlines()]
    head = "class M(nn.Module):\n    n: int\n    def setup(self):\n"
    return converted(head + "\n".join(lines) + CALL)


def test_names_in_a_local_list_that_becomes_an_attribute_are_kept() -> None:
    text = listed(
        'layers = [nn.Dense(3, name="0")]\n'
        "for i in range(self.n):\n"
        "    layers.append(nn.Dense(3, name=str(i + 1)))\n"
        "self.layers = layers"
    )
    assert 'layers = [nnm.named("0", nnx.Linear(in_features, 3, rngs=rngs))]' in text
    assert "layers.append(nnm.named(str(i + 1), nnx.Linear(3, 3, rngs=rngs)))" in text


@pytest.mark.parametrize(
    ("setup", "loop"),
    [
        ("self.layers = [nn.Dense(3) for _ in range(self.n)]", "for i in range(self.n):"),
        ("self.layers = [nn.Dense(_ + 1) for _ in range(self.n)]", "for _ in range(self.n):"),
        ("i = 2\nself.layers = [nn.Dense(i) for _ in range(self.n)]", "for i_ in range(self.n):"),
    ],
    ids=["a round without a name", "one whose name is read", "a name that is taken"],
)
def test_what_is_made_in_rounds_without_a_name_is_numbered(setup: str, loop: str) -> None:
    text = listed(setup)
    assert loop in text
    assert f'f"layers_{{{loop.split()[1]}}}"' in text


def test_submodules_of_a_local_list_without_names_stay_plain() -> None:
    text = listed("layers = [nn.Dense(3), nn.Dense(3)]\nself.layers = layers")
    assert "nnm.named" not in text
    assert 'nnm.set_submodules(self, "layers", layers)' in text


def test_linen_functions_in_an_inlined_array_are_converted_too() -> None:
    text = converted(
        """\
        class M(nn.Module):
            n: int

            def setup(self):
                size = self.n + 1
                mask = nn.make_causal_mask(jnp.ones((1, size * 2)))
                self.mask = jnp.triu(mask, k=-self.n)

            def __call__(self, x):
                return x + self.mask
        """
    )
    assert (
        "return jnp.triu(nnx.make_causal_mask(jnp.ones((1, (self.n + 1) * 2))), k=-self.n)" in text
    )


def test_a_branch_whose_statements_all_become_properties_keeps_a_body() -> None:
    text = converted(
        """\
        class M(nn.Module):
            learned: bool

            def setup(self):
                if self.learned:
                    self.table = nn.Embed(5, 3)
                else:
                    self.fixed = jnp.ones((5, 3))
                self.norm = nn.LayerNorm()

            def __call__(self, x):
                return self.norm(self.table(x) if self.learned else self.fixed[x])
        """
    )
    assert "        else:\n            pass\n" in text
    assert "return jnp.ones((5, 3))" in text


POOLED = """
class M(nn.Module):
    pool: bool

    def setup(self):
        if self.pool:
            self.pooler = nn.Dense(3)

    def __call__(self, x, memory=None):
        x = mystery(x)
        return self.pooler(x) if self.pool else x
"""


def test_what_a_field_switches_on_is_built_even_when_its_size_was_forgotten() -> None:
    text = converted(POOLED)
    assert "pooler_in_features: int | None = None" in text
    assert "pooler_in_features is not None" not in text


def test_a_field_that_no_argument_sets_may_be_a_parameter() -> None:
    text = converted(
        """\
        class M(nn.Module):
          size: int
          table: Any = dataclasses.field(init=False)

          def setup(self):
            self.table = self.param("table", nn.initializers.ones, (self.size,))

          def __call__(self, x):
            return x * self.table
        """
    )
    assert "def __init__(self, size: int, *, rngs: nnx.Rngs):" in text
    assert "self.table = nnx.Param(" in text
    assert "return x * self.table[...]" in text


COLLECTION = """
LOCAL = "stats"


class M(nn.Module):
  kept: str = "cache"

  @nn.compact
  def __call__(self, x, given="cache"):
    other = given
    mean = self.variable({}, "mean", jnp.zeros, (3,))
    return x + mean.value
"""


@pytest.mark.parametrize("collection", ['"cache"', "self.kept", "LOCAL"])
def test_a_collection_may_be_a_string_a_field_or_a_global(collection: str) -> None:
    text = converted(COLLECTION.format(collection))
    assert f"self.mean = nnm.variable({collection}, jnp.zeros((3,)))" in text
    assert "return x + self.mean[...]" in text or "return x + mean[...]" in text


@pytest.mark.parametrize("collection", ["given", "other", "self.kept + x", "self.missing"])
def test_a_collection_that_only_the_call_knows_is_refused(collection: str) -> None:
    assert "the collection is neither" in refusal(COLLECTION.format(collection)).reason


def wrapping(*setup: str) -> str:
    head = "class M(nn.Module):\n    n: int\n    def setup(self):\n"
    lines = "".join(f"        {line}\n" for line in setup)
    return f"{head}{lines}\n    def __call__(self, x):\n        return self.head(x)\n"


@pytest.mark.parametrize(
    "setup",
    [
        ('self.head = nn.Sequential([nn.Dense(3, name="first"), nn.relu])',),
        ('self.head = nn.RNN(nn.GRUCell(3, name="cell_of_mine"))',),
        ('first = nn.Dense(3, name="first")', "self.head = nn.Sequential([first, nn.relu])"),
        ('first = nn.Dense(3, name="first")', "self.head = first"),
        (
            "layers = []",
            'layers.append(nn.Dense(3, name="first"))',
            "self.head = nn.Sequential(layers)",
        ),
    ],
)
def test_a_submodule_that_is_given_one_with_a_name_of_its_own_is_refused(
    setup: tuple[str, ...],
) -> None:
    assert "a submodule that has a name of its own" in refusal(wrapping(*setup)).reason


@pytest.mark.parametrize(
    "setup",
    [
        ("self.head = nn.Sequential([nn.Dense(3), nn.relu])",),
        ("layers = [nn.Dense(3)]", "self.head = nn.Sequential(layers)"),
    ],
)
def test_a_submodule_that_is_given_others_is_built(setup: tuple[str, ...]) -> None:
    assert "nnx.Linear(" in converted(wrapping(*setup))
