"""Functions that fields are given through tables, factories and other fields may change the size."""

import pytest

from tests.rewrite.projects import LINEN, rewrite_in_form, texts
from tests.rewrite.running import in_auto, net_alike, printed_alike

FUNCTIONS = (
    "import functools\nfrom typing import Any, Callable\n\nimport jax\nimport jax.numpy as jnp\n"
    + LINEN
    + "def twice(x):\n    return jnp.concatenate([nn.relu(x), nn.relu(-x)], -1)\n\n\n"
    "def half(x):\n    return x[..., : x.shape[-1] // 2]\n\n\n"
)
INNER = (
    "class Inner(nn.Module):\n    act: Callable\n\n    @nn.compact\n    def __call__(self, x):\n"
    "        return nn.Dense(2)(self.act(nn.Dense(8)(x)))\n\n\n"
)
ADDED = (
    "MORE = {}\n\n\ndef register(name):\n    def put(f):\n        MORE[name] = f\n        return f\n\n"
    "    return put\n\n\n@register('third')\ndef third(x):\n    return x[..., : x.shape[-1] // 3]\n\n\n"
)


def net(body: str, head: str = "", fields: str = "    kind: str = 'b'\n") -> str:
    outer = f"class Net(nn.Module):\n{fields}\n    @nn.compact\n    def __call__(self, x):\n"
    return FUNCTIONS + head + INNER + outer + f"        {body}\n"


TABLE = "ACTS = {'a': nn.relu, 'b': twice}\n\n\n"
GET = "def get(name):\n    if name == 'a':\n        return nn.relu\n    return ACTS[name]\n\n\n"
MAKE = "def make(n):\n    def act(x):\n        return jnp.tile(n * x, 2)\n\n    return act\n\n\n"

OUTER = (
    "class Outer(nn.Module):\n    act: Any\n\n    @nn.compact\n    def __call__(self, x):\n"
    "        return Inner(self.act)(x)\n\n\nclass Net"
)

CHANGING = {
    "a table": net("return Inner(ACTS[self.kind])(x)", TABLE),
    "get of a table": net("return Inner(act=ACTS.get(self.kind, nn.relu))(x)", TABLE),
    "a table that the class calls": net(
        "return nn.Dense(2)(ACTS[self.kind](nn.Dense(8)(x)))", TABLE + "ACTS.update(c=half)\n\n\n"
    ),
    "a local name of a table": net(
        "act = MORE['third']\n        return nn.Dense(2)(act(nn.Dense(8)(x)))", ADDED
    ),
    "a list": net("return Inner([nn.relu, half][1])(x)"),
    "a function that looks it up": net("return Inner(get(self.kind))(x)", TABLE + GET),
    "a function that makes it": net("return Inner(make(2.0))(x)", MAKE),
    "a table that a decorator fills": net("return Inner(MORE['third'])(x)", ADDED),
    "a table that an entry fills": net(
        "return Inner(MORE['c'])(x)", "MORE = {}\nMORE['c'] = twice\n\n\n"
    ),
    "a layer's function": net("return Inner({'glu': nn.glu}['glu'])(x)"),
    "a partial": net("return Inner(functools.partial(jnp.repeat, repeats=2, axis=-1))(x)"),
    "a local name": net(
        "act = ACTS[self.kind]\n        return Inner(act)(x)",
        TABLE,
    ),
    "another field": net("return Outer(ACTS[self.kind])(x)", TABLE).replace("class Net", OUTER),
}


@pytest.mark.parametrize("source", CHANGING.values(), ids=CHANGING)
def test_functions_that_change_the_size_are_not_taken_for_activations(source: str) -> None:
    net_alike(source, "jnp.ones(4)")


KEEPING = {
    "a table": net(
        "return Inner(ACTS[self.kind])(x)",
        "ACTS = {'a': nn.relu, 'b': jax.nn.silu, 'c': lambda x: x * jax.nn.sigmoid(1.7 * x)}\n\n\n",
    ),
    "a function that looks it up": net(
        "return Inner(get(self.kind))(x)",
        "ACTS = {'b': nn.softmax, 'c': functools.partial(nn.gelu, approximate=False)}\n\n\n" + GET,
    ),
    "a function that makes it": net(
        "return Inner(make(2.0))(x)",
        "def make(n):\n    def act(x):\n        return jnp.tanh(n * x)\n\n    return act\n\n\n",
    ),
}


@pytest.mark.parametrize("source", KEEPING.values(), ids=KEEPING)
def test_tables_of_activations_keep_the_size(source: str) -> None:
    assert net_alike(source, "jnp.ones(4)")["m.Inner"] == "explicit"


# ---- how else a field gets its value

BUILT = (
    "import argparse\nimport dataclasses\nimport functools\nfrom typing import Any, Callable, Optional\n\n"
    "import jax\nimport jax.numpy as jnp\nimport numpy as np\n"
    + LINEN
    + "def twice(x):\n    return jnp.concatenate([nn.relu(x), nn.relu(-x)], -1)\n\n\n"
)
MAIN = (
    "\n\ndef main():\n    net = {build}\n    x = jnp.linspace(0.0, 1.0, 48).reshape({shape})\n"
    "    made = net.init(jax.random.key(0), x)\n    print(jax.tree.map(jnp.shape, made))\n"
    "    print(net.apply(jax.tree.map(lambda one: one + 1, made), x))\n"
)


def program(field: str, body: str, build: str, *, head: str = "", shape: str = "2, 4, 6") -> str:
    call = f"    @nn.compact\n    def __call__(self, x):\n        {body}\n"
    net = f"class Net(nn.Module):\n    {field}\n\n{call}"
    return BUILT + head + net + MAIN.format(build=build, shape=shape)


ACT = "act: Callable = nn.relu", "return nn.Dense(2)(self.act(nn.Dense(4)(x)))"
CONFIG = (
    "@dataclasses.dataclass\nclass Config:\n    act: Callable = twice\n    gates: int = 1\n\n\n"
)
GATE = (
    "x = x * nn.sigmoid(nn.Dense({})(x))\n"
    "        return x + self.param('gain', nn.initializers.normal(), (x.shape[-1],)).sum()"
)
ONE = "gates: int = 6", GATE.format("self.gates")
PARSED = (
    "parser = argparse.ArgumentParser()\nparser.add_argument('--gates', type=int, default=1)\n"
    "args = parser.parse_args([])\n\n\n"
)
PICKED = "return nn.Dense(2)(x[..., {}])"

PROGRAMS = {
    "a default that pools": program(
        "act: Callable = lambda x: nn.max_pool(x, (2,), (2,))",
        "y = self.act(nn.Dense(4)(x))\n        return nn.Dense(2)(y.reshape(y.shape[0], -1))",
        "Net()",
    ),
    "an optional function": program(
        "act: Optional[Callable] = None",
        "x = x if self.act is None else self.act(x)\n        return nn.Dense(2)(x)",
        "Net(twice)",
    ),
    "a configuration's function": program(*ACT, "Net(act=Config().act)", head=CONFIG),
    "a function by its name": program(
        *ACT, "Net(act=pick('glu'))", head="def pick(name):\n    return getattr(nn, name)\n\n\n"
    ),
    "an unpacked dict": program(*ACT, "Net(**kw)", head="kw = {'act': twice}\n\n\n"),
    "a partial": program(*ACT, "functools.partial(Net, twice)()"),
    "a copy with another function": program(*ACT, "Net().clone(act=twice)"),
    "a replaced function": program(*ACT, "dataclasses.replace(Net(), act=twice)"),
    "an object that is called": program(
        *ACT,
        "Net(Tile(2))",
        head="class Tile:\n    def __init__(self, n):\n        self.n = n\n\n"
        "    def __call__(self, x):\n        return jnp.tile(x, self.n)\n\n\n",
    ),
    "a function that the call is given": program(
        "act: Callable = nn.relu",
        "return Inner()(x, self.act)",
        "Net(twice)",
        head="class Inner(nn.Module):\n    @nn.compact\n    def __call__(self, x, act):\n"
        "        return nn.Dense(2)(act(nn.Dense(4)(x)))\n\n\n",
    ),
    "a size of 1 from a dict": program(*ONE, "Net(**kw)", head="kw = {'gates': 1}\n\n\n"),
    "a size of 1 from a constant": program(*ONE, "Net(FEW)", head="FEW = 1\n\n\n"),
    "a size of 1 from a parameter's default": program(*ONE, "make()").replace(
        "\n\ndef main", "\n\ndef make(gates=1):\n    return Net(gates=gates)\n\n\ndef main"
    ),
    "a size of 1 from a field's default": program(
        "gates: int = dataclasses.field(default=1)", ONE[1], "Net()"
    ),
    "a size of 1 from the command line": program(*ONE, "Net(args.gates)", head=PARSED),
    "a size of 1 of a configuration": program(
        "config: Config", GATE.format("self.config.gates"), "Net(Config())", head=CONFIG
    ),
    "a size that is divided to 1": program(
        "gates: int = 2", GATE.format("self.gates // 2"), "Net()"
    ),
    "a size of 1 from a range": program(*ONE, "[Net(one) for one in range(1, 3)][0]"),
    "a size of 1 from a range that is computed": program(
        *ONE, "[Net(one) for one in range(len(FEW))][1]", head="FEW = [3, 4]\n\n\n"
    ),
    "a size that a call computes": program(*ONE, "make(4)").replace(
        "\n\ndef main", "\n\ndef make(half):\n    return Net(half // 4)\n\n\ndef main"
    ),
    "a size that a variable counts down to": program(
        *ONE, "[net for net in descend(8)][-1]"
    ).replace(
        "\n\ndef main",
        "\n\ndef descend(n):\n    while n > 1:\n        n = n // 2 - n % 2\n        yield Net(n)\n\n\ndef main",
    ),
    "a size that a variable is halved to": program(*ONE, "[net for net in descend(8)][-1]").replace(
        "\n\ndef main",
        "\n\ndef descend(n):\n    while n > 1:\n        n //= 2\n        yield Net(n)\n\n\ndef main",
    ),
    "a size that counts one": program(
        "names: tuple[str, ...] = ('a',)", GATE.format("len(self.names)"), "Net()"
    ),
    "a slice up to None": program(
        "n: Optional[int] = None", "return nn.Dense(2)(x[..., : self.n])", "Net()"
    ),
    "a slice from the end": program(
        "n: int = 2", "return nn.Dense(2)(x[..., self.n :])", "Net(-2)"
    ),
    "an index that is a tuple": program(
        "columns: Any = (0, 2)", PICKED.format("self.columns"), "Net()"
    ),
    "an index that is a list": program(
        "columns: Any = 0", PICKED.format("self.columns"), "Net([0, 2])"
    ),
    "an index that is made an array": program(
        "columns: Any = (0, 2)", PICKED.format("jnp.array(self.columns)"), "Net()"
    ),
    "features that are several": program(
        "features: Any = 4",
        "y = nn.DenseGeneral(self.features)(x)\n        return nn.DenseGeneral(2, axis=(-2, -1))(y)",
        "Net((3, 2))",
    ),
    "an array that widens": program(
        "mean: Any = (0.5, 0.4, 0.3)",
        "return nn.Dense(2)(x[0] - jnp.array(self.mean))",
        "Net()",
        shape="48, 1",
    ),
    "a repeated tuple that widens": program(
        "mean: Any = (0.5,) * 3",
        "return nn.Dense(2)(x[0] - jnp.array(self.mean))",
        "Net()",
        shape="48, 1",
    ),
    "a condition that widens": program(
        "width: int = 3",
        "return nn.Dense(2)(jnp.where(jnp.ones((1, self.width)) > x[:, :1], x, 0))",
        "Net()",
        shape="48, 1",
    ),
}


@pytest.mark.parametrize("source", PROGRAMS.values(), ids=PROGRAMS)
def test_what_a_field_holds_is_followed_through_the_program(source: str) -> None:
    assert printed_alike(source)["m.Net"] == "explicit"


def test_a_field_whose_values_are_plain_keeps_its_size() -> None:
    source = program(*ACT, "Net(act=Config().act)", head=CONFIG.replace("twice", "nn.tanh"))
    assert "nnx.Linear(4, 2, rngs=rngs)" in in_auto(source)


def test_a_loop_that_may_have_a_size_of_1_is_lazy() -> None:
    source = program(
        "gates: tuple[int, ...] = (6, 6)",
        "for one in self.gates:\n            x = x * nn.sigmoid(nn.Dense(one)(x))\n"
        "        return x + self.param('gain', nn.initializers.normal(), (x.shape[-1],)).sum()",
        "Net((6, 1))",
    )
    assert printed_alike(source)["m.Net"] == "lazy"


def test_a_pooling_of_more_axes_than_the_convolution_has_several_batch_axes() -> None:
    body = (
        "x = nn.relu(nn.Conv(4, 3, 2)(x))\n        x = nn.avg_pool(x, (2, 2), (2, 2), padding='SAME')\n"
        "        return nn.Dense(2)(x.reshape((x.shape[0], -1)))"
    )
    source = program("out: int = 2", body, "Net()", shape="2, 4, 6, 1")
    assert printed_alike(source)["m.Net"] == "explicit"


def test_what_other_classes_have_is_not_what_a_configuration_has() -> None:
    head = CONFIG.replace("gates: int = 1", "gates: int = 6") + "class Other:\n    gates = 1\n\n\n"
    source = program("config: Config", GATE.format("self.config.gates"), "Net(Config())", head=head)
    assert "(self.config.gates,)" in in_auto(source)


def test_a_configuration_of_a_file_that_is_not_read_has_nothing_of_other_classes() -> None:
    net = (
        LINEN
        + "from .config import Config\n\n\nclass Net(nn.Module):\n    config: Config\n\n    @nn.compact\n"
        f"    def __call__(self, x):\n        {GATE.format('self.config.gates')}\n"
    )
    files = {
        "pack/__init__.py": "",
        "pack/config.py": "class Config:\n    gates: int = 6\n",
        "pack/net.py": net,
        "pack/other.py": LINEN + "class Other:\n    gates = 1\n",
    }
    found = texts(rewrite_in_form(files, "auto"), files)["pack/net.py"]
    assert "(self.config.gates,)" in found
