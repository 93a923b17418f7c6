"""Inputs that may be None, layers that come in as fields, and names of the sizes left open."""

from __future__ import annotations

import pytest

from nnx_migrate.sizes import ClassSizes
from tests.rewrite.projects import explicit_source as rewrite_source
from tests.sizes.inference import LAZY, in_features, sizes_of

ATTENTION = """
class Attention(nn.Module):
    def setup(self):
        self.q, self.k = nn.Dense(8), nn.Dense(8)
    def __call__(self, x, memory=None):
        keys = self.k(x) if memory is None else self.k(memory)
        return self.q(x) + keys.sum()
class Model(nn.Module):
    causal: bool
    def setup(self):
        self.own = Attention()
        self.cross = Attention()
    def __call__(self, x, memory=None, other=None):
        x = self.own(x)
        {test}
            x = self.cross(x, memory)
        return x
"""


def passed(sizes: ClassSizes, cls: str = "main.Attention") -> list[dict[str, str]]:
    return [dict(site.sizes) for site in sizes.sites.values() if site.symbol == cls]


def only_with(sizes: ClassSizes) -> list[frozenset[str]]:
    return [site.only_with for site in sizes.sites.values() if site.symbol == "main.Attention"]


def optional(sizes: ClassSizes) -> dict[str, bool]:
    return {one.name: one.optional for one in sizes.new_arguments}


CHOICE = "memory_features if memory_features is not None else x_features"


def test_a_size_that_two_inputs_may_give_is_a_choice_by_whether_the_optional_one_is_given() -> None:
    found = sizes_of(ATTENTION.format(test="if True:"), "Attention")
    assert in_features(found) == ["x_features", CHOICE]
    assert optional(found) == {"memory_features": True, "x_features": False}
    assert found.decisive == {"memory_features"}


@pytest.mark.parametrize(
    ("test", "first", "second", "size"),
    [
        ("memory is not None", "memory", "x", CHOICE),
        ("not (memory is not None)", "x", "memory", CHOICE),
        ("memory is None or x is None", "x", "memory", "k_in_features"),
        ("x.ndim == 3", "x", "memory", LAZY),
    ],
    ids=["the test itself", "negated", "memory may still be given", "of something else"],
)
def test_only_a_test_that_tells_both_sides_apart_makes_a_choice(
    test: str, first: str, second: str, size: str
) -> None:
    branches = (
        f"if {test}:\n            keys = self.k({first})\n"
        f"        else:\n            keys = self.k({second})"
    )
    text = ATTENTION.replace("keys = self.k(x) if memory is None else self.k(memory)", branches)
    found = sizes_of(text.format(test="if True:"), "Attention")
    own = "in_features" if size == LAZY else "x_features"  # the only size to ask for
    assert in_features(found) == [own, size]


@pytest.mark.parametrize(
    "keys",
    [
        "self.k(x) if memory is None else self.k(memory[:, None] @ memory)",
        "self.k(x) if memory is None else self.k(other)",
        "self.k(memory) if x is None else self.k(x)",
    ],
    ids=["another array's size", "another input", "another input is tested"],
)
def test_the_choice_is_only_between_the_tested_input_and_another(keys: str) -> None:
    text = ATTENTION.replace("self.k(x) if memory is None else self.k(memory)", keys)
    text = text.replace(
        "def __call__(self, x, memory=None):", "def __call__(self, x, memory=None, other=None):"
    )
    found = sizes_of(text.format(test="if True:"), "Attention")
    assert CHOICE not in (in_features(found)[1] or "")


def test_an_input_is_known_to_be_there_where_it_was_compared_with_none() -> None:
    found = sizes_of(ATTENTION.format(test="if memory is not None:"))
    assert passed(found) == [
        {"x_features": "x_features"},
        {"x_features": "8", "memory_features": "memory_features"},
    ]
    assert optional(found) == {"x_features": False, "memory_features": True}
    assert only_with(found) == [frozenset(), {"memory_features"}]


@pytest.mark.parametrize(
    "test",
    [
        "if memory is None:\n            return x\n        if True:",
        "if memory is not None and memory.ndim == 3:",
        "if x.shape[0] > 1 and memory is not None:",
    ],
    ids=["left before", "of a known rank", "with another condition"],
)
def test_a_submodule_is_only_built_with_the_input_that_every_call_of_it_needs(test: str) -> None:
    found = sizes_of(ATTENTION.format(test=test))
    assert passed(found)[1]["memory_features"] == "memory_features"
    assert only_with(found)[1] == {"memory_features"}


def test_one_of_two_arrays_is_given() -> None:
    test = "memory = jnp.ones((2, 5)) if self.causal else jnp.ones((3, 5))\n        if True:"
    assert passed(sizes_of(ATTENTION.format(test=test)))[1]["memory_features"] == "5"


def test_a_local_that_holds_the_comparison_counts_too() -> None:
    test = "known = self.causal and memory is not None\n        if known:"
    found = sizes_of(ATTENTION.format(test=test))
    assert passed(found)[1] == {"x_features": "8", "memory_features": "memory_features"}
    assert only_with(found)[1] == {"memory_features"}


@pytest.mark.parametrize(
    ("test", "handed"),
    [
        ("if self.causal:", "memory_features"),
        ("known = memory is not None\n        memory = other\n        if known:", "other_features"),
        (
            "known = self.causal\n        if known: known = memory is not None\n        if known:",
            "memory_features",
        ),
    ],
    ids=["not compared", "compared before it changed", "compared in one branch"],
)
def test_an_input_that_may_be_none_is_handed_on_with_a_size_that_may_be(
    test: str, handed: str
) -> None:
    found = sizes_of(ATTENTION.format(test=test))
    assert passed(found)[1] == {"x_features": "8", "memory_features": handed}
    assert only_with(found)[1] == frozenset()


def test_a_computed_input_that_may_be_none_is_asked_for() -> None:
    test = "memory = self.own(memory) if memory is not None else None\n        if True:"
    found = sizes_of(ATTENTION.format(test=test))
    assert passed(found)[1] == {"x_features": "8", "memory_features": "cross_memory_features"}
    asked = next(one for one in found.new_arguments if one.name == "cross_memory_features")
    assert (asked.submodule, asked.argument, asked.optional) == ("cross", "memory", True)
    assert "cross_memory_features" in found.decisive


def test_what_is_asked_for_is_asked_of_the_callers_too() -> None:
    test = "memory = self.own(memory) if memory is not None else None\n        if True:"
    outer = ATTENTION.format(test=test) + (
        "class Outer(nn.Module):\n"
        "    def setup(self):\n"
        "        self.model = Model(True)\n"
        "    def __call__(self, x, memory=None):\n"
        "        return self.model(x, memory)\n"
    )
    (sizes,) = passed(sizes_of(outer, "Outer"), "main.Model")
    assert sizes["cross_memory_features"] == "model_cross_memory_features"


def test_what_an_optional_size_is_passed_to_stays_optional() -> None:
    outer = ATTENTION.format(test="if memory is not None:") + (
        "class Outer(nn.Module):\n"
        "    def setup(self):\n"
        "        self.model = Model(True)\n"
        "    def __call__(self, x, memory=None):\n"
        "        return self.model(x, memory)\n"
    )
    assert optional(sizes_of(outer, "Outer")) == {"x_features": False, "memory_features": True}


EMBEDDER = """
class Model(nn.Module):
    layer: {annotation}
    def setup(self):
        self.head = nn.Dense(3)
    def __call__(self, tokens):
        return self.head(self.layer(tokens))
"""


def test_an_embedding_that_comes_in_as_a_field_gives_its_features() -> None:
    found = sizes_of(EMBEDDER.format(annotation="nn.Embed"))
    assert [dict(site.sizes) for site in found.sites.values()] == [
        {"in_features": "self.layer.features"}
    ]


def test_another_layer_that_comes_in_as_a_field_hides_its_size() -> None:
    found = sizes_of(EMBEDDER.format(annotation="nn.Dense"))
    assert [one.name for one in found.new_arguments] == ["head_in_features"]


def test_an_open_size_and_an_input_size_never_share_a_name() -> None:
    source = """
class Inner(nn.Module):
    def setup(self):
        self.d = nn.Dense(4)
        self.e = nn.Dense(4)
    def __call__(self, states, memory_states):
        return self.d(states) + self.e(memory_states)
class Model(nn.Module):
    def setup(self):
        self.memory = Inner()
    def __call__(self, x, memory_states):
        return self.memory(mystery(x), memory_states)
"""
    found = sizes_of(source)
    assert passed(found, "main.Inner") == [
        {
            "memory_states_features": "input_memory_states_features",
            "states_features": "memory_states_features",
        }
    ]


def test_local_classes_without_sizes_get_none() -> None:
    source = """
class One(nn.Module):
    width: int
    @nn.compact
    def __call__(self, x):
        return x + self.param("b", nn.initializers.zeros, (self.width,))
class Two(One):
    pass
class Model(nn.Module):
    wide: bool
    def setup(self):
        if self.wide:
            kind = One
        else:
            kind = Two
        self.layer = kind(3)
    def __call__(self, x):
        return self.layer(x)
"""
    assert [dict(site.sizes) for site in sizes_of(source).sites.values()] == [{}]


def test_a_layer_that_training_may_drop_does_not_hide_the_size_after_the_loop() -> None:
    source = """
class Layer(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(8)(x), None
class Model(nn.Module):
    n: int
    def setup(self):
        self.layers = [Layer() for _ in range(self.n)]
        self.head = nn.Dense(3)
    def __call__(self, x, skip):
        x = x[..., :8]
        for layer in self.layers:
            if skip:
                outputs = (None, None)
            else:
                outputs = layer(x)
            x = outputs[0]
        return self.head(x)
"""
    found = sizes_of(source)
    assert found.problems == ()
    assert passed(found, "flax.linen.Dense") == [{"in_features": "x_features"}]


HANDED_IN = """
class Block(nn.Module):
    cross: bool
    def setup(self):
        if self.cross:
            self.key = nn.Dense(8)
    def __call__(self, x, memory=None):
        if memory is not None:
            x = x + self.key(memory)
        return x
class Top(nn.Module):
    def setup(self):
        self.block = Block(True)
    def __call__(self, x):
        return self.block(x, {memory})
"""


def test_an_optional_input_of_unknown_size_that_is_handed_in_becomes_an_argument() -> None:
    found = sizes_of(HANDED_IN.format(memory="unknown(x)"), "Top")
    (site,) = [one for one in found.sites.values() if one.symbol == "main.Block"]
    assert dict(site.sizes) == {"memory_features": "block_memory_features"}
    assert optional(found)["block_memory_features"] is True


def test_an_optional_input_that_is_not_handed_in_has_no_size() -> None:
    found = sizes_of(HANDED_IN.format(memory="None"), "Top")
    assert passed(found, "main.Block") == [{}]


CALLER = """
class Caller(nn.Module):
    cross: bool = False
    def setup(self):
        self.attn = Attention()
    def __call__(self, x, memory{more}):
        {body}
"""


@pytest.mark.parametrize(
    ("more", "body", "handed"),
    [
        ("", "return self.attn(x, memory) if self.cross else self.attn(x)", "by field"),
        ("", "return self.attn(x) if not self.cross else self.attn(x, memory)", "by field"),
        ("", "return self.attn(self.attn(x), memory)", "None"),
        ("", "return self.attn(self.attn(x, memory))", "memory_features"),
        ("", "return self.attn(x, memory if self.cross else None)", "attn_memory_features"),
        (
            ", train=False",
            "return self.attn(x, memory) if train else self.attn(x)",
            "attn_memory_features",
        ),
        (
            "",
            ("known = {}\n        if self.cross: known['memory'] = memory\n"
            "        return self.attn(x, **known)"),
            "attn_memory_features",
        ),
        ("", "return self.attn(x, **dict(memory=memory))", "memory_features"),
        ("", "return self.attn(x, **self.options(memory))", "attn_memory_features"),
        (", **more", "return self.attn(x, **more)", "attn_memory_features"),
        (", **more", "return self.attn(x, memory=None, **more)", None),
    ],
    ids=[
        "in one branch", "in the other", "in the second call", "in the first call", "by a value",
        "by the call", "by an open dict", "by a dict", "by something unknown", "by the callers",
        "None beside what callers give",
    ],
)  # fmt: skip
def test_an_input_that_only_some_calls_hand_on_has_a_size_in_those_alone(
    more: str, body: str, handed: str | None
) -> None:
    found = sizes_of(
        ATTENTION.format(test="if True:") + CALLER.format(more=more, body=body), "Caller"
    )
    (sizes,) = passed(found)
    by_field = {
        "memory_features if self.cross else None",
        "None if not self.cross else memory_features",
    }
    assert sizes.get("memory_features") in (by_field if handed == "by field" else {handed})


def test_a_submodule_is_built_where_the_size_that_it_is_handed_is_none() -> None:
    body = "return self.attn(x, memory) if self.cross else self.attn(x)"
    source = ATTENTION.format(test="if True:") + CALLER.format(more="", body=body)
    code = rewrite_source(f"import flax.linen as nn\n{source}").code
    start = code.index("class Caller")
    init = code[start : code.index("def __call__", start)]
    assert "memory_features if self.cross else None" in init
    assert "is not None:" not in init


@pytest.mark.parametrize(
    ("body", "sizes"),
    [
        ("memory = x if memory is None else memory", CHOICE),
        ("memory = memory if memory is not None else x", CHOICE),
        ("memory = memory if not memory is None else x", CHOICE),
        ("if memory is None: memory = x", CHOICE),
        ("if memory is None: memory = 2 * x", CHOICE),
        ("cross = memory is not None; memory = memory if cross else x", CHOICE),
        ("memory = x if memory is None else 2 * memory", "k_in_features"),
        ("memory = x if memory is None else x[..., :4]", "k_in_features"),
        ("memory = jnp.concatenate([x, x], -1) if memory is not None else x", "k_in_features"),
        ("memory = memory if memory else x", "k_in_features"),
        ("memory = memory if memory is not None and x.ndim == 3 else x", "k_in_features"),
        ("memory = memory if self.cross else x", "memory_features if self.cross else x_features"),
        ("memory = 2 * x; memory = x if memory is None else memory", "x_features"),
    ],
)
def test_an_input_that_another_stands_in_for_where_it_is_none_has_the_size_of_either(
    body: str, sizes: str
) -> None:
    source = f"""
class Attention(nn.Module):
    cross: bool = False
    def setup(self):
        self.q, self.k = nn.Dense(8), nn.Dense(8)
    def __call__(self, x, memory=None):
        {body}
        return self.q(x) + self.k(memory).sum()
"""
    found = sizes_of(source, "Attention")
    only_x = "in_features" if sizes == "x_features" else "x_features"
    assert in_features(found)[1] == sizes.replace("x_features", only_x)
    arguments = optional(found)
    assert arguments[only_x] is False
    assert arguments.get("memory_features", True) is ("self.cross" not in sizes)


def test_a_layer_of_two_optional_inputs_needs_neither_alone() -> None:
    source = """
class Model(nn.Module):
    @nn.compact
    def __call__(self, x=None, memory=None):
        return nn.Dense(8)(x if x is not None else memory)
"""
    found = sizes_of(source)
    assert in_features(found) == ["x_features if x_features is not None else memory_features"]
    assert optional(found)["x_features"]
