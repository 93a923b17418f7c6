"""What counts as a reference to Linen, and what does not: one idiom a case."""

from __future__ import annotations

import pytest

from nnx_migrate.ledger import Place, Source, count

NN = "import flax.linen as nn\n"


def references(text: str, **others: str) -> list[Place]:
    sources = [Source("main.py", "main", text)]
    sources += [
        Source(f"{name.replace('__', '/')}.py", name.replace("__", "."), body)
        for name, body in others.items()
    ]
    return [one for one in count(sources).references if one.path == "main.py"]


@pytest.mark.parametrize(
    ("text", "symbols"),
    [
        ("import flax.linen as nn\nnn.Dense(3)\n", ["Dense"]),
        ("import flax\nflax.linen.Dense(3)\n", ["Dense"]),
        ("import flax.linen\nflax.linen.Dense(3)\n", ["Dense"]),
        ("from flax import linen\nlinen.Dense(3)\n", ["Dense"]),
        ("from flax import linen as nn\nnn.Dense(3)\n", ["Dense"]),
        ("from flax.linen import Dense as D\nD(3)\n", ["Dense"]),
        ("from flax.linen import *\nDense(3)\nlen([])\n", ["Dense"]),
        ("import flax.linen.attention as a\na.softmax\n", ["attention.softmax"]),
        ("from flax.linen.initializers import zeros\nzeros\n", ["initializers.zeros"]),
        (NN + "nn.initializers.zeros\n", ["initializers.zeros"]),
        (NN + "nn.Dense(3).features\n", ["Dense"]),
        (NN + "Dense = nn.Dense\nDense(3)\n", ["Dense", "Dense"]),
        (NN + "def f():\n    norm = nn.LayerNorm\n    return norm()\n", ["LayerNorm"] * 2),
        (NN + "def f(x: nn.Module) -> nn.Module: ...\n", ["Module", "Module"]),
        (NN + "@nn.jit\ndef f(): ...\n", ["jit"]),
        (NN + "class A(nn.Module): ...\n", ["Module"]),
        (NN + "def f(act=nn.relu): ...\n", ["relu"]),
        (NN + "print(f'{nn.relu}')\n", ["relu"]),
        (NN + "nn.Dense = None\n", [""]),
        (NN + "getattr(nn, 'Dense')\n", [""]),
        (NN + "[nn.relu for nn_ in (1,)]\n", ["relu"]),
        (NN + "[nn for nn in (nn.relu,)]\n", ["relu"]),
        (NN + "class A:\n    nn: object = nn.Dense\n", ["Dense"]),
        (NN + "class A:\n    nn = 1\n    def f(self):\n        return nn.relu\n", ["relu"]),
        ("def f():\n    import flax.linen as nn\n    return nn.relu\n", ["relu"]),
        ("def f():\n    global nn\n    import flax.linen as nn\nnn.relu\n", ["relu"]),
        (
            "try:\n    import flax.linen as nn\nexcept ImportError:\n    nn = None\nnn.relu\n",
            ["relu"],
        ),
        (
            (
                "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from flax.linen import Module\n"
                "def f(x: Module): ...\n"
            ),
            ["Module"],
        ),
        (NN + "f = lambda x: nn.relu(x)\n", ["relu"]),
        (NN + "del nn\nnn.relu\n", ["relu"]),
    ],
)
def test_a_reference_is_counted(text: str, symbols: list[str]) -> None:
    expected = [f"flax.linen.{name}".rstrip(".") for name in symbols]
    assert [one.symbol for one in references(text)] == expected


@pytest.mark.parametrize(
    "text",
    [
        "import flax.linen as nn\nfrom flax.linen import Dense\n",
        NN + "def f(x: 'nn.Module'): ...\n",
        NN + "# nn.Dense\n",
        NN + '"""nn.Dense"""\n',
        NN + "x = []  # type: nn.Module\n",
        NN + "def f(nn): return nn.Dense\n",
        NN + "def f(*nn): return nn.Dense\n",
        NN + "f = lambda nn: nn.Dense\n",
        NN + "def f():\n    nn = 1\n    return nn.Dense\n",
        NN + "def f():\n    for nn in (): nn.Dense\n",
        NN + "def f():\n    with open('') as nn: nn.Dense\n",
        NN + "def f():\n    try: ...\n    except OSError as nn: nn.Dense\n",
        NN + "def f(x):\n    match x:\n        case nn: nn.Dense\n",
        NN + "def f():\n    import torch.nn as nn\n    return nn.Dense\n",
        NN + "[nn.Dense for nn in ()]\n",
        NN + "class A:\n    nn = 1\n    x = nn.Dense\n",
        NN + "def f():\n    if (nn := 1): nn.Dense\n",
        NN + "self.nn.Dense\n",
        NN + "del nn\n",
        "import flax\nflax\n",
        "import flax\nflax.core.freeze\n",
        "from flax import nnx as nn\nnn.Linear\n",
        "from flax import nnx, linen\nnnx.Linear\n",
        "import torch.nn as nn\nimport flax\nnn.Module\n",
        "from flax.training import train_state\ntrain_state.TrainState\n",
        "import flax_linen as nn\nnn.Dense\n",
        "nn.Dense\n",
    ],
)
def test_what_is_no_reference_is_not_counted(text: str) -> None:
    assert references(text) == []


@pytest.mark.parametrize(
    ("text", "layers"),
    [
        ("from layers import nn\nnn.Dense\n", "from flax import linen as nn\n"),
        ("from layers import Dense\nDense\n", "from flax.linen import Dense\n"),
        ("from layers import D\nD\n", "import flax.linen as nn\nD = nn.Dense\n"),
        ("from layers import *\nDense\n", "from flax.linen import Dense\n"),
        ("import layers\nlayers.nn.Dense\n", "import flax.linen as nn\n"),
        ("import layers as l\nl.nn.Dense\n", "import flax.linen as nn\n"),
        ("from layers import Dense\nDense\n", "from flax.linen import *\n"),
        ("from layers import Dense\nDense\n", "class Dense: ...\nfrom flax.linen import *\n"),
        (
            "from layers import Dense\nDense\n",
            "from flax.linen import *\nif 0:\n    class Dense: ...\n",
        ),
    ],
)
def test_a_reference_through_a_project_module_is_counted(text: str, layers: str) -> None:
    assert [one.symbol for one in references(text, layers=layers)] == ["flax.linen.Dense"]


@pytest.mark.parametrize(
    ("text", "layers"),
    [
        ("from layers import Dense\nDense\n", "import flax\nclass Dense: ...\n"),
        ("from layers import *\nDense\n", "from flax.linen import Dense\n__all__ = ['x']\n"),
        ("from layers import *\n_D\n", "from flax.linen import Dense as _D\n"),
        ("import layers\nlayers.Dense\n", "import flax.linen as nn\n"),
        ("import elsewhere\nelsewhere.nn.Dense\n", "import flax.linen as nn\n"),
        ("from layers import nn\ndef f(nn): nn.Dense\n", "import flax.linen as nn\n"),
        ("from layers import D\nD\n", "import flax.linen as nn\nD = nn.Dense(3)\n"),
        ("from layers import Block\nBlock\n", "from flax.linen import *\nclass Block: ...\n"),
        ("from layers import *\nBlock\n", "from flax.linen import *\nclass Block: ...\n"),
        ("import layers\nlayers.Block\n", "from flax.linen import *\nclass Block: ...\n"),
    ],
)
def test_what_a_project_module_does_not_hand_on_is_not_counted(text: str, layers: str) -> None:
    assert references(text, layers=layers) == []


@pytest.mark.parametrize(
    "statement",
    ["from ..layers import nn", "from .. import layers; nn = layers.nn", "from . import nn",
     "from pkg.layers import nn", "from pkg.sub import nn"],
)  # fmt: skip
def test_relative_imports_and_package_re_exports_are_followed(statement: str) -> None:
    sources = [
        Source("pkg/__init__.py", "pkg", ""),
        Source("pkg/layers.py", "pkg.layers", "import flax.linen as nn\n"),
        Source("pkg/sub/__init__.py", "pkg.sub", "from ..layers import nn\n"),
        Source("pkg/sub/model.py", "pkg.sub.model", f"{statement}\ndef f(): return nn.Dense\n"),
    ]
    found = [one for one in count(sources).references if one.scope == "pkg.sub.model.f"]
    assert [one.symbol for one in found] == ["flax.linen.Dense"]


def test_a_script_finds_its_neighbour_by_its_bare_name() -> None:
    sources = [
        Source("examples/layers.py", "examples.layers", NN),
        Source("examples/train.py", "examples.train", "from layers import nn\nnn.Dense\n"),
    ]
    assert [one.path for one in count(sources).references] == ["examples/train.py"]


def test_a_module_does_not_mean_itself_by_its_bare_name() -> None:
    sources = [Source("lib/nir.py", "lib.nir", f"{NN}import nir\nnir.nn.Dense\n")]
    assert count(sources).references == ()


def test_a_name_that_may_be_something_else_counts_as_uncertain() -> None:
    text = (
        "try:\n    import flax.linen as nn\nexcept ImportError:\n    import mine as nn\nnn.relu\n"
    )
    assert [one.certain for one in references(text)] == [False]


def test_a_name_with_two_linen_origins_is_certain() -> None:
    text = "try:\n    from flax.linen import a as x\nexcept ImportError:\n    from flax.linen.b import x\nx\n"
    assert [one.certain for one in references(text)] == [True]


def test_columns_count_characters_and_the_end_is_given() -> None:
    (place,) = references(NN + "x = 'äöü', nn.Dense\n")
    assert (place.line, place.column, place.end_line, place.end_column) == (2, 12, 2, 20)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_lines_are_the_same_for_every_kind_of_newline(newline: str) -> None:
    text = "\ufeff" + (NN + "\x0c\nx = 'ä'; nn.Dense\n").replace("\n", newline)
    assert [(one.line, one.column) for one in references(text)] == [(3, 10)]


@pytest.mark.parametrize(
    "text", ["import flax\nprint 'x'\n", "import flax\x00", "import flax\ndef"]
)
def test_a_file_that_does_not_parse_is_unreadable_and_the_others_are_counted(text: str) -> None:
    found = count([Source("bad.py", "bad", text), Source("ok.py", "ok", NN + "nn.Dense\n")])
    assert found.unreadable == ("bad.py",)
    assert [one.path for one in found.references] == ["ok.py"]


def test_imports_in_a_circle_end() -> None:
    sources = [
        Source("a.py", "a", "from b import *\nfrom b import y as x\nimport flax\nx.Dense\n"),
        Source("b.py", "b", "from a import *\nfrom a import x as y\nimport flax\n"),
    ]
    assert count(sources).references == ()


def test_very_deep_expressions_do_not_exhaust_the_stack() -> None:
    text = NN + "x = " + "1 + " * 900 + "nn.Dense\n"
    assert len(references(text)) == 1


def test_a_package_that_imports_its_own_submodule_by_name_is_followed_once() -> None:
    sources = [
        Source("p/__init__.py", "p", "from p import nets\nfrom p.nets import Net\n"),
        Source("p/nets.py", "p.nets", NN + "class Net(nn.Module):\n  pass\n"),
        Source("use.py", "use", "import p\np.nets.Net().apply({})\n"),
    ]
    assert [one.path for one in count(sources).references] == ["p/nets.py"]
    assert [one.path for one in count(sources).call_sites] == ["use.py"]
