"""Every module that can name Linen or a Linen class is found; others are not looked into."""

from __future__ import annotations

import pytest

from nnx_migrate.source.linen_modules import linen_modules
from nnx_migrate.source.project import Project, parse

NET = "import flax.linen as nn\nclass Net(nn.Module):\n    width: int = 3\n"
BASE = {
    "pkg": "",
    "pkg.net": NET + "make = partial(Net, 3)\ndef build(): return Net()\nsize = 3\n",
}
LINKED = {
    "the class by its name": "from pkg.net import Net\n",
    "the class under another name": "from .net import Net as N\n",
    "its module": "from pkg import net\n",
    "its module by its whole name": "import pkg.net as models\n",
    "everything of its module": "from pkg.net import *\n",
    "a partial of it": "from pkg.net import make\n",
    "Linen in a function": "def f():\n    from flax import linen\n",
    "Linen through flax": "import flax\n",
    "everything of flax": "from flax import *\n",
    "lazy Linen": "from nnx_migrate import linen as nn\n",
    "a layer": "from flax.linen import Dense\n",
    "Linen of another file": "from pkg.net import nn\n",
}
OTHERS = {
    "nothing": "x = 1\n",
    "other parts of flax": "from flax import struct\nfrom flax.core import freeze\n",
    "a number of its module": "from pkg.net import size\n",
    "a name like it of another package": "from torch.models import Net\nimport torch.nn as nn\n",
}


def found(text: str, name: str = "pkg.other", **more: str) -> bool:
    texts = {**BASE, name: text, **more}
    modules = {
        one: parse(one, f"{one.replace('.', '/')}.py", code, is_package=one == "pkg")
        for one, code in texts.items()
    }
    linked = linen_modules(Project(modules))
    assert "pkg.net" in linked
    return name in linked


@pytest.mark.parametrize("text", LINKED.values(), ids=LINKED)
def test_is_linked(text: str) -> None:
    assert found(text)


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
def test_is_not_linked(text: str) -> None:
    assert not found(text)


def test_a_name_that_a_package_hands_on_under_another_one_links_its_users() -> None:
    texts = {
        "api": "from pkg.net import Net as Model\n",
        "alias": "from api import Model\nM = Model\n",
    }
    assert found("from alias import M\n", **texts)
