"""Constructor calls and call sites of converted classes: rewritten together or refused."""

from __future__ import annotations

import ast
import textwrap

import pytest

from nnx_migrate.model import Outcome, SizeArgument
from tests.rewrite.outside.converting import HEAD, convert, convert_modules, refusals

REWRITTEN = {
    "straight line": (
        """
        model = MLP(features=4)
        variables = model.init(key, x)
        y = model.apply(variables, x)
        """,
        """
        model = nnm.build(MLP, features=4, in_features=x.shape[-1], rngs=key)
        variables = nnm.variables_of(model, x)
        y = nnm.apply(model, variables, x)
        """,
    ),
    "no sizes": (
        "m = Plain()\np = m.init(jax.random.key(0), jnp.ones(3))\n",
        "m = nnm.build(Plain, rngs=jax.random.key(0))\np = nnm.variables_of(m, jnp.ones(3))\n",
    ),
    "evident shape": (
        "v = MLP(4).init(key, jnp.zeros((1, 28, 3)))\n",
        "v = nnm.variables_of(nnm.build(MLP, 4, in_features=3, rngs=key), jnp.zeros((1, 28, 3)))\n",
    ),
    "keys by stream": (
        'v = MLP(4).init({"params": a, "dropout": b}, x, train=True)["params"]\n',
        (
            "v = nnm.variables_of(nnm.build(MLP, 4, in_features=x.shape[-1], "
            'rngs={"params": a, "dropout": b}), x, train=True)["params"]\n'
        ),
    ),
    "key by keyword": (
        "v = Plain().init(rngs=key, x=x)\n",
        "v = nnm.variables_of(nnm.build(Plain, rngs=key), x=x)\n",
    ),
    "apply options stay": (
        """
        def f(params, x, k):
            model = Plain()
            return model.apply(
                {"params": params},  # only parameters
                x,
                rngs={"dropout": k},
                mutable=["batch_stats"],
                method=Plain.__call__,
            )
        """,
        """
        def f(params, x, k):
            model = nnm.abstract(Plain)
            return nnm.apply(
                model,
                {"params": params},  # only parameters
                x,
                rngs={"dropout": k},
                mutable=["batch_stats"],
                method=Plain.__call__,
            )
        """,
    ),
    "inline apply": (
        "y = MLP(4).apply({'params': p}, batch['x'])\n",
        (
            "y = nnm.apply(nnm.abstract(MLP, 4, in_features=batch['x'].shape[-1]),"
            " {'params': p}, batch['x'])\n"
        ),
    ),
    "method of the instance": (
        "m = Plain()\nv = m.init(k, x)\ny = m.apply(v, x, method=m.__call__)\n",
        (
            "m = nnm.build(Plain, rngs=k)\nv = nnm.variables_of(m, x)\n"
            "y = nnm.apply(m, v, x, method=m.__call__)\n"
        ),
    ),
    "train state": (
        """
        def make(key, x, tx):
            model = MLP(4)
            params = model.init(key, x)["params"]
            return TrainState.create(apply_fn=model.apply, params=params, tx=tx)
        """,
        """
        def make(key, x, tx):
            model = nnm.build(MLP, 4, in_features=x.shape[-1], rngs=key)
            params = nnm.variables_of(model, x)["params"]
            return TrainState.create(apply_fn=nnm.apply_fn(model), params=params, tx=tx)
        """,
    ),
    "inputs bound after the model": (
        """
        model = MLP(4)
        x = load()
        v = model.init(jax.random.key(0), x)
        print(model.apply(v, x))
        """,
        """
        model = functools.partial(MLP, 4)
        x = load()
        model = nnm.build(model, in_features=x.shape[-1], rngs=jax.random.key(0))
        v = nnm.variables_of(model, x)
        print(nnm.apply(model, v, x))
        """,
    ),
    "a global used by functions": (
        """
        model = MLP(4)
        def init(k, x):
            return model.init(k, x)
        def forward(p, x):
            return model.apply(p, x)
        """,
        """
        model = functools.partial(MLP, 4)
        def init(k, x):
            return nnm.variables_of(nnm.build(model, in_features=x.shape[-1], rngs=k), x)
        def forward(p, x):
            return nnm.apply(nnm.abstract(model, in_features=x.shape[-1]), p, x)
        """,
    ),
    "a closure": (
        """
        def main(k, x):
            model = MLP(4)
            v = model.init(k, x)
            def loss(v):
                return model.apply(v, x).sum()
            return jax.grad(loss)(v)
        """,
        """
        def main(k, x):
            model = nnm.build(MLP, 4, in_features=x.shape[-1], rngs=k)
            v = nnm.variables_of(model, x)
            def loss(v):
                return nnm.apply(model, v, x).sum()
            return jax.grad(loss)(v)
        """,
    ),
    "jitted init": (
        "m = MLP(4)\nv = jax.jit(m.init)(k, jnp.ones((1, 3)))\n",
        (
            "m = functools.partial(MLP, 4)\n"
            "v = jax.jit(lambda rngs, x: nnm.variables_of("
            "nnm.build(m, in_features=x.shape[-1], rngs=rngs), x))(\n    k, jnp.ones((1, 3))\n)\n"
        ),
    ),
    "jitted init with options, and apply as a value": (
        "m = Plain()\nv = jax.jit(m.init, static_argnames='n')(k, x, n=3)\nf(m.apply)\n",
        (
            "m = functools.partial(Plain)\n"
            "v = jax.jit(lambda rngs, x, n: nnm.variables_of("
            "nnm.build(m, rngs=rngs), x, n=n), static_argnames='n')(\n    k, x, n=3\n)\n"
            "f(nnm.apply_fn(nnm.abstract(m)))\n"
        ),
    ),
    "shapes of init": (
        "s = jax.eval_shape(MLP(4).init, k, x)\n",
        (
            "s = jax.eval_shape(\n    lambda rngs, x: nnm.variables_of("
            "nnm.build(MLP, 4, in_features=x.shape[-1], rngs=rngs), x), k, x\n)\n"
        ),
    ),
    "through a partial": (
        "Small = functools.partial(MLP, features=2)\nv = Small().init(k, x)\n",
        (
            "Small = functools.partial(MLP, features=2)\n"
            "v = nnm.variables_of(nnm.build(Small, in_features=x.shape[-1], rngs=k), x)\n"
        ),
    ),
    "arguments are converted too": (
        "v = MLP(f(nn.relu)).init(k, x)\n",
        "v = nnm.variables_of(nnm.build(MLP, f(nnx.relu), in_features=x.shape[-1], rngs=k), x)\n",
    ),
    "the comment after the last argument stays": (
        "m = MLP(\n    4,  # wide\n)\nv = m.init(k, x)\n",
        (
            "m = nnm.build(\n    MLP,\n    4,  # wide\n    in_features=x.shape[-1],\n    rngs=k,\n)\n"
            "v = nnm.variables_of(m, x)\n"
        ),
    ),
    "name= is Linen's": (
        "v = MLP(4, name='net').init(k, x)\n",
        "v = nnm.variables_of(nnm.build(MLP, 4, in_features=x.shape[-1], rngs=k), x)\n",
    ),
    "an alias of the class": (
        "Net = MLP\nv = Net(4).init(k, x)\n",
        "Net = MLP\nv = nnm.variables_of(nnm.build(Net, 4, in_features=x.shape[-1], rngs=k), x)\n",
    ),
}


@pytest.mark.parametrize("name", REWRITTEN)
def test_rewritten(name: str) -> None:
    before, after = (textwrap.dedent(one) for one in REWRITTEN[name])
    text, result = convert(before)
    assert text == after
    assert refusals(result) == []
    ast.parse(text)


@pytest.mark.parametrize("name", REWRITTEN)
def test_the_result_is_stable(name: str) -> None:
    """Converted once more against the same project, nothing that was Linen's is left."""
    text, _ = convert(textwrap.dedent(REWRITTEN[name][1]))
    assert ".init(" not in text
    assert ".apply(" not in text.replace("nnm.apply(", "")


# Places refused: kind, and a part of the message.
REFUSED = {
    "constructor alone": (
        "def make():\n    return MLP(4)\n",
        ["constructor"],
        "in_features=, rngs=",
    ),
    "handed on": (
        "m = MLP(4)\nv = m.init(k, x)\ntrain(m)\n",
        ["constructor", "call_site"],
        "handed on",
    ),
    "returned": (
        "def f(k, x):\n    m = MLP(4)\n    v = m.init(k, x)\n    return m, v\n",
        ["constructor", "call_site"],
        "handed on",
    ),
    "two bindings": (
        "if a:\n    m = MLP(4)\nelse:\n    m = MLP(5)\nv = m.init(k, x)\n",
        ["constructor", "constructor"],
        "bound more than once",
    ),
    "an attribute of a class": (
        "class T:\n    net = MLP(4)\n",
        ["constructor"],
        "attribute of a class",
    ),
    "jitted init without its arguments": (
        "m = MLP(4)\ninit = jax.jit(m.init)\n",
        ["constructor", "call_site"],
        "without a call",
    ),
    "jitted init with static positions": (
        "v = jax.jit(MLP(4).init, static_argnums=2)(k, x, True)\n",
        ["constructor", "call_site"],
        "without a call",
    ),
    "jitted init whose argument's name is taken": (
        "v = jax.jit(MLP(x).init)(k, y)\n",
        ["constructor", "call_site"],
        "means two things",
    ),
    "jitted init with apply as a value and sizes": (
        "m = MLP(4)\nv = jax.jit(m.init)(k, x)\nf(m.apply)\n",
        ["constructor", "call_site", "call_site"],
        "shows no sizes",
    ),
    "init_with_output": (
        "y, v = MLP(4).init_with_output(k, x)\n",
        ["constructor", "call_site"],
        "not rewritten",
    ),
    "bind": ("m = Plain()\nb = m.bind(v)\n", ["constructor", "call_site"], "not rewritten"),
    "tabulate": ("print(Plain().tabulate(k, x))\n", ["constructor", "call_site"], "nnx.tabulate"),
    "init of one method": (
        "v = MLP(4).init(k, x, method=MLP.encode)\n",
        ["constructor", "call_site"],
        "only a part",
    ),
    "captured intermediates": (
        "y = Plain().apply(v, x, capture_intermediates=True)\n",
        ["constructor", "call_site"],
        "capture_intermediates",
    ),
    "unknown shape": ("v = MLP(4).init(k, load(x))\n", ["constructor", "call_site"], "not evident"),
    "unpacked inputs": ("v = MLP(4).init(k, *args)\n", ["constructor", "call_site"], "*args"),
    "no key": ("v = Plain().init()\n", ["constructor", "call_site"], "no key"),
    "size of another method": (
        "y = MLP(4).apply(v, x, method=MLP.encode)\n",
        ["constructor", "call_site"],
        "does not show",
    ),
    "apply without a call shows no sizes": (
        "f = MLP(4).apply\n",
        ["constructor", "call_site"],
        "shows no sizes",
    ),
    "a bound method outside of method=": (
        "m = Plain()\nv = m.init(k, x)\nf = m.__call__\n",
        ["constructor", "call_site"],
        "m.__call__ is used",
    ),
    "the arguments build a module": (
        "v = MLP(Plain()).init(k, x)\n",
        ["constructor", "constructor", "call_site"],
        "build another module",
    ),
    "the arguments name a class that stays": (
        "v = MLP(Stays).init(k, x)\n",
        ["constructor", "call_site"],
        "stays Linen",
    ),
    "kept by a comment": (
        "m = Plain()\nv = m.init(k, x)  # nnx-migrate: keep\n",
        ["constructor", "call_site"],
        "kept by a comment",
    ),
    "a wrapper's module": (
        "class W:\n    def f(self, k):\n        return self.module.init(k, 1)\n",
        ["call_site"],
        "unknown class",
    ),
    "an unknown receiver with Linen's arguments": (
        "y = net.apply({'params': p}, x)\n",
        ["call_site"],
        "unknown class",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_places_stay_as_they_are(name: str) -> None:
    code, kinds, message = REFUSED[name]
    text, result = convert(code)
    assert text == code
    found = refusals(result)
    assert sorted(kind for kind, _ in found) == sorted(kinds)
    assert any(message in one for _, one in found)


@pytest.mark.parametrize(
    "code",
    [
        "v = Stays().init(k, x)\n",
        "opt = tx.init(params)\n",
        "out = pool.apply(f, (1,))\n",
        "ResNet = functools.partial(MLP, features=3)\n",
    ],
)
def test_what_is_no_business_of_converted_classes_gets_no_remark(code: str) -> None:
    text, result = convert(code)
    assert text == code
    assert not result.findings


def test_a_class_that_holds_linen_parts_is_refused() -> None:
    code = "class Top(nn.Module):\n    def __call__(self, x):\n        return Stays()(x)\nv = Top().init(k, x)\n"
    text, result = convert(code, converted={"m.MLP", "m.Plain", "m.Top"})
    assert text == code
    assert all("holds m.Stays, which stays Linen" in one for _, one in refusals(result)[1:])


def test_a_global_that_other_modules_take_is_refused() -> None:
    head = "import flax.linen as nn\nclass A(nn.Module):\n    def __call__(self, x):\n        return x\n"
    texts = {
        "net": head + "model = A()\ndef f(v, x):\n    return model.apply(v, x)\n",
        "use": "from net import model\nv = model.init(1, 2)\n",
    }
    new, results = convert_modules(texts, converted={"net.A"})
    assert new == texts
    assert any("use uses it too" in one for _, one in refusals(results["net"]))


def test_init_says_which_values_are_linens() -> None:
    _, result = convert("v = Plain().init(k, x)\n")
    notes = [one for one in result.findings if one.outcome is Outcome.REWRITTEN]
    assert len(notes) == 1
    assert "Linen's values for the same key" in notes[0].message


def test_crlf_and_tabs_stay() -> None:
    code = "def f(k):\r\n\tm = MLP(4)\r\n\tx = g()\r\n\tv = m.init(k, x)\r\n"
    text, _ = convert(code)
    assert text == (
        "def f(k):\r\n\tm = functools.partial(MLP, 4)\r\n\tx = g()\r\n"
        "\tm = nnm.build(m, in_features=x.shape[-1], rngs=k)\r\n\tv = nnm.variables_of(m, x)\r\n"
    )


TOLD = (
    SizeArgument("with_c", argument="c", axis=None, fact="given", default=False),
    SizeArgument("init_train", argument="train", axis=None, fact="truth", default=False),
)
TOLD_HEAD = HEAD.replace("x, train=False", "x, c=None, train=False")


@pytest.mark.parametrize(
    ("call", "passed"),
    [
        ("x", ""),
        ("x, None, True", "with_c=False, init_train=True, "),
        ("x, jnp.ones(3), train=1", "with_c=True, init_train=True, "),
        ("x, c, flag", "with_c=c is not None, init_train=bool(flag), "),
    ],
)
def test_what_the_initial_call_has_is_passed_on(call: str, passed: str) -> None:
    source = f"{TOLD_HEAD}def f(x, c, flag):\n    v = MLP(4).init(key, {call})\n"
    new, _ = convert_modules({"m": source}, sizes={"m.MLP": TOLD})
    assert f"nnm.build(MLP, 4, {passed}rngs=key)" in new["m"]


@pytest.mark.parametrize("call", ["x, g(x)", "x, train=x.y"])
def test_a_call_that_does_not_show_what_it_has_is_refused(call: str) -> None:
    source = f"{TOLD_HEAD}def f(x):\n    v = MLP(4).init(key, {call})\n"
    new, results = convert_modules({"m": source}, sizes={"m.MLP": TOLD})
    assert new["m"] == source
    assert any("does not show in this call" in one.message for one in results["m"].findings)
