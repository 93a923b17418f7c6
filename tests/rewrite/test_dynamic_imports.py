"""Modules that code imports by computed names: which classes of them that code may take."""

import pytest

from tests.rewrite.projects import LINEN, dense
from tests.rewrite.test_forms import auto, said

HEAD = "import importlib\nimport sys\n\n"
TABLE = "TABLE = {'one': ('m', 'create')}\n\n\n"

# None of it takes the class A of the file m.
HARMLESS = {
    "its path": "def path(cls):\n    return sys.modules[cls.__module__].__file__\n",
    "another name": "def f(name):\n    return importlib.import_module(name).create()\n",
    "another name under a name": (
        "def f(name):\n    lib = importlib.import_module(name)\n    return lib.create(lib.other)\n"
    ),
    "for its side effects": "def f(name):\n    importlib.import_module(name)\n",
    "whether it is there": "def f(name):\n    return importlib.import_module(name) is not None\n",
    "another package": "def f(name):\n    return importlib.import_module(f'other.{name}')\n",
    "names of a table": (
        TABLE + "def f(key):\n    module, name = TABLE[key]\n"
        "    return getattr(importlib.import_module(module), name)\n"
    ),
    "names that are bound anew": (
        TABLE + "def f(key):\n    module, name = TABLE[key]\n"
        "    module = importlib.import_module(module)\n    name = getattr(module, name)\n"
        "    return name()\n"
    ),
    "a function's result": (
        "def load(name):\n    return importlib.import_module(name)\n\n\n"
        "def f(name):\n    return load(name).create()\n"
    ),
    "a package's hook": "def __getattr__(name):\n    return getattr(importlib.import_module(name), name)\n",
    "what functions of the project do not use": (
        "def look(lib, *, other=None):\n    return dir(lib), other.__name__\n\n\n"
        "def f(name):\n    lib = sys.modules[name]\n    return look(lib, other=lib)\n"
    ),
    "the namespace of a class": (
        "def f(cls, text):\n    exec(text, sys.modules[cls.__module__].__dict__.copy())\n"
    ),
    "names that are hidden": (
        "def f(name, parts):\n    lib = sys.modules[name]\n    for part in parts:\n"
        "        setattr(lib, '_' + part, getattr(lib, part))\n        delattr(lib, part)\n"
    ),
    "where names come from": (
        "for name in ['f', 'g']:\n    getattr(sys.modules[__name__], name).__module__ = __name__\n"
    ),
}

# Each may take the class A of the file m.
REACHING = {
    "any name": "def f(module, name):\n    return getattr(importlib.import_module(module), name)()\n",
    "its own name": "def f(name):\n    return importlib.import_module(name).A()\n",
    "its own name in a string": (
        "def f(name):\n    return getattr(importlib.import_module(name), 'A')()\n"
    ),
    "a table with it": (
        TABLE.replace("create", "A") + "def f(key):\n    module, name = TABLE[key]\n"
        "    return getattr(importlib.import_module(module), name)()\n"
    ),
    "a table that grows": (
        TABLE + "def add(key, name):\n    TABLE[key] = name\n\n\n"
        "def f(key):\n    module, name = TABLE[key]\n"
        "    return getattr(importlib.import_module(module), name)()\n"
    ),
    "a parameter that shadows a table": (
        "name = 'create'\n\n\ndef f(module, name):\n"
        "    return getattr(importlib.import_module(module), name)()\n"
    ),
    "handed on": "def f(name, use):\n    return use(importlib.import_module(name))\n",
    "handed to a function of the project": (
        "def make(kinds, kind):\n    return getattr(kinds, kind)()\n\n\n"
        "def f(name, kind):\n    return make(kinds=sys.modules[name], kind=kind)\n"
    ),
    "unpacked into a function of the project": (
        "def look(*libs):\n    return libs\n\n\ndef f(name):\n    return look(sys.modules[name])\n"
    ),
    "copied into another module": (
        "def f(name, part, other):\n    setattr(other, part, getattr(sys.modules[name], part))\n"
    ),
    "kept for others": "def f(name, o):\n    o.lib = importlib.import_module(name)\n",
    "kept by the file": "import os\n\nlib = importlib.import_module(os.environ['LIB'])\n",
    "returned to a caller that asks": (
        "def load(name):\n    return importlib.import_module(name)\n\n\n"
        "def f(name, kind):\n    return getattr(load(name), kind)()\n"
    ),
    "a function that is handed on": (
        "def load(name):\n    return importlib.import_module(name)\n\n\n"
        "def f(use):\n    return use(load)\n"
    ),
    "everything in it": "def f(name):\n    return vars(importlib.import_module(name))\n",
    "from sys.modules": "def f(name, kind):\n    return getattr(sys.modules.get(name), kind)()\n",
    "its own package": (
        "KINDS = ['A']\n\n\ndef f(name, kind):\n"
        "    return getattr(importlib.import_module('.' + name, __package__), kind)()\n"
    ),
    "a fixed name": (
        "def f(kind):\n    lib = importlib.import_module('m')\n    return getattr(lib, kind)()\n"
    ),
}


def forms(text: str) -> dict[str, str]:
    model = LINEN + dense("A") + "def main(k, x):\n    return A().init(k, x)\n"
    return said(auto({"m.py": model, "load.py": HEAD + text}))


@pytest.mark.parametrize("text", HARMLESS.values(), ids=HARMLESS)
def test_code_that_cannot_take_a_class_leaves_it_explicit(text: str) -> None:
    assert forms(text) == {"m.A": "explicit"}


@pytest.mark.parametrize("text", REACHING.values(), ids=REACHING)
def test_code_that_may_take_a_class_makes_it_lazy(text: str) -> None:
    assert forms(text) == {"m.A": "lazy"}
