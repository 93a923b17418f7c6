"""A class whose name may mean something else is lazy: no call of it can be told from others."""

import pytest

from tests.rewrite.projects import LINEN, dense
from tests.rewrite.test_accesses import MODEL, form
from tests.rewrite.test_forms import auto, code, reason, said

EITHER = "try:\n    from m import {0}\nexcept ImportError:\n    {1} = None\n\nuse({1}())\n"
AMBIGUOUS = {
    "an import that may fail": EITHER.format("A", "A"),
    "one with an alias": EITHER.format("A as N", "N"),
    "one of its module": EITHER.format("main", "main").replace(
        "from m import main", "import m as main"
    ),
    "one or another": (
        "if FLAG:\n    from m import A as Net\nelse:\n    from other import B as Net\n\nuse(Net())\n"
    ),
    "in a function": (
        "def f(k):\n    if k:\n        from m import A as Net\n    else:\n        Net = None\n    use(Net)\n"
    ),
    "a name that is bound anew": "import functools\nfrom m import A\n\nA = functools.partial(A)\nuse(A())\n",
    "a name that is taken away": "from m import A as N\n\nM = N\ndel N\nuse(M())\n",
    "a name that a function binds": (
        "Net = None\n\n\ndef load():\n    global Net\n    from m import A as Net\n\n\nuse(Net())\n"
    ),
    "an attribute of a class": "class Zoo:\n    from m import A as net\n\n\nuse(Zoo.net())\n",
    "a star and an assignment": (
        "import functools\nfrom m import *\n\nA = functools.partial(A)\nuse(A())\n"
    ),
    "a fallback for a module that is not there": (
        "try:\n    from gone import Big as N\nexcept ImportError:\n    from m import A as N\n\nuse(N())\n"
    ),
}
PLAIN = {
    "an alias": "from m import A as N\n\n\ndef f(k, x):\n    return N().init(k, x)\n",
    "imports of the same": "from m import A\nfrom m import A\n\n\ndef f(k, x):\n    return A().init(k, x)\n",
    "an import in each function": (
        "def f(k, x):\n    from m import A\n\n    return A().init(k, x)\n\n\n"
        "def g(k, x):\n    from m import A\n\n    return A().init(k, x)\n"
    ),
    "another name that is bound twice": EITHER.format("width", "width").replace("use", "print"),
}


@pytest.mark.parametrize("text", AMBIGUOUS.values(), ids=AMBIGUOUS)
def test_a_class_of_an_ambiguous_name_is_lazy(text: str) -> None:
    assert form(text) == "lazy"


@pytest.mark.parametrize("text", PLAIN.values(), ids=PLAIN)
def test_a_class_of_one_name_is_explicit(text: str) -> None:
    assert form(text) == "explicit"


@pytest.mark.parametrize("made", ["functools.partial(A, name='a')", "nn.remat(A)"])
def test_a_class_whose_own_name_becomes_something_else_is_lazy(made: str) -> None:
    model = f"import functools\n{LINEN}{dense('A')}A = {made}\n"
    assert form("from m import A\n\n\ndef f(k, x):\n    return A().init(k, x)\n", model) == "lazy"


def test_the_other_classes_of_the_file_are_explicit() -> None:
    text = MODEL + "\n\n" + dense("B") + "def run(k, x):\n    return B().init(k, x)\n"
    result = auto({"m.py": text, "f.py": EITHER.format("A", "A")})
    assert said(result) == {"m.A": "lazy", "m.B": "explicit"}


BASES = {
    "Linen or nothing": (
        "try:\n    import flax.linen as nn\nexcept ImportError:\n    nn = None\n\n\n" + dense("A")
    ),
    "Linen or a stand-in": (
        "import types\n\ntry:\n    import flax.linen as nn\nexcept ImportError:\n"
        "    nn = types.SimpleNamespace(Module=object, compact=None)\n\n\n" + dense("A")
    ),
    "nothing until a function imports it": (
        "nn = None\n\n\ndef load():\n    global nn\n    import flax.linen as nn\n\n\nload()\n\n\n"
        + dense("A")
    ),
    "a class of the project or another": (
        LINEN + "try:\n    from b import B\nexcept ImportError:\n    B = object\n\n\n"
        "class A(B):\n    width: int = 3\n"
    ),
}


@pytest.mark.parametrize("text", BASES.values(), ids=BASES)
def test_a_class_whose_base_may_be_something_else_is_lazy_alone(text: str) -> None:
    other = LINEN + dense("B") + dense("C") + "def run(k, x):\n    return C().init(k, x)\n"
    result = auto({"m.py": text, "b.py": other})
    assert not [one for one in result.findings if one.rule == "internal"]
    forms = said(result)
    assert forms["m.A"] == "lazy"
    assert "may mean something else, too" in reason(result, "m.A")
    assert forms["b.C"] == "explicit"
    assert "Module, Module" not in code(result)


TWICE = "from m import A, layer\nfrom other import A, layer\n"
USER = LINEN + (
    "from zoo import A, layer\n\n\nclass Net(nn.Module):\n    @nn.compact\n    def __call__(self, x):\n"
    "        return layer(A()(x))\n\n\ndef run(k, x):\n    return Net().init(k, x)\n"
)
LAYER = "def layer(x):\n    return nn.Dense({0})(x)\n"


def zoo(text: str) -> dict[str, str]:
    """A file that imports two classes and two functions of the same names, and one that uses them."""
    first, second = MODEL + LAYER.format(3), LINEN + dense("A") + LAYER.format(5)
    return {"m.py": first, "other.py": second, "zoo.py": text, "user.py": USER}


def test_a_name_that_is_imported_twice_is_the_last() -> None:
    result = auto(zoo(TWICE))
    assert said(result) == {"m.A": "explicit", "other.A": "explicit", "user.Net": "explicit"}
    assert "nnx.Linear(" in code(result, "other.py")
    assert "init_layer" not in code(result, "m.py")
    assert code(result, "zoo.py") == TWICE.replace("A, layer\n", "A, layer, init_layer\n").replace(
        "from m import A, layer, init_layer", "from m import A, layer"
    )


def test_a_name_that_is_used_between_its_imports_may_be_both() -> None:
    result = auto(zoo(TWICE.replace("from other", "use(A)\nfrom other")))
    assert said(result) == {"m.A": "lazy", "other.A": "lazy", "user.Net": "lazy"}
