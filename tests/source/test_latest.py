"""Which of several imports of a name its readers see."""

from __future__ import annotations

import pytest

from nnx_migrate.source.latest import latest_imports
from nnx_migrate.source.names import Import, Several
from nnx_migrate.source.project import parse

TWICE = "from .a import Block\nfrom .b import Block\n"
FILES = {"p.a": "class Block: ...\n", "p.b": "class Block: ...\n"}


def bound(text: str, **others: str) -> object:
    """What ``Block`` is in a package ``p`` of that text, with the modules ``a`` and ``b``."""
    named = {"p": text, **FILES, **{name.replace("__", "."): one for name, one in others.items()}}
    modules = {
        name: parse(name, f"{name}.py", one, is_package=name == "p") for name, one in named.items()
    }
    return {**modules, **latest_imports(modules)}["p"].table["Block"]


LAST = {
    "one after the other": TWICE,
    "with others between": "from .a import Block\nimport math\nfrom .a import Old\nfrom .b import Block\n",
    "with constants between": "from .a import Block\nSIZES = (3, 4)\nfrom .b import Block\n",
    "read behind them": TWICE + "class Net(Block):\n    part = Block(3)\n",
    "read in a function": "def f():\n    return Block()\n\n\n" + TWICE,
    "under an alias": "from .a import Old as Block\nfrom .b import Block\n",
    "three times": "from .b import Block\nfrom .a import Block\nfrom .b import Block\n",
    "in one statement": "from .a import Block, Block\nfrom .b import Old as Block, Block\n",
}


@pytest.mark.parametrize("text", LAST.values(), ids=LAST)
def test_the_last_import_holds(text: str) -> None:
    assert bound(text) == Import("p.b.Block")


def test_the_last_import_holds_for_modules_that_the_package_does_not_run() -> None:
    assert bound(TWICE, main="from p import Block\n") == Import("p.b.Block")
    assert bound(TWICE, p__a="from .b import Block\n") == Import("p.b.Block")


SEVERAL = {
    "one under a condition": "from .a import Block\nif FLAG:\n    from .b import Block\n",
    "one that may fail": "from .a import Block\ntry:\n    from .b import Block\nexcept ImportError:\n    pass\n",
    "one in a function": TWICE + "def f():\n    global Block\n    from .a import Block\n",
    "read between": "from .a import Block\nKINDS = {'block': Block}\nfrom .b import Block\n",
    "read in a class between": "from .a import Block\nclass K:\n    part = Block\nfrom .b import Block\n",
    "called between": "def f():\n    return Block\nfrom .a import Block\nx = f()\nfrom .b import Block\n",
    "a decorator between": "from .a import Block\n@register\ndef f(): ...\nfrom .b import Block\n",
    "a base between": "from .a import Block\nclass K(Base): ...\nfrom .b import Block\n",
    "stored, too": TWICE + "Block = 3\n",
    "taken away": TWICE + "del Block\n",
    "of another package": "from flax.linen import Dense as Block\nfrom .b import Block\n",
}


@pytest.mark.parametrize("text", SEVERAL.values(), ids=SEVERAL)
def test_a_name_that_may_mean_the_first_means_several(text: str) -> None:
    assert isinstance(bound(text), Several)


RUN = {
    "it takes the name": "from p import Block\n",
    "it takes all names": "from p import *\n",
    "it reads the attribute": "import p\n\n\ndef make():\n    return p.Block(3)\n",
    "in a function": "def make():\n    from p import Block\n",
}


@pytest.mark.parametrize("text", RUN.values(), ids=RUN)
@pytest.mark.parametrize("name", ["p__c", "p__b", "other"])
def test_a_module_that_the_package_runs_may_see_the_first(name: str, text: str) -> None:
    first, last = TWICE.splitlines(keepends=True)
    run = "import other\n" if name == "other" else "from . import c\n"
    assert isinstance(bound(first + run + last, **{name: text}), Several)


def test_a_module_of_the_package_that_has_the_name_may_be_what_it_means() -> None:
    assert isinstance(bound(TWICE, p__Block="x = 3\n"), Several)
