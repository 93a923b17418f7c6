"""Places that keep Linen's style take ``lazy(Class)``, so that the class can be explicit."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from nnx_migrate.model import RewriteResult
from nnx_migrate.rewrite.forms import rewrite_in
from nnx_migrate.rewrite.request import RewriteRequest
from tests.rewrite.projects import LINEN, ROOT, caller, dense, looped, source
from tests.rewrite.running import printed_alike


def auto(files: dict[str, str], **options: Any) -> RewriteResult:
    own = tuple(source(path, text) for path, text in files.items())
    return rewrite_in(RewriteRequest(ROOT, own, (), base=ROOT, **options))


def said(result: RewriteResult) -> dict[str, str]:
    return {one.name: one.form.value if one.form else one.outcome.value for one in result.classes}


def code(result: RewriteResult, path: str = "m.py") -> str:
    return next(one.code or "" for one in result.files if one.path == path)


def reason(result: RewriteResult, name: str) -> str:
    return next(one.reason or "" for one in result.classes if one.name == name)


AGENT = (
    "class Agent:\n    def __init__(self):\n        self.net = A()\n\n"
    "    def start(self, key, x):\n        return self.net.init(key, x)\n"
)
# What follows the class A, and what becomes of it.
PAIRS = {
    "a registry": ("MODELS = {'a': A}\n", "MODELS = {'a': lazy(A)}\n"),
    "a model that is handed on": (
        "def main():\n    train(A())\n",
        "def main():\n    train(lazy(A)())\n",
    ),
    "a factory": (
        "def make():\n    return A()\n\n\ndef run(k, x):\n    return make().init(k, x)\n",
        "def make():\n    return lazy(A)()\n\n\ndef run(k, x):\n    return make().init(k, x)\n",
    ),
    "a partial": (
        "import functools\n\nmake = functools.partial(A, name='a')\nuse(make)\n",
        "import functools\n\nmake = functools.partial(lazy(A), name='a')\nuse(make)\n",
    ),
    "an attribute": (
        AGENT,
        AGENT.replace("A()", "lazy(A)()"),
    ),
    "a lift": ("use(nn.remat(A))\n", "use(nn.remat(lazy(A)))\n"),
    "a method of the class": (
        "def f(model, v, x):\n    return model.apply(v, x, method=A.__call__)\n\n\nuse(A)\n",
        "def f(model, v, x):\n    return model.apply(v, x, method=lazy(A).__call__)\n\n\nuse(lazy(A))\n",
    ),
    "a question for the class": (
        "def f(model):\n    return isinstance(model, A)\n\n\nuse(A())\n",
        "def f(model):\n    return isinstance(model, lazy(A))\n\n\nuse(lazy(A)())\n",
    ),
    "an annotation": (
        "def f() -> A:\n    return make(A())\n",
        "def f() -> A:\n    return make(lazy(A)())\n",
    ),
    "a name that is computed": (
        "import m\n\n\ndef make(name):\n    return getattr(m, name)()\n",
        "import m\n\n\ndef make(name):\n    return as_lazy(getattr(m, name))()\n",
    ),
    "an alias": ("Net = A\nuse(Net())\n", "Net = lazy(A)\nuse(Net())\n"),
}


@pytest.mark.parametrize(("before", "after"), PAIRS.values(), ids=PAIRS)
def test_a_place_that_is_not_rewritten_takes_the_lazy_form(before: str, after: str) -> None:
    result = auto({"m.py": LINEN + dense("A") + before})
    assert said(result) == {"m.A": "explicit"}, reason(result, "m.A")
    assert code(result).endswith(after)
    assert "from nnx_migrate.linen import" in code(result)
    assert result.references.refused == result.references.bridged == 0


@pytest.mark.parametrize(("before", "after"), PAIRS.values(), ids=PAIRS)
def test_running_again_changes_nothing(before: str, after: str) -> None:
    once = code(auto({"m.py": LINEN + dense("A") + before}))
    assert code(auto({"m.py": once})) == ""


FIELD = (
    "class Block(nn.Module):\n    layer: nn.Module = nn.Dense\n    width: int = 3\n\n"
    "    @nn.compact\n    def __call__(self, x):\n        return self.layer(self.width)(x)\n\n\n"
)
TWO = (
    "class A(nn.Module):\n    def setup(self):\n        self.one = nn.Dense(3)\n"
    "        self.two = nn.Dense(2)\n\n"
    "    def __call__(self, x):\n        return self.two(self.one(x))\n\n"
    "    def tail(self, y):\n        return self.two(y)\n\n\n"
)

# What keeps the class A lazy: a way to it that is not in sight, or a use that its lazy form lacks.
MISSES = {
    "its name in a string": dense("A") + "def make(x):\n    return globals()['A']()\n",
    "names that are computed": dense("A")
    + "import m\n\n\ndef make(name):\n    return vars(m)[name]().init(0, 1)\n",
    "a path in a string": dense("A") + "TARGET = 'm.A'\n\nuse(A)\n",
    "a method that is called with another instance": dense("A")
    + "def f(other, x):\n    return A.__call__(other, x)\n\n\nuse(A)\n",
    "a method that another class takes over": dense("A")
    + "class Other(nn.Module):\n    __call__ = A.__call__\n\n\n"
    + "def main(k, x):\n    return Other().init(k, x), A().init(k, x)\n",
    "a constructor that takes anything": (
        "class A(nn.Module):\n    def __init__(self, *args, **kwargs):\n        pass\n\n"
        "    def __call__(self, x):\n        return x\n\n\nuse(A)\n"
    ),
    "an attribute of an instance of the class around it": (
        "class Test:\n    class A(nn.Module):\n        @nn.compact\n"
        "        def __call__(self, x):\n            return nn.Dense(3)(x)\n\n"
        "    def test(self):\n        case = self\n        return case.A().init(0, 1)\n"
    ),
    "an unknown object's attribute": dense("A") + "def make(models):\n    return models.A()\n",
    "a subclass that stays lazy": dense("A") + looped("B").replace("nn.Module", "A") + "use(A)\n",
    "an attribute of the class": dense("A") + "use(A, A.kind)\n",
    "its intermediates": dense("A")
    + "def f(model, v, x):\n    return model.apply(v, x, capture_intermediates=True), A()\n",
    "its intermediates, by a function that is handed the model": dense("A")
    + "def f(model, v, x):\n    return model.apply(v, x, capture_intermediates=True)\n\n\n"
    + "def main(v, x):\n    return f(A(), v, x)\n",
    "a submodule of a bound module": TWO
    + "def f(v, x):\n    model = make(A())\n    return use(model.bind(v).one, x)\n",
    "init by another method": TWO
    + "def f(k, x):\n    model = make(A())\n    return model.init(k, x, method='tail')\n",
    "types": dense("A") + "use(A[int])\n",
    "a layer whose class is not known": FIELD.replace("Block", "A")
    + "def make(layer):\n    return use(A(layer))\n",
    "a choice of layers that is not known": FIELD.replace("Block", "A")
    + "def make(is_wide, layer):\n    return use(A(nn.Dense if is_wide else layer))\n",
    "what is unpacked": FIELD.replace("Block", "A") + "def make(o):\n    return use(A(**o))\n",
    "an explicit reader of a registry": dense("B")
    + "KINDS = {'b': B}\n\n\n"
    + caller("A", "KINDS[self.kind]()(x)", "    kind: str = 'b'\n"),
}


@pytest.mark.parametrize("text", MISSES.values(), ids=MISSES)
def test_what_is_not_proven_is_lazy(text: str) -> None:
    result = auto({"m.py": LINEN + text})
    assert {said(result).get(name) for name in ("m.A", "m.Test.A")} - {None} == {"lazy"}
    assert "lazy(A" not in code(result)
    assert not any(one.outcome.value == "refused" for one in result.findings)


def test_a_class_that_stays_lazy_builds_explicit_ones() -> None:
    result = auto({"m.py": LINEN + dense("A") + looped("B", body="A()(x)")})
    assert said(result) == {"m.A": "explicit", "m.B": "lazy"}
    assert "x = lazy(A)()(x)" in code(result)


def test_a_class_that_has_a_lazy_one_as_a_value_is_lazy() -> None:
    text = LINEN + looped("B") + caller("A", "{1: B}[1]()(x)") + "use(A)\n"
    result = auto({"m.py": text})
    assert said(result) == {"m.A": "lazy", "m.B": "lazy"}
    assert reason(result, "m.A") == "it has m.B, which is lazy, as a value"


def test_a_class_that_lifts_a_lazy_one_is_explicit() -> None:
    text = LINEN + looped("B") + caller("A", "nn.remat(B)()(x)") + "use(A)\n"
    result = auto({"m.py": text})
    assert said(result) == {"m.A": "explicit", "m.B": "lazy"}
    assert "self.CheckpointB_0 = nn.remat(B)()\n" in code(result)
    assert result.references.refused == 0


def test_globals_that_are_called_as_fields_and_parameters_are_other_things() -> None:
    """The script's ``width`` is lazy code, its ``b`` an instance of a lazy class."""
    own = (
        "class A(nn.Module):\n    width: int\n\n    @nn.compact\n    def __call__(self, x):\n"
        "        self.sow('s', 'x', x, reduce_fn=lambda a, b: a + b, init_fn=lambda: 0)\n"
        "        return nn.Dense(self.width)(x)\n\n\n"
    )
    script = "width = isinstance(use, nn.Module)\nb = B()\nuse(A(3))\n"
    result = auto({"m.py": LINEN + looped("B") + own + script})
    assert said(result) == {"m.A": "explicit", "m.B": "lazy"}


def test_a_class_that_a_default_or_a_nested_function_builds_is_its_own() -> None:
    own = (
        "class {0}(nn.Module):\n    @nn.compact\n    def __call__(self, x):\n"
        "        {1}\n        return one(x)\n\n\n"
    )
    nested = own.format("A", "def one(y):\n            made = B()\n            return made(y)\n")
    default = own.format("C", "one = lambda y, B=B: B()(y)")
    result = auto({"m.py": LINEN + looped("B") + nested + default + "use(A(), C())\n"})
    assert said(result) == {"m.A": "lazy", "m.B": "lazy", "m.C": "lazy"}


def test_layers_for_fields_are_given_as_explicit_classes_take_them() -> None:
    result = auto({"m.py": LINEN + FIELD + "use(Block(nn.DenseGeneral), Block(width=2))\n"})
    assert said(result) == {"m.Block": "explicit"}, reason(result, "m.Block")
    assert "use(lazy(Block)(nnm.factory.DenseGeneral), lazy(Block)(width=2))" in code(result)


def test_a_layer_that_shows_its_sizes_in_its_first_call_is_given_beside_others() -> None:
    text = "LOCAL = functools.partial(Block, functools.partial(nn.ConvLocal, kernel_size=(3,)))\n"
    result = auto({"m.py": LINEN + "import functools\n\n" + FIELD + text})
    assert said(result) == {"m.Block": "explicit"}, reason(result, "m.Block")
    assert "functools.partial(nnm.factory.ConvLocal, kernel_size=(3,))" in code(result)


def test_one_of_two_layers_is_given_as_explicit_classes_take_it() -> None:
    text = "def f(is_wide):\n    return use(Block(nn.Dense if is_wide else nn.DenseGeneral))\n"
    result = auto({"m.py": LINEN + FIELD + text})
    assert said(result) == {"m.Block": "explicit"}, reason(result, "m.Block")
    layer = "nnm.factory.Dense if is_wide else nnm.factory.DenseGeneral"
    assert f"use(lazy(Block)({layer}))" in code(result)


def test_a_layer_under_a_local_name_is_given_as_explicit_classes_take_it() -> None:
    text = (
        "import functools\n\n\ndef f():\n"
        "    layer = functools.partial(nn.Dense, use_bias=False)\n"
        "    return use(Block(layer), Block(layer=layer, width=2))\n"
    )
    result = auto({"m.py": LINEN + FIELD + text})
    assert said(result) == {"m.Block": "explicit"}, reason(result, "m.Block")
    assert "layer = functools.partial(nnm.factory.Dense, use_bias=False)" in code(result)
    assert "use(lazy(Block)(layer), lazy(Block)(layer=layer, width=2))" in code(result)


def test_each_layer_that_a_local_name_may_be_is_given_so() -> None:
    text = (
        "\n\ndef f(a):\n    layer = nn.Dense\n    if a:\n        layer = nn.DenseGeneral\n"
        "    return use(Block(layer))\n"
    )
    result = auto({"m.py": LINEN + FIELD + text})
    assert said(result) == {"m.Block": "explicit"}, reason(result, "m.Block")
    assert "layer = nnm.factory.Dense\n    if a:\n        layer = nnm.factory.DenseGeneral" in code(
        result
    )


HEADED = (
    "import functools\n\n\ndef f({}):\n    layer = nn.Dense\n{}    return use(Block(layer){})\n"
)


@pytest.mark.parametrize(
    "text",
    {
        "also for data": HEADED.format("", "", ", Block(nn.Dense, width=layer)"),
        "taken apart": HEADED.format("a", "    layer, other = a\n", ""),
        "not a layer": HEADED.format("", "", "").replace("nn.Dense", "make()"),
        "imported": HEADED.format("", "    from layers import layer\n", ""),
        "in another scope": HEADED.format("", "    def g(layer): Block(layer)\n\n", ""),
        "deleted": HEADED.format("", "    del layer\n", ""),
    }.values(),
)
def test_a_local_name_that_may_be_anything_is_not_given_to_a_field(text: str) -> None:
    assert said(auto({"m.py": LINEN + FIELD + text}))["m.Block"] == "lazy"


@pytest.mark.parametrize(
    "text",
    {
        "also called": HEADED.format("", "", ", layer(3)"),
        "also handed on": HEADED.format("", "", ", layer"),
        "in a list": HEADED.format("", "", ", *map(Block, [layer])"),
        "a parameter": HEADED.format("layer", "", ""),
        "global": HEADED.format("", "", "").replace("layer = nn", "global layer\n    layer = nn"),
        "for another class": HEADED.format("", "    Other(layer)\n", "")
        + "\n\n"
        + looped("Other").replace("(nn.Module):\n", "(nn.Module):\n    layer: type\n\n"),
    }.values(),
)
def test_a_field_builds_lazily_from_a_local_name_that_is_used_otherwise(text: str) -> None:
    result = auto({"m.py": LINEN + FIELD + text})
    assert said(result)["m.Block"] == "explicit"
    assert "as_lazy(self.layer)(self.width)" in str(result.files[0].code)


def member(body: str, *, decorator: str = "@classmethod", first: str = "cls, ") -> str:
    """A class A with a method that code around it calls of the class itself."""
    return (
        dense("A").rstrip()
        + f"\n\n    {decorator}\n    def made({first}n):\n        {body}\n\n\n"
        + "use(A, A.made(3))\n"
    )


def nested(body: str, base: str = "") -> str:
    """The same with a class inside of A."""
    return (
        dense("A").rstrip()
        + f"\n\n    class made({base}):\n        {body}\n\n\n"
        + "use(A, A.made(3))\n"
    )


@pytest.mark.parametrize(
    "text",
    [
        member("return jnp.zeros((n, 3))"),
        member("return n", decorator="@staticmethod", first=""),
        nested("n: int = 3"),
        nested("n: int = 3\n\n        def f(self):\n            return nn.relu(A.__name__)"),
        member("return cls.__name__ * n"),
        member("return nn.relu(n)"),
        member("return n and cls.made(n - 1)"),
        member("return B.other(n)")
        + dense("B").rstrip()
        + "\n\n    @staticmethod\n    def other(n):\n        return n\n\n\nuse(B)\n",
    ],
)
def test_a_member_without_modules_is_taken_of_the_class(text: str) -> None:
    result = auto({"m.py": LINEN + text})
    assert set(said(result).values()) == {"explicit"}, reason(result, "m.A")
    assert "use(lazy(A), A.made(3))" in code(result)


@pytest.mark.parametrize(
    "text",
    [
        member("return cls(n)"),
        nested("n: nn.Module"),
        nested("def __init__(self, n):\n            self.net = A()"),
        nested("n: int", "nn.Module"),
        member("return n") + "A.made = print\n",
        member("return A(n)"),
        member("return nn.Dense(n)"),
        member("return n, cls"),
        member("return n, B\n\n\n" + looped("B")),
        member("return super().made(n)"),
        member("return cls.width * n"),
        member("return self, n", decorator="@nn.nowrap", first="self, "),
    ],
)
def test_a_member_with_modules_is_not_taken_of_the_class(text: str) -> None:
    result = auto({"m.py": LINEN + text})
    assert said(result)["m.A"] == "lazy"


STEP = "def step(model, v, x):\n    return nn.log_softmax(model.apply(v, x))\n\n\nuse(A(), step)\n"


def test_functions_that_both_libraries_have_are_nnx_also_beside_lazy_places() -> None:
    result = auto({"m.py": LINEN + dense("A") + STEP})
    assert said(result) == {"m.A": "explicit"}, reason(result, "m.A")
    text = code(result)
    assert "return nnx.log_softmax(model.apply(v, x))" in text
    assert "use(lazy(A)(), step)" in text
    assert "nnx_migrate.linen as" not in text
    assert result.references.rewritten == result.references.total


@pytest.mark.parametrize(
    "text",
    [
        STEP.replace("log_softmax", "unbox"),  # it takes variables
        STEP + looped("B"),  # the file has a lazy class and so Linen's names
    ],
)
def test_other_functions_beside_lazy_places_stay_lazy(text: str) -> None:
    result = auto({"m.py": LINEN + dense("A") + text})
    assert said(result)["m.A"] == "explicit", reason(result, "m.A")
    assert "return nn." in code(result)
    assert "import nnx_migrate.linen as nn\n" in code(result)


def test_a_file_imports_only_what_its_new_text_reads() -> None:
    files = {
        "m.py": LINEN + dense("A"),
        "n.py": LINEN + "from m import A\n\n\n" + STEP + looped("B"),
    }
    text = code(auto(files), "n.py")
    assert "use(lazy(A)(), step)" in text
    assert "nnx_migrate.linen as nn" in text
    assert "from flax import nnx" not in text


def test_a_kept_class_and_one_that_is_not_selected_stay_as_they_are() -> None:
    text = LINEN + dense("A") + caller("Top", "A()(x)")
    result = auto({"m.py": text}, select=("m.A",))
    assert said(result) == {"m.A": "lazy", "m.Top": "kept"}


PROGRAMS = {
    "a question for a base": """
class Wide(Net):
    width: int = 7


def main(key, x):
    models = {"net": Net, "wide": Wide}
    kinds = [(issubclass(one, Net), isinstance(one(), Wide)) for one in models.values()]
    assert kinds == [(True, False), (True, True)], kinds
    assert not isinstance(Wide(), Tower)
    return [one().init(key, x) for one in models.values()]
""",
    "a class inside and class methods": """
class Cell(nn.Module):
    class HParams(NamedTuple):
        width: int
        scale: float = 2.0

    hparams: HParams

    @nn.compact
    def __call__(self, x, carry):
        y = nn.Dense(self.hparams.width)(jnp.concatenate([x, carry], -1))
        return y * self.hparams.scale, y

    @classmethod
    def carry(cls, batch, hparams):
        return cls.zeros((batch, hparams.width))

    @staticmethod
    def zeros(shape):
        return jnp.zeros(shape)


def main(key, x):
    hparams = Cell.HParams(width=5)
    model = keep(Cell(hparams))
    carry = Cell.carry(x.shape[0], hparams)
    variables = model.init(key, x, carry)
    assert isinstance(model.hparams, Cell.HParams)
    return variables, model.apply(variables, x, carry)


def keep(model):
    return model
""",
    "layers under local names": """
class Stage(nn.Module):
    layer: Any
    norm: Any = nn.LayerNorm

    @nn.compact
    def __call__(self, x):
        return self.norm()(self.layer(4)(nn.relu(self.layer(6)(x))))


def main(key, x):
    layer = functools.partial(nn.Dense, use_bias=False)
    norm = nn.RMSNorm
    found = []
    for model in [Stage(layer), Stage(layer=layer, norm=norm), Stage(nn.Dense, norm)]:
        variables = model.init(key, x)
        found += [variables, model.apply(variables, x)]
    return found
""",
    "names that are set on classes": """
def main(key, x):
    models = {"a": Net(4), "b": Net()}
    assert type(models["a"]).__module__ == main.__module__
    return [model.init(key, x) for model in models.values()]


__all__ = ["Net", "main"]

for name in __all__:
    getattr(sys.modules[__name__], name).__module__ = __name__
""",
    "train state": """
def fit(model, key, x):
    variables = model.init({"params": key, "dropout": key}, x, train=False)
    state = TrainState.create(
        apply_fn=model.apply, params=variables["params"], tx=optax.sgd(0.1)
    )
    stats = variables["batch_stats"]

    @jax.jit
    def step(state, stats, key):
        def loss(p):
            out, new = state.apply_fn(
                {"params": p, "batch_stats": stats}, x, train=True, rngs={"dropout": key},
                mutable=["batch_stats"],
            )
            return (out**2).mean(), new["batch_stats"]

        (value, new), grads = jax.value_and_grad(loss, has_aux=True)(state.params)
        return state.apply_gradients(grads=grads), new, value

    for i in range(3):
        state, stats, value = step(state, stats, jax.random.fold_in(key, i))
    return state.params, stats, value


def main(key, x):
    return fit(Net(4), key, x)
""",
    "inputs of cells and keys of attention, which are not the first": """
class Halved(nn.Module):
    def setup(self):
        self.first = nn.RNN(nn.LSTMCell(4))
        self.second = nn.RNN(nn.GRUCell(2))
        self.attend = nn.MultiHeadDotProductAttention(1)

    def __call__(self, x):
        y = self.first(x[None])
        x = jnp.concatenate([y[0], x], -1)
        z = self.second(x[None])[0]
        return self.attend(z[None], x[None])


MODELS = {"halved": Halved}


def main(key, x):
    model = MODELS["halved"]()
    return model.init_with_output(key, x)
""",
    "registry and partial": """
MODELS = {"small": functools.partial(Net, 2), "large": Net}


def main(key, x):
    found = []
    for name, options in [("small", {}), ("large", {"width": 5})]:
        model = MODELS[name](**options)
        shapes = jax.eval_shape(model.init, key, x)
        variables = jax.jit(model.init)(key, x)
        found += [variables, jax.jit(model.apply)(variables, x)]
        assert jax.tree.map(jnp.shape, shapes) == jax.tree.map(jnp.shape, variables)
    return found
""",
    "an ensemble": """
def ensemble(model, keys, x):
    variables = jax.vmap(lambda key: model.init(key, x))(keys)
    return variables, jax.vmap(lambda v: model.apply(v, x))(variables)


def main(key, x):
    return ensemble(Net(3), jax.random.split(key, 2), x)
""",
    "bind, clone and output at once": """
class Agent:
    def __init__(self, net):
        self.net = net

    def run(self, key, x):
        out, variables = jax.jit(self.net.init_with_output)(key, x)
        wide = self.net.clone(width=7)
        return out, variables, self.net.bind(variables)(x), wide.init(key, x), self.net.width


def main(key, x):
    return Agent(Net(3)).run(key, x)
""",
    "a method, by a function too": """
def encode(model, x):
    return model.features(x) * 2


def main(key, x):
    model = make(Net)
    variables = model.init(key, x)
    one = model.apply(variables, x, method=model.features)
    return one, model.apply(variables, x, method=encode), model.apply(variables, x, method="features")


def make(kind):
    return kind(3)
""",
    "sizes of submodules": """
def main(key, x):
    return start(Tower((4, 6)), key, x)


def start(model, key, x):
    variables = jax.jit(model.init)(key, x)
    return variables, jax.jit(model.apply)(variables, x)
""",
    "an annotated model, and a cell that draws in every step": """
def main(key, x):
    model = Reader(3)
    variables = start(model, key, x[:, None])
    run = jax.jit(lambda v, n: model.apply(v, x[:, None] + n, rngs={"draws": key}))
    return variables, run(variables, 0.0), run(variables, 1.0)


def start(model: Reader, key, x):
    return model.init({"params": key, "draws": key}, x)
""",
    "equal models are one static argument": """
def main(key, x):
    counts = []

    @functools.partial(jax.jit, static_argnums=0)
    def run(model, key, x):
        counts.append(1)
        return model.init(key, x)

    variables = run(Net(3), key, x), run(Net(3), key, x), run(Net(4), key, x)
    return variables, len(counts)
""",
}
HEAD = """\
import functools
import sys
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training.train_state import TrainState


class Net(nn.Module):
    width: int = 3

    def setup(self):
        self.first = nn.Dense(self.width)
        self.norm = nn.BatchNorm()
        self.last = nn.Dense(2)
        self.dropout = nn.Dropout(0.5)

    def features(self, x):
        return nn.relu(self.first(x))

    def __call__(self, x, train=False):
        x = self.norm(self.features(x), use_running_average=not train)
        return self.last(self.dropout(x, deterministic=not train))


class Noisy(nn.RNNCellBase):
    width: int

    @nn.compact
    def __call__(self, carry, x):
        carry, y = nn.GRUCell(self.width)(carry, x)
        y = y + jax.random.normal(self.make_rng("draws"), y.shape)
        return carry, y

    @nn.nowrap
    def initialize_carry(self, rng, input_shape):
        return jnp.zeros((*input_shape[:-1], self.width))

    @property
    def num_feature_axes(self):
        return 1


class Reader(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return nn.RNN(Noisy(self.width), split_rngs={"params": False, "draws": True})(x)


class Tower(nn.Module):
    widths: tuple

    @nn.compact
    def __call__(self, x):
        for width in self.widths:
            x = nn.Dense(width)(x)
            x = jnp.concatenate([x, x**2], -1)
        x = x.reshape(-1)[: 3 * x.shape[-1]]
        return nn.Dense(2, name="head")(x)


"""


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
def test_programs_compute_the_same_numbers(text: str, tmp_path: Path) -> None:
    result = auto({"m.py": HEAD + text})
    assert set(said(result).values()) == {"explicit"}, [one.reason for one in result.classes]
    after = code(result)
    assert "lazy(" in after
    key, x = jax.random.key(0), np.linspace(0.0, 1.0, 12).reshape(4, 3)
    results = [
        load(name, source_text, tmp_path).main(key, x)
        for name, source_text in (("before", HEAD + text), ("after", after))
    ]
    assert jax.tree.structure(results[0]) == jax.tree.structure(results[1])
    assert jax.tree.leaves(results[0])
    for one, other in zip(*map(jax.tree.leaves, results), strict=True):
        np.testing.assert_array_equal(one, other)


def load(name: str, text: str, folder: Path) -> Any:
    """Import a text as a module, from a file: methods show their source."""
    path = folder / f"lazily_{name}.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def test_a_class_is_found_by_a_computed_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = """
import lazily_models


def main(names, key, x):
    return [getattr(lazily_models, name)(width=5).init(key, x) for name in names]
"""
    models = HEAD + "Small = functools.partial(Net, dropout_rate=0.2)\n"
    models += "class Encoder(nn.Module):\n    @nn.compact\n    def encode(self, z):\n"
    models += "        return nn.Dense(2)(z)\n"
    models = models.replace(
        "    width: int = 3\n", "    width: int = 3\n    dropout_rate: float = 0.5\n"
    )
    result = auto({"lazily_models.py": models, "train.py": train})
    forms = said(result)
    assert (forms["lazily_models.Net"], forms["lazily_models.Encoder"]) == ("explicit", "lazy")
    assert "as_lazy(getattr(lazily_models, name))(width=5)" in code(result, "train.py")
    monkeypatch.syspath_prepend(str(tmp_path))
    results = []
    for texts in ((models, train), (code(result, "lazily_models.py"), code(result, "train.py"))):
        load("models", texts[0], tmp_path)
        main = load("train", texts[1], tmp_path).main
        key, x = jax.random.key(0), np.linspace(0.0, 1.0, 12).reshape(4, 3)
        results.append(main(("Net", "Small"), key, x))
    jax.tree.map(np.testing.assert_array_equal, *results)


def test_calls_alike_of_an_explicit_and_a_lazy_class_stand_side_by_side() -> None:
    text = dense("A") + looped("B") + "def run(make, k, x):\n    b = B().init(k, x)\n"
    text += "    keep(A)\n    return A().init(k, x), b, make(A).init(k, x)\n"
    result = auto({"m.py": LINEN + text})
    assert said(result) == {"m.A": "explicit", "m.B": "lazy"}, [
        one.reason for one in result.classes
    ]
    assert code(result).count("lazy(A)") == 3
    assert result.call_sites.rewritten == result.call_sites.total == 5


@pytest.mark.parametrize("shown", ["A().name", "type(A())", "use(A)"])
def test_classes_that_a_file_which_cannot_be_edited_names_are_lazy(shown: str) -> None:
    """The text before ``=}`` is part of the string: no edit may change it."""
    shows = f'from m import A\n\n\ndef show():\n    print(f"{{{shown}=}}")\n'
    result = auto({"m.py": LINEN + dense("A"), "n.py": shows})
    assert said(result)["m.A"] == "lazy"
    assert "part of the string" in reason(result, "m.A")


def test_the_size_behind_a_field_that_is_given_a_module_is_asked_for() -> None:
    """``act`` may be any module: what it returns need not be as wide as what it is given."""
    text = dense("Mix") + (
        "class Block(nn.Module):\n    act: Callable = nn.relu\n\n    @nn.compact\n"
        "    def __call__(self, x):\n        return nn.Dense(2)(self.act(nn.Dense(5)(x)))\n\n\n"
        "class Outer(nn.Module):\n    @nn.compact\n"
        "    def __call__(self, x):\n        return Block()(x) + Block(act=Mix())(x)\n\n\n"
        "def main(k, x):\n    return Outer().init(k, x)\n"
    )
    result = auto({"m.py": "from typing import Callable\n" + LINEN + text})
    arguments = {one.name: one.new_arguments for one in result.classes}
    assert arguments["m.Block"] == ("x_features", "Dense_0_in_features")
    assert "self.Mix_0" in code(result)


def with_method(body: str, use: str = "use(A(), lambda m, *args: m.generate(*args))") -> str:
    """A model with a method more, that code around keeps in Linen's style."""
    text = (
        "class A(nn.Module):\n    width: int = 3\n\n    def setup(self):\n"
        "        self.one = nn.Dense(self.width)\n\n"
        "    def __call__(self, x):\n        return self.one(x)\n\n"
    )
    return f"{LINEN}{text}{body}\n\n\n{use}\n"


@pytest.mark.parametrize(
    "text",
    [
        with_method("    def generate(self, v, x):\n        return sample(self, v, x)\n"),
        with_method(
            "    def generate(self, x):\n        return x * self.size()\n\n"
            "    def size(self):\n        return sample(self)\n"
        ),
        with_method(
            "    def generate(self, x):\n        return x * self.size\n\n"
            "    @property\n    def size(self):\n        return self.width\n"
        ),
    ],
)
def test_a_method_that_linen_runs_without_variables_keeps_the_class_lazy(text: str) -> None:
    result = auto({"m.py": text})
    assert said(result)["m.A"] == "lazy"
    assert "on a module without variables" in reason(result, "m.A")


@pytest.mark.parametrize(
    "text",
    [
        with_method("    def generate(self, x):\n        return x * self.width\n"),
        with_method(
            "    def generate(self, x):\n        return x * self.size()\n\n"
            "    def size(self):\n        return self.width\n"
        ),
        (
            f"{LINEN}class A(nn.Module):\n    by: float\n\n"
            "    def __call__(self, x):\n        return x * self.size()\n\n"
            "    def size(self):\n        return self.by\n\n\nuse(A)\n"
        ),
        with_method("    def generate(self, x):\n        return self.one(x) + 1\n"),
        with_method("    def generate(self, x):\n        return self(x) + 1\n"),
        "import jax\n"
        + with_method("    def generate(self, x):\n        return jax.vmap(self)(x)\n"),
        with_method("    def generate(self, x):\n        raise NotImplementedError\n"),
        (
            f"{LINEN}class A(nn.Module):\n    by: float\n\n"
            "    def __call__(self, x):\n        return x * self.by\n\n\nuse(A)\n"
        ),
    ],
)
def test_other_methods_leave_the_class_explicit(text: str) -> None:
    assert said(auto({"m.py": text}))["m.A"] == "explicit"


def test_a_field_that_is_the_key_of_a_table_holds_no_module() -> None:
    text = (
        "NORMS = {'a': nn.LayerNorm, 'b': nn.RMSNorm}\n\n\n"
        "class A(nn.Module):\n    kind: str = 'a'\n\n    @nn.compact\n    def __call__(self, x):\n"
        "        return NORMS[self.kind]()(x)\n\n\ndef main(options):\n    return A(**options)\n"
    )
    assert said(auto({"m.py": LINEN + text})) == {"m.A": "explicit"}
    result = auto(
        {
            "m.py": LINEN
            + text.replace("kind: str = 'a'", "kind: dict").replace(
                "NORMS[self.kind]", "self.kind['a']"
            )
        }
    )
    assert said(result) == {"m.A": "lazy"}


TEMPLATE = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Base(nn.Module):
    scale: float = 2.0

    def message(self, x):
        return x * self.scale

    def update(self, x, message):
        raise NotImplementedError("abstract")

    def __call__(self, x):
        return self.update(x, self.message(x))


class Own(Base):
    def setup(self):
        self.lin = nn.Dense(3)

    def update(self, x, message):
        return self.lin(x) + message


class Plain(Base):
    def update(self, x, message):
        return x + message


class Net(nn.Module):
    def setup(self):
        self.layers = [Own(), Plain(3.0)]

    def __call__(self, x):
        for one in self.layers:
            x = one(x)
        return x


def main():
    x = jnp.arange(6.0).reshape(2, 3)
    out, variables = Net().init_with_output(jax.random.key(0), x)
    print(out, variables, Plain()(x), Base(4.0).message(x))
    try:
        Base()(x)
    except NotImplementedError as error:
        print(error)
"""


def test_a_base_whose_call_is_made_of_methods_of_subclasses_is_explicit_with_them() -> None:
    assert set(printed_alike(TEMPLATE).values()) == {"explicit"}


GIVEN = (
    LINEN + dense("C") + "class A(nn.Module):\n    @nn.compact\n    def __call__(self, {0}):\n"
    "        return nn.Dense(3)({1})\n\n\n"
    "class Inner(nn.Module):\n    @nn.compact\n    def __call__(self, x, layer):\n        return layer(x)\n\n\n"
    "def applied(layer, x):\n    return layer(x)\n\n\n"
)
# What makes B lazy, and what else it does.
AROUND = (
    "class B(nn.Module):\n    def setup(self):\n        self.c = C()\n        self.a = A()\n\n"
    "    @nn.jit\n    def __call__(self, x):\n        return self.a({0})\n"
)
CALLED = {
    "a parameter": ("x, layer", "layer(x)", "x, self.c"),
    "an item of one": ("x, layers", "layers[0](x)", "x, [self.c]"),
    "an item with a name": ("x, layers", "[one(x) for one in layers][0]", "x, [self.c]"),
    "by jax": ("x, layer", "jax.vmap(layer)(x)", "x, self.c"),
    "by a function": ("x, layer", "applied(layer, x)", "x, self.c"),
    "by a class": ("x, layer", "Inner()(x, layer)", "x, self.c"),
}
CALLED_BY_NOBODY = {
    "arrays": ("x, y", "x + y.mean()", "x, x"),
    "a method of an array": ("x, y", "y.astype(x.dtype)", "x, x"),
    "handed to a layer": ("x, y", "C()(y)", "x, x"),
}


@pytest.mark.parametrize(("parameters", "body", "given"), CALLED.values(), ids=CALLED)
def test_a_class_that_calls_what_lazy_code_gives_it_is_lazy(
    parameters: str, body: str, given: str
) -> None:
    text = "import jax\n" + GIVEN.format(parameters, body) + AROUND.format(given)
    assert said(auto({"m.py": text}))["m.A"] == "lazy"


@pytest.mark.parametrize(
    ("parameters", "body", "given"), CALLED_BY_NOBODY.values(), ids=CALLED_BY_NOBODY
)
def test_a_class_that_calls_no_parameter_is_explicit_in_lazy_code(
    parameters: str, body: str, given: str
) -> None:
    text = GIVEN.format(parameters, body) + AROUND.format(given)
    assert said(auto({"m.py": text}))["m.A"] == "explicit"


def test_a_class_that_calls_a_parameter_is_explicit_where_lazy_classes_do_not_build_it() -> None:
    text = GIVEN.format("x, act", "act(x)") + "def run(k, x):\n    return A().init(k, x, nn.relu)\n"
    assert said(auto({"m.py": text}))["m.A"] == "explicit"


BOXES = (
    LINEN + "def named(init, *axes):\n    return nn.{}(init, axes)\n\n\n"
    "class A(nn.Module):\n    @nn.compact\n    def __call__(self, x):\n"
    "        return nn.Dense(2, kernel_init=named(nn.initializers.ones, 'a', 'b'))(x)\n\n\n"
)


@pytest.mark.parametrize("function", ["with_logical_partitioning", "with_partitioning"])
def test_a_function_that_makes_boxes_of_linens_is_not_read_by_explicit_code(function: str) -> None:
    alone = BOXES.format(function)
    assert said(auto({"m.py": alone})) == {"m.A": "explicit"}
    result = auto({"m.py": alone + "use(named)\n"})
    assert said(result) == {"m.A": "lazy"}
    assert reason(result, "m.A") == "not proven: m.py:5: what it reads here stays lazy"
