"""``nn.share_scope(self, self.inner)`` of a module that the class is given."""

from __future__ import annotations

from textwrap import indent

import pytest

from tests.rewrite.classes.test_shared_scope import HEAD, NORMAL, checked
from tests.rewrite.projects import rewrite
from tests.rewrite.running import lazy, migrated, refused

ADAPTER = f"""{HEAD}class Adapter(nn.Module):
    inner: nn.Dense
    rank: int

    def setup(self):
        nn.share_scope(self, self.inner)

    @nn.compact
    def __call__(self, x):
        down = self.param("down", {NORMAL}, (x.shape[-1], self.rank))
        y = self.inner(x)
        up = self.param("up", {NORMAL}, (self.rank, self.inner.features))
        return y + x @ down @ up


"""
COMPACT = """class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        {}
"""
SETUP = """class Model(nn.Module):
    def setup(self):
        {}

    def __call__(self, x):
        return self.layer(x)
"""
UNCERTAIN = "which scope both share is not certain"
OWN = {"down", "kernel", "bias", "up"}


def test_a_class_moves_to_the_scope_of_a_layer_that_a_compact_method_builds() -> None:
    source = ADAPTER + COMPACT.format(
        "return nn.Dense(3)(nn.tanh(Adapter(nn.Dense(5), rank=2, name='unseen')(nn.Dense(4)(x))))"
    )
    found = checked(source, "Model()", {"in_features": 6})
    assert {k: set(v) for k, v in found["params"].items()} == {
        "Dense_0": {"kernel", "bias"},
        "Dense_1": OWN,
        "Dense_2": {"kernel", "bias"},
    }
    assert "self.Dense_1 = Adapter(self.Dense_1, rank=2, in_features=4, rngs=rngs)" in migrated(
        source
    )


def test_it_does_so_in_every_round_of_a_loop() -> None:
    lines = ("for i in range(2):", "    x = nn.tanh(Adapter(nn.Dense(4 + i), 2)(x))", "return x")
    source = ADAPTER + COMPACT.format("\n        ".join(lines))
    found = checked(source, "Model()", {"in_features": 6})
    assert {k: set(v) for k, v in found["params"].items()} == {"Dense_0": OWN, "Dense_1": OWN}


def test_a_layer_built_in_setup_has_the_scope_of_the_class_that_gets_it() -> None:
    source = ADAPTER + SETUP.format("self.layer = Adapter(nn.Dense(5), rank=2)")
    found = checked(source, "Model()", {"in_features": 6})
    assert {k: set(v) for k, v in found["params"].items()} == {"layer": OWN}


def test_functions_outside_give_a_layer_without_a_scope() -> None:
    use = "def use(key, x):\n    return Adapter(nn.Dense(5), rank=2).init(key, x)\n"
    new = migrated(ADAPTER + use)
    assert 'inner = nnm.InScope("down")' in new.replace("'", '"')


HOLDER = f"""{HEAD}class Part(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(5)(x)


class Whole(nn.Module):
    part: Part
    scale: float = 2.0

    @nn.compact
    def __call__(self, x):
        gain = self.param("gain", {NORMAL}, (1, x.shape[-1]))
        return self.part(x * gain) * self.scale


class Model(nn.Module):
    whole: Whole

    def setup(self):
        nn.share_scope(self, self.whole)

    @nn.compact
    def __call__(self, x):
        first = self.param("first", {NORMAL}, (1, x.shape[-1]))
        y = nn.Dense(6)(self.whole(x) * first[0, 0])
        return y * self.param("last", {NORMAL}, (1, 6))


"""


def test_a_class_with_parts_is_taken_over_with_its_parts() -> None:
    user = SETUP.replace("Model", "User").format("self.layer = Model(Whole(Part(), 3.0))")
    found = checked(HOLDER + user, "User()", {"in_features": 6})
    assert set(found["params"]["layer"]) == {"first", "gain", "part", "Dense_0", "last"}


@pytest.mark.parametrize(
    "use",
    [
        "PART = Part()\nMODEL = Model(Whole(PART, 3.0))\n",
        "MODEL = Model(Whole(part=Part(name='a')))\n",
        COMPACT.replace("Model", "User").format("return Model(Whole(Part(), 3.0))(x)"),
        SETUP.replace("Model", "User").format("p = Part()\n        self.layer = Model(Whole(p))"),
    ],
)
def test_parts_with_a_scope_of_their_own_keep_the_class_linen(use: str) -> None:
    assert refused(HOLDER + use).endswith(UNCERTAIN)


def test_a_part_that_asks_for_its_place_keeps_it_linen() -> None:
    asks = HOLDER.replace("* self.scale", "* len(self.variables)")
    assert "not known to be explicit" in lazy(asks + "MODEL = Model(Whole(Part(), 3.0))\n", "Whole")


@pytest.mark.parametrize(
    "use",
    [
        COMPACT.format("dense = nn.Dense(4)\n        return Adapter(dense, 2)(x) + dense(x)"),
        COMPACT.format("return Adapter(nn.Dense(4, name='a'), 2)(x)"),
        COMPACT.format("return Adapter(nn.Dense(4, parent=None), 2)(x)"),
        COMPACT.format("return Adapter(nn.Dense(4), 2, parent=self)(x)"),
        COMPACT.format("return Adapter(*(nn.Dense(4), 2))(x)"),
        COMPACT.format("return Adapter(**dict(inner=nn.Dense(4), rank=2))(x)"),
        COMPACT.format("return nn.remat(Adapter)(nn.Dense(4), 2)(x)"),
        COMPACT.format("return Adapter(nn.DenseGeneral(4), 2)(x)"),
        SETUP.format("self.dense = nn.Dense(4)\n        self.layer = Adapter(self.dense, 2)"),
        SETUP.format("layer = Adapter(nn.Dense(4), 2)\n        self.layer = layer"),
        "DENSE = nn.Dense(4)\nMODEL = Adapter(DENSE, 2)\n",
        "import functools\n\nmake = functools.partial(Adapter, nn.Dense(4))\n",
        "Alias = Adapter\n",
    ],
)  # fmt: skip
def test_uses_that_leave_open_which_scope_it_is_keep_the_class_linen(use: str) -> None:
    assert refused(ADAPTER + use, "Adapter").endswith(UNCERTAIN)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("rank: int", "rank: int\n    other: nn.Module"), "may be a module, beside one"),
        (("rank: int", "rank: int\n    bias: int = 0"), "'bias' names a variable of the submodule"),
        (("inner: nn.Dense", "inner: nn.Module"), "is not known"),
        (("inner: nn.Dense", "inner: nn.MultiHeadAttention"), "is not known"),
        (("        nn.share_scope(", "        self.a = 1\n        nn.share_scope("), "not certain"),
        (("y = self.inner(x)", "y = self.inner(x) if x.ndim else x"), "may never be called"),
        (("y = self.inner(x)", "f = self.inner\n        y = f(x)"), "is handed on"),
        (("self.inner(x)", "self.inner.apply({}, x)"), "not spelled out"),
        (("rank: int\n", "rank: int = 2\n\n    def __post_init__(self):\n        self.inner = nn.Dense(3)\n        super().__post_init__()\n"), "is bound again"),
    ],
)  # fmt: skip
def test_classes_whose_field_shares_the_scope_in_another_way_stay_linen(
    change: tuple[str, str], reason: str
) -> None:
    use = "def use(x):\n    return Adapter(nn.MultiHeadAttention(4), 2).init(0, x)\n"
    source = ADAPTER.replace(*change) + (use if "MultiHead" in change[1] else "")
    assert reason in refused(source, "Adapter")


def test_an_heir_of_the_class_keeps_it_linen() -> None:
    heir = "class Heir(Adapter):\n    pass\n"
    assert "has Linen relatives" in refused(ADAPTER + heir, "Adapter")


def test_a_function_that_a_module_builds_with_keeps_the_class_linen() -> None:
    build = "def build():\n    return Adapter(nn.Dense(4), 2)\n\n\n"
    source = ADAPTER + build + COMPACT.format("return build()(x)")
    assert "not known to be explicit" in lazy(source, "Adapter")


def test_a_number_that_only_the_run_tells_keeps_the_builder_linen() -> None:
    lines = (
        "for i in range(2):",
        "    if i % 2 or self.many:",
        "        x = nn.Dense(4)(x)",
        "    x = Adapter(nn.Dense(4), 2)(x)",
        "return x",
    )
    text = COMPACT.format("\n        ".join(lines)).replace(
        "    @nn.compact", "    many: bool = False\n\n    @nn.compact"
    )
    assert "whose name is not known" in refused(ADAPTER + text)


def test_uses_of_the_first_of_two_classes_of_one_name_are_seen() -> None:
    adapter = ADAPTER.removeprefix(HEAD)
    last = "class Adapter(nn.Module):\n    pass\n"
    body = indent(adapter + "model = Adapter(dense, rank=2)\n" + last + "return model\n", "    ")
    found = rewrite({"m.py": f"{HEAD}def make(dense):\n{body}"}).classes
    assert [one.outcome.value for one in found] == ["refused", "refused"]
    assert UNCERTAIN in (found[0].reason or "")
