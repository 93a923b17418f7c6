"""Classes that hand sizes of their own to the constructor of the class that builds for them."""

from __future__ import annotations

import pytest

from tests.rewrite.projects import one_line, rewrite_in_form
from tests.rewrite.running import in_auto, lazy, printed_alike

ATTENTION = """
import flax.linen as nn
import jax
import jax.numpy as jnp


class Attention(nn.Module):
    width: int = 3

    @nn.compact
    def __call__(self, queries, keys, scale=1.0):
        features = queries.shape[-1]
        q = nn.Dense(self.width, name="q")(queries)
        k = nn.Dense(self.width, name="k")(keys)
        x = nn.softmax(q @ k.swapaxes(-2, -1)) @ nn.Dense(self.width, name="v")(keys)
        return nn.Dense(features, name="out")(x) * scale


class Own(Attention):
{own}

{more}
x, y = jnp.linspace(-1, 1, 24).reshape(2, 3, 4), jnp.linspace(-2, 1, 30).reshape(2, 3, 5)


def show(model, *args):
    variables = model.init(jax.random.key(0), *args)
    for path, leaf in jax.tree_util.tree_flatten_with_path(variables)[0]:
        print(jax.tree_util.keystr(path), leaf.shape, float(leaf.sum()).hex())
    print(float(model.apply(variables, *args).sum()).hex())


def main():
    show(Attention(), x, y)
    {run}


if __name__ == "__main__":
    main()
"""
SELF = "    def __call__(self, x):\n        return super().__call__(x, x)\n"
COMPACT = f"    @nn.compact\n{SELF}"
SWAPPED = """
    @nn.compact
    def __call__(self, keys, queries, scale=2.0):
        return super().__call__(queries, keys, scale=scale)
"""
JOINED = """
    memory: int = 2

    @nn.compact
    def __call__(self, x):
        keys = nn.Dense(self.memory, name="memory_keys")(x)
        return super().__call__(x, jnp.concatenate([keys, x], -1))
"""
HEIR = "class Heir(Own):\n    pass\n\n"
DEEPER = (
    "class Deeper(Own):\n    def __call__(self, z):\n        return super().__call__(z * 2)\n\n"
)


def program(own: str, more: str = "", run: str = "show(Own(), x)") -> str:
    return ATTENTION.format(own=own, more=more, run=run)


@pytest.mark.parametrize(
    ("own", "more", "run"),
    [
        (SELF, "", "show(Own(), x)"),
        (COMPACT, "", "show(Own(5), y)"),
        (SWAPPED, "", "show(Own(), x, y)"),
        (JOINED, "", "show(Own(4, 6), y)"),
        (COMPACT, HEIR, "show(Heir(2), y)"),
        (JOINED, DEEPER, "show(Deeper(memory=1), y); show(Own(), x)"),
    ],
)
def test_a_class_that_calls_its_base_with_other_arguments_is_explicit(
    own: str, more: str, run: str
) -> None:
    assert set(printed_alike(program(own, more, run)).values()) == {"explicit"}


@pytest.mark.parametrize(
    ("own", "handed"),
    [
        (COMPACT, "width=width, keys_features=x_features, queries_features=x_features,"),
        (
            SWAPPED,
            "width=width, keys_features=keys_features, queries_features=queries_features,",
        ),
        (JOINED, "keys_features=memory + x_features, queries_features=x_features,"),
    ],
)
def test_the_base_is_told_the_sizes_in_its_own_words(own: str, handed: str) -> None:
    text = one_line(in_auto(program(own, run="show(Own(), x, y)" if own == SWAPPED else "pass")))
    assert handed in text


CARRIED = """
import flax.linen as nn
import jax
import jax.numpy as jnp


class Base(nn.Module):
    sizes: tuple = (3, 4)
    wide: int = 2

    @nn.compact
    def __call__(self, x, times: int = 1):
        for i, size in enumerate(self.sizes):
            x = jnp.concatenate([nn.Dense(size, name=f"d{{i}}")(x), x], -1)
        return nn.Dense(self.wide, name="last")(x)


class Sub(Base):
    @nn.compact
    def __call__(self, x):
        return super().__call__({given})


def main():
    for model in (Base(), Sub(), Sub((1, 2, 3))):
        variables = model.init(jax.random.key(0), jnp.ones((2, 3)))
        print(jax.tree.map(jnp.shape, variables))
        print(float(model.apply(variables, jnp.ones((2, 3))).sum()).hex())


if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(
    "given", ["jnp.concatenate([x, x], -1)", "jnp.ones((2, self.wide))", "x * 2"]
)
def test_what_a_loop_carries_starts_from_what_the_base_is_given(given: str) -> None:
    assert set(printed_alike(CARRIED.format(given=given)).values()) == {"explicit"}


OPTIONAL = """
import flax.linen as nn
import jax
import jax.numpy as jnp


class Base(nn.Module):
    width: int = 2

    @nn.compact
    def __call__(self, a, b=None):
        h = nn.Dense({size}, name="a")(a)
        if b is not None:
            h = h + nn.Dense(self.width, name="b")(b)
        return h


class Sub(Base):
    {field}

    @nn.compact
    def __call__(self, x):
        return super().__call__({given})


def main():
    for model in (Base(), Sub()):
        variables = model.init(jax.random.key(0), jnp.ones((2, 3)))
        print(jax.tree.map(jnp.shape, variables))


if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize("given", ["x, x", "x"])
def test_what_the_initial_call_of_the_base_has_is_not_handed_on(given: str) -> None:
    source = OPTIONAL.format(size="self.width", field="", given=given)
    assert set(printed_alike(source).values()) == {"lazy"}


def test_a_size_that_is_not_in_the_bases_words_keeps_the_class_lazy() -> None:
    source = OPTIONAL.format(size="self.width * 2", field="", given="x, x[..., 1:]")
    assert "calls them otherwise" in lazy(source, "Sub")


def test_a_field_that_post_init_sets_is_not_handed_on() -> None:
    field = "wide: int = 3\n\n    def __post_init__(self):\n        self.wide = 2\n        super().__post_init__()\n"
    source = OPTIONAL.format(size="self.width", field=field, given="jnp.ones((2, self.wide))")
    found = rewrite_in_form({"m.py": source.replace("if b is not None:", "if False:")}, "auto")
    assert {one.form.value for one in found.classes if one.form is not None} == {"lazy"}


REUSED = """
import flax.linen as nn
import jax
import jax.numpy as jnp


class Base(nn.Module):
    width: int = 3

    def setup(self):
        self.enc = nn.Dense(self.width)
        self.dec = nn.Dense(2)

    def encode(self, x):
        return nn.relu(self.enc(x))

    def __call__(self, x):
        return self.dec(self.encode(x))


class Sub(Base):
    classes: int = 2

    def __call__(self, x, c):
        {body}


def main():
    x, c = jnp.full((2, 3), 0.5), jnp.full((2, 4), 2.0)
    for model, args in ((Base(), (x,)), (Sub(), (x, c)), (Sub(5, 1), (c, x))):
        variables = model.init(jax.random.key(0), *args)
        for path, leaf in jax.tree_util.tree_flatten_with_path(variables)[0]:
            print(jax.tree_util.keystr(path), leaf.shape, float(leaf.sum()).hex())
        print(float(model.apply(variables, *args).sum()).hex())


if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(
    ("body", "form"),
    [
        ("return super().__call__(jnp.concatenate([x, c], -1))", "explicit"),
        ("return self.dec(self.encode(jnp.concatenate([c, x, x], -1)))", "explicit"),
        ("return super().__call__(jnp.ones((2, self.classes)) + c.sum())", "explicit"),
        ("return self.encode(jnp.concatenate([x, c], -1))", "lazy"),
        ("return self.dec(jnp.concatenate([self.encode(x), c], -1))", "lazy"),
    ],
)
def test_a_class_may_call_inherited_layers_itself(body: str, form: str) -> None:
    assert set(printed_alike(REUSED.format(body=body)).values()) == {form}


OVERRIDDEN = """
import flax.linen as nn
import jax
import jax.numpy as jnp


class Base(nn.Module):
    width: int = 3

    def setup(self):
        self.q = nn.Dense(self.width)
        self.out = nn.Dense(self.width)

    def __call__(self, x):
        shape = x.shape
        if len(x.shape) == 4:
            b, h, w, c = x.shape
            x = x.reshape((b, h * w, c))
        y = self.out(self.q(x))
        return y.reshape((*shape[:-1], self.width))


class Child(Base):
    def __call__(self, x):
        return self.out(self.q(x) * 2)


def main():
    x = jnp.linspace(-1, 1, 40).reshape(2, 2, 2, 5)
    for model in (Base(), Child()):
        variables = model.init(jax.random.key(0), x)
        print(jax.tree.map(lambda one: float(one.sum()).hex(), variables))
        print(float(model.apply(variables, x).sum()).hex())
"""


def test_what_an_overridden_call_reads_of_shapes_is_not_asked_of_a_class() -> None:
    assert printed_alike(OVERRIDDEN) == {"m.Base": "explicit", "m.Child": "explicit"}
