"""What Linen's initial call decides: its method, flags behind stars, several calls of one module."""

from __future__ import annotations

import pytest

from tests.rewrite.running import printed_alike

HEAD = """\
import functools

import flax.linen as nn
import jax
import jax.numpy as jnp


def shown(tree):
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        print(jax.tree_util.keystr(path), leaf.shape, leaf.tobytes().hex())


X = jnp.linspace(-1, 1, 16).reshape(2, 8)
KEYS = {"params": jax.random.key(0), "noise": jax.random.key(1)}
"""

TOKENS = """

class Tokens(nn.Module):
    def setup(self):
        self.embed = nn.Embed(5, 4)
        self.norm = nn.LayerNorm()

    def __call__(self, t):
        return self.norm(self.embed(t))

    def encode(self, t):
        return self.embed(t)


def main():
    t = jnp.array([[1, 2]])
    shown(Tokens().init(KEYS, t))
"""

STARTS = {
    "a function that is handed the method": (
        "start(Tokens(), t, method='encode')",
        "def start(model, *args, method=None):\n    return model.init(KEYS, *args, method=method)\n",
    ),
    "functions that hand on what they are given": (
        "Trainer(Tokens()).started(t, method='encode')",
        "def start(model, *args, **options):\n    return model.init(KEYS, *args, **options)\n\n\n"
        + "class Trainer:\n    def __init__(self, model):\n        self.model = model\n\n"
        + "    def started(self, *args, **options):\n"
        + "        return start(self.model, *args, **options)\n",
    ),
    "a function that reads the method by name": (
        "start(Tokens(), 'encode', t)",
        "def start(model, name, t):\n    return model.init(KEYS, t, method=getattr(model, name))\n",
    ),
    "a function under another name": (
        "begin(Tokens(), t, method='encode')",
        "def start(model, *args, method):\n    return model.init(KEYS, *args, method=method)\n\n\n"
        + "begin = functools.partial(start)\n",
    ),
    "jit": ("jax.jit(Tokens().init, static_argnames='method')(KEYS, t, method='encode')", ""),
    "partial": ("functools.partial(Tokens().init, method='encode')(KEYS, t)", ""),
}


@pytest.mark.parametrize(("call", "helper"), STARTS.values(), ids=[*STARTS])
def test_a_class_that_another_method_initialises_is_lazy(call: str, helper: str) -> None:
    source = f"{HEAD}\n\n{helper}{TOKENS}    shown({call})\n"
    assert printed_alike(source)["m.Tokens"] == "lazy"


def test_what_else_is_called_beside_a_function_that_is_handed_the_method_does_not_matter() -> None:
    helper = "def start(model, *args, **options):\n    return model.init(KEYS, *args, **options)\n"
    use = (
        "variables = start(Tokens(), t)\n    shown(Tokens().apply(variables, t, method='encode'))\n"
    )
    assert printed_alike(f"{HEAD}\n\n{helper}{TOKENS}    {use}")["m.Tokens"] == "explicit"


COMPACT = """

class Tower(nn.Module):
    n: int = 2

    @nn.compact
    def features(self, x):
        for _ in range(self.n):
            x = nn.relu(nn.Dense(4)(x))
        return x

    def __call__(self, x):
        return self.features(x).mean(-1)


def main():
"""


@pytest.mark.parametrize(("method", "form"), [("features", "lazy"), ("__call__", "explicit")])
def test_a_compact_method_that_reads_fields_alone_makes_variables_too(
    method: str, form: str
) -> None:
    source = (
        f"{HEAD}{COMPACT}    net = Tower()\n    shown(net.init(KEYS, X, method=net.{method}))\n"
    )
    assert printed_alike(source)["m.Tower"] == form


STARRED = """

class Inner(nn.Module):
    @nn.compact
    def __call__(self, x, flag=True):
        x = nn.Dense(4)(x)
        if flag:
            x = nn.LayerNorm()(x)
        return x


class ByPosition(nn.Module):
    @nn.compact
    def __call__(self, x, *args):
        return Inner()(x, *args)


class ByName(nn.Module):
    @nn.compact
    def __call__(self, x, **kwargs):
        return Inner()(x, **kwargs)


class Built(nn.Module):
    def setup(self):
        self.inner = Inner()

    def __call__(self, x, **kwargs):
        return self.inner(x, **dict(kwargs))


class Paired(nn.Module):
    @nn.compact
    def __call__(self, x, *rest):
        return Inner()(x, **dict(zip(("flag",), rest)))


class Helped(nn.Module):
    # The default of the helper says nothing of what it is given.
    def setup(self):
        self.first, self.norm = nn.Dense(4), nn.LayerNorm()

    def body(self, x, flag=True):
        x = self.first(x)
        return self.norm(x) if flag else x

    def __call__(self, x, *args, **kwargs):
        return self.body(x, *args, **kwargs)


class Known(nn.Module):
    @nn.compact
    def __call__(self, x, flag=True):
        options = dict(flag=flag)
        args = (x, flag)
        return Inner()(x, **options) + Inner()(*args)


def main():
    for flag in (True, False):
        for model in (ByName(), Built(), Helped(), Known()):
            shown(model.init(KEYS, X, flag=flag))
        for model in (ByPosition(), Paired(), Helped()):
            shown(model.init(KEYS, X, flag))
    for model in (ByName(), ByPosition(), Helped()):
        shown(model.init(KEYS, X))
"""


def test_a_flag_that_may_stand_behind_stars_is_not_the_default() -> None:
    forms = printed_alike(HEAD + STARRED)
    explicit = [name for name, form in forms.items() if form == "explicit"]
    assert explicit == ["m.Inner", "m.Helped", "m.Known"]


SEVERAL_CALLS = """

class Inner(nn.Module):
    @nn.compact
    def __call__(self, x, c=None, flag=False):
        scale = self.param("scale", nn.initializers.normal(), (1, 4))
        if flag:
            scale = scale + self.param("more", nn.initializers.normal(), (1, 4))
        x = nn.Dense(4)(x) * scale
        if c is not None:
            x = x + nn.Dense(4, name="c")(c)
        return x + jax.random.normal(self.make_rng("noise"), x.shape)


class Outer(nn.Module):
    @nn.compact
    def __call__(self, x):
        assert self.path is not None
        inner = Inner()
        return inner(x) + inner(x, x[:, :3]) + inner(x, flag=True) + inner(x, x[:, :3], True)


class Built(nn.Module):
    def setup(self):
        assert self.path is not None
        self.inner = Inner()

    def __call__(self, x):
        return self.inner(x) + self.inner(x, flag=True)


def main():
    for model in (Outer(), Built()):
        variables = model.init(KEYS, X)
        shown(variables)
        shown(model.apply(variables, X, rngs=KEYS))
"""


def test_later_calls_of_an_explicit_module_in_a_lazy_one_make_what_the_first_lacks() -> None:
    forms = printed_alike(HEAD + SEVERAL_CALLS)
    assert (forms["m.Inner"], forms["m.Outer"]) == ("explicit", "lazy")


PARTS = """

class Coder(nn.Module):
    def setup(self):
        self.first, self.last = nn.Dense(4), nn.Dense(3)

    def encode(self, x):
        return self.first(x)

    def decode(self, z):
        return self.last(z)

    def __call__(self, x):
        return self.decode(self.encode(x))


class Model(nn.Module):
    def setup(self):
        self.coder = Coder()

    def __call__(self, x, full=False):
        return BODY


def main():
    for full in (False, True):
        shown(Model().init(KEYS, X, full))
"""

REACHED = {  # the form of the module
    "self.coder.encode(x)": "lazy",
    "self.coder(x) if full else self.coder.encode(x)": "lazy",
    "self.coder.decode(self.coder.encode(x)) if full else self.coder.encode(x)": "lazy",
    "self.coder.decode(self.coder.encode(x))": "explicit",
    "self.coder(x) + self.coder.encode(x)[:, :3]": "explicit",
    "self.coder(x) if full else self.coder.decode(self.coder.encode(x))": "explicit",
}


@pytest.mark.parametrize(("body", "form"), REACHED.items())
def test_a_module_that_an_initial_call_reaches_a_part_of_is_lazy(body: str, form: str) -> None:
    assert printed_alike(HEAD + PARTS.replace("BODY", body))["m.Coder"] == form


SEQUENCE = """

class Pair(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(4)(x), True


class Inner(nn.Module):
    @nn.compact
    def __call__(self, x, flag=False):
        return nn.LayerNorm()(x) if flag else x


class Two(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Sequential([Pair(), Inner()])(x)


class First(nn.Module):
    def setup(self):
        self.layers = nn.Sequential([Inner(), nn.Dense(3), Inner()])

    def __call__(self, x, flag=False):
        return self.layers(x, flag=flag)


def main():
    shown(Two().init(KEYS, X))
    for flag in (False, True):
        shown(First().init(KEYS, X, flag))
"""


def test_sequential_hands_all_arguments_to_its_first_layer_and_tuples_to_the_next() -> None:
    assert set(printed_alike(HEAD + SEQUENCE).values()) == {"explicit"}
