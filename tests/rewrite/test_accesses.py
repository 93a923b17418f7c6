"""Code that may get a class without writing its name leaves it lazy; what cannot leaves it explicit."""

import pytest

from nnx_migrate.source.settings import Settings
from tests.rewrite.projects import LINEN, dense
from tests.rewrite.test_forms import auto, said

MODEL = LINEN + dense("A") + "def main(k, x):\n    return A().init(k, x)\n"


def form(text: str, model: str = MODEL) -> str | None:
    """What becomes of the class A of the file m beside a file with ``text``."""
    return said(auto({"m.py": model, "f.py": text}))["m.A"]


# ---- names in strings

STAR = {"pkg.py": "from m import *\n", "top.py": "from pkg import *\n"}
LISTED = "__all__ = ['main']\n"
ASKED = "import top\n\n\ndef f(n):\n    return vars(top)[n]()\n"
NAMES = {
    "globals of a file that imports it": (
        {"pkg.py": "from m import A\n\n\ndef f(n):\n    return globals()[n]()\n"},
        "lazy",
    ),
    "its other name in a string": (
        {"pkg.py": "from m import A as Z\n\n\ndef f():\n    return globals()['Z']()\n"},
        "lazy",
    ),
    "its name in a string": (
        {"f.py": "import m\n\n\ndef f():\n    return vars(m)['A']()\n"},
        "lazy",
    ),
    "another name in a string": ({"m.py": "FILE = globals()['__file__']\n"}, "explicit"),
    "another name of the module": ({"f.py": "import m\n\nFILE = m.__dict__['main']\n"}, "explicit"),
    "a chain of stars": ({**STAR, "f.py": ASKED}, "lazy"),
    "a chain of stars that leaves it out": ({**STAR, "m.py": LISTED, "f.py": ASKED}, "explicit"),
    "a list of names that grows": (
        {**STAR, "m.py": LISTED + "__all__ += [A.__name__]\n", "f.py": ASKED},
        "lazy",
    ),
    "an alias that a list has": (
        {
            "pkg.py": "from m import A as Z\n\n__all__ = ['Z']\n",
            "top.py": STAR["top.py"],
            "f.py": ASKED,
        },
        "lazy",
    ),
}


@pytest.mark.parametrize(("files", "form"), NAMES.values(), ids=NAMES)
def test_names_that_are_read_by_strings(files: dict[str, str], form: str) -> None:
    assert said(auto({**files, "m.py": MODEL + files.get("m.py", "")})) == {"m.A": form}


# ---- modules as values

GETTING = {
    "every member": "import inspect\nimport m\n\nFOUND = inspect.getmembers(m)\n",
    "an attribute getter": "import operator\nimport m\n\nNET = operator.attrgetter(NAME)(m)()\n",
    "getattr by another name": "import m\n\nget = getattr\nNET = get(m, NAME)()\n",
    "getattr over modules": "import m\n\nNETS = list(map(getattr, [m], NAMES))\n",
    "the module in a function": "def f(name):\n    import m\n\n    return vars(m)[name]()\n",
    "a loop over modules": "import m\n\nfor one in (m,):\n    use(getattr(one, NAME))\n",
    "the module's own way to read": "import m\n\nNET = m.__getattribute__(NAME)()\n",
    "a fake in its place": "import m\n\nsetattr(m, 'A', make)\n",
}
HOLDING = {
    "another name that is set": "import m\n\nsetattr(m, 'B', 1)\n",
    "whether it is there": "import m\n\nif m is not None and hasattr(m, 'A'):\n    pass\n",
    "where it lies": "import m\n\nprint(m.__file__)\n",
    "an alias": "import m\n\nmodels = m\n\n\ndef f():\n    return models.main\n",
    "a parameter of its name": "def f(m, name):\n    return getattr(m, name)\n",
    "what describes its classes": (
        "import m\n\nTEXTS = [getattr(m, name).__doc__ for name in NAMES]\n"
    ),
}


@pytest.mark.parametrize("text", GETTING.values(), ids=GETTING)
def test_a_module_as_a_value_may_give_any_class(text: str) -> None:
    assert form(text) == "lazy"


@pytest.mark.parametrize("text", HOLDING.values(), ids=HOLDING)
def test_a_module_as_a_value_may_give_no_class(text: str) -> None:
    assert form(text) == "explicit"


def test_a_name_that_a_package_takes_from_its_module_is_no_module() -> None:
    files = {
        "p/__init__.py": "from .act import *\n",
        "p/act.py": "import flax.linen as nn\n\n\ndef act(x):\n    return nn.relu(x)\n",
        "m.py": f"from p import act\n{MODEL}\n\nACTS = [p.act]\n",
        "f.py": "import p\n\nACTS = [p.act]\n",
    }
    assert said(auto(files)) == {"m.A": "explicit"}


# ---- names that only the running program knows

COMPUTED = {
    "evaluated text": "from m import A\n\nNET = eval(NAME)()\n",
    "text of a module's name": "import m\n\nNET = eval(f'm.{NAME}')()\n",
    "text as it stands": "import m\n\nNET = eval('m.A()')\n",
    "statements": "import m\n\nexec('net = m.A()')\n",
    "a file of statements": "from m import A\n\nexec(open('config.py').read())\n",
    "code for another process": "import m\n\nRUN = ['python', '-c', 'import m; m.A()']\n",
    "all modules": "import sys\nimport m\n\nALL = [vars(one) for one in sys.modules.values()]\n",
    "local names": "def f(name):\n    from m import A\n\n    return locals()[name]()\n",
    "all subclasses": "import flax.linen as nn\nimport m\n\nALL = nn.Module.__subclasses__()\n",
    "subclasses of some class": "import m\n\n\ndef f(cls):\n    return cls.__subclasses__()\n",
}
KNOWN = {
    "text that names no class": "import m\n\nWIDTH = eval('m.main')\n",
    "a method": "import m\n\n\ndef f(model):\n    return model.eval()\n",
    "prose": "import m\n\nTEXT = 'from here on A is meant'\n",
    "local names without a class": "import m\n\n\ndef f(a, b):\n    return '%(a)s' % locals()\n",
    "a loaded module": "import sys\nimport m\n\nHAS = 'torch' in sys.modules\n",
    "other subclasses": "import m\n\n\nclass B:\n    pass\n\n\nALL = B.__subclasses__()\n",
}


@pytest.mark.parametrize("text", COMPUTED.values(), ids=COMPUTED)
def test_a_name_that_is_computed_may_be_the_class(text: str) -> None:
    assert form(text) == "lazy"


@pytest.mark.parametrize("text", KNOWN.values(), ids=KNOWN)
def test_a_name_that_is_computed_cannot_be_the_class(text: str) -> None:
    assert form(text) == "explicit"


# ---- examples in docstrings

EXAMPLE = '"""A file.\n\n>>> from m import A\n>>> net = A()\n"""\n'
PROSE = '"""A file.\n\nSee A, or::\n\n    net = A()\n"""\n'


@pytest.mark.parametrize(
    ("text", "runs", "form"),
    [
        (EXAMPLE, True, "lazy"),
        (EXAMPLE + "import doctest\n\ndoctest.testmod()\n", False, "lazy"),
        (EXAMPLE + "OPTIONS = ['--doctest-modules']\n", False, "lazy"),
        (EXAMPLE, False, "explicit"),
        (PROSE, True, "explicit"),
    ],
)
def test_examples_that_tests_run_call_the_class_as_linens(text: str, runs: bool, form: str) -> None:
    settings = Settings(runs_examples=runs)
    assert said(auto({"m.py": MODEL, "f.py": text}, settings=settings)) == {"m.A": form}


def test_an_example_of_several_lines_is_read() -> None:
    text = (
        'def f():\n    """F.\n\n    >>> nets = [\n    ...     m.A() for _ in range(3)]\n    """\n'
    )
    result = auto({"m.py": MODEL, "f.py": text}, settings=Settings(runs_examples=True))
    assert said(result) == {"m.A": "lazy"}
