"""Classes that share one ``__init__``: a subclass inherits what builds, and has something else anew."""

from __future__ import annotations

import pytest

from tests.sizes.inference import in_features, problems, sizes_of

BASE = """
class Base(nn.Module):
    d: int = 4
    {body}

    @nn.compact
    def __call__(self, x):
        x = nn.Dense({size})(x)
        return nn.Dense(2)(x)

class Sub(Base):
    {other}
"""
CONSTANT = ("WIDE = 4", "self.WIDE", "WIDE = 8")
PROPERTY = (
    "@property\n    def wide(self): return self.d",
    "self.wide",
    "@property\n    def wide(self): return 2 * self.d",
)
METHOD = ("def wide(self): return 4", "self.wide()", "def wide(self): return 7")


@pytest.mark.parametrize("case", [CONSTANT, PROPERTY, METHOD])
@pytest.mark.parametrize("cls", ["Base", "Sub"])
def test_what_a_subclass_has_otherwise_is_read_at_run_time(
    case: tuple[str, str, str], cls: str
) -> None:
    body, size, other = case
    result = sizes_of(BASE.format(body=body, size=size, other=other), cls)
    assert (in_features(result), problems(result)) == (["in_features", size], [])


@pytest.mark.parametrize(("case", "known"), [(CONSTANT, "4"), (PROPERTY, "self.d"), (METHOD, "4")])
def test_what_all_classes_have_alike_is_written_out(case: tuple[str, str, str], known: str) -> None:
    body, size, _ = case
    result = sizes_of(BASE.format(body=body, size=size, other="e: int = 1"), "Base")
    assert in_features(result) == ["in_features", known]


def test_a_subclass_that_builds_anew_leaves_the_base_alone() -> None:
    source = BASE.format(body="WIDE = 4", size="self.WIDE", other="WIDE = 8") + (
        "    @nn.compact\n    def __call__(self, x):\n        return nn.Dense(self.WIDE)(x)\n"
    )
    assert in_features(sizes_of(source, "Base")) == ["in_features", "4"]


WRAP = """
class Base(nn.Module):
    d: int

    def setup(self):
        self.inner = nn.Dense(self.d)
        self.head = nn.Dense(2)

    def features(self, x):
        return self.inner(x)

    def __call__(self, x):
        return self.head(self.features(x))

class Sub(Base):
    def features(self, x):
        {features}
"""


@pytest.mark.parametrize(
    ("features", "size"),
    [
        ("return jnp.tanh(self.inner(x))", None),
        (
            "return jnp.concatenate([self.inner(x), x], -1)",
            "self.d + in_features",
        ),
        (
            "return self.inner(x)[..., :3]",
            "min(self.d, 3)",
        ),
    ],
)
def test_a_subclass_must_call_what_it_inherits_with_the_same_sizes(
    features: str, size: str | None
) -> None:
    found = problems(sizes_of(WRAP.format(features=features), "Sub"))
    reason = "it inherits submodules of main.Base and calls them otherwise: in_features of nn.Dense"
    assert found == ([] if size is None else [f"{reason} is {size}, and self.d there"])


FACTORY = """
class A(nn.Module):
    d: int

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.d)(x)

class B(nn.Module):
    d: int

    @nn.compact
    def __call__(self, x):
        return nn.Dense(2 * self.d)(x)

class Base(nn.Module):
    d: int
    block: type = A

    @nn.compact
    def __call__(self, x):
        x = self.block(self.d)(x)
        return nn.Dense(2)(x)

class Sub(Base):
    block: type = {block}
"""


@pytest.mark.parametrize(("block", "known"), [("A", True), ("B", False)])
def test_the_class_that_a_field_holds_by_default_may_differ(block: str, known: bool) -> None:
    sizes = in_features(sizes_of(FACTORY.format(block=block), "Base"))
    assert (sizes[1] == "self.d") is known
    assert sizes[1] is not None


def test_a_global_that_a_function_binds_anew_is_not_written_out() -> None:
    source = """
    WIDTH = 4
    class Model(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.Dense(WIDTH)(x)
            return nn.Dense(2)(x)
    """
    changed = source + "\n    def widen(n):\n        global WIDTH\n        WIDTH = n\n"
    assert in_features(sizes_of(source)) == ["in_features", "4"]
    assert in_features(sizes_of(changed))[1] == "Dense_1_in_features"
