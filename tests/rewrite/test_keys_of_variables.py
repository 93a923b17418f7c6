"""Variables that start from keys: which keys are a module's own, and their order, as Linen counts them."""

from __future__ import annotations

from tests.rewrite.running import migrated, printed_alike

SOURCE = """\
import flax.linen as nn
import jax
import jax.numpy as jnp

normal = nn.initializers.normal(1.0)


class Codebook(nn.Module):
    # The sums start as the codes do, from one key.
    number: int = 3

    @nn.compact
    def __call__(self, x):
        codes = self.variable("vq", "codes", lambda: normal(self.make_rng("params"), (self.number, 2)))
        count = self.variable("vq", "count", lambda: jnp.ones((self.number,)))
        sums = self.variable("vq", "sums", lambda: codes.value * count.value[:, None])
        bias = self.param("bias", nn.initializers.zeros, (1, 2))
        scale = self.param("scale", normal, (1, 2))
        return x @ codes.value.T @ sums.value * scale + bias


class Mixed(nn.Module):
    # Two keys of one variable.
    @nn.compact
    def __call__(self, x):
        start = self.variable(
            "s", "start", lambda: normal(self.make_rng("params"), (1, 2)) + normal(self.make_rng("params"), (1, 2))
        )
        return x * start.value * self.param("scale", normal, (1, 2))


class Tree(nn.Module):
    # A tree of arrays from one key.
    @nn.compact
    def __call__(self, x):
        def start():
            one, two = jax.random.split(self.make_rng("params"))
            return {"one": normal(one, (1, 2)), "two": normal(two, (1, 2))}

        pair = self.variable("s", "pair", start)
        scale = self.param("scale", normal, (1, 2))
        return x * pair.value["one"] * pair.value["two"] * scale


class Following(nn.Module):
    # A parameter that starts from another value and its own key, and one that ignores its own.
    def setup(self):
        self.first = self.variable("s", "first", lambda: normal(self.make_rng("params"), (1, 2)))
        self.part = nn.Dense(2)
        self.moved = self.param("moved", lambda key: self.first.value + normal(key, (1, 2)))
        self.same = self.param("same", lambda key: self.first.value * 2)
        self.last = self.param("last", normal, (1, 2))

    def __call__(self, x):
        return self.part(x) * self.first.value * self.moved * self.same * self.last


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        for kind in (Codebook, Mixed, Tree, Following):
            x = kind()(x)
        return x


def main():
    for kind in (Codebook, Mixed, Tree, Following, Net):
        variables = jax.jit(kind().init)(jax.random.key(0), jnp.ones((2, 2)))
        for path, value in jax.tree_util.tree_leaves_with_path(variables):
            print(kind.__name__, jax.tree_util.keystr(path), value.tobytes().hex())
"""


def test_each_key_is_of_the_module_that_draws_it() -> None:
    forms = printed_alike(SOURCE)
    assert {name: form for name, form in forms.items() if name != "m.Net"} == dict.fromkeys(
        ("m.Codebook", "m.Mixed", "m.Tree", "m.Following"), "explicit"
    )


DRAWN = """\
import flax.linen as nn
import jax
import jax.numpy as jnp

normal = nn.initializers.normal(1.0)


class First(nn.Module):
    # Linen counts the draw of the call before that of the parameter.
    @nn.compact
    def __call__(self, x):
        key = self.make_rng("noise")
        scale = self.param("scale", normal, (1, 2))
        return x * scale + jax.random.normal(key, x.shape)


class Between(nn.Module):
    # Draws before, between and behind parameters, and one of the same stream that a variable starts from.
    @nn.compact
    def __call__(self, x):
        one = self.param("one", normal, (1, 2))
        x = x + jax.random.normal(self.make_rng("noise"), x.shape) * jax.random.normal(self.make_rng("params"))
        two = self.param("two", normal, (1, 2))
        start = self.variable("s", "start", lambda: normal(self.make_rng("params"), (1, 2)))
        return x * one * two * start.value + jax.random.normal(self.make_rng("noise"), x.shape)


class Kept(nn.Module):
    # The constructor draws this one itself.
    @nn.compact
    def __call__(self, x):
        key = self.make_rng("params")
        start = self.variable("s", "start", normal, key, (1, 2))
        more = self.param("more", lambda own: normal(own, (1, 2)) + normal(key, (1, 2)))
        return x * start.value * more


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        key = self.make_rng("noise")
        x = Between(name="a")(First()(x)) + Between(name="b")(x)
        return x * self.param("scale", normal, (1, 2)) * jax.random.normal(key, (2, 2))


def main():
    for kind in (First, Between, Kept, Net):
        for keys in (jax.random.key(0), {"params": jax.random.key(0), "noise": jax.random.key(1)}):
            variables = jax.jit(kind().init)(keys, jnp.ones((2, 2)))
            for path, value in jax.tree_util.tree_leaves_with_path(variables):
                print(kind.__name__, jax.tree_util.keystr(path), value.tobytes().hex())
"""


def test_keys_that_a_call_draws_before_its_parameters_move_these() -> None:
    forms = printed_alike(DRAWN)
    assert dict(forms) == dict.fromkeys(("m.First", "m.Between", "m.Kept", "m.Net"), "explicit")


def test_such_a_key_is_not_shown_by_an_explicit_class() -> None:
    forms = printed_alike(DRAWN.replace("kind().init)", "kind().init_with_output)"))
    assert forms["m.First"] == "lazy"


def test_keys_that_a_call_draws_behind_its_parameters_are_not_counted() -> None:
    text = migrated(
        "import flax.linen as nn\n\nclass M(nn.Module):\n  @nn.compact\n  def __call__(self, x):\n"
        "    x = x * self.param('w', nn.initializers.normal(), (2,))\n"
        "    key = self.make_rng('noise')\n"
        "    return x + nn.Dense(2)(x) + self.param('b', nn.initializers.zeros, (2,)), key\n"
    )
    assert "count_draw" not in text


PERHAPS = """\
import flax.linen as nn
import jax
import jax.numpy as jnp

normal = nn.initializers.normal(1.0)


class Condition(nn.Module):
    @nn.compact
    def __call__(self, x, train=False):
        if train:
            x = x + jax.random.normal(self.make_rng("noise"), x.shape)
        return x * self.param("scale", normal, (1, 2))


class Loop(nn.Module):
    @nn.compact
    def __call__(self, x, train=False):
        for _ in range(2):
            x = x + jax.random.normal(self.make_rng("noise"), x.shape)
        return x * self.param("scale", normal, (1, 2))


class Branch(nn.Module):
    # The parameter is made in the same branch, behind the draw.
    flag: bool = True

    @nn.compact
    def __call__(self, x, train=False):
        if self.flag:
            key = self.make_rng("params")
            x = x * self.param("scale", normal, (1, 2)) + jax.random.normal(key, x.shape)
        return x


class Constant(nn.Module):
    # No key decides the parameter.
    @nn.compact
    def __call__(self, x, train=False):
        if train:
            x = x + jax.random.normal(self.make_rng("noise"), x.shape)
        return nn.Dense(2)(x) * self.param("scale", nn.initializers.ones, (1, 2))


class Helper(nn.Module):
    # Another method draws it.
    def shaken(self, x):
        return self.noise(x) + 1

    def noise(self, x):
        return x + jax.random.normal(self.make_rng("noise"), x.shape)

    @nn.compact
    def __call__(self, x, train=False):
        return self.shaken(x) * self.param("scale", normal, (1, 2))


class HelperOf(nn.Module):
    # Another method makes the parameter, and draws by a third one.
    def noise(self, x):
        return x + jax.random.normal(self.make_rng("noise"), x.shape)

    def scaled(self, x):
        return self.noise(x) * self.param("scale", normal, (1, 2))

    @nn.compact
    def __call__(self, x, train=False):
        return self.scaled(x)


class Before(nn.Module):
    # Another method makes the parameter, behind the draw.
    def scaled(self, x):
        return x * self.param("scale", normal, (1, 2))

    @nn.compact
    def __call__(self, x, train=False):
        return self.scaled(x + jax.random.normal(self.make_rng("noise"), x.shape))


class HelperBehind(nn.Module):
    def _shaken(self, x):
        return x + jax.random.normal(self.make_rng("noise"), x.shape)

    @nn.compact
    def __call__(self, x, train=False):
        x = x * self.param("scale", normal, (1, 2))
        return self._shaken(x)


class Behind(nn.Module):
    @nn.compact
    def __call__(self, x, train=False):
        x = x * self.param("scale", normal, (1, 2))
        if train:
            x = x + jax.random.normal(self.make_rng("noise"), x.shape)
        return x


def main():
    drawing = (Condition, Loop, Branch, Constant, Helper, HelperOf, Before, HelperBehind, Behind)
    for kind in drawing:
        for train in (False, True):
            init = jax.jit(lambda key: kind().init(key, jnp.ones((2, 2)), train))
            for path, value in jax.tree_util.tree_leaves_with_path(init(jax.random.key(0))):
                print(kind.__name__, train, jax.tree_util.keystr(path), value.tobytes().hex())
"""


def test_a_class_stays_lazy_where_a_key_is_perhaps_drawn_before_a_parameter() -> None:
    forms = printed_alike(PERHAPS)
    assert forms == {
        "m.Condition": "lazy",
        "m.Loop": "lazy",
        "m.Branch": "lazy",
        "m.Constant": "explicit",
        "m.Helper": "lazy",
        "m.HelperOf": "lazy",
        "m.Before": "lazy",
        "m.HelperBehind": "explicit",
        "m.Behind": "explicit",
    }


NESTED = """\
import flax.linen as nn
import jax
import jax.numpy as jnp



class Cell(nn.Module):
    @nn.compact
    def __call__(self, c, a):
        return nn.Dense(2)(c), c


class Stack(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Dense(2)(x)
        return nn.scan(
            Cell, length=3, variable_axes={"params": 0}, split_rngs={"params": True}
        )()(x, None)[0]


class Step(nn.Module):
    @nn.compact
    def __call__(self, c, a):
        return Stack()(c) + a, c


class Outer(nn.Module):
    @nn.compact
    def __call__(self, x):
        run = nn.scan(Step, variable_axes={"params": 0}, split_rngs={"params": True})
        return run()(x, jnp.stack([x, -x]))[0]


def main():
    variables = jax.jit(Outer().init)(jax.random.key(0), jnp.ones((2, 2)))
    for path, value in jax.tree_util.tree_leaves_with_path(variables):
        print(jax.tree_util.keystr(path), value.tobytes().hex())
"""


def test_a_scan_in_a_lazy_one_counts_the_rounds_of_both() -> None:
    forms = printed_alike(NESTED)
    assert forms == {
        "m.Cell": "explicit",
        "m.Stack": "explicit",
        "m.Step": "explicit",
        "m.Outer": "lazy",
    }


BELOW = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Part(nn.Module):
    # A second run of a scan makes its state alone, and the call draws from the stream of parameters, too.
    @nn.compact
    def __call__(self, x):
        start = self.variable("state", "start", lambda: jax.random.normal(self.make_rng("params"), (4,)))
        x = nn.Dense(4)(x) + jax.random.normal(self.make_rng("noise"), x.shape)
        return x + start.value[None]


class Step(nn.Module):
    @nn.compact
    def __call__(self, c, x):
        c = Part()(c)
        return c + x, c.sum()


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        step = nn.scan(
            Step, variable_broadcast="params", split_rngs={"params": False}, variable_axes={"state": 0}
        )
        x, sums = step()(x, jnp.stack([x, -x]))
        self.sow("sums", "sums", sums)
        return x


class Outer(nn.Module):
    # One of its parts is only called by the second call.
    def setup(self):
        self.parts = [Part(), Part()]

    def __call__(self, x, second=False):
        return self.parts[1](x) if second else self.parts[0](x)


class Twice(nn.Module):
    @nn.compact
    def __call__(self, x):
        outer = Outer()
        return (lambda y: outer(outer(y), True))(x)


def main():
    x = jnp.arange(8.0).reshape(2, 4)
    for model in (Model(), Twice()):
        for rngs in (jax.random.key(0), {"params": jax.random.key(0), "noise": jax.random.key(1)}):
            for path, one in jax.tree_util.tree_leaves_with_path(model.init(rngs, x)):
                print(jax.tree_util.keystr(path), one)
"""


def test_scopes_below_a_lazy_one_go_on_counting_their_keys() -> None:
    found = printed_alike(BELOW)
    assert (found["m.Part"], found["m.Model"]) == ("explicit", "lazy")
